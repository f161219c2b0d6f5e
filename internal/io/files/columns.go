package files

import (
	"context"
	"fmt"
	"io"

	"thalweg/internal/base/allow"

	"thalweg/internal/base/address"
	"thalweg/internal/io/parquetfile"
	"thalweg/internal/io/records"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
)

// Look looks at files before a run exists.
type Look struct {
	Dir    string        // see Places
	Policy *allow.Policy // see Places
	// Remote makes a remote file's beginning, or a Parquet file's footer, readable
	// at a path of this machine until done is called. nil: they cannot be looked at.
	Remote func(ctx context.Context, url string, parquet bool) (path string, done func(), err error)
	// List lists the files of a server that match a pattern. nil: they cannot be looked at.
	List func(ctx context.Context, pattern string) ([]string, error)
}

// At says where a file is, or what there is to see of it, until done is called.
func (l Look) At(ctx context.Context, u string, parquet bool) (at Places, done func(), err error) {
	at.Dir, at.Policy = l.Dir, l.Policy
	if l.Remote == nil || !address.Remote(u) {
		return at, func() {}, nil
	}
	path, done, err := l.Remote(ctx, u, parquet)
	at.Copies = map[string]Copy{u: {Path: path}}
	return at, done, err
}

// Columns lists the columns that an input file has: of a CSV file its header
// record's texts, all strings; of a Parquet file those of its schema, with the
// type that they are read as (Invalid: none). A name that stands for several
// files stands for the first of them. It reads at most what lies before the
// first data record, or the footer.
func Columns(ctx context.Context, look Look, u string, c script.CSVReader, parquet bool) ([]script.FileColumn, error) {
	if look.List != nil && RemotePattern(u) {
		found, err := look.List(ctx, u)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, noMatch(script.FileURL{URL: u})
		}
		u = found[0]
		look.List = nil
	}
	at, done, err := look.At(ctx, u, parquet)
	if err != nil {
		return nil, err
	}
	defer done()
	at.Listed = map[string][]string{u: {u}} // a name that was found may look like a pattern
	urls, err := Expand(ctx, at, []script.FileURL{{URL: u}})
	if err != nil {
		return nil, err
	}
	in, err := stat(urls[0], at)
	if err != nil {
		return nil, err
	}
	if parquet {
		return parquetColumns(in)
	}
	if c.Made != nil && c.Made.Format == filespec.Workbooks {
		return sheetColumns(ctx, in, *c.Made)
	}
	if c.Made != nil {
		return jsonColumns(in, c)
	}
	return headerColumns(in, c)
}

// jsonColumns looks at the keys of the first records.
func jsonColumns(in Input, c script.CSVReader) ([]script.FileColumn, error) {
	f, err := openHead(&script.FileReader{CSV: c}, in)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, HeadBytesMax))
	if err != nil {
		return nil, in.source().unread(err)
	}
	found, err := records.Look(text)
	if err != nil {
		f := in.source().bad("the columns of the file cannot be seen: %s", err)
		f.Hint = "JSON files have an object a record: one a line, or in a list"
		return nil, f
	}
	for i, key := range found {
		found[i].Key = filespec.KeyPath(key.Key)
	}
	return foundColumns(found), nil
}

func foundColumns(found []records.Found) []script.FileColumn {
	out := make([]script.FileColumn, len(found))
	for i, key := range found {
		out[i] = script.FileColumn{Name: key.Key, Type: expr.String, Optional: key.Missing}
		if t, ok := expr.ParseType(string(key.Value)); ok {
			out[i].Type = t
		}
	}
	return out
}

// sheetColumns looks at the header and the first rows of a sheet.
func sheetColumns(ctx context.Context, in Input, spec filespec.Spec) ([]script.FileColumn, error) {
	f, err := in.source().open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := records.LookExcel(ctx, f, in.Bytes, spec)
	if err != nil {
		return nil, in.source().named(err)
	}
	out := foundColumns(found)
	for i, key := range found {
		if key.Key == "" {
			out[i].Kind = fmt.Sprintf("%s%d", key.Letters, key.Row)
		}
	}
	return out, nil
}

func parquetColumns(in Input) ([]script.FileColumn, error) {
	f, err := in.source().footer(nil)
	if err != nil {
		return nil, err
	}
	out := make([]script.FileColumn, len(f.Columns))
	for i, c := range f.Columns {
		out[i] = script.FileColumn{Name: c.Name, Type: columnType(c), Kind: c.Type, Required: c.Required,
			Nothing: c.Kind == parquetfile.Null}
		if c.Kind == parquetfile.Nested {
			out[i].Required, out[i].Type = false, nestedType(f.Element(i))
		}
	}
	return out, nil
}

// columnType is the type that a Parquet column is read as when the script
// leaves it to the file.
func columnType(c parquetfile.Column) expr.Type {
	switch c.Kind {
	case parquetfile.String, parquetfile.Binary:
		return expr.String
	case parquetfile.Int:
		return expr.Int
	case parquetfile.Float:
		return expr.Float
	case parquetfile.Bool:
		return expr.Bool
	case parquetfile.Decimal:
		return decimalType(c)
	case parquetfile.Date:
		return expr.Date
	case parquetfile.TimestampTZ:
		if c.Unit != parquetfile.Milliseconds {
			return expr.Instant
		}
		return expr.DateTime
	case parquetfile.Timestamp, parquetfile.Int96:
		return expr.DateTime
	}
	return expr.Invalid
}

// decimalType is the type that holds all values of a decimal column, as far as there is one.
func decimalType(c parquetfile.Column) expr.Type {
	if c.Scale <= columnScale && c.Precision-c.Scale <= wholeDigits {
		return expr.Decimal
	}
	scale := c.Scale
	if scale == wideDigits { // no type has so many behind the point: a value that uses the last is an error
		scale--
	}
	t, _ := expr.ParseType(expr.DecimalOf(min(max(c.Precision, scale+1), wideDigits), scale).String())
	return t
}

// headerColumns reads the header record.
func headerColumns(in Input, c script.CSVReader) ([]script.FileColumn, error) {
	r := &script.FileReader{CSV: c}
	r.CSV.ByHeader = true
	if err := csvDialect(r); err != nil {
		return nil, err
	}
	f, err := openHead(r, in)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w, err := in.source().walkFile(f, c.Separator)
	if err != nil {
		return nil, err
	}
	for i := 0; ; i++ {
		rec, ok, err := headRecord(r, w, i < c.HeaderRecord)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			f := w.src.bad("the file ends before its header: it has %s, hdr_line_idx is %d",
				counted(i, "record"), c.HeaderRecord)
			f.Hint = "the columns are those of the first file: name one first that has its header in record " +
				"hdr_line_idx, counted from 0; or list the columns: columns: {name: type}"
			return nil, f
		case w.offset >= HeadBytesMax:
			return nil, w.src.headTooLong()
		case i < c.HeaderRecord:
			continue
		}
		if err := checkHeader(w, rec); err != nil {
			return nil, err
		}
		out := make([]script.FileColumn, len(rec.shape.fields))
		for k, text := range rec.shape.values(rec.text) {
			out[k] = script.FileColumn{Name: text, Type: expr.String}
		}
		return out, nil
	}
}
