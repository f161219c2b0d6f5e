package script

import (
	"context"
	"slices"
	"strings"
	"time"

	"thalweg/internal/address"
	"thalweg/internal/document"
	"thalweg/internal/expr"
	"thalweg/internal/records"
)

// Formats of input files, as scripts name them. Without one, names and columns say it.
const (
	formatCSV     = "csv"
	formatParquet = "parquet"
	formatJSON    = "json"
)

// readsJSON reports whether a reader's files are JSON: it says so, or names its columns by
// paths, or their first name does, in the short form.
func (l *loader) readsJSON(o *object) bool {
	switch format := o.choice("format", "", formatCSV, formatParquet, formatJSON); {
	case format != "":
		return format == formatJSON
	case slices.ContainsFunc(o.members("columns"), func(e *document.Entry) bool { return hasKey(e.Value, "path") && !isShortMap(e.Value) }):
		return true
	}
	v := o.get("urls")
	if !o.inShort() || v == nil || v.Kind != document.List || len(v.Items) == 0 {
		return false
	}
	_, plain := address.Compression(v.Items[0].Text)
	return address.Format(plain) == "JSON"
}

func hasKey(v *document.Value, name string) bool {
	return v.Kind == document.Map && slices.ContainsFunc(v.Entries, func(e *document.Entry) bool { return strings.EqualFold(e.Name, name) })
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
	for i, c := range have {
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
	for _, e := range declared {
		if used[e.Name] {
			continue
		}
		short := l.shortColumn(e.Value, join(o.keyPath("types"), e.Name))
		if short.path == nil {
			if !strings.ContainsAny(e.Name, ".[") && short.optional == nil {
				l.ErrorAt(e.Key, join(o.keyPath("types"), e.Name), "the first records have no %s", document.Quote(e.Name)).Hint = document.DidYouMean(e.Name, paths)
				continue
			}
			short.path = textAt(e.Key, e.Name)
		}
		m.Entries = append(m.Entries, jsonEntry(identifier(e.Name), e.Key, short))
	}
	o.drop("types")
	o.add("columns", m)
}

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
	if c.layout != nil {
		v.Entries = append(v.Entries, entryAt(c.layout, "csv", mapAt(c.layout, entryAt(c.layout, "col_format", c.layout))))
	}
	return &document.Entry{Name: name, Key: key, Value: v}
}

// jsonFile finishes a reader of JSON: its files are read as CSV that is made of them, where
// the values of a column have a field each behind the record's line.
func (l *loader) jsonFile(f *FileReader, drafts []*columnDraft) {
	spec := records.Spec{Format: records.JSON}
	for _, c := range drafts {
		if c.o == nil {
			continue
		}
		v := c.o.text("path")
		if v == nil {
			l.ErrorAt(c.key, c.path, "column %s has no path to its values in the records", document.Quote(c.column.Name)).Hint = "write path: key, or path: key.key[0]"
			continue
		}
		if err := records.CheckPath(v.Text); err != nil {
			l.ErrorAt(v, c.o.keyPath("path"), "%s", err).Hint = `keys with points between them, elements of lists as [0]: address.city, items[0].sku, "a.b"`
			continue
		}
		c.column.Path = v.Text
		if c.column.Type == expr.DateTime && c.column.Format == "" {
			c.column.Format = time.RFC3339
		}
		c.o.ignored("the files are JSON", "parquet")
		l.columnFormat(c)
		l.nullWords(c.csv, "null_text", "quoted_empty")
		c.csv.ignored("a column of JSON is NULL where it is null", "null_text", "quoted_empty")
		if c.column.Nullable {
			c.column.NullTexts = []string{""}
		}
		if v := c.o.get("col_default_value"); v != nil && c.column.Nullable {
			l.unusedDefault(v, c, c.o.keyPath("col_default_value"), "a null", "leave out one of them")
		}
		spec.Columns = append(spec.Columns, records.Column{Path: c.column.Path, Kind: kindOfValues(c.column), Optional: c.column.Optional})
		c.column.Index = len(spec.Columns)
	}
	f.CSV = CSVReader{HeaderRecord: -1, Separator: ',', Charset: f.CSV.Charset}
	f.Records, _ = spec.Encode() // of texts and truth values
}

// kindOfValues says what values a column takes.
func kindOfValues(c *InputColumn) records.Kind {
	t, _, _ := strings.Cut(string(c.Type), "(")
	switch {
	case c.Type == expr.String:
		return records.Text
	case c.Type == expr.Bool:
		return records.Bool
	case c.Format == "" && slices.Contains([]string{"int", "float", "decimal", "decimal2"}, t):
		return records.Number
	}
	return records.Time
}
