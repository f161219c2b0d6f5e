package script

import (
	"go/token"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/address"
	"thalweg/internal/expr"
)

// Short forms are replaced, in the document itself, by the long form that they
// stand for: what follows (checks, definition, fingerprint) knows only that.
// A short form is always a shape that has no meaning in the long one.

// own gives an entry a value of its own, one level deep: one that was aliased
// belongs to several places, and what is right in one may be wrong in another.
func own(e *entry) *value {
	v := *e.val
	v.entries = make([]*entry, len(e.val.entries))
	for i, x := range e.val.entries {
		c := *x
		v.entries[i] = &c
	}
	v.items = append([]*value(nil), v.items...)
	e.val = &v
	return e.val
}

// textAt makes a text that stands where v is.
func textAt(v *value, text string) *value {
	start, end := v.span()
	return &value{src: v.src, kind: stringKind, text: text, off: start, end: max(end, start+1), weight: 1, made: true}
}

// partAt is text[start:end] of v as a text of its own.
func partAt(v *value, start, end int) *value {
	from, to := v.part(start, end)
	return &value{src: v.src, kind: stringKind, text: v.text[start:end], off: from, end: max(to, from+1), weight: 1, made: true}
}

// mapAt makes a map that stands where v is.
func mapAt(v *value, entries ...*entry) *value {
	start, _ := v.span()
	return &value{src: v.src, kind: mapKind, off: start, end: start + 1, entries: entries, weight: 1, made: true}
}

// listAt makes a list that stands where v is.
func listAt(v *value, items ...*value) *value {
	return &value{src: v.src, kind: listKind, off: v.off, end: v.off + 1, items: items, weight: 1 + len(items), made: true}
}

// entryAt makes an entry whose key stands where v is.
func entryAt(v *value, name string, val *value) *entry {
	return &entry{name: name, key: textAt(v, name), val: val}
}

// add adds a key that the long form has and the text has not.
func (o *object) add(name string, val *value) {
	e := entryAt(val, name, val)
	o.v.entries = append(o.v.entries, e)
	o.keys[name] = e
}

// replace gives a key another value.
func (o *object) replace(name string, val *value) { o.keys[name].val = val }

// drop removes a key.
func (o *object) drop(name string) {
	delete(o.keys, name)
	kept := o.v.entries[:0]
	for _, e := range o.v.entries {
		if e.name != name {
			kept = append(kept, e)
		}
	}
	o.v.entries = kept
}

// isText reports whether v is a text where texts are expected: in YAML that is
// anything without quotes.
func isText(v *value) bool {
	return v.kind == stringKind || (v.scalar() && v.present() && !isJSON(v.src.name))
}

// asText is v as text, whatever YAML takes it for.
func asText(v *value) *value {
	if v.kind == stringKind {
		return v
	}
	c := *v
	c.kind = stringKind
	return &c
}

// identifier makes a name for r.* and w.* out of any text, such as a header:
// runs of other characters than ASCII letters, digits and underscores become
// one underscore, and a name that Go or the engine keeps for itself, or that
// begins with a digit, gets one more.
func identifier(text string) string {
	var b strings.Builder
	gap := false
	for i := range len(text) {
		if c := text[i]; c < utf8.RuneSelf && isWordByte(c) {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteByte(c)
		} else {
			gap = true
		}
	}
	name := b.String()
	switch {
	case name == "":
		return "column"
	case name[0] >= '0' && name[0] <= '9':
		return "_" + name
	case token.IsKeyword(name) || contains(reservedFields(), strings.ToLower(name)):
		return name + "_"
	}
	return name
}

// identifiers makes names for all of the texts; of equal names, whatever their
// case, later ones get a number.
func identifiers(texts []string) []string {
	taken := make(map[string]bool, len(texts))
	out := make([]string, len(texts))
	for i, text := range texts {
		name := identifier(text)
		for n := 2; taken[strings.ToLower(name)]; n++ {
			name = identifier(text) + "_" + strconv.Itoa(n)
		}
		taken[strings.ToLower(name)] = true
		out[i] = name
	}
	return out
}

// warnNumbered says that a column has a name that one would not expect: two
// names of a file that differ in case, say, are one to expressions.
func (l *loader) warnNumbered(at *value, path, header, name string) {
	if usual := identifier(header); header != "" && usual != name {
		l.warnAt(at, path, "column %s is r.%s here: r.%s is another column, because names are equal whatever their case",
			quote(header), name, usual)
	}
}

// shortPart replaces r: orders, w: orders and the like.
func (d *nodeDraft) shortPart(part string, v *value) *value {
	t := d.node.Type
	switch {
	case part == "r" && t == SQLTable && v.kind == listKind:
		return mapAt(v, entryAt(v, "tables", v))
	case !isText(v):
		return v
	case part == "r" && t == SQLTable:
		return mapAt(v, entryAt(v, "tables", listAt(v, asText(v))))
	case part == "r" && t == FileTable:
		return mapAt(v, entryAt(v, "urls", listAt(v, asText(v))),
			entryAt(v, "types", mapAt(v)))
	case part == "r" && t != "":
		return mapAt(v, entryAt(v, "table", asText(v)))
	case part == "w" && t == TableFile:
		return mapAt(v, entryAt(v, "url_template", asText(v)))
	case part == "w" && t != "":
		return mapAt(v, entryAt(v, "name", asText(v)))
	}
	return v
}

// shortColumn is what the text of an input column says: "decimal2 = 0", "datetime 2006-01-02", "string?".
type shortColumn struct {
	typ       *value
	layout    *value // nil: none
	otherwise *value // value of what is NULL; nil: it is NULL
	nullable  bool   // it says so
	required  bool   // the file says that there are no NULLs
}

// mayBeNull decides whether a column that is given in short form is nullable:
// always if it can be NULL, unless there is a default. What cannot be NULL is a
// text of a CSV file, whose empty cell is the empty text, unless ? asks for it.
func (c shortColumn) mayBeNull(parquet bool) bool {
	switch {
	case c.nullable:
		return true
	case c.otherwise != nil, c.required:
		return false
	}
	return parquet || c.typ.text != expr.String.String()
}

func parseShortColumn(v *value) shortColumn {
	text := strings.TrimRight(v.text, " \t\r\n")
	start := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	var c shortColumn
	// A layout or format may have a = of its own; that of a default has a blank, or nothing but the type, in front of it.
	if at := strings.LastIndexByte(text, '='); at > start && (text[at-1] == ' ' || !strings.Contains(text[start:at], " ")) {
		from := at + 1 + len(text[at+1:]) - len(strings.TrimLeft(text[at+1:], " \t"))
		c.otherwise = partAt(v, from, len(text))
		text = strings.TrimRight(text[:at], " \t\r\n")
	}
	word, rest, _ := strings.Cut(text[start:], " ")
	if layout := strings.TrimLeft(rest, " \t"); layout != "" {
		c.layout = partAt(v, len(text)-len(layout), len(text))
	}
	if name, ok := strings.CutSuffix(word, "?"); ok {
		c.nullable, word = true, name
	}
	c.typ = partAt(v, start, start+len(word))
	return c
}

// columnEntry is the long form of a column that is found by its header, by its
// index if header is "", or by its name in a Parquet file.
func columnEntry(name string, key *value, c shortColumn, header string, index int, parquet bool) *entry {
	v := mapAt(c.typ, entryAt(c.typ, "col_type", c.typ))
	if c.mayBeNull(parquet) {
		v.entries = append(v.entries, entryAt(c.typ, "nullable", &value{src: c.typ.src, kind: boolKind, text: "true", off: c.typ.off, end: c.typ.end, weight: 1, made: true}))
	}
	if parquet {
		where := mapAt(key, entryAt(key, "col_name", textAt(key, header)))
		if c.otherwise != nil {
			where.entries = append(where.entries, entryAt(c.otherwise, "default_value", c.otherwise))
		}
		v.entries = append(v.entries, entryAt(key, "parquet", where))
		return &entry{name: name, key: key, val: v}
	}
	if c.otherwise != nil {
		v.entries = append(v.entries, entryAt(c.otherwise, "col_default_value", c.otherwise))
	}
	where := entryAt(key, "col_hdr", textAt(key, header))
	if header == "" {
		where = entryAt(key, "col_idx", &value{src: key.src, kind: numberKind, text: strconv.Itoa(index), off: key.off, end: key.end, weight: 1, made: true})
	}
	csv := mapAt(key, where)
	if c.layout != nil {
		csv.entries = append(csv.entries, entryAt(c.layout, "col_format", c.layout))
	}
	v.entries = append(v.entries, entryAt(key, "csv", csv))
	return &entry{name: name, key: key, val: v}
}

// shortColumns replaces columns that are given as text.
func (l *loader) shortColumns(d *nodeDraft) {
	o := d.r
	e := o.keys["columns"]
	if e == nil || e.val.kind != mapKind {
		return
	}
	columns := own(e)
	var short []*entry
	var headers []string
	parquet := l.looksParquet(o)
	for _, c := range columns.entries {
		if c.val.kind == stringKind {
			short, headers = append(short, c), append(headers, c.name)
		}
		parquet = parquet || namesParquet(c.val)
	}
	byIndex := o.headerless()
	names := identifiers(headers)
	for i, c := range short {
		header := c.name
		l.warnNumbered(c.key, o.keyPath("columns"), header, names[i])
		if byIndex && !parquet {
			header = ""
		} else if header == "" { // it would be read by index, the header as a row
			l.errorAt(c.key, o.keyPath("columns"), "a column without a header cannot be found by it").Hint =
				"give all columns csv.col_idx in the long form, or the file a header for it"
		}
		at := 0
		for k, x := range columns.entries {
			if x == c {
				at = k
			}
		}
		*c = *columnEntry(names[i], c.key, parseShortColumn(c.val), header, at, parquet)
	}
}

// namesParquet reports whether a column in long form says that it is one of a
// Parquet file.
func namesParquet(column *value) bool {
	for _, e := range column.entries {
		if strings.EqualFold(e.name, "parquet") {
			return e.val.present()
		}
	}
	return false
}

// headerless reports whether the reader's CSV files have no header.
func (o *object) headerless() bool {
	csv := o.get("csv")
	if csv == nil {
		return false
	}
	for _, e := range csv.entries {
		if strings.EqualFold(e.name, "hdr_line_idx") {
			n, ok := wholeNumber(e.val.text)
			return ok && n < 0
		}
	}
	return false
}

// looksParquet reports whether the name of the first input file is that of a Parquet file.
func (l *loader) looksParquet(o *object) bool {
	v := o.get("urls")
	if v == nil || v.kind != listKind || len(v.items) == 0 {
		return false
	}
	return address.Parquet(v.items[0].text)
}

// shortItem is an element of a list of fields or columns: a name with what
// follows it, all fields of an alias (r.*), or {name: expression}.
type shortItem struct {
	name *value
	expr *value // expression; nil: all fields of alias
	all  string // alias
	rest *value // what follows the name, for columns of files; nil: nothing
}

// singles writes {a: x, b: y} in a list as {a: x}, {b: y}.
func singles(items []*value) []*value {
	var out []*value
	for _, item := range items {
		if item.kind != mapKind || len(item.entries) < 2 {
			out = append(out, item)
			continue
		}
		for _, e := range item.entries {
			out = append(out, mapAt(e.key, e))
		}
	}
	return out
}

// parseShortItem reads an element; ok is false if it is none.
func parseShortItem(v *value) (it shortItem, ok bool) {
	switch {
	case v.kind == mapKind && len(v.entries) == 1 && isText(v.entries[0].val):
		return shortItem{name: v.entries[0].key, expr: asText(v.entries[0].val)}, true
	case !isText(v):
		return shortItem{}, false
	}
	text := strings.TrimRight(v.text, " \t")
	word, rest, _ := strings.Cut(text, " ")
	if rest = strings.TrimLeft(rest, " \t"); rest != "" {
		it.rest = partAt(v, len(text)-len(rest), len(text))
	}
	if alias, ok := strings.CutSuffix(word, ".*"); ok {
		it.all, it.name = alias, v
		return it, true
	}
	it.name = partAt(v, 0, len(word))
	it.expr = textAt(it.name, word)
	if _, field, ok := strings.Cut(word, "."); ok {
		it.name = partAt(v, len(word)-len(field), len(word))
	} else {
		it.expr.text = "r." + word
	}
	return it, true
}

// aliasFields gives the fields of an alias in their order, and whether they are known.
func (d *nodeDraft) aliasFields(alias string) ([]string, bool) {
	switch alias {
	case "r":
		if d.node.PyTable != nil {
			return d.node.PyTable.GroupBy, d.readsOK
		}
		return d.readsOrder, d.readsOK
	case "l":
		return d.looksOrder, d.looksOK
	case "p":
		return d.calcsOrder, d.calcsOK
	}
	return nil, false
}

// shortIndexes replaces a list of indexes by a map with names.
func (l *loader) shortIndexes(d *nodeDraft) {
	e := d.w.keys["indexes"]
	if e == nil || e.val.kind != listKind {
		return
	}
	m := mapAt(e.val)
	for _, item := range e.val.items {
		if !isText(item) {
			l.errorAt(item, d.w.keyPath("indexes"), "an index is text such as unique(field), found %s", item.kind)
			continue
		}
		def, key := item.text, item.text
		if inner, ok := strings.CutPrefix(strings.TrimSpace(def), "unique("); ok {
			key = inner
		} else if inner, ok := strings.CutPrefix(strings.TrimSpace(def), "non_unique("); ok {
			key = inner
		} else {
			def = "non_unique(" + def + ")"
		}
		val := *item
		val.text, val.kind, val.made = def, stringKind, val.made || def != item.text
		name := l.indexNameFor(d.node.Table.Name, key)
		m.entries = append(m.entries, &entry{name: name, key: textAt(item, name), val: &val})
	}
	d.w.replace("indexes", m)
}

// expression types that a field can be given: those of columns.
func columnTypeOf(t expr.Type) expr.Type {
	if t == expr.GoInt {
		return expr.Int
	}
	for _, c := range expr.ColumnTypes() {
		if c == t {
			return t
		}
	}
	return expr.Invalid
}
