package script

import (
	"strings"

	"thalweg/internal/address"
	"thalweg/internal/expr"
)

// defaultTimeFormat is how a short column of a CSV file writes a datetime.
const defaultTimeFormat = "2006-01-02 15:04:05.999"

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
	case v.kind == mapKind:
		v = entriesAsItems(v)
	case v.kind != listKind:
		return true
	}
	parquet, short := address.Parquet(w.URL), v.made
	for _, item := range v.items {
		if isShortOutput(item) {
			short = true
		} else {
			parquet = namesParquet(item)
		}
	}
	if !short {
		return true
	}
	if w.Separator == "" {
		w.Separator = address.Separator(w.URL)
	}
	list := listAt(v)
	ok = true
	for _, item := range v.items {
		if isShortOutput(item) {
			ok = l.shortOutputItem(d, item, parquet, list) && ok
		} else {
			list.items = append(list.items, item)
		}
	}
	o.drop("columns")
	o.add("columns", list)
	return ok
}

// shortOutputItem adds the long form of an item to list; false if there is none.
func (l *loader) shortOutputItem(d *nodeDraft, item *value, parquet bool, list *value) bool {
	path := d.w.keyPath("columns")
	it, ok := parseShortItem(item)
	switch {
	case !ok:
		l.errorAt(item, path, "a column is a field such as r.name, all of them as r.*, {header: expression}, or a map with name, expression and type")
		return false
	case it.rest != nil && (parquet || it.all != ""):
		l.errorAt(it.rest, path, "only a column of a CSV file takes a format")
		return false
	case it.all != "":
		return l.allFields(d, it, item, path, func(name string, e *value) {
			list.items = append(list.items, outputItem(textAt(item, name), e, nil, parquet))
		})
	}
	list.items = append(list.items, outputItem(it.name, it.expr, it.rest, parquet))
	return true
}

// entriesAsItems writes {header: expression, …} as [{header: expression}, …].
func entriesAsItems(m *value) *value {
	list := listAt(m)
	for _, e := range m.entries {
		list.items = append(list.items, mapAt(e.key, e))
	}
	return list
}

// isShortOutput tells a column's short form from its long one, which has at
// least three keys.
func isShortOutput(item *value) bool {
	if item.kind != mapKind {
		return true
	}
	return len(item.entries) == 1 && (item.made || outputColumnShape.index(item.entries[0].name) < 0)
}

// outputItem is the long form of a column, but for its type.
func outputItem(header, expression, format *value, parquet bool) *value {
	v := mapAt(header, entryAt(header, "name", textAt(header, identifier(header.text))), entryAt(expression, "expression", expression))
	if parquet {
		v.entries = append(v.entries, entryAt(header, "parquet", mapAt(header, entryAt(header, "column_name", header))))
		return v
	}
	csv := mapAt(header, entryAt(header, "header", header))
	if format != nil {
		csv.entries = append(csv.entries, entryAt(format, "format", format))
	}
	v.entries = append(v.entries, entryAt(header, "csv", csv))
	return v
}

// defaultFormat gives a short datetime column of a CSV file a format.
func (o *object) defaultFormat(t expr.Type) {
	csv := o.get("csv")
	if t != expr.DateTime || csv == nil {
		return
	}
	for _, e := range csv.entries {
		if strings.EqualFold(e.name, "format") {
			return
		}
	}
	csv.entries = append(csv.entries, entryAt(csv, "format", textAt(csv, defaultTimeFormat)))
}
