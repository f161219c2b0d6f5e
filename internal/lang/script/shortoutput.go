package script

import (
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// DefaultTimeFormat is the layout in which a short column of a CSV file or an index writes a datetime.
const DefaultTimeFormat = "2006-01-02 15:04:05.999"

// shortOutput replaces columns of a file that are left out, or listed by name
// or expression. With such columns the file's name says also what separates them:
// in .tsv a tab. (A script for Capillaries has a comma there, and only long ones.)
// Whether they are Parquet columns is what another column in the long form says,
// else the file's name.
func (l *loader) shortOutput(d *nodeDraft, w *FileWriter) (ok bool) {
	o := d.w
	v := o.get("columns")
	switch {
	case v == nil && w.URL == "":
		return true
	case v == nil:
		v = listAt(o.where(), textAt(o.where(), "r.*"))
	case v.Kind == document.Map:
		v = entriesAsItems(v)
	case v.Kind != document.List:
		return true
	}
	if !v.Made && !slices.ContainsFunc(v.Items, isShortOutput) {
		return true
	}
	form := l.shortForm(o, w, v.Items)
	if w.Separator == "" {
		w.Separator = address.Separator(w.URL)
	}
	list := listAt(v)
	ok = true
	for _, item := range v.Items {
		if isShortOutput(item) {
			ok = l.shortOutputItem(d, item, form, list) && ok
		} else {
			list.Items = append(list.Items, item)
		}
	}
	o.drop("columns")
	o.add("columns", list)
	if form == FormParquet {
		o.shortCodec(list)
	}
	return ok
}

// shortCodec says which codec a Parquet file with short columns has, if nothing else does.
func (o *object) shortCodec(at *document.Value) {
	codec := textAt(at, shortCodec)
	v := o.get("parquet")
	switch {
	case v == nil:
		o.drop("parquet") // which may be null
		o.add("parquet", mapAt(at, entryAt(at, "codec", codec)))
	case v.Kind == document.Map &&
		!slices.ContainsFunc(v.Entries, func(e *document.Entry) bool {
			return strings.EqualFold(e.Name, "codec") &&
				e.Value.Present()
		}):
		v = own(o.entry("parquet"))
		v.Entries = append(v.Entries, entryAt(at, "codec", codec))
	}
}

// shortOutputItem adds the long form of an item to list; false if there is none.
func (l *loader) shortOutputItem(d *nodeDraft, item *document.Value, form FileForm, list *document.Value) bool {
	path := d.w.keyPath("columns")
	it, ok := parseShortItem(item)
	switch {
	case !ok:
		l.ErrorAt(item, path, "a column is a field such as r.name, all of them as r.*, {header: expression}, or a "+
			"map with name, expression and type")
		return false
	case it.rest != nil && d.node.Out.Target != nil:
		l.ErrorAt(it.rest, path, "a column of a database takes no format")
		return false
	case it.rest != nil && (form != FormCSV && form != FormIndex || it.all != ""):
		l.ErrorAt(it.rest, path, "only a column of a CSV file or an index takes a format")
		return false
	case it.all != "":
		return l.allFields(d, it, item, path, func(name string, e *document.Value) {
			list.Items = append(list.Items, outputItem(textAt(item, name), e, nil, form))
		})
	}
	list.Items = append(list.Items, outputItem(it.name, it.expr, it.rest, form))
	return true
}

// entriesAsItems writes {header: expression, …} as [{header: expression}, …].
func entriesAsItems(m *document.Value) *document.Value {
	list := listAt(m)
	for _, e := range m.Entries {
		list.Items = append(list.Items, mapAt(e.Key, e))
	}
	return list
}

// isShortOutput tells a column's short form from its long one, which has at
// least three keys.
func isShortOutput(item *document.Value) bool {
	if item.Kind != document.Map {
		return true
	}
	return len(item.Entries) == 1 && (item.Made || outputColumnShape.index(item.Entries[0].Name) < 0 ||
		isHeader(item.Entries[0]))
}

// isHeader reports whether a key that is the only one of a column is its header, although
// the long form has a key of that name: what it has is neither a name nor a type.
func isHeader(e *document.Entry) bool {
	v := e.Value
	if !isText(v) || strings.EqualFold(e.Name, "expression") || isWord(v.Text) && (v.Text[0] < '0' || v.Text[0] > '9') {
		return false
	}
	_, isType := expr.ParseType(v.Text)
	return !isType && strings.TrimSpace(v.Text) != ""
}

// outputItem is the long form of a column, but for its type.
func outputItem(header, expression, format *document.Value, form FileForm) *document.Value {
	v := mapAt(header, entryAt(header, "name", textAt(header, identifier(header.Text))),
		entryAt(expression, "expression", expression))
	for _, p := range formParts {
		if p.form != form {
			continue
		}
		part := mapAt(header, entryAt(header, p.key, header))
		if format != nil {
			part.Entries = append(part.Entries, entryAt(format, "format", format))
		}
		v.Entries = append(v.Entries, entryAt(header, p.part, part))
	}
	return v
}

// defaultFormat gives a short datetime column of a CSV file or an index a format.
func (o *object) defaultFormat(t expr.Type) {
	part := o.get("csv")
	if part == nil {
		part = o.get("index")
	}
	if t != expr.DateTime || part == nil {
		return
	}
	for _, e := range part.Entries {
		if strings.EqualFold(e.Name, "format") {
			return
		}
	}
	part.Entries = append(part.Entries, entryAt(part, "format", textAt(part, DefaultTimeFormat)))
}
