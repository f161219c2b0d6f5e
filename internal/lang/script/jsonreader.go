package script

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
)

// Formats of input files, as scripts name them. Without one, names and columns say it.
const (
	formatCSV     = "csv"
	formatParquet = "parquet"
	formatJSON    = "json"
	formatExcel   = "excel"
)

// made says of what records the files are, if they are JSON or Excel workbooks: the reader
// says so, or names its columns by paths, or their first name does, in the short form. nil:
// they are not.
func (l *loader) made(o *object) *filespec.Spec {
	format := o.choice("format", "")
	name := ""
	if v := o.get("urls"); v != nil && v.Kind == document.List && len(v.Items) > 0 {
		_, name = address.Compression(v.Items[0].Text)
	}
	if sheets := o.has("excel"); format == "" {
		byPath := slices.ContainsFunc(o.members("columns"), func(e *document.Entry) bool {
			return hasKey(e.Value, "path") &&
				!isShortMap(e.Value)
		})
		switch known := o.inShort() || byPath; {
		case sheets || known && address.Workbook(name):
			format = formatExcel
		case byPath || known && address.Format(name) == "JSON":
			format = formatJSON
		}
	} else if sheets && format != formatExcel {
		l.ErrorAt(o.keys["excel"].Key, o.keyPath("excel"),
			"excel says how sheets are read, but format says that the files are %s", format)
	}
	switch format {
	case formatJSON:
		return &filespec.Spec{Format: filespec.JSON}
	case formatExcel:
		return l.sheet(l.object(o.get("excel"), o.keyPath("excel"), excelReaderShape))
	}
	return nil
}

// noRange explains why a sheet's columns are not known.
const noRange = "the range of cells cannot be read"

// sheet reads which cells of workbooks are meant.
func (l *loader) sheet(o *object) *filespec.Spec {
	s := &filespec.Spec{Format: filespec.Workbooks}
	if v := o.get("sheet"); v != nil && v.Kind == document.Number {
		s.Number = o.integer("sheet", 1)
	} else {
		s.Sheet = o.str("sheet")
	}
	if v := o.text("range"); v != nil {
		s.Range = strings.TrimSpace(v.Text)
		if _, err := filespec.ParseRange(s.Range); err != nil {
			l.ErrorAt(v, o.keyPath("range"), "%s", err).Hint =
				"write B3:F100, B3:F, B:F, or B3 for all from there on"
			l.Explains(noRange)
		}
	}
	if o.has("header") {
		s.NoHeader = !o.boolean("header")
	}
	return s
}

func hasKey(v *document.Value, name string) bool {
	return v.Kind == document.Map &&
		slices.ContainsFunc(v.Entries, func(e *document.Entry) bool { return strings.EqualFold(e.Name, name) })
}

// jsonColumns writes r.columns in the long form: by what the script says in short, or from
// the first file's records.
func (l *loader) jsonColumns(ctx context.Context, d *nodeDraft, f *FileReader) {
	o := d.r
	if v := o.get("columns"); v != nil {
		if o.has("types") {
			l.ErrorAt(o.keys["types"].Key, o.keyPath("types"), "columns and types cannot both be given").Hint =
				"with types the columns are those of the first file; columns lists them itself"
		}
		l.shortJSONColumns(o)
		return
	}
	if !o.has("types") {
		return
	}
	have := l.fileColumns(ctx, o, f, false)
	if have == nil {
		return
	}
	declared, used := o.members("types"), map[string]bool{}
	at := o.keys["types"].Key
	m := mapAt(o.get("types"))
	paths := make([]string, len(have))
	for i, c := range have {
		paths[i] = c.Name
	}
	names := identifiers(paths)
	var unnamed []string
	for i, c := range have {
		switch {
		case c.Name == "":
			unnamed = append(unnamed, c.Kind)
			continue
		case slices.Index(paths, c.Name) < i:
			l.WarnAt(at, o.keyPath("types"), "column %d of the first sheet has no header of its own: it is left out",
				i+1)
			continue
		}
		short, key := shortColumn{typ: textAt(at, c.Type.String()), path: textAt(at, c.Name)}, textAt(at, c.Name)
		if c.Optional {
			short.optional = trueAt(at)
		}
		if e := declaredType(declared, c.Name, names[i]); e != nil {
			used[e.Name] = true
			given, optional := l.shortColumn(e.Value, join(o.keyPath("types"), e.Name)), short.optional
			if given.path == nil {
				given.path = short.path
			}
			if given.optional == nil {
				given.optional = optional
			}
			short, key = given, e.Key
		}
		l.warnNumbered(at, o.keyPath("types"), c.Name, names[i])
		m.Entries = append(m.Entries, jsonEntry(names[i], key, short))
	}
	l.sayUnnamed(o, unnamed, len(have)-len(unnamed))
	for _, e := range declared {
		if used[e.Name] {
			continue
		}
		short := l.shortColumn(e.Value, join(o.keyPath("types"), e.Name))
		if short.path == nil {
			if (f.CSV.Made.Format != filespec.JSON || !strings.ContainsAny(e.Name, ".[")) && short.optional == nil {
				what := map[filespec.Format]string{filespec.JSON: "records have",
					filespec.Workbooks: "sheet has"}[f.CSV.Made.Format]
				l.ErrorAt(e.Key, join(o.keyPath("types"), e.Name), "the first %s no %s", what, document.Quote(e.Name)).Hint =
					document.DidYouMean(e.Name, paths)
				continue
			}
			short.path = textAt(e.Key, e.Name)
		}
		m.Entries = append(m.Entries, jsonEntry(identifier(e.Name), e.Key, short))
	}
	o.drop("types")
	o.add("columns", m)
}

// sayUnnamed tells of columns of a sheet that have values and no header, by their first cells. If they are
// more than the named ones, what was taken for the header is more likely a title above it.
func (l *loader) sayUnnamed(o *object, cells []string, named int) {
	if len(cells) == 0 {
		return
	}
	const shownMax = 5
	have, they, tell := "column "+letters(cells[0])+" has", "it is", l.WarnAt
	if len(cells) > 1 {
		shown := make([]string, min(len(cells), shownMax))
		for i := range shown {
			shown[i] = letters(cells[i])
		}
		if have, they = "columns "+strings.Join(shown, ", "), "they are"; len(cells) > len(shown) {
			have += fmt.Sprintf(" and %d more", len(cells)-len(shown))
		}
		have += " have"
	}
	if len(cells) > named {
		tell = l.ErrorAt
	}
	hint := "write headers into the file, or read columns by their letters: excel: {header: false}"
	if len(cells) >= named {
		row := strings.TrimPrefix(cells[0], letters(cells[0]))
		hint = "if row " + row + " is the header, say where the table begins: excel: {range: A" + row +
			"}; otherwise " + hint
	}
	tell(o.keys["types"].Key, o.keyPath("types"), "%s values, the first in cell %s, but no header: %s left out", have,
		cells[0], they).Hint = hint
}

// letters are those of the column of a cell.
func letters(cell string) string { return strings.TrimRight(cell, "0123456789") }

// shortJSONColumns replaces columns that are given as text, or as {type: …}.
func (l *loader) shortJSONColumns(o *object) {
	e := o.keys["columns"]
	if e.Value.Kind != document.Map {
		return
	}
	columns := own(e)
	var short []*document.Entry
	var paths []string
	for _, c := range columns.Entries {
		if c.Value.Kind == document.String || isShortMap(c.Value) {
			short, paths = append(short, c), append(paths, c.Name)
		}
	}
	names := identifiers(paths)
	for i, c := range short {
		l.warnNumbered(c.Key, o.keyPath("columns"), c.Name, names[i])
		given := l.shortColumn(c.Value, join(o.keyPath("columns"), c.Name))
		if given.path == nil {
			given.path = textAt(c.Key, c.Name)
		}
		*c = *jsonEntry(names[i], c.Key, given)
	}
}

// jsonEntry is the long form of a column of JSON files. All can be null there.
func jsonEntry(name string, key *document.Value, c shortColumn) *document.Entry {
	v := mapAt(c.typ, entryAt(c.typ, "col_type", c.typ))
	if c.nullable || c.otherwise == nil {
		v.Entries = append(v.Entries, entryAt(c.typ, "nullable", trueAt(c.typ)))
	}
	if c.optional != nil {
		v.Entries = append(v.Entries, entryAt(c.optional, "optional", c.optional))
	}
	if c.otherwise != nil {
		v.Entries = append(v.Entries, entryAt(c.otherwise, "col_default_value", c.otherwise))
	}
	v.Entries = append(v.Entries, entryAt(c.path, "path", c.path))
	if c.round != nil {
		v.Entries = append(v.Entries, entryAt(c.round, "round", c.round))
	}
	csv := mapAt(key)
	if c.layout != nil {
		csv.Entries = append(csv.Entries, entryAt(c.layout, "col_format", c.layout))
	}
	if c.nullText != nil {
		csv.Entries = append(csv.Entries, entryAt(c.nullText, "null_text", c.nullText))
	}
	if len(csv.Entries) > 0 {
		v.Entries = append(v.Entries, entryAt(key, "csv", csv))
	}
	return &document.Entry{Name: name, Key: key, Value: v}
}

// madeFile finishes a reader of JSON or sheets: its files are read as CSV that is made of them, where
// the values of a column have a field each behind the record's line.
func (l *loader) madeFile(f *FileReader, drafts []*columnDraft) {
	spec := *f.CSV.Made
	json, what := spec.Format == filespec.JSON, "Excel sheets"
	if json {
		what = "JSON"
	}
	for _, c := range drafts {
		if c.o == nil {
			continue
		}
		if c.column.Type.Nested() {
			l.ErrorAt(c.key, c.path, "column %s is %s, which only Parquet files have", document.Quote(c.column.Name),
				article(c.column.Type)).Hint =
				"read the values within it, with a column for each: {type: int, path: items[0].id}"
			continue
		}
		v := c.o.text("path")
		if v == nil {
			l.ErrorAt(c.key, c.path, "column %s has no path to its values in the records",
				document.Quote(c.column.Name)).Hint =
				"write path: key or path: key.key[0] of JSON, path: HEADER of Excel sheets"
			continue
		}
		if _, err := filespec.ParsePath(v.Text); json && err != nil {
			l.ErrorAt(v, c.o.keyPath("path"), "%s", err).Hint = pathHint
			continue
		}
		c.column.Path = v.Text
		if c.column.Type == expr.DateTime && c.column.Format == "" {
			if c.column.Format = filespec.ExcelLayout; json {
				c.column.Format = time.RFC3339
			}
		}
		if c.column.Type == expr.Instant && c.column.Format == "" && f.CSV.Zone != "" && !json {
			c.column.Format = filespec.ExcelLayout
		}
		if c.column.Type == expr.Instant && c.column.Format != "" && !expr.Zoned(c.column.Format) {
			c.column.Zone = f.CSV.Zone
		}
		c.o.ignored("the files are "+what, "parquet")
		l.columnFormat(c, f)
		l.nullWords(c.csv, "null_text", "quoted_empty")
		var nulls []string
		if v := c.csv.get("null_text"); v != nil && !json && c.column.Nullable {
			nulls = l.nullTexts(c, v)
		}
		if c.csv.ignored("a column of "+what+" is NULL where it has no value", "quoted_empty"); json {
			c.csv.ignored("a column of JSON is NULL where it is null", "null_text")
		}
		if c.column.Nullable {
			c.column.NullTexts = []string{""}
		}
		if v := c.o.get("col_default_value"); v != nil && c.column.Nullable {
			l.unusedDefault(v, c, c.o.keyPath("col_default_value"), "a null", "leave out one of them")
		}
		column := filespec.Column{Path: c.column.Path, Kind: kindOfValues(c.column), Optional: c.column.Optional,
			Nulls: nulls}
		if !json && column.Kind == filespec.Time {
			column.Layout = dayLayout(c.column)
		}
		spec.Columns = append(spec.Columns, column)
		c.column.Index = len(spec.Columns)
	}
	f.CSV = CSVReader{HeaderRecord: -1, Separator: ',', Charset: f.CSV.Charset, Zone: f.CSV.Zone, Made: f.CSV.Made}
	f.Records, _ = spec.Encode() // of texts and truth values
}

// kindOfValues says what values a column takes.
func kindOfValues(c *InputColumn) filespec.Kind {
	switch {
	case c.Type == expr.DateTime, c.Type == expr.Date, c.Type == expr.Instant:
		return filespec.Time
	case c.Type == expr.Bool:
		return filespec.Bool
	case c.Type == expr.Int && c.Format == "":
		return filespec.Whole
	case c.Type.IsNumber() && c.Format == "":
		return filespec.Number
	}
	return filespec.Text
}

// dayLayout returns the layout in which days of a sheet are written for a column.
func dayLayout(c *InputColumn) string {
	switch {
	case c.Format != "":
		return c.Format
	case c.Type.TimeLayout() != "":
		return c.Type.TimeLayout()
	}
	return filespec.ExcelLayout
}
