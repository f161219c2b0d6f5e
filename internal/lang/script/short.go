package script

import (
	"go/token"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
)

// Short forms are replaced, in the document itself, by the long form that they
// stand for: what follows (checks, definition, fingerprint) knows only that.
// A short form is always a shape that has no meaning in the long one.

// own gives an entry a value of its own, one level deep: one that was aliased
// belongs to several places, and what is right in one may be wrong in another.
func own(e *document.Entry) *document.Value {
	v := *e.Value
	v.Entries = make([]*document.Entry, len(e.Value.Entries))
	for i, x := range e.Value.Entries {
		c := *x
		v.Entries[i] = &c
	}
	v.Items = append([]*document.Value(nil), v.Items...)
	e.Value = &v
	return e.Value
}

// textAt makes a text that stands where v is.
func textAt(v *document.Value, text string) *document.Value {
	start, end := v.Span()
	return &document.Value{Src: v.Src, Kind: document.String, Text: text, Off: start, End: max(end, start+1), Weight: 1,
		Made: true}
}

// partAt is text[start:end] of v as a text of its own.
func partAt(v *document.Value, start, end int) *document.Value {
	from, to := v.Part(start, end)
	return &document.Value{Src: v.Src, Kind: document.String, Text: v.Text[start:end], Off: from, End: max(to, from+1),
		Weight: 1, Made: true}
}

// mapAt makes a map that stands where v is.
func mapAt(v *document.Value, entries ...*document.Entry) *document.Value {
	start, _ := v.Span()
	return &document.Value{Src: v.Src, Kind: document.Map, Off: start, End: start + 1, Entries: entries, Weight: 1,
		Made: true}
}

// listAt makes a list that stands where v is.
func listAt(v *document.Value, items ...*document.Value) *document.Value {
	return &document.Value{Src: v.Src, Kind: document.List, Off: v.Off, End: v.Off + 1, Items: items,
		Weight: 1 + len(items), Made: true}
}

// entryAt makes an entry whose key stands where v is.
func entryAt(v *document.Value, name string, val *document.Value) *document.Entry {
	return &document.Entry{Name: name, Key: textAt(v, name), Value: val}
}

// add adds a key that the long form has and the text has not.
func (o *object) add(name string, val *document.Value) {
	e := entryAt(val, name, val)
	o.v.Entries = append(o.v.Entries, e)
	o.keys[name] = e
}

// replace gives a key another value.
func (o *object) replace(name string, val *document.Value) { o.keys[name].Value = val }

// drop removes a key.
func (o *object) drop(name string) {
	delete(o.keys, name)
	kept := o.v.Entries[:0]
	for _, e := range o.v.Entries {
		if e.Name != name {
			kept = append(kept, e)
		}
	}
	o.v.Entries = kept
}

// isText reports whether v is a text where texts are expected: in YAML that is
// anything without quotes.
func isText(v *document.Value) bool {
	return v.Kind == document.String || (v.Scalar() && v.Present() && !document.IsJSON(v.Src.Name))
}

// asText is v as text, whatever YAML takes it for.
func asText(v *document.Value) *document.Value {
	if v.Kind == document.String {
		return v
	}
	c := *v
	c.Kind = document.String
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
	case token.IsKeyword(name) || slices.Contains(reservedFields(), strings.ToLower(name)):
		return name + "_"
	}
	return name
}

// Identifiers returns the names by which expressions refer to columns in short form with these headers.
func Identifiers(headers []string) []string { return identifiers(headers) }

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
func (l *loader) warnNumbered(at *document.Value, path, header, name string) {
	if usual := identifier(header); header != "" && usual != name {
		l.WarnAt(at, path, "column %s is r.%s here: r.%s is another column, because names are equal "+
			"whatever their case", document.Quote(header), name, usual)
	}
}

// shortPart replaces r: orders, w: orders and the like.
func (d *nodeDraft) shortPart(part string, v *document.Value) *document.Value {
	t := d.node.Type
	switch {
	case part == "r" && (t == SQLTable || severalTables(t)) && v.Kind == document.List:
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

// shortColumn holds the parts of an input column's text: "decimal2 = 0", "datetime 2006-01-02", "string?".
type shortColumn struct {
	typ       *document.Value
	layout    *document.Value // nil: none
	otherwise *document.Value // value of what is NULL; nil: it is NULL
	nullable  bool            // it says so
	required  bool            // the file says that there are no NULLs
	optional  *document.Value // nil: all files have it
	path      *document.Value // JSON; nil: its name
	at        *document.Value // index in a CSV file; nil: it is found by its header alone
	counted   bool            // it is found by its index alone
	nullText  *document.Value // what is NULL in a CSV file; nil: the empty cell
	round     *document.Value // nil: what the type does not keep is an error
}

// mayBeNull decides whether a column that is given in short form is nullable:
// always if it can be NULL, unless there is a default. What cannot be NULL is a
// text of a CSV file, whose empty cell is the empty text, unless ? asks for it.
func (c shortColumn) mayBeNull(parquet bool) bool {
	switch {
	case c.nullable, c.nullText != nil, c.optional != nil && c.otherwise == nil:
		return true
	case c.otherwise != nil, c.required:
		return false
	}
	return parquet || c.typ.Text != expr.String.String()
}

func parseShortColumn(v *document.Value) shortColumn {
	text := strings.TrimRight(v.Text, " \t\r\n")
	start := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	var c shortColumn
	// A layout or format may have a = of its own; that of a default has a blank, or nothing but the type, in front of
	// it.
	if at := strings.LastIndexByte(text, '='); at > start &&
		(text[at-1] == ' ' || !strings.Contains(text[start:at], " ")) {
		from := at + 1 + len(text[at+1:]) - len(strings.TrimLeft(text[at+1:], " \t"))
		c.otherwise = partAt(v, from, len(text))
		text = strings.TrimRight(text[:at], " \t\r\n")
	}
	word, rest := typeAndRest(text[start:])
	if layout := strings.TrimLeft(rest, " \t"); layout != "" {
		c.layout = partAt(v, len(text)-len(layout), len(text))
	}
	if name, ok := strings.CutSuffix(word, "?"); ok {
		c.nullable, word = true, name
	}
	c.typ = partAt(v, start, start+len(word))
	return c
}

// isShortMap reports whether a column is given as {type: …}, which is a short form, too.
func isShortMap(v *document.Value) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(v.Entries, func(e *document.Entry) bool { return strings.EqualFold(e.Name, name) })
	}
	return v.Kind == document.Map && has("type") && !has("col_type")
}

// shortColumn reads a column of files whose columns are not counted.
func (l *loader) shortColumn(v *document.Value, path string) shortColumn {
	c := l.countedColumn(v, path)
	if c.at != nil {
		l.ErrorAt(c.at, join(path, "col_idx"), "col_idx is for CSV files whose columns are listed under columns").Hint =
			"leave it out"
	}
	return c
}

// countedColumn reads a column as text, or as a map with more.
func (l *loader) countedColumn(v *document.Value, path string) shortColumn {
	if !isShortMap(v) {
		return l.knownLayout(parseShortColumn(v), path)
	}
	o := l.object(l.longKeys(v, path), path, shortColumnShape)
	t := o.text("type")
	if t == nil {
		return parseShortColumn(textAt(v, ""))
	}
	c := l.knownLayout(parseShortColumn(t), path)
	c.path = o.text("path")
	if o.has("col_idx") {
		o.integer("col_idx", 0)
		c.at = o.get("col_idx")
	}
	if o.boolean("optional") {
		c.optional = o.get("optional")
	}
	c.nullText = o.get("null_text")
	if o.boolean("round") {
		c.round = o.get("round")
	}
	return c
}

// knownLayout reports words of SQL behind a type, which would be read as a layout.
func (l *loader) knownLayout(c shortColumn, path string) shortColumn {
	if c.layout == nil {
		return c
	}
	hint := ""
	switch strings.ToLower(strings.Join(strings.Fields(c.layout.Text), " ")) {
	case "null", "nullable":
		hint = "write " + c.typ.Text + "?"
	case "not null", "required":
		hint = "the node can check it: checks: [{not_null: NAME}]"
	case "optional":
		hint = "write {type: " + c.typ.Text + ", optional: true}"
	case "primary key", "unique":
		hint = "the node can check it: checks: [{unique: NAME}]"
	default:
		return c
	}
	l.ErrorAt(c.layout, path, "%s behind a type means nothing here", document.Quote(c.layout.Text)).Hint = hint
	c.layout = nil
	return c
}

// longKeys reports keys of a column's long form beside type, which the short form has, and
// gives the column without them.
func (l *loader) longKeys(v *document.Value, path string) *document.Value {
	long := func(e *document.Entry) bool {
		return !l.src.Lenient && e.Value.Present() && shortColumnShape.index(e.Name) < 0 && longColumnHint(e.Name) != ""
	}
	i := slices.IndexFunc(v.Entries, long)
	if i < 0 {
		return v
	}
	name := v.Entries[i].Name
	l.ErrorAt(v.Entries[i].Key, path, "a column in short form, which has type, takes no key %s",
		document.Quote(name)).Hint = longColumnHint(name)
	short := *v
	short.Entries = slices.DeleteFunc(slices.Clone(v.Entries), long)
	return &short
}

// longColumnHint says how the short form of a column has what a key of the long one, or
// what people take for it, is for; "": it is no such key.
func longColumnHint(name string) string {
	switch name = strings.ToLower(name); name {
	case "col_hdr", "col_name", "header":
		return "beside type it is called path"
	case "col_format", "format", "layout":
		return "it stands behind the type: datetime 2006-01-02"
	case "col_default_value", "default_value", "default":
		return "it stands behind the type: int = 0"
	case "nullable":
		return "NULL is allowed by a ? behind the type: string?"
	}
	if columnShape.index(name) >= 0 || csvColumnShape.index(name) >= 0 {
		return "beside " + name +
			" the type is called col_type; without it path: HEADER says which column it is, if its name does not"
	}
	return ""
}

func trueAt(v *document.Value) *document.Value {
	return &document.Value{Src: v.Src, Kind: document.Bool, Text: "true", Off: v.Off, End: v.End, Weight: 1, Made: true}
}

func numberAt(v *document.Value, n int) *document.Value {
	return &document.Value{Src: v.Src, Kind: document.Number, Text: strconv.Itoa(n), Off: v.Off, End: v.End, Weight: 1,
		Made: true}
}

// typeAndRest cuts a column's type off what follows it: parameters of a type may have blanks.
func typeAndRest(text string) (word, rest string) {
	if open, end := strings.IndexByte(text, '('), closing(text); open > 0 && end > open &&
		!strings.Contains(text[:open], " ") {
		end++
		if strings.HasPrefix(text[end:], "?") {
			end++
		}
		return text[:end], strings.TrimPrefix(text[end:], " ")
	}
	word, rest, _ = strings.Cut(text, " ")
	return word, rest
}

// closing returns the index of the parenthesis that closes the first one of a type, -1 if there is none.
// Parentheses in quoted names do not count.
func closing(text string) int {
	depth, quoted := 0, false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// columnEntry is the long form of a column that is found by its header, by its
// index, or by its name in a Parquet file.
func columnEntry(name string, key *document.Value, c shortColumn, header string, parquet bool) *document.Entry {
	v := mapAt(c.typ, entryAt(c.typ, "col_type", c.typ))
	if c.mayBeNull(parquet) {
		v.Entries = append(v.Entries, entryAt(c.typ, "nullable", trueAt(c.typ)))
	}
	if c.optional != nil {
		v.Entries = append(v.Entries, entryAt(c.optional, "optional", c.optional))
	}
	if c.round != nil {
		v.Entries = append(v.Entries, entryAt(c.round, "round", c.round))
	}
	if parquet {
		where := mapAt(key, entryAt(key, "col_name", textAt(key, header)))
		if c.otherwise != nil {
			where.Entries = append(where.Entries, entryAt(c.otherwise, "default_value", c.otherwise))
		}
		v.Entries = append(v.Entries, entryAt(key, "parquet", where))
		return &document.Entry{Name: name, Key: key, Value: v}
	}
	if c.otherwise != nil {
		v.Entries = append(v.Entries, entryAt(c.otherwise, "col_default_value", c.otherwise))
	}
	csv := mapAt(key)
	if !c.counted {
		csv.Entries = append(csv.Entries, entryAt(key, "col_hdr", textAt(key, header)))
	}
	if c.at != nil {
		csv.Entries = append(csv.Entries, entryAt(c.at, "col_idx", c.at))
	}
	if c.layout != nil {
		csv.Entries = append(csv.Entries, entryAt(c.layout, "col_format", c.layout))
	}
	if c.nullText != nil {
		csv.Entries = append(csv.Entries, entryAt(c.nullText, "null_text", c.nullText))
	}
	v.Entries = append(v.Entries, entryAt(key, "csv", csv))
	return &document.Entry{Name: name, Key: key, Value: v}
}

// shortColumns replaces columns that are given as text.
func (l *loader) shortColumns(d *nodeDraft) {
	o := d.r
	e := o.keys["columns"]
	if e == nil || e.Value.Kind != document.Map {
		return
	}
	columns := own(e)
	var short []*document.Entry
	var headers []string
	parquet := l.looksParquet(o)
	for _, c := range columns.Entries {
		if c.Value.Kind == document.String || isShortMap(c.Value) {
			short, headers = append(short, c), append(headers, c.Name)
		}
		parquet = parquet || namesParquet(c.Value)
	}
	byIndex := o.headerless()
	names := identifiers(headers)
	for i, c := range short {
		header := c.Name
		l.warnNumbered(c.Key, o.keyPath("columns"), header, names[i])
		place := join(o.keyPath("columns"), c.Name)
		given := l.countedColumn(c.Value, place)
		if given.path != nil {
			header = l.pathHeader(given, place, byIndex, parquet)
		}
		if given.counted = byIndex && !parquet; given.counted && given.at == nil {
			given.at = numberAt(c.Key, slices.Index(columns.Entries, c))
		}
		switch {
		case parquet && given.at != nil:
			l.ErrorAt(given.at, join(place, "col_idx"), "the columns of Parquet files are found by their names").Hint =
				"leave it out"
		case !parquet && header == "" && given.at == nil: // it would be read by index, the header as a row
			l.ErrorAt(c.Key, o.keyPath("columns"), "a column without a header cannot be found by it").Hint =
				`say where it is: NAME: {type: string, path: "", col_idx: 2}, counted from 0; or give the file a header for it`
		}
		*c = *columnEntry(names[i], c.Key, given, header, parquet)
	}
}

// pathHeader returns the header by which a column with a path is found. In Parquet files it is a name or a
// path to a nested value; in CSV files the header.
func (l *loader) pathHeader(c shortColumn, path string, byIndex, parquet bool) string {
	if parquet {
		if _, err := filespec.ParsePath(c.path.Text); err != nil {
			l.ErrorAt(c.path, join(path, "path"), "%s", err).Hint = pathHint
		}
	} else if byIndex {
		l.ErrorAt(c.path, join(path, "path"), "a file without a header has no column by that name").Hint =
			"columns are counted: list them in the order of the file"
	}
	return c.path.Text
}

const pathHint = `keys with points between them, elements of lists as [0]: address.city, items[0].sku, "a.b"`

// namesParquet reports whether a column in long form says that it is one of a
// Parquet file.
func namesParquet(column *document.Value) bool {
	for _, e := range column.Entries {
		if strings.EqualFold(e.Name, "parquet") {
			return e.Value.Present()
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
	for _, e := range csv.Entries {
		if strings.EqualFold(e.Name, "hdr_line_idx") {
			n, ok := wholeNumber(e.Value.Text)
			return ok && n < 0
		}
	}
	return false
}

// looksParquet reports whether the name of the first input file is that of a Parquet file.
func (l *loader) looksParquet(o *object) bool {
	v := o.get("urls")
	if v == nil || v.Kind != document.List || len(v.Items) == 0 {
		return false
	}
	if format := o.get("format"); format != nil {
		return format.Text == formatParquet
	}
	return address.Parquet(v.Items[0].Text)
}

// shortItem is an element of a list of fields or columns: a name with what
// follows it, all fields of an alias (r.*), or {name: expression}.
type shortItem struct {
	name *document.Value
	expr *document.Value // expression; nil: all fields of alias
	all  string          // alias
	rest *document.Value // what follows the name, for columns of files; nil: nothing
}

// singles writes {a: x, b: y} in a list as {a: x}, {b: y}.
func singles(items []*document.Value) []*document.Value {
	var out []*document.Value
	for _, item := range items {
		if item.Kind != document.Map || len(item.Entries) < 2 {
			out = append(out, item)
			continue
		}
		for _, e := range item.Entries {
			out = append(out, mapAt(e.Key, e))
		}
	}
	return out
}

// parseShortItem reads an element; ok is false if it is none.
func parseShortItem(v *document.Value) (it shortItem, ok bool) {
	switch {
	case v.Kind == document.Map && len(v.Entries) == 1 && isText(v.Entries[0].Value):
		return shortItem{name: v.Entries[0].Key, expr: asText(v.Entries[0].Value)}, true
	case !isText(v):
		return shortItem{}, false
	}
	text := strings.TrimRight(v.Text, " \t")
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
		it.expr.Text = "r." + word
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
	if e == nil || e.Value.Kind != document.List {
		return
	}
	m := mapAt(e.Value)
	for _, item := range e.Value.Items {
		if !isText(item) {
			l.ErrorAt(item, d.w.keyPath("indexes"), "an index is text such as unique(field), found %s", item.Kind)
			continue
		}
		def, key := item.Text, item.Text
		if inner, ok := strings.CutPrefix(strings.TrimSpace(def), "unique("); ok {
			key = inner
		} else if inner, ok := strings.CutPrefix(strings.TrimSpace(def), "non_unique("); ok {
			key = inner
		} else {
			def = "non_unique(" + def + ")"
		}
		val := *item
		val.Text, val.Kind, val.Made = def, document.String, val.Made || def != item.Text
		name := l.indexNameFor(d.node.Table.Name, key)
		m.Entries = append(m.Entries, &document.Entry{Name: name, Key: textAt(item, name), Value: &val})
	}
	d.w.replace("indexes", m)
}

// expression types that a field can be given: those of columns.
func columnTypeOf(t expr.Type) expr.Type {
	if t == expr.GoInt {
		return expr.Int
	}
	if t.IsColumn() {
		return t
	}
	return expr.Invalid
}
