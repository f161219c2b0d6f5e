package infer

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

func makeParquet(t *testing.T, path, query string) {
	t.Helper()
	in, err := engine.OpenInstance(t.Context(), engine.InstanceConfig{MemoryBytes: 64 << 20, Threads: 1,
		SpillDir: t.TempDir(), Paths: []string{path}})
	require.NoError(t, err)
	require.NoError(t, in.Exec(t.Context(), "COPY ("+query+") TO "+sqltext.String(path)+" (FORMAT parquet)"))
	require.NoError(t, in.Close())
}

// crafted unpacks a file that says other things of its values than they are.
func crafted(t *testing.T, name string) string {
	t.Helper()
	archive, err := zip.OpenReader("../../io/files/testdata/parquet/corpus.zip")
	require.NoError(t, err)
	defer archive.Close()
	f, err := archive.Open(name)
	require.NoError(t, err)
	raw, err := io.ReadAll(f)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	return path
}

// TestParquetAsItIsRead: what is said of a column is what a run reads of it,
// also where DuckDB would believe what the file declares.
func TestParquetAsItIsRead(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"x_int_8_in_int32.parquet": {"v int: INT32 INT_8, -2147483648 … 2147483647"},
		"x_statistics_lie.parquet": {"v int: INT64, 1 … 1000000"},
		"x_names_shared.parquet": {
			`a invalid: left out: the file has 2 columns "a"`, `a_2 invalid: left out: the file has 2 columns "a"`,
			"a_1 int: INT64, 2 … 102", "a_2 int: INT64, 3 … 103"},
		"x_unsigned.parquet": {
			"u32 int: INT32 UINT_32, 5 … 4294967295", "u64 int: INT64 UINT_64, 0 … 9223372036854775807",
			"large decimal(20,0): INT64 UINT_64, 0 … 18446744073709551615"},
		"x_int64_decimal_2_2.parquet": {
			"v3 decimal2: INT64 DECIMAL(2,2), 0.00 … 490000.00", "v5 decimal2: INT64 DECIMAL(2,2), -1234567.89 … 0.00",
			"v9 decimal(38,2): INT64 DECIMAL(2,2), 0.00 … 10000000000000000.00"},
		"x_timestamp_us_local_ends.parquet": {
			"v1 timestamptz: INT64 TIMESTAMP(MICROS), 1969-12-31 23:59:59.9999 … 1970-01-01 00:00:00+00",
			`v5 invalid: left out: value "9223372036854775807" of column "v5" (INT64 TIMESTAMP(MICROS)) does not fit timestamptz (record 2)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Files(t.Context(), []string{crafted(t, name)}, options(t))
			require.NoError(t, err)
			var got []string
			for _, c := range p.Columns {
				got = append(got, c.Name+" "+one(c))
			}
			require.Subset(t, got, want)
			loads(t, p)
		})
	}
}

// TestParquetOfNothing: a script cannot be written.
func TestParquetOfNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "in.parquet")
	makeParquet(t, path, "SELECT map([1], [2]) AS list, TIME '10:00' AS noon")
	_, err := Files(t.Context(), []string{path}, options(t))
	require.ErrorContains(t, err,
		`no column of the file can be read; the first, "list": nested or repeated in the file cannot be read`)
	require.Equal(t, fault.UserData, fault.Of(err).Kind)
}

// TestParquetOfLists: the proposed script has lists and structs, and writes them to a file that takes them.
func TestParquetOfLists(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "in.parquet")
	makeParquet(t, path, "SELECT 1 AS id, ['x'] AS tags, {'a b': 1.5::DOUBLE} AS s")
	p, err := Files(t.Context(), []string{path}, options(t))
	require.NoError(t, err)
	require.Equal(t, "list(string)", p.Columns[1].Type.String())
	require.Equal(t, `struct("a b" float)`, p.Columns[2].Type.String())
	loads(t, p)
}

// TestParquetOfNulls: a column that is of the type of nulls in some files has that of the others.
func TestParquetOfNulls(t *testing.T) {
	t.Parallel()
	crafted := func(name string) script.FileColumn {
		return script.FileColumn{Name: name, Kind: "INT32 NULL", Nothing: true}
	}
	text := script.FileColumn{Name: "c", Type: expr.String, Kind: "BYTE_ARRAY UTF8"}
	lists := script.FileColumn{Name: "c", Kind: "INT64 TIME"}
	for name, c := range map[string]struct {
		files []script.FileColumn
		want  string
	}{
		"first":  {[]script.FileColumn{crafted("c"), text}, "string; no values in 0"},
		"second": {[]script.FileColumn{text, crafted("c")}, "string; no values in 1"},
		"both":   {[]script.FileColumn{crafted("c"), crafted("c")}, "invalid"},
		"unreadable": {[]script.FileColumn{crafted("c"), lists},
			"invalid INT64 TIME in the file cannot be read; no values in 0"},
	} {
		p := &Proposal{Files: []string{"0", "1"}}
		u := parquetFiles{Proposal: p, at: map[string]int{}}
		for i, f := range c.files {
			u.add(fmt.Sprint(i), i, []script.FileColumn{f})
		}
		require.Len(t, p.Columns, 1, name)
		got := p.Columns[0].Type.String()
		if p.Columns[0].left != "" {
			got += " " + p.Columns[0].left
		}
		require.Equal(t, c.want, got+p.Columns[0].behind, name)
	}
}

// TestParquetOfTwoTypes: a column whose type differs between files is read in one that holds the values of all.
func TestParquetOfTwoTypes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ first, second, want string }{
		"int, float":         {"1::BIGINT", "2.5::DOUBLE", "float"},
		"float, int":         {"2.5::DOUBLE", "1::BIGINT", "float"},
		"int, large decimal": {"9223372036854775807", "1.5::DECIMAL(3,1)", "decimal(38,2)"},
		"int, decimal":       {"1::BIGINT", "1.5::DECIMAL(3,1)", "decimal2"},
		"fine decimal, int":  {"1.234::DECIMAL(6,3)", "1::BIGINT", "decimal(22,3)"},
		"decimals":           {"1.5::DECIMAL(6,1)", "1.2345::DECIMAL(9,4)", "decimal(20,4)"},
		"decimal, float":     {"1.5::DECIMAL(6,1)", "2.25::DOUBLE", "float"},
		"text, int":          {"'A1'", "17", "string"},
		"int, text":          {"17", "'A1'", "string"},
		"text, float":        {"'A1'", "17.0::DOUBLE", "string"},
		"text, bool":         {"'A1'", "true", "string"},
		"text, day":          {"'A1'", "DATE '2024-01-31'", "string"},
		"int, bool":          {"17", "true", "string"},
		"day, time":          {"DATE '2024-01-31'", "TIMESTAMP '2024-01-31 10:00:00'", "datetime"},
		"micros, UTC": {"TIMESTAMP '2024-01-31 10:00:00'", "TIMESTAMPTZ '2024-01-31 10:00:00.123456Z'",
			"timestamptz"},
		"text, time":       {"'A1'", "TIMESTAMP '2024-01-31 10:00:00'", "invalid"},
		"large int, float": {"9007199254740993", "0.5::DOUBLE", "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			paths := []string{filepath.Join(dir, "a.parquet"), filepath.Join(dir, "b.parquet")}
			makeParquet(t, paths[0], "SELECT 1 AS id, "+c.first+" AS c")
			makeParquet(t, paths[1], "SELECT 2 AS id, "+c.second+" AS c")
			p, err := Files(t.Context(), paths, options(t))
			require.NoError(t, err)
			require.Equal(t, c.want, p.Columns[1].Type.String(), p.Columns[1].Evidence)
			require.Equal(t, map[string]DoubtKind{"string": Guessed, "timestamptz": Guessed,
				"invalid": LeftOut}[c.want] != "",
				len(p.Doubts) > 0)
			loads(t, p)
		})
	}
}

// TestParquetNamesWithBraces: a script would take them for parameters.
func TestParquetNamesWithBraces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "in.parquet")
	makeParquet(t, path, `SELECT 1 AS id, 2 AS "{x}"`)
	p, err := Files(t.Context(), []string{path}, options(t))
	require.NoError(t, err)
	require.Equal(t, expr.Invalid, p.Columns[1].Type)
	require.Contains(t, p.Doubts, Doubt{LeftOut, `column "{x}": its name has braces, in which scripts have parameters`})
	loads(t, p)
}
