package files

import (
	"context"
	"os"

	"thalweg/internal/fault"
	"thalweg/internal/parquetfile"
)

// CheckQueryParquet verifies the pages of Parquet files that a query reads by
// itself, with DuckDB's names and types, and refuses what DuckDB is known to
// read wrongly there. (What it may read wrongly but hardly ever does, small
// decimals in INT32 that are not small, it cannot tell.)
func CheckQueryParquet(ctx context.Context, slices []Slice) error {
	return eachInOrder(ctx, len(slices), func(ctx context.Context, i int) error {
		s := slices[i]
		if err := s.unchanged(); err != nil {
			return err
		}
		foot, err := readFooter(s.Path, s.URL, func(string) bool { return true })
		if err != nil {
			return err
		}
		if foot.SharedNames() {
			return queryFault(s.URL, "two of its columns have the same name, or differ in case only")
		}
		for _, c := range foot.Columns {
			if cutByDuckDB(c) {
				return queryFault(s.URL, "column "+quoteList([]string{c.Name})+" is "+c.Type+", of which DuckDB cuts values")
			}
		}
		f, err := os.Open(s.Path)
		if err != nil {
			return openFault(s.URL, err)
		}
		defer f.Close()
		one := parquetSlice{Slice: s, foot: foot, to: len(foot.Groups)}
		_, err = one.verify(ctx, f)
		return err
	})
}

func queryFault(u, what string) error {
	f := inputFault(fault.UserData, u, "a query cannot read the file: %s", what)
	f.Hint = "load it with a file_table, which reads such files, and give the query its table"
	return f
}

// cutByDuckDB reports columns whose bytes DuckDB cuts without a word, and that
// hardly any writer writes otherwise.
func cutByDuckDB(c parquetfile.Column) bool {
	const intDigits = 9
	switch c.Kind {
	case parquetfile.Decimal:
		return c.Precision < 1 || c.Precision > wideDigits || c.Physical == parquetfile.Int64 && c.Precision <= intDigits
	case parquetfile.Int:
		return c.Physical == parquetfile.Int64 && c.Bits > 0 && c.Bits < 64
	}
	return false
}
