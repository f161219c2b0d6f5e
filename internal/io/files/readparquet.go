package files

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/parquetfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
)

// parquetPlan is the reading of slices of Parquet files.
//
// DuckDB reads most files as they are. A file with a column that DuckDB would
// read wrongly (see nativeReads), or whose columns it could take for one
// another, is read through a view: the wanted columns' bytes under another
// footer, written by prepare.
type parquetPlan struct {
	r      *script.FileReader
	slices []parquetSlice
	dir    string // for views
}

// parquetSlice is a slice and how it is read.
type parquetSlice struct {
	Slice
	foot    *parquetfile.Footer
	columns []parquetColumn // for each column of the reader
	view    string          // path of the view; "": read as it is
	from    int             // first row group, and the one behind the last
	to      int
}

// parquetColumn is a column of a file that a column of the reader is read from.
type parquetColumn struct {
	parquetfile.Column
	index int        // in the file
	split bool       // has pages in BYTE_STREAM_SPLIT, which DuckDB knows of floats only
	fixed *fixedCell // it is not in the file; nil: it is

	element parquetfile.Element // the tree of a nested column
	leaves  []parquetColumn     // of a nested column, by their numbers in its tree
	steps   []filespec.Step     // from the column to the value within it
	inside  bool                // it is a leaf of a nested column
	kept    bool                // views leave it as it is, even if file_tables would not read it so
}

// planParquet looks into the footers. With views every slice is read through
// one, so that each value can be looked at by itself.
func planParquet(r *script.FileReader, slices []Slice, dir string, views bool) (*parquetPlan, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolve scratch directory: %w", err)
	}
	p := &parquetPlan{r: r, slices: make([]parquetSlice, len(slices)), dir: dir}
	wanted := map[string]bool{}
	for _, c := range r.Columns {
		if c.InFile() {
			wanted[c.Parquet], wanted[head(c.Parquet)] = true, true
		}
	}
	names := newNamer(r)
	feet := make([]*parquetfile.Footer, len(slices))
	err = eachInOrder(context.Background(), len(slices), func(_ context.Context, i int) error {
		var err error
		feet[i], err = slices[i].source().footer(func(name string) bool { return wanted[name] })
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, s := range slices {
		one := parquetSlice{Slice: s, foot: feet[i]}
		fixed, err := names.cells(s.source())
		if err != nil {
			return nil, err
		}
		if one.columns, err = wantedColumns(r, feet[i], s.source(), fixed); err != nil {
			return nil, err
		}
		if one.from, one.to, err = s.groups(feet[i]); err != nil {
			return nil, err
		}
		for k, c := range one.columns {
			if c.fixed == nil {
				one.columns[k].findSplit(feet[i], one.from, one.to)
			}
		}
		if len(one.inFile()) > 0 && views || !one.native() {
			one.view = filepath.Join(dir, fmt.Sprintf("%06d.parquet", i))
		}
		p.slices[i] = one
	}
	return p, nil
}

// footer reads the footer of a Parquet file; see parquetfile.ReadFooter.
func (s source) footer(want func(name string) bool) (*parquetfile.Footer, error) {
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	foot, err := parquetfile.ReadFooterOf(f, want)
	if err != nil {
		return nil, s.damaged(err)
	}
	return foot, nil
}

// damaged says what is wrong with a Parquet file.
func (s source) damaged(err error) error {
	var d *parquetfile.DamagedError
	if ctxDone(err) || !errors.As(err, &d) {
		return s.unread(err)
	}
	f := s.bad("not a readable Parquet file: %s", d.What)
	if d.Column != "" {
		f = s.bad("column %q cannot be decoded: %s", d.Column, d.What)
		f.Place.Field = d.Column
	}
	f.Err = d.Err
	f.Hint = "is the file complete, and Parquet at all? Write or fetch it again"
	if d.Unsupported {
		if d.Column != "" {
			f.Message = fmt.Sprintf("column %q cannot be read: %s", d.Column, d.What)
		} else {
			f.Message = "the Parquet file cannot be read: " + d.What
		}
		f.Hint = "write it again in another way: docs/parquet.md lists what is read"
	}
	return f
}

// wantedColumns finds the columns of r in a file.
func wantedColumns(r *script.FileReader, f *parquetfile.Footer, src source,
	fixed []*fixedCell) ([]parquetColumn, error) {
	out := make([]parquetColumn, len(r.Columns))
	for i, c := range r.Columns {
		refuse := func(format string, args ...any) error {
			e := src.bad(format, args...)
			e.Place.Field = c.Parquet
			return e
		}
		if out[i].fixed = fixed[i]; fixed[i] != nil {
			continue
		}
		at, found, steps := find(c, f)
		switch {
		case c.Optional && lacks(c, f):
			out[i].fixed = &fixedCell{empty: true}
			continue
		case found == 0:
			e := fault.Of(refuse("missing column %q; the file has: %s", c.Parquet, quoteList(f.Names())))
			if e.Hint = nearHint(c.Parquet, f.Names()); e.Hint == "" {
				e.Hint = lackingHint(c.Parquet, f.Names())
			}
			e.Hint = atColumn(e.Hint, r, c)
			return nil, e
		case found > 1:
			e := fault.Of(refuse("the file has %d columns %q", found, f.Columns[at].Name))
			e.Hint = "which one is meant cannot be said: write the file with different names"
			return nil, e
		}
		have := parquetColumn{Column: f.Columns[at], index: at, element: f.Element(at),
			leaves: leavesOf(f, at), steps: steps}
		if have.Contradiction != "" {
			return nil, refuse("column %q is described twice in the file, and differently: %s", c.Parquet,
				have.Contradiction)
		}
		if _, err := parquetValue(c, have, "x", false); err != nil {
			e := fault.Of(refuse("column %q is %s in the file, which cannot be read as %s (column %s of the "+
				"script): %s", c.Parquet, have.shape(), c.Type, c.Name, err))
			if lacks(c, f) {
				e.Message = fmt.Sprintf("missing column %q: %s", c.Parquet, err)
				e.Hint = "if files may be without it, say optional: true of the column"
			}
			return nil, e
		}
		out[i] = have
	}
	return out, nil
}

// groups finds the row groups that have rows of a slice, which may begin and end within one.
func (s Slice) groups(f *parquetfile.Footer) (from, to int, err error) {
	if s.Rows < 0 {
		return 0, len(f.Groups), nil
	}
	end := s.FirstRow + s.Rows
	if end > f.Rows {
		return 0, 0, s.source().changed("it had %d rows at least, now it has %d", end, f.Rows)
	}
	for from < len(f.Groups) && f.Groups[from].FirstRow+f.Groups[from].Rows <= s.FirstRow {
		from++
	}
	for to = from; s.Rows > 0 && to < len(f.Groups) && f.Groups[to].FirstRow < end; to++ {
	}
	return from, to, nil
}

// viewedRows are the rows of the file that are in a view of the slice.
func (s *parquetSlice) viewedRows() (first, count int64) {
	if s.Rows < 0 || s.from == s.to {
		return 0, s.foot.Rows
	}
	last := s.foot.Groups[s.to-1]
	first = s.foot.Groups[s.from].FirstRow
	return first, last.FirstRow + last.Rows - first
}

// native reports whether DuckDB may read the file as it is.
func (s *parquetSlice) native() bool {
	if s.foot.SharedNames() { // DuckDB calls the second a of two a_1
		return false
	}
	if slices.ContainsFunc(s.foot.Names(), ownName) {
		return false
	}
	for _, c := range s.inFile() {
		if !nativeReads(c) {
			return false
		}
	}
	return true
}

// inFile are the columns that the file has.
func (s *parquetSlice) inFile() []parquetColumn {
	return slices.DeleteFunc(slices.Clone(s.columns), func(c parquetColumn) bool { return c.fixed != nil })
}

// prepare verifies the pages and writes the views. Whoever reads must have
// waited for it.
func (p *parquetPlan) prepare(ctx context.Context) error {
	if err := os.RemoveAll(p.dir); err != nil { // a try before this one
		return scratchFault(err)
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return scratchFault(err)
	}
	return eachInOrder(ctx, len(p.slices), func(ctx context.Context, i int) error { return p.slices[i].prepare(ctx) })
}

func (s *parquetSlice) prepare(ctx context.Context) error {
	if err := s.unchanged(); err != nil {
		return err
	}
	f, err := s.source().open()
	if err != nil {
		return err
	}
	defer f.Close()
	found, err := s.verify(ctx, f)
	if err != nil || s.view == "" {
		return err
	}
	return s.writeView(ctx, f, found)
}

// verify walks the pages that will be read. A row group of which some columns
// have checksums and others have none has lost them.
func (s *parquetSlice) verify(ctx context.Context, f *os.File) (map[[2]int]parquetfile.Pages, error) {
	type job struct{ group, chunk int }
	var jobs []job
	for g := s.from; g < s.to; g++ {
		for c := range s.foot.Groups[g].Chunks {
			jobs = append(jobs, job{g, c})
		}
	}
	pages := make([]parquetfile.Pages, len(jobs))
	err := eachInOrder(ctx, len(jobs), func(ctx context.Context, i int) error {
		var err error
		pages[i], err = s.foot.VerifyChunk(ctx, f, jobs[i].group, s.foot.Groups[jobs[i].group].Chunks[jobs[i].chunk])
		return err
	})
	if err != nil {
		return nil, s.source().damaged(err)
	}
	found := make(map[[2]int]parquetfile.Pages, len(jobs))
	checked, unchecked := map[int]bool{}, map[int]bool{}
	for i, j := range jobs {
		c := s.foot.Groups[j.group].Chunks[j.chunk]
		found[[2]int{j.group, c.Leaf()}] = pages[i]
		checked[j.group] = checked[j.group] || pages[i].Checked > 0
		unchecked[j.group] = unchecked[j.group] || pages[i].Unchecked > 0
		if checked[j.group] && unchecked[j.group] {
			return nil, s.source().damaged(&parquetfile.DamagedError{Column: s.foot.Columns[c.Column].Name,
				What: fmt.Sprintf("row group %d: some of its columns have checksums, others have none", j.group+1)})
		}
	}
	return found, nil
}

func (s *parquetSlice) writeView(ctx context.Context, f *os.File, found map[[2]int]parquetfile.Pages) error {
	var list []parquetfile.ViewColumn
	for i, c := range s.columns {
		if c.fixed != nil {
			continue
		}
		list = append(list, viewColumns(c, viewName(i))...)
	}
	err := s.foot.WriteView(ctx, f, s.view, s.from, s.to, list,
		func(group, leaf int) parquetfile.Pages { return found[[2]int{group, leaf}] })
	if err != nil && !ctxDone(err) {
		return scratchFault(err)
	}
	return err
}

// viewName is the name of a reader's column in views.
func viewName(i int) string { return fmt.Sprintf("c%d", i) }

// sql writes one read_parquet call for each run of files that hold the wanted
// columns in the same types. Positions come from DuckDB's virtual columns
// file_index and file_row_number, which cost nothing that can be measured on
// 1,000 files with 1 and 2 threads; a range of file_row_number makes it skip
// the other row groups.
func (p *parquetPlan) sql(withPosition bool) (string, error) {
	var selects []string
	for run := range p.runs() {
		sel, err := p.selectRun(run, withPosition)
		if err != nil {
			return "", err
		}
		selects = append(selects, sel)
	}
	if len(selects) == 0 {
		selects = []string{emptySelect(p.r, withPosition)}
	}
	return unionAll(selects), nil
}

// runs yields the slices in their order, those together that one read_parquet
// call can read.
func (p *parquetPlan) runs() iter.Seq[[]parquetSlice] {
	return func(yield func([]parquetSlice) bool) {
		for from := 0; from < len(p.slices); {
			to := from + 1
			for to < len(p.slices) && mergeable(&p.slices[to-1], &p.slices[to]) {
				to++
			}
			if !yield(p.slices[from:to]) {
				return
			}
			from = to
		}
	}
}

// mergeable reports whether one read_parquet call can read b after a: whole
// files with consecutive ordinals that look the same.
func mergeable(a, b *parquetSlice) bool {
	if a.Rows >= 0 || b.Rows >= 0 || b.File != a.File+1 || (a.view == "") != (b.view == "") {
		return false
	}
	for i := range a.columns {
		x, y := a.columns[i], b.columns[i]
		if x.Column != y.Column || len(x.steps) != len(y.steps) || x.split != y.split ||
			!slices.EqualFunc(x.leaves, y.leaves, sameForm) || (x.fixed == nil) != (y.fixed == nil) || x.fixed != nil &&
			*x.fixed != *y.fixed {
			return false
		}
	}
	return true
}

// selectRun reads slices that look the same.
func (p *parquetPlan) selectRun(run []parquetSlice, withPosition bool) (string, error) {
	var cols []string
	for i, c := range p.r.Columns {
		value, err := p.orDefault(&run[0], i)
		if err != nil {
			return "", err
		}
		cols = append(cols, value+" AS "+sqltext.Ident(c.Name))
	}
	if withPosition {
		cols = append(cols,
			"CAST(file_index AS BIGINT) + "+sqltext.Int(int64(run[0].File))+" AS "+FileColumn,
			run[0].rowNumber()+" AS "+RowColumn)
	}
	return "SELECT " + strings.Join(cols, ", ") + run[0].scan(run), nil
}

// orDefault is column i of the reader without the NULLs that it may not have.
func (p *parquetPlan) orDefault(s *parquetSlice, i int) (string, error) {
	c := p.r.Columns[i]
	if cell := s.columns[i].fixed; cell != nil {
		return fixedValue(c, cell)
	}
	value, err := s.value(p.r, i)
	if err != nil || s.columns[i].Required || c.Nullable {
		return value, err
	}
	otherwise, err := expr.DefaultSQL(c.Type, c.Default, "")
	if err != nil {
		return "", scriptFault(c.Pos, c.Name, "default_value %q of column %s: %s", shorten(c.Default), c.Name, err)
	}
	return "coalesce(" + value + ", " + otherwise + ")", nil
}

// value is column i of the reader, converted.
func (s *parquetSlice) value(r *script.FileReader, i int) (string, error) {
	if s.view != "" {
		return parquetValue(r.Columns[i], s.columns[i], s.viewed(i), true)
	}
	return parquetValue(r.Columns[i], s.columns[i], sqltext.Ident(s.columns[i].Name), false)
}

// viewed is column i of a view, with the type of the bytes in the file; that of
// the file itself where there is no view.
func (s *parquetSlice) viewed(i int) string {
	col := sqltext.Ident(viewName(i))
	switch {
	case s.view == "":
		return s.columns[i].reached(unguessed(sqltext.Ident(s.columns[i].Name)))
	}
	return s.columns[i].joined(col)
}

// joined is a column of a view whose whole numbers it has as the bits of floats.
func (c parquetColumn) joined(col string) string {
	switch {
	case !c.split:
		return col
	case c.Physical == parquetfile.Int32:
		return "CAST(CAST(" + col + " AS BIT) AS INTEGER)"
	}
	return "CAST(CAST(" + col + " AS BIT) AS BIGINT)"
}

// rowNumber counts from the file's first row.
func (s *parquetSlice) rowNumber() string {
	number := "CAST(file_row_number AS BIGINT)"
	if first, _ := s.viewedRows(); s.view != "" && first > 0 {
		number += " + " + sqltext.Int(first)
	}
	return number
}

// scan is the FROM of a run that starts with s.
func (s *parquetSlice) scan(run []parquetSlice) string {
	paths := make([]string, len(run))
	for i := range run {
		paths[i] = sqltext.Glob(run[i].Path)
		if run[i].view != "" {
			paths[i] = sqltext.Glob(run[i].view)
		}
	}
	from := "read_parquet(" + sqltext.Strings(paths) + ", hive_partitioning = false, union_by_name = false)"
	if s.Rows < 0 {
		return " FROM " + from
	}
	rows := func(first int64) string {
		return fmt.Sprintf(" WHERE file_row_number >= %s AND file_row_number < %s", sqltext.Int(s.FirstRow-first),
			sqltext.Int(s.FirstRow-first+s.Rows))
	}
	first, count := s.viewedRows()
	switch {
	case s.view == "":
		return " FROM " + from + rows(0)
	case count == s.Rows:
		return " FROM " + from
	}
	// readers add conditions of theirs
	return " FROM (SELECT *, file_row_number, file_index FROM " + from + rows(first) + ")"
}

// text is column i of a view for people: the value as it would be read, else
// the number or the bytes that the file has.
func (s *parquetSlice) text(r *script.FileReader, i int) string {
	have, col := s.columns[i], s.viewed(i)
	if have.fixed != nil {
		return fixedText(r.Columns[i], have.fixed)
	}
	bare := "CAST(" + col + " AS VARCHAR)"
	if s.view != "" && have.Kind == parquetfile.Nested {
		bare = "CAST(" + have.reached(col) + " AS VARCHAR)"
	}
	switch {
	case s.view == "": // it is as readers see it
		return bare
	case have.Kind == parquetfile.Int96:
		return "CAST(" + bytesOf(col) + " AS VARCHAR)"
	case have.Kind == parquetfile.Decimal && have.Physical != parquetfile.Int32 && have.Physical != parquetfile.Int64 &&
		!wideView(have):
		return "'0x' || hex(" + col + ")"
	case have.Kind == parquetfile.Decimal:
		return "coalesce(TRY(CAST(" + exactDecimal(have, col, true) + " AS VARCHAR)), CASE WHEN " + col +
			" IS NOT NULL THEN 'more than 38 digits' END)"
	case have.Unit == parquetfile.Nanoseconds:
		return "CAST(make_timestamp_ns(" + col + ") AS VARCHAR)"
	case have.Kind == parquetfile.Int:
		return "CAST(" + wholeNumber(have, col, true) + " AS VARCHAR)"
	}
	rounded := *r.Columns[i] // what it does not keep is shown, too
	rounded.Round = rounded.Type == expr.DateTime || rounded.Type == expr.Instant
	if value, err := parquetValue(&rounded, have, col, true); err == nil {
		return "coalesce(CAST(TRY(" + value + ") AS VARCHAR), " + bare + ")"
	}
	return bare
}

// shownNumber makes a number of what text shows as bytes.
func shownNumber(have parquetColumn, text string) string {
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || have.Kind != parquetfile.Decimal {
		return text
	}
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) == 0 { // cut off
		return text
	}
	n := new(big.Int).SetBytes(raw)
	if raw[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
	}
	return decimalText(n.String(), have.Scale)
}

// unfit says that a value of a column of a file cannot be converted.
func unfit(c *script.InputColumn, have parquetColumn, value string) string {
	return fmt.Sprintf("value %q of column %q (%s) does not fit %s", shorten(value), c.Parquet, have.shape(), c.Type)
}
