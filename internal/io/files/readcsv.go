package files

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// csvPlan is the reading of a batch's CSV slices: runs of slices that one
// read_csv call reads, each from a directory of its own.
//
// The SQL is fixed before prepare has seen the files' bytes. That works
// because a call reads whatever its directory holds, sorted by name: a link
// to a plain file, or the pieces of a rewritten one.
type csvPlan struct {
	r    *script.FileReader
	dir  string
	runs []csvRun
	rows Rows
}

type csvRun struct {
	dir    string
	head   csvHead // of every file of the run, but for where its data starts
	slices []Slice
	heads  []csvHead
	found  []int64 // data records of each slice, which prepare has counted
	only   string  // of the directory, read only the pieces whose names begin so
}

// planCSV reads the heads of the files and forms the runs.
func planCSV(r *script.FileReader, slices []Slice, scratchDir string, rows Rows) (*csvPlan, error) {
	if err := csvDialect(r); err != nil {
		return nil, err
	}
	heads, names := make([]csvHead, len(slices)), newNamer(r)
	err := eachInOrder(context.Background(), len(slices), func(_ context.Context, i int) error {
		var err error
		if heads[i], err = readHead(r, slices[i].source()); err != nil {
			return err
		}
		fixed, err := names.cells(slices[i].source())
		if err == nil {
			heads[i].fix(fixed)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	// DuckDB resolves what it reads; a relative directory would not survive
	// a change of the working directory either.
	abs, err := filepath.Abs(scratchDir)
	if err != nil {
		return nil, fmt.Errorf("resolve scratch directory: %w", err)
	}
	p := &csvPlan{r: r, dir: filepath.Join(abs, "csv"), rows: rows}
	for i, s := range slices {
		if heads[i].fields == 0 {
			continue // no records at all
		}
		last := len(p.runs) - 1
		if last < 0 || rows == Positioned || p.runs[last].head.key() != heads[i].key() {
			p.runs = append(p.runs, csvRun{dir: filepath.Join(p.dir, fmt.Sprintf("%05d", len(p.runs))), head: heads[i]})
			last++
		}
		p.runs[last].slices = append(p.runs[last].slices, s)
		p.runs[last].heads = append(p.runs[last].heads, heads[i])
		p.runs[last].found = append(p.runs[last].found, 0)
	}
	return p, nil
}

func (p *csvPlan) sql() (string, error) {
	if len(p.runs) == 0 {
		return unionAll([]string{emptySelect(p.r, p.rows != Unnumbered)}), nil
	}
	selects := make([]string, len(p.runs))
	for i, run := range p.runs {
		cols, err := csvColumns(p.r, run.head)
		if err != nil {
			return "", err
		}
		if p.rows != Unnumbered {
			s := run.slices[0]
			// A window over all rows runs on one thread (twice the time with
			// two of them): only for those who ask for it. It is below the UNION:
			// above it, DuckDB may take the branches at once (see engine.Step).
			cols = append(cols, sqltext.Int(int64(s.File))+" AS "+FileColumn,
				sqltext.Int(s.FirstRecord-1)+" + row_number() OVER () AS "+RowColumn)
		}
		selects[i] = "SELECT " + strings.Join(cols, ", ") + " FROM " + p.reader(run, run.head.field)
	}
	return unionAll(selects), nil
}

// reader renders the read_csv call of a run.
//
// Everything is read as text and converted by our own SQL. strict_mode is on:
// without it extra fields are dropped. It still lets extra empty fields at
// the end of a record pass, which the scanner therefore counts.
//
// It gives each field of the records that a column reads (field says which) as
// textsAt wants it: an empty one is the empty text beside those that may be NULL.
func (p *csvPlan) reader(run csvRun, field func(column int) int) string {
	columns := make([]string, run.head.fields)
	names := make([]string, run.head.fields)
	for i := range columns {
		names[i] = csvColumn(i)
		columns[i] = sqltext.String(names[i]) + ": 'VARCHAR'"
	}
	// Either no empty cell is NULL, or those without quotes are. It cannot be
	// said column by column: DuckDB (1.5.5) counts the columns of force_not_null
	// among those that the query uses, and so hits others.
	nulls := "force_not_null = " + sqltext.Strings(names)
	if anyTellsQuotes(p.r) {
		nulls = "allow_quoted_nulls = false"
	}
	options := []string{
		sqltext.String(filepath.Join(sqltext.Glob(run.dir), run.only+"*.csv")),
		"auto_detect = false", "header = false", "strict_mode = true", "null_padding = false",
		"delim = " + sqltext.String(string(rune(p.r.CSV.Separator))),
		`quote = '"'`, `escape = '"'`, "comment = ''",
		// DuckDB only ever sees LF. Left alone it may take a CR in a quoted
		// field for the line end, and CRLF with strict_mode gives wrong values
		// (1.5.5: an empty quoted field at the end of a line swallows the next).
		`new_line = '\n'`,
		fmt.Sprintf("skip = %d", run.head.lines),
		fmt.Sprintf("max_line_size = %d", readerLineBytes),
		fmt.Sprintf("buffer_size = %d", readerBufferBytes),
		"hive_partitioning = false", "union_by_name = false",
		"columns = {" + strings.Join(columns, ", ") + "}", nulls,
	}
	read := "read_csv(" + strings.Join(options, ", ") + ")"
	var texts []string
	never := neverNull(p.r, field)
	for i, name := range names {
		if never[i] {
			texts = append(texts, "coalesce("+name+", '') AS "+name)
		}
	}
	if texts == nil {
		return read
	}
	return "(SELECT * REPLACE (" + strings.Join(texts, ", ") + ") FROM " + read + ")"
}

// neverNull says which fields' cells are made texts before columns are made of
// them: where DuckDB reads some as NULL, and no column that reads the field tells
// those from the empty text. A value that is used many times is best a column by itself.
func neverNull(r *script.FileReader, field func(column int) int) map[int]bool {
	out := map[int]bool{}
	if !anyTellsQuotes(r) {
		return out
	}
	for i, c := range r.Columns {
		at := field(i)
		never, read := out[at]
		out[at] = (never || !read) && !tellsQuotes(c)
	}
	return out
}

func csvColumn(i int) string { return fmt.Sprintf("c%d", i) }

// csvColumns renders the conversions.
func csvColumns(r *script.FileReader, head csvHead) ([]string, error) {
	out := make([]string, 0, len(r.Columns)+2)
	texts := columnTexts(r, head)
	for i, c := range r.Columns {
		sql, err := csvValue(c, texts[i])
		if err != nil {
			return nil, err
		}
		out = append(out, sql+" AS "+sqltext.Ident(c.Name))
	}
	return out, nil
}

// columnTexts renders the texts of the columns, NULL only where tellsQuotes.
func columnTexts(r *script.FileReader, head csvHead) []string {
	out := textsAt(r, head.field)
	for i, cell := range head.fixed {
		if cell != nil {
			out[i] = fixedText(r.Columns[i], cell)
		}
	}
	return out
}

// textsAt is columnTexts of columns that are somewhere else.
func textsAt(r *script.FileReader, field func(column int) int) []string {
	nulls, never := anyTellsQuotes(r), neverNull(r, field)
	out := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		out[i] = sqltext.Ident(csvColumn(field(i)))
		if nulls && !tellsQuotes(c) && !never[field(i)] {
			out[i] = "coalesce(" + out[i] + ", '')"
		}
		if !marksQuoted(c) && markedTexts(r, i) != nil { // the field is read by another column, too
			out[i] = unmarked(out[i])
		}
	}
	return out
}

// csvValue renders the value of a column for a cell with this text.
func csvValue(c *script.InputColumn, text string) (string, error) {
	value, err := plainValue(c, text)
	if err != nil || !c.Zoned() {
		return value, err
	}
	if marksQuoted(c) {
		text = "(" + unmarked(text) + ")"
	}
	if c.Default != "" { // a default value may have a zone, too
		text = "CASE WHEN " + isBlank(text) + " THEN " + sqltext.String(strings.TrimSpace(c.Default)) + " ELSE " +
			text + " END"
	}
	return expr.ZonedSQL(value, "coalesce("+text+", '')"), nil
}

// storedType is the SQL type of what a column of a file has.
func storedType(c *script.InputColumn) string {
	if c.Zoned() {
		return expr.ZonedType
	}
	return c.Type.SQL()
}

// plainValue converts text to the column's type. The text is tried first and
// looked at for blankness only if it is no value: trimming every cell costs
// as much as reading the file. A value that is neither is an error.
func plainValue(c *script.InputColumn, text string) (string, error) {
	fallback, err := expr.DefaultSQL(c.Type, c.Default, c.Format)
	if err != nil {
		return "", scriptFault(c.Pos, c.Name, "col_default_value %q of column %s: %s", shorten(c.Default), c.Name, err)
	}
	if c.Type == expr.String {
		if c.Format != "" {
			return "", scriptFault(c.Pos, c.Name, "column %s is a string and cannot have a format", c.Name)
		}
		if c.Nullable {
			return nullableText(c, text, fallback), nil
		}
		if c.Default == "" {
			return text, nil
		}
		return "CASE WHEN " + text + " = '' THEN " + fallback + " ELSE " + text + " END", nil
	}
	scan, err := scanSQL(c, text)
	if err != nil {
		return "", err
	}
	blank := isBlank(text)
	if c.Nullable && c.Default == "" {
		fallback = "CAST(NULL AS " + c.Type.SQL() + ")"
	}
	if tellsQuotes(c) {
		blank = text + " IS NULL OR " + blank
	}
	inQuotes := ""
	if marksQuoted(c) { // a value if it can be one, else it means NULL as well
		marked, err := markedScan(c, text)
		if err != nil {
			return "", err
		}
		inQuotes = " WHEN " + hasMark(text) + " AND " + marked + " IS NOT NULL THEN " + marked + " WHEN " +
			isMarkedNull(c, text) + " THEN NULL"
	}
	value := "coalesce(" + scan + ", CASE WHEN " + blank + " THEN " + fallback + inQuotes + " ELSE error(" +
		sqltext.String(fmt.Sprintf("%scolumn %s: cannot be read as %s: ", RuntimeMarker, c.Name, c.Type)) +
		" || left(" + text + fmt.Sprintf(", %d)) END)", shownValueRunes)
	if null := isNullText(c, text); null != "" {
		return "CASE WHEN " + null + " THEN NULL ELSE " + value + " END", nil
	}
	return value, nil
}

// csvBad is the condition that text is neither a value of the column nor blank.
// There is none for strings.
func csvBad(c *script.InputColumn, text string) (string, error) {
	scan, err := scanSQL(c, text)
	if err != nil {
		return "", err
	}
	bad := "(" + scan + ") IS NULL AND NOT " + isBlank(text)
	if null := isNullText(c, text); null != "" {
		bad += " AND NOT (" + null + ")"
	}
	if marksQuoted(c) {
		marked, err := markedScan(c, text)
		if err != nil {
			return "", err
		}
		bad += " AND NOT (" + hasMark(text) + " AND " + marked + " IS NOT NULL) AND NOT " + isMarkedNull(c, text)
	}
	if tellsQuotes(c) {
		bad = text + " IS NOT NULL AND " + bad
	}
	return "(" + bad + ")", nil
}

// scanSQL converts text to the column's type, NULL if it is none of its values.
func scanSQL(c *script.InputColumn, text string) (string, error) {
	if c.Numbers == (script.Numbers{}) {
		return plainScan(c, text)
	}
	plain, is := plainNumber(c.Numbers, text)
	scan, err := plainScan(c, plain)
	return "CASE WHEN " + is + " THEN " + scan + " END", err
}

func plainScan(c *script.InputColumn, text string) (string, error) {
	scan, err := c.ScanSQL(text)
	if err != nil {
		return "", scriptFault(c.Pos, c.Name, "format %q of column %s: %s", c.Format, c.Name, err)
	}
	return scan, nil
}

// markedScan converts what is behind a mark.
func markedScan(c *script.InputColumn, text string) (string, error) {
	scan, err := scanSQL(c, withoutMark(text))
	return "(" + scan + ")", err
}

func isBlank(text string) string {
	return "trim(" + text + ", " + sqltext.String(blanks) + ") = ''"
}

// blanks are the characters that make a cell blank: Unicode's white space.
const blanks = "\t\n\v\f\r " +
	"\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
