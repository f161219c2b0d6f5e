package outfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
)

// filesMax bounds the files of one output.
const filesMax = 10_000

// dirMode is that of the directories of an output, before the process's mask.
const dirMode = 0o777

// dirWriter writes a directory of files.
type dirWriter struct {
	db    Engine
	o     Output
	inner *script.FileWriter // of what is in the files
	ends  string             // what their names end in
	files []File

	staged string     // a Parquet file of the rows, by partitions
	groups []rowGroup // of it, where files have a target
}

// rowGroup is about how large some rows are.
type rowGroup struct{ rows, bytes int64 }

// writeDir writes the files of a directory, which it makes anew.
func writeDir(ctx context.Context, db Engine, o Output) ([]File, error) {
	inner := *o.Writer
	inner.Columns = o.Writer.InFiles()
	d := &dirWriter{db: db, o: o, inner: &inner, ends: nameEnd(o.Writer)}
	if err := os.RemoveAll(o.Path); err != nil { // of a try before
		return nil, writeFault(err)
	}
	if err := os.Mkdir(o.Path, dirMode); err != nil {
		return nil, writeFault(err)
	}
	if len(o.Writer.PartitionBy) == 0 && !o.Writer.Parquet {
		return d.files, d.write(ctx, o.Rows, "")
	}
	err := d.stage(ctx)
	if err == nil && len(o.Writer.PartitionBy) > 0 {
		err = d.partitions(ctx)
	} else if err == nil {
		err = d.spans(ctx, "", 0, d.rows())
	}
	return d.files, err
}

// nameEnd returns the ending of the files' names.
func nameEnd(w *script.FileWriter) string {
	if w.Parquet {
		return ".parquet"
	}
	end := ".csv"
	switch {
	case w.Form == script.FormExcel:
		return ".xlsx"
	case w.Form == script.FormJSON:
		end = ".ndjson"
	case w.Separator == "\t":
		end = ".tsv"
	}
	switch w.Packing.Compression {
	case filespec.Gzip:
		end += ".gz"
	case filespec.Zstd:
		end += ".zst"
	}
	return end
}

// write writes rows as the next files of a directory.
func (d *dirWriter) write(ctx context.Context, rows, dir string) error {
	before := 0
	for _, f := range d.files {
		if strings.HasPrefix(f.Name, dir) && !strings.Contains(f.Name[len(dir):], "/") {
			before++
		}
	}
	made, err := write(ctx, d.db, Output{Writer: d.inner, Rows: rows, Scratch: d.o.Scratch}, func(nth int) (File, error) {
		if len(d.files)+nth >= filesMax {
			return File{}, d.refuse("the output would have more than %d files",
				"give it a larger target_size, or partition it by fewer values", filesMax)
		}
		name := fmt.Sprintf("%spart-%05d%s", dir, before+nth, d.ends)
		return File{Name: name, Path: filepath.Join(d.o.Path, filepath.FromSlash(name))}, nil
	})
	d.files = append(d.files, made...)
	return err
}

func (d *dirWriter) refuse(format, hint string, args ...any) error {
	pos := d.o.Writer.Pos
	f := fault.New(fault.UserData, format, args...)
	f.Hint, f.Place = hint, fault.Place{File: pos.File, Line: int64(pos.Line), Column: pos.Col}
	return f
}

// stage writes all rows into one Parquet file, those of a partition one behind the other, in
// their order: of it each file is a range.
func (d *dirWriter) stage(ctx context.Context) error {
	w := d.o.Writer
	d.staged = filepath.Join(d.o.Scratch, "staged.parquet")
	c := sqltext.Copy{Query: d.o.Rows, Path: d.staged}
	var as, names []string
	for i, col := range w.Columns {
		names = append(names, stagedName(i))
		as = append(as, sqltext.Ident(col.Name)+" AS "+stagedName(i))
		if files.IsFloat(col) {
			c.Floats = append(c.Floats, stagedName(i))
		}
	}
	c.Query = fmt.Sprintf("SELECT %s FROM (%s)", strings.Join(as, ", "), d.o.Rows)
	if keys := d.keys(); len(keys) > 0 {
		const number = "nth"
		c.Query = fmt.Sprintf("SELECT %s FROM (SELECT *, row_number() OVER () AS %s FROM (%s)) ORDER BY %s, %s",
			strings.Join(names, ", "), number, c.Query, strings.Join(keys, ", "), number)
	}
	codec := "COMPRESSION zstd, COMPRESSION_LEVEL 1"
	if w.Parquet {
		var err error
		if codec, err = files.CodecSQL(w); err != nil {
			return err
		}
	}
	c.Options = []string{"FORMAT parquet", codec, "ROW_GROUP_SIZE " + strconv.Itoa(files.OutputRowGroupRows)}
	if _, err := d.db.CopyTo(ctx, c, nil); err != nil {
		return err
	}
	return d.measure(ctx)
}

// stagedName names a column of the staged file.
func stagedName(i int) string { return fmt.Sprintf("c%d", i) }

// keys are the staged names of the columns that directories are named by.
func (d *dirWriter) keys() (out []string) {
	for _, c := range d.o.Writer.PartitionBy {
		out = append(out, stagedName(slices.Index(d.o.Writer.Columns, c)))
	}
	return out
}

// read renders the table function that reads the staged file.
func (d *dirWriter) read() string {
	return "read_parquet(" + sqltext.String(sqltext.Glob(d.staged)) +
		", file_row_number = true, hive_partitioning = false, union_by_name = false)"
}

// measure reads how large the rows are.
func (d *dirWriter) measure(ctx context.Context) error {
	found, err := d.db.Texts(ctx,
		"SELECT CAST(any_value(row_group_num_rows) AS VARCHAR), CAST(sum(total_compressed_size) AS VARCHAR) FROM "+
			"parquet_metadata("+
			sqltext.String(sqltext.Glob(d.staged))+") GROUP BY row_group_id ORDER BY row_group_id")
	if err != nil {
		return fmt.Errorf("read the sizes of the rows: %w", err)
	}
	for _, row := range found {
		n, err := numbers(row)
		if err != nil {
			return err
		}
		d.groups = append(d.groups, rowGroup{n[0], n[1]})
	}
	return nil
}

func numbers(row []*string) ([]int64, error) {
	out := make([]int64, len(row))
	for i, text := range row {
		if text == nil {
			return nil, fmt.Errorf("a number is missing")
		}
		var err error
		if out[i], err = strconv.ParseInt(*text, 10, 64); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *dirWriter) rows() (n int64) {
	for _, g := range d.groups {
		n += g.rows
	}
	return n
}

// spans writes the staged rows from, from 0, to to, without it, into a directory.
func (d *dirWriter) spans(ctx context.Context, dir string, from, to int64) error {
	var as []string
	for i, c := range d.o.Writer.Columns {
		as = append(as, stagedName(i)+" AS "+sqltext.Ident(c.Name))
	}
	for _, end := range append(d.cuts(from, to), to) {
		rows := fmt.Sprintf("SELECT %s FROM %s WHERE file_row_number >= %d AND file_row_number < %d",
			strings.Join(as, ", "), d.read(), from, end)
		if err := d.write(ctx, rows, dir); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// cuts are the rows between from and to at which another Parquet file begins: as many as make
// files of about the target's size, all of the same.
func (d *dirWriter) cuts(from, to int64) (rows []int64) {
	target := d.o.Writer.TargetBytes
	if target == 0 || !d.o.Writer.Parquet {
		return nil
	}
	first, last := d.bytesBefore(from), d.bytesBefore(to)
	count := min(int64((last-first)/float64(target))+1, to-from)
	for i := range count - 1 {
		want := first + (last-first)*float64(i+1)/float64(count)
		rows = append(rows, d.rowAt(want))
	}
	rows = slices.DeleteFunc(rows, func(r int64) bool { return r <= from || r >= to })
	return slices.Compact(rows)
}

// bytesBefore is about how large the rows before one are.
func (d *dirWriter) bytesBefore(row int64) (bytes float64) {
	for _, g := range d.groups {
		if row < g.rows {
			return bytes + float64(g.bytes)*float64(row)/float64(g.rows)
		}
		row -= g.rows
		bytes += float64(g.bytes)
	}
	return bytes
}

// rowAt is the row before which about so many bytes are.
func (d *dirWriter) rowAt(bytes float64) (row int64) {
	for _, g := range d.groups {
		if bytes < float64(g.bytes) {
			return row + int64(bytes/float64(g.bytes)*float64(g.rows))
		}
		row += g.rows
		bytes -= float64(g.bytes)
	}
	return row
}
