package script

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/similar"
)

// FileForm is the format of output files.
type FileForm string

// The forms.
const (
	FormCSV     FileForm = formatCSV
	FormParquet FileForm = formatParquet
	FormJSON    FileForm = formatJSON // lines of JSON
	FormExcel   FileForm = formatExcel
	FormIndex   FileForm = "index" // of the rows, by a key: package tableindex
)

// Text reports whether files of a form are lines of text, which can be compressed as a whole.
func (f FileForm) Text() bool { return f == FormCSV || f == FormJSON }

// Shown returns the name of a form in messages.
func (f FileForm) Shown() string {
	return map[FileForm]string{FormCSV: "CSV", FormParquet: "Parquet", FormJSON: "lines of JSON",
		FormExcel: "an Excel sheet", FormIndex: "an index"}[f]
}

// Limits of Excel's sheets.
const (
	SheetColumnsMax   = 16_384
	SheetRowsMax      = 1_048_576 // with the header
	SheetTextMax      = 32_767    // of a cell, in UTF-16
	sheetNameMax      = 31
	sheetNameDefault  = "Sheet1"
	sheetNameExcludes = `[]:*?/\`
)

// formParts are the parts of a column that say of which form its file is, and the keys in them
// that name it there.
var formParts = []struct {
	form      FileForm
	part, key string
}{{FormParquet, "parquet", "column_name"}, {FormCSV, "csv", "header"}, {FormJSON, "json", "key"},
	{FormExcel, "excel", "header"}, {FormIndex, "index", "field"}}

// shortForm is the form of short columns: what another column says, the key format, or the
// file's name.
func (l *loader) shortForm(o *object, w *FileWriter, items []*document.Value) FileForm {
	form := FileForm(address.Form(w.URL))
	if given := o.choice("format", ""); given != "" {
		form = FileForm(given)
	}
	for _, item := range items {
		if isShortOutput(item) {
			continue
		}
		form = FormCSV
		for _, p := range formParts {
			for _, e := range item.Entries {
				if strings.EqualFold(e.Name, p.part) && e.Value.Present() {
					form = p.form
				}
			}
		}
	}
	if form == "" && w.Target == nil {
		l.mistypedEnding(o, w.URL)
	}
	if form == "" || w.Target != nil {
		form = FormCSV
	}
	return form
}

// endings are those that say what is written, packings those that may follow one of them.
var (
	endings  = []string{"csv", "tsv", "parquet", "ndjson", "jsonl", "xlsx"}
	packings = []string{"gz", "gzip", "zst", "zstd"}
	// otherEndings are near to one of endings, and are in use for text with other separators.
	otherEndings = []string{"dsv", "ssv"}
)

// mistypedEnding warns of a name whose ending says nothing, so that the file is CSV, and is nearly one that does.
func (l *loader) mistypedEnding(o *object, url string) {
	if address.Scheme(url) != "" {
		url, _, _ = strings.Cut(url, "?")
	}
	known := endings
	how, name := address.Compression(url)
	ending := strings.TrimPrefix(path.Ext(name), ".")
	if before := strings.TrimSuffix(name, "."+ending); how == "" &&
		(address.Format(before) != "" || address.Form(before) != "") {
		known = packings
	}
	if ending == "" || address.Format(name) != "" || slices.Contains(otherEndings, strings.ToLower(ending)) {
		return
	}
	i := slices.IndexFunc(known, func(k string) bool { return similar.Typed(ending, k) })
	if i < 0 {
		return
	}
	l.WarnAt(o.get("url_template"), o.keyPath("url_template"),
		"the file becomes CSV: its name ends in .%s, which says nothing", ending).Hint =
		"did you mean ." + known[i] + "? To write CSV under this name say format: csv"
}

func formWords() []string {
	return []string{string(FormCSV), string(FormParquet), string(FormJSON), string(FormExcel), string(FormIndex)}
}

// columnForm says what the first column makes of the file; false if it says nothing.
func (l *loader) columnForm(c *object, w *FileWriter) bool {
	for _, p := range formParts {
		v := c.get(p.part)
		if v == nil || v.Kind != document.Map {
			continue
		}
		for _, e := range v.Entries {
			if strings.EqualFold(e.Name, p.key) && e.Value.Present() && e.Value.Text != "" {
				w.Form, w.Parquet = p.form, p.form == FormParquet
				return true
			}
		}
	}
	return false
}

// fileFormat refuses a file whose name, or format, says that it is something else.
func (l *loader) fileFormat(o *object, w *FileWriter) {
	if given := FileForm(o.choice("format", "")); given != "" && given != w.Form {
		l.ErrorAt(o.get("format"), o.keyPath("format"), "format is %s, but the columns make the file %s", string(given),
			w.Form.Shown()).Hint = "leave format out, or write the columns in the short form"
		return
	}
	name := w.URL
	if w.Form.Text() {
		_, name = address.Compression(name)
	}
	claims := address.Format(name)
	if claims == "" || address.Form(name) == string(w.Form) || claims == w.Form.Shown() {
		return
	}
	l.ErrorAt(o.get("url_template"), o.keyPath("url_template"), "the file's name says %s, but its columns make it %s",
		claims, w.Form.Shown()).Hint =
		"Thalweg writes CSV (.csv, .tsv, .txt …) and lines of JSON (.ndjson), also compressed (.csv.gz, " +
			".ndjson.zst), Parquet (.parquet), Excel sheets (.xlsx) and indexes (.twx)"
}

// formKeys reads what belongs to one form, and says which keys have no effect.
func (l *loader) formKeys(o, csv *object, w *FileWriter) {
	json := l.object(o.get("json"), o.keyPath("json"), jsonWriterShape)
	excel := l.object(o.get("excel"), o.keyPath("excel"), excelWriterShape)
	index := l.object(o.get("index"), o.keyPath("index"), indexWriterShape)
	// short columns may have given it a codec
	parquet := l.object(o.get("parquet"), o.keyPath("parquet"), parquetWriterShape)
	switch w.Form {
	case FormCSV:
		l.packing(o, csv, w)
	case FormJSON:
		l.packing(o, json, w)
	case FormParquet:
		l.codec(parquet, w)
	case FormExcel:
		l.sheetOutput(o, excel, w)
	case FormIndex:
		l.indexOutput(o, index, w)
	}
	for _, p := range formParts {
		if p.form != w.Form && len(w.Columns) > 0 {
			o.ignored("the columns say that the file is "+w.Form.Shown(), p.part)
		}
	}
}

// sheetName reports whether Excel opens a workbook with a sheet of that name.
func sheetName(name string) bool {
	return len(utf16.Encode([]rune(name))) <= sheetNameMax && !strings.ContainsAny(name, sheetNameExcludes) &&
		!strings.HasPrefix(name, "'") && !strings.HasSuffix(name, "'") &&
		!strings.EqualFold(name, "History") && !strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsControl(r) ||
			r >= 0xfffe && r <= 0xffff
	})
}

// sheetOutput reads how an Excel file is written.
func (l *loader) sheetOutput(o, excel *object, w *FileWriter) {
	w.Sheet = sheetNameDefault
	if v := excel.text("sheet"); v != nil && v.Text != "" {
		if w.Sheet = v.Text; !sheetName(v.Text) {
			l.ErrorAt(v, excel.keyPath("sheet"), "%s cannot name a sheet", document.Quote(v.Text)).Hint =
				"at most 31 characters, none of []:*?/\\, no ' at its ends, not History"
		}
	}
	if n := len(w.Columns); n > SheetColumnsMax {
		l.ErrorAt(o.get("columns"), o.keyPath("columns"), "the file has %d columns; a sheet has at most %d", n,
			SheetColumnsMax)
	}
	if v := o.get("target_size"); v != nil {
		l.ErrorAt(v, o.keyPath("target_size"), "an Excel file is not cut at a size").Hint =
			"leave target_size out, or use partition_by"
	}
}

// namedOutput checks the name of a column of lines of JSON, of a sheet or of an index.
func (l *loader) namedOutput(c *object, w *FileWriter, col *OutputColumn, seen map[string]*document.Value) {
	part, key, shape := "json", "key", jsonOutputShape
	switch w.Form {
	case FormExcel:
		part, key, shape = "excel", "header", excelOutputShape
	case FormIndex:
		part, key, shape = "index", "field", indexOutputShape
	}
	o := l.object(c.get(part), c.keyPath(part), shape)
	col.Header = o.str(key)
	v := o.get(key)
	switch {
	case v == nil || col.Header == "":
		l.ErrorAt(c.where(), c.path, "column %s has no %s.%s, but the first column has one",
			document.Quote(col.Name), part, key)
		return
	case w.Form == FormExcel:
	case seen[col.Header] != nil:
		l.ErrorAt(v, o.keyPath(key), "the %s %s occurs twice", key, document.Quote(col.Header)).Related =
			[]document.Pos{l.pos(seen[col.Header])}
	default:
		seen[col.Header] = v
	}
	for _, p := range formParts {
		if p.form != w.Form {
			c.ignored("the file is "+w.Form.Shown(), p.part)
		}
	}
	if w.Form == FormIndex {
		col.Format = o.str("format")
		l.printFormat(c, o, part, col)
	}
}
