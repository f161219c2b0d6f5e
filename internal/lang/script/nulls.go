package script

import (
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// nullable adds fields that may be NULL to the scope.
func (s scope) nullable(refs map[expr.Ref]bool) scope {
	nulls := maps.Clone(refs)
	if nulls == nil {
		nulls = map[expr.Ref]bool{}
	}
	maps.Copy(nulls, s.nulls)
	s.nulls = nulls
	return s
}

// computed says what fields are computed by, for expressions that see them so.
func (s scope) computed(values func(expr.Ref) *expr.Compiled) scope {
	s.values = values
	return s
}

// zoned adds layouts of datetimes that have zones of their own.
func (s scope) zoned(layouts map[expr.Ref]string) scope {
	s.zones = layouts
	return s
}

// asRead adds fields that are as a file has them.
func (s scope) asRead(refs map[expr.Ref]bool) scope {
	s.unstored = refs
	return s
}

// unstored lists what a node reads from files finer than a table keeps it. (A
// decimal of CSV is rounded when it is read.)
func (d *nodeDraft) unstored() map[expr.Ref]bool {
	out := map[expr.Ref]bool{}
	if d.node.Files != nil {
		for _, c := range d.node.Files.Columns {
			out[expr.Ref{Alias: "r", Field: c.Name}] = !c.Exact() &&
				(c.Type == expr.DateTime || c.Type == expr.Decimal &&
					d.node.Files.Parquet)
		}
	}
	return out
}

// zones lists the datetimes that a node gets with zones of their own: from CSV
// files whose layout says them, and as texts from Python.
func (d *nodeDraft) zones() map[expr.Ref]string {
	out := map[expr.Ref]string{}
	if d.node.Files != nil {
		for _, c := range d.node.Files.Columns {
			if c.Zoned() {
				out[expr.Ref{Alias: "r", Field: c.Name}] = c.Format
			}
		}
	}
	if d.node.PyCalc != nil {
		for name, t := range d.calcs {
			if t == expr.DateTime {
				out[expr.Ref{Alias: "p", Field: name}] = expr.ZonedLayout
			}
		}
	}
	return out
}

// nulls lists what a node reads that may be NULL, as far as it is known.
func (d *nodeDraft) nulls() map[expr.Ref]bool {
	out := map[expr.Ref]bool{}
	n := d.node
	if n.Files != nil {
		for _, c := range n.Files.Columns {
			if c.Nullable {
				out[expr.Ref{Alias: "r", Field: c.Name}] = true
			}
		}
	}
	if n.Reader != nil {
		maps.Copy(out, fieldNulls("r", n.Reader.Fields()))
	}
	if n.Lookup != nil && n.Lookup.Index != nil {
		maps.Copy(out, fieldNulls("l", n.Lookup.Index.Node.Table.Fields))
	}
	if n.PyTable != nil {
		for _, f := range n.PyTable.Returns {
			if f.Nullable {
				out[expr.Ref{Alias: "p", Field: f.Name}] = true
			}
		}
	}
	if n.PyCalc != nil {
		for _, f := range n.PyCalc.Fields {
			if f.Nullable {
				out[expr.Ref{Alias: "p", Field: f.Name}] = true
			}
		}
	}
	return out
}

func fieldNulls(alias string, fields []*Field) map[expr.Ref]bool {
	out := map[expr.Ref]bool{}
	for _, f := range fields {
		if f.Nullable {
			out[expr.Ref{Alias: alias, Field: f.Name}] = true
		}
	}
	return out
}

func fileNulls(w *FileWriter) map[expr.Ref]bool {
	out := map[expr.Ref]bool{}
	for _, c := range w.Columns {
		if c.Nullable {
			out[expr.Ref{Alias: "w", Field: c.Name}] = true
		}
	}
	return out
}

// allNull returns references to all fields of alias, which are NULL where a left lookup finds no match.
func allNull(alias string, fields map[string]expr.Type) map[expr.Ref]bool {
	out := map[expr.Ref]bool{}
	for name := range fields {
		out[expr.Ref{Alias: alias, Field: name}] = true
	}
	return out
}

// unmatchedNull decides what a field without default_value is where a left lookup
// finds no match: the type's zero value, as it always was, unless the script
// knows about NULL, because the field is nullable or its expression treats it.
// Then l.* is NULL.
func unmatchedNull(f *Field, c *expr.Compiled, group bool) bool {
	switch {
	case c.Aggregate():
		return f.Nullable && c.Nullable() // but count() is 0
	case !mentions(c, "l"):
		return false
	case group: // its value is that of a row, and there is none
		return f.Nullable
	}
	return f.Nullable || c.HandlesNull()
}

// fieldNull reports an expression that may be NULL where NULL is not allowed.
func (l *loader) fieldNull(v *document.Value, path, what string, nullable bool, c *expr.Compiled) {
	if c == nil || nullable || !c.Nullable() {
		return
	}
	text := document.Shorten(v.Text, document.MaxShownTextChars)
	l.ErrorAt(v, path, "the expression can be NULL, but the %s is not nullable", what).Hint =
		"write coalesce(" + strings.TrimSpace(text) + ", …), or give the " + what + " nullable: true"
}

// columnNulls reads what means NULL in a CSV column.
func (l *loader) columnNulls(c *columnDraft) {
	l.nullWords(c.csv, "null_text", "quoted_empty")
	if !c.column.Nullable {
		for _, key := range []string{"null_text", "quoted_empty"} {
			if v := c.csv.get(key); v != nil {
				l.ErrorAt(v, c.csv.keyPath(key), "%s is given, but column %s is not nullable", key,
					document.Quote(c.column.Name)).Hint = "say nullable: true"
			}
		}
		return
	}
	c.column.NullTexts = []string{""}
	if v := c.csv.get("null_text"); v != nil {
		c.column.NullTexts = l.nullTexts(c, v)
	}
	c.column.QuotedEmptyNull = c.csv.choice("quoted_empty", "value") == "null"
	if v := c.o.get("col_default_value"); v != nil && slices.Contains(c.column.NullTexts, "") {
		l.unusedDefault(v, c, c.o.keyPath("col_default_value"), "an empty cell",
			"leave it out, or say with csv.null_text which text is NULL, so that an empty cell is not")
	}
}

// unusedDefault reports a column that is NULL and has a value for NULL.
func (l *loader) unusedDefault(v *document.Value, c *columnDraft, path, what, hint string) {
	message := lastName(path) + " would never be used: " + what + " of a nullable column is NULL"
	if c.o.v.Made {
		message, hint = "the column is NULL where it is empty because of ?, so the value behind = would never be used",
			"leave out one of them"
	}
	l.ErrorAt(v, path, "%s", message).Hint = hint
}

// emptyDefault reports a = with nothing behind it. Behind a string's there is the empty text.
func (l *loader) emptyDefault(v *document.Value, c *columnDraft, path string) bool {
	if !c.o.v.Made || v.Text != "" || c.column.Type == expr.String {
		return false
	}
	l.ErrorAt(v, path, "there is no value behind =").Hint = "write one, such as " + c.column.Type.String() +
		" = 0, or leave = out: the column is nullable then"
	return true
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// nullTexts reads one text or a list.
func (l *loader) nullTexts(c *columnDraft, v *document.Value) []string {
	path := c.csv.keyPath("null_text")
	items := []*document.Value{v}
	if v.Kind == document.List {
		items = c.csv.texts("null_text")
	} else if c.csv.text("null_text") == nil {
		return nil
	}
	if len(items) == 0 || len(items) > MaxNullTextsCount {
		l.ErrorAt(v, path, "null_text has %d texts: it is one text, or a list of 1 to %d", len(items),
			MaxNullTextsCount)
		return nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.Text
	}
	return texts
}

// nullWords takes a plain null as the text that it is for keys where it means
// something: in YAML, quoted_empty: null says what it seems to say.
func (l *loader) nullWords(o *object, keys ...string) {
	for _, key := range keys {
		if o == nil || o.keys[key] == nil {
			continue
		}
		v := o.keys[key].Value
		for _, item := range append([]*document.Value{v}, v.Items...) {
			if item.Kind == document.Null && item.Text != "" && !document.IsJSON(item.Src.Name) {
				item.Kind = document.String
			}
		}
	}
}

// outputNull reads what stands for NULL in a CSV file.
func (l *loader) outputNull(w *FileWriter, csv *object, col *OutputColumn) {
	l.nullWords(csv, "null_text")
	v := csv.text("null_text")
	if v == nil {
		return
	}
	path := csv.keyPath("null_text")
	switch {
	case !col.Nullable:
		l.ErrorAt(v, path, "null_text is given, but column %s is not nullable", document.Quote(col.Name)).Hint =
			"say nullable: true"
	case strings.ContainsAny(v.Text, "\"\r\n"+w.Separator):
		l.ErrorAt(v, path, "null_text must not contain quotes, line breaks and the separator")
	}
	col.NullText = v.Text
}
