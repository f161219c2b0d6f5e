package script

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// reservedFields are column names that the engine keeps for itself.
func reservedFields() []string { return []string{"rowid", "batch_idx"} }

// declareTable reads what can be known of w without looking at other nodes:
// the table's name, its fields with the types that they declare, and the names
// of its indexes.
func (l *loader) declareTable(d *nodeDraft) {
	if d.node.Type == TableFile || d.w == nil || (d.node.Type == "" && !d.w.has("name")) {
		return
	}
	o := d.w
	w := &TableWriter{Pos: l.pos(o.where())}
	d.node.Table = w
	l.tableName(d, w)
	if v := o.text("table_options"); v != nil && strings.TrimSpace(v.Text) != "" {
		o.ignored("it belongs to the storage of another system", "table_options")
	}
	if v := o.get("fields"); v != nil && v.Kind != document.List {
		l.declareFields(d, w)
	}
	l.declareIndexes(d, w)
}

// declareFields reads the fields' names, and their types as far as they are declared.
func (l *loader) declareFields(d *nodeDraft, w *TableWriter) {
	o := d.w
	short, keys := "expression", fieldShape
	if d.node.Type == SQLTable {
		short, keys = "type", queryFieldShape
	}
	members := l.fieldMembers(o, short)
	if v := o.get("fields"); len(members) == 0 && (v == nil || v.Kind == document.Map) {
		o.missing("fields", "a table has at least one field")
	}
	d.fieldsOK = true
	seen := map[string]*document.Value{}
	for _, e := range members {
		path := join(o.keyPath("fields"), e.Name)
		l.fieldName(e.Key, e.Name, path, "field", seen)
		if slices.Contains(reservedFields(), strings.ToLower(e.Name)) {
			l.ErrorAt(e.Key, path, "the name %s is reserved", document.Quote(e.Name))
		}
		f := &Field{Name: e.Name, Pos: l.pos(e.Key)}
		w.Fields = append(w.Fields, f)
		draft := &fieldDraft{field: f, o: l.object(e.Value, path, keys), infer: e.Value.Made && short == "expression"}
		if draft.o != nil {
			draft.o.at = e.Key
			if !draft.infer {
				f.Type = l.columnType(draft.o, "type")
			}
			f.Default = draft.o.str("default_value")
			f.Nullable = draft.o.boolean("nullable") || f.Type.Nested()
		}
		d.fields = append(d.fields, draft)
	}
}

// fieldMembers lists the fields; where one is a text alone it is put into its
// long form, in which that text has the key short.
func (l *loader) fieldMembers(o *object, short string) []*document.Entry {
	e := o.keys["fields"]
	if e != nil && e.Value.Kind == document.Map {
		some := false
		for _, f := range e.Value.Entries {
			some = some || isText(f.Value)
		}
		if some {
			for _, f := range own(e).Entries {
				if isText(f.Value) {
					f.Value = shortField(f.Value, short)
				}
			}
		}
	}
	return o.members("fields")
}

// shortField is the long form of a field that is a text: an expression, or the
// type of a query's column.
func shortField(v *document.Value, short string) *document.Value {
	if short != "type" {
		return mapAt(v, entryAt(v, short, asText(v)))
	}
	c := parseShortColumn(asText(v))
	if c.layout != nil || c.otherwise != nil {
		return mapAt(v, entryAt(v, short, asText(v))) // neither means anything here: it is no type
	}
	m := mapAt(v, entryAt(v, short, c.typ))
	if c.nullable {
		yes := textAt(v, "true")
		yes.Kind = document.Bool
		m.Entries = append(m.Entries, entryAt(v, "nullable", yes))
	}
	return m
}

// shortFields replaces fields that are left out or given as a list, once it is
// known what r, l and p have.
func (l *loader) shortFields(d *nodeDraft, w *TableWriter) {
	v := d.w.get("fields")
	switch {
	case v == nil && d.node.Lookup != nil && d.node.Lookup.Group:
		d.w.missing("fields", "a grouped lookup says which fields and aggregates it keeps")
		return
	case v == nil:
		v = &document.Value{Src: d.w.v.Src, Kind: document.List, Off: d.w.where().Off, End: d.w.where().End, Made: true}
		aliases := d.aliases()
		if d.node.Type == PyTableNode {
			aliases = []string{"p"} // the function decides whether it returns the group's keys
		}
		for _, alias := range aliases {
			v.Items = append(v.Items, textAt(d.w.where(), alias+".*"))
		}
	case v.Kind != document.List:
		return
	}
	m, ok := mapAt(v), true
	taken := map[string]bool{}
	items := slices.DeleteFunc(slices.Clone(v.Items),
		func(item *document.Value) bool { return l.longItem(item, d.w.keyPath("fields")) })
	ok = len(items) == len(v.Items)
	for _, item := range singles(items) {
		it, good := parseShortItem(item)
		switch {
		case !good || it.rest != nil:
			l.ErrorAt(item, d.w.keyPath("fields"),
				"an item of fields is a field such as r.name, all of them as r.*, or {name: expression}")
			ok = false
		case it.all != "":
			ok = l.allFields(d, it, item, d.w.keyPath("fields"), func(name string, e *document.Value) {
				if !taken[strings.ToLower(name)] {
					m.Entries = append(m.Entries, entryAt(item, name, e))
					taken[strings.ToLower(name)] = true
				}
			}) && ok
		default:
			m.Entries = append(m.Entries, &document.Entry{Name: it.name.Text, Key: it.name, Value: it.expr})
			taken[strings.ToLower(it.name.Text)] = true
		}
	}
	if len(m.Entries) == 0 && (v.Made || !ok) {
		return
	}
	if d.w.has("fields") {
		d.w.replace("fields", m)
	} else {
		d.w.add("fields", m)
	}
	l.declareFields(d, w)
	d.fieldsOK = ok
}

// longItem reports an item that has keys for its name and its expression, as items of
// other lists do: each key would be a field.
func (l *loader) longItem(item *document.Value, path string) bool {
	if item.Kind != document.Map {
		return false
	}
	has := map[string]*document.Value{}
	for _, e := range item.Entries {
		has[strings.ToLower(e.Name)] = e.Value
	}
	name, expression := has["name"], has["expression"]
	if name == nil || expression == nil || !isText(name) || !isText(expression) || !isWord(name.Text) {
		return false
	}
	l.ErrorAt(item.Entries[0].Key, path, "the name of a field is a key of its own here").Hint =
		"write {" + name.Text + ": " + expression.Text + "}, or with a type, for all fields, fields: {" + name.Text +
			": {expression: " + expression.Text + ", type: …}}"
	return true
}

// allFields gives each field of an alias with the expression that copies it;
// false if they are not known.
func (l *loader) allFields(d *nodeDraft, it shortItem, item *document.Value, path string,
	each func(name string, expression *document.Value)) bool {
	if !slices.Contains(d.aliases(), it.all) {
		l.ErrorAt(item, path, "%s.* cannot be used here", it.all).Hint = "allowed here: " +
			strings.Join(starred(d.aliases()), ", ")
		return false
	}
	names, known := d.aliasFields(it.all)
	for _, name := range names {
		each(name, textAt(item, it.all+"."+name))
	}
	return known
}

// aliases lists what the node's expressions may refer to.
func (d *nodeDraft) aliases() []string {
	switch d.node.Type {
	case LookupTable:
		return []string{"r", "l"}
	case CustomTable:
		return []string{"r", "p"}
	case PyTableNode:
		if d.node.PyTable == nil || !d.p.has("group_by") {
			return []string{"p"}
		}
		return []string{"r", "p"}
	}
	return []string{"r"}
}

func (l *loader) tableName(d *nodeDraft, w *TableWriter) {
	v := d.w.one("name", "a table needs a name")
	if v == nil {
		return
	}
	name, path := v.Text, d.w.keyPath("name")
	w.Name = name
	lower := strings.ToLower(name)
	switch {
	case !isWord(name):
		l.ErrorAt(v, path, "the table's name %s has other characters than letters, digits and underscores",
			document.Quote(name))
	case len(name) > MaxTableNameChars:
		l.ErrorAt(v, path, "the table's name is longer than %d characters", MaxTableNameChars)
	case strings.HasPrefix(name, "idx"):
		l.ErrorAt(v, path, "the table's name %s begins with idx, as only indexes do", document.Quote(name))
	case strings.HasPrefix(name, "wf") || strings.HasPrefix(name, "system"):
		l.ErrorAt(v, path, "the table's name %s is reserved",
			document.Quote(name)).Hint = "names of system tables begin with wf or system"
	}
	if other := l.tables[lower]; other != nil {
		at := l.ErrorAt(v, path, "table %s is created twice: node %s creates it too", document.Quote(name),
			document.Quote(other.Name))
		at.Related = append(at.Related, other.Table.Pos)
		at.Hint = "give one of them another name; one node can read several files: urls: [a.csv, b.csv]"
		return
	}
	l.tables[lower] = d.node
	l.script.byTable[name] = d.node
}

// declareIndexes registers the names of the table's indexes.
func (l *loader) declareIndexes(d *nodeDraft, w *TableWriter) {
	l.shortIndexes(d)
	for _, e := range d.w.members("indexes") {
		if l.IsFull() {
			return
		}
		ix := &Index{Name: e.Name, Pos: l.pos(e.Key), Node: d.node}
		l.indexName(e, ix, join(d.w.keyPath("indexes"), e.Name))
		w.Indexes = append(w.Indexes, ix)
		d.indexes = append(d.indexes, indexDraft{index: ix, e: e})
		l.indexKeys[ix] = e.Key
	}
}

// indexes reads the keys of the table's indexes, once its fields have types.
func (l *loader) indexes(d *nodeDraft) {
	if d.node.Table == nil || !d.fieldsOK {
		return
	}
	unique, broken := 0, false
	types := fieldTypes(d.node.Table)
	for _, x := range d.indexes {
		if l.IsFull() {
			return
		}
		if !l.indexKey(d, x, types) {
			broken = true
		} else if x.index.Unique {
			unique++
		}
	}
	if d.node.Type == Distinct && !broken && unique != 1 {
		at := d.w.where()
		if e := d.w.keys["indexes"]; e != nil {
			at = e.Key
		}
		l.ErrorAt(at, d.w.keyPath("indexes"), "a distinct_table has exactly one unique index, this one has %d",
			unique).Hint =
			"its key says which rows are the same"
	}
}

// indexKey reads one index's definition; false if it cannot.
func (l *loader) indexKey(d *nodeDraft, x indexDraft, types map[string]expr.Type) bool {
	v, path := x.e.Value, join(d.w.keyPath("indexes"), x.e.Name)
	if v.Kind != document.String {
		l.ErrorAt(v, path, "an index is text such as unique(field), found %s", v.Kind)
		return false
	}
	var err error
	if x.index.Unique, x.index.Key, err = expr.ParseIndex(v.Text, types); err != nil {
		if !mentionsBroken(v.Text, types) {
			l.exprError(v, path, err)
		}
		return false
	}
	return true
}

// mentionsBroken reports whether text names a field whose type is not known,
// so that what is wrong with it may follow from an error reported already.
func mentionsBroken(text string, types map[string]expr.Type) bool {
	for name, t := range types {
		if t == expr.Invalid && strings.Contains(text, name) {
			return true
		}
	}
	return false
}

// indexNameFor makes a name for an index that the script does not name:
// idx_<table>_<fields>, cut to the limit with a hash at its end.
func (l *loader) indexNameFor(table, key string) string {
	var base strings.Builder
	base.WriteString("idx_" + table)
	for item := range strings.SplitSeq(key, ",") {
		field, _, _ := strings.Cut(strings.TrimSpace(item), "(")
		base.WriteString("_" + identifier(field))
	}
	name := cutName(base.String(), MaxIndexNameChars)
	for n := 2; l.script.byIndex[name] != nil; n++ {
		name = cutName(base.String()+"_"+strconv.Itoa(n), MaxIndexNameChars)
	}
	return name
}

// cutName cuts a name to limit characters; what distinguishes it goes into a hash.
func cutName(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	const hexDigits = 8
	return name[:limit-hexDigits-1] + "_" + hex.EncodeToString(sum[:])[:hexDigits]
}

func (l *loader) indexName(e *document.Entry, ix *Index, path string) {
	name := e.Name
	switch {
	case !strings.HasPrefix(name, "idx"):
		l.ErrorAt(e.Key, path, "the index's name %s must begin with idx", document.Quote(name))
	case !isWord(name):
		l.ErrorAt(e.Key, path, "the index's name %s has other characters than letters, digits and underscores",
			document.Quote(name))
	case len(name) > MaxIndexNameChars:
		l.ErrorAt(e.Key, path, "the index's name is longer than %d characters", MaxIndexNameChars)
	}
	if other := l.script.byIndex[name]; other != nil {
		at := l.ErrorAt(e.Key, path, "index %s is defined twice: node %s has it too", document.Quote(name),
			document.Quote(other.Node.Name))
		at.Related = append(at.Related, other.Pos)
		return
	}
	if other := l.script.byTable[name]; other != nil {
		l.ErrorAt(e.Key, path, "index %s has the name of a table", document.Quote(name))
	}
	l.script.byIndex[name] = ix
}

// indexUse reports indexes that nothing uses.
func (l *loader) indexUse() {
	used := map[*Index]bool{}
	for _, n := range l.script.Nodes {
		if n.Type == LookupTable && (n.Lookup == nil || n.Lookup.Index == nil) {
			return // it may be meant for any of them
		}
		if n.Lookup != nil {
			used[n.Lookup.Index] = true
		}
	}
	for _, d := range l.nodes {
		if d.node.Table == nil {
			continue
		}
		for _, ix := range d.node.Table.Indexes {
			exempt := strings.Contains(ix.Name, "to_check_uniq") || (d.node.Type == Distinct && ix.Unique)
			if used[ix] || exempt || ix.Key == nil || l.script.byIndex[ix.Name] != ix {
				continue
			}
			l.ErrorAt(l.indexKeys[ix], join(d.w.keyPath("indexes"), ix.Name), "no lookup uses index %s",
				document.Quote(ix.Name)).Hint =
				"remove it; an index that is there to check uniqueness has to_check_uniq in its name"
		}
	}
}

// tableExpressions checks the fields' expressions and having.
func (l *loader) tableExpressions(d *nodeDraft) {
	w := d.node.Table
	if w == nil || d.node.Type == SQLTable {
		return
	}
	if !d.fieldsOK {
		l.shortFields(d, w)
	}
	sc := newScope("a field's expression").nullable(d.nulls()).zoned(d.zones()).asRead(d.unstored())
	if d.node.Type == PyTableNode {
		sc = l.groupScope(d, sc)
	} else {
		sc = sc.with("r", d.reads, d.readsOK)
	}
	switch d.node.Type {
	case LookupTable:
		sc = sc.with("l", d.looks, d.looksOK)
	case CustomTable, PyTableNode:
		sc = sc.with("p", d.calcs, d.calcsOK)
	case "":
		sc = sc.with("l", nil, false).with("p", nil, false)
	}
	for _, f := range d.fields {
		if l.IsFull() {
			return
		}
		l.field(d, f, sc)
	}
	v := d.w.expression("having")
	if v == nil {
		return
	}
	if d.node.Type == Distinct {
		l.ErrorAt(d.w.keys["having"].Key, d.w.keyPath("having"), "a distinct_table takes no having").Hint =
			"filter in a table_table in front of it"
		return
	}
	w.Having = l.condition(v, d.w.keyPath("having"),
		newScope("having").nullable(fieldNulls("w", w.Fields)).computed(d.node.SeenByHaving).with("w",
			fieldTypes(w), true))
}

// SeenByHaving gives the expression of a field, or of a file's column, that
// having sees as it was computed, finer than it is written; nil for all others.
// Fields of a lookup can be default values, which have no zones.
func (n *Node) SeenByHaving(w expr.Ref) *expr.Compiled {
	for _, v := range n.Written() {
		if v.Name == w.Field && v.Expr != nil && v.Expr.Finer() && (n.Lookup == nil || !v.Expr.Zoned()) {
			return v.Expr
		}
	}
	return nil
}

// condition checks an expression that must be a bool, computed without rounding.
func (l *loader) condition(v *document.Value, path string, sc scope) *expr.Compiled {
	c := l.compile(v, path, sc, expr.Mode{})
	if c != nil && c.Type() != expr.Bool {
		l.ErrorAt(v, path, "%s must be a bool, but it is %s", sc.place,
			article(c.Type())).Hint = "compare it with something"
		return nil
	}
	return c
}

func article(t expr.Type) string {
	switch t {
	case expr.Int:
		return "an int"
	case expr.GoInt:
		return "a Go int"
	}
	return "a " + t.String()
}

func (l *loader) field(d *nodeDraft, f *fieldDraft, sc scope) {
	v := f.o.one("expression", "a field needs an expression")
	if v == nil {
		return
	}
	path := f.o.keyPath("expression")
	f.field.ExprPos = l.pos(v)
	lookup := d.node.Lookup
	grouped := lookup != nil && lookup.Group
	if f.infer {
		f.field.Type = l.inferType(f.o, sc, expr.Mode{Round: true, Aggregates: grouped, MeanFloat: true})
		f.field.Nullable = f.o.boolean("nullable") || f.field.Type.Nested()
		if f.field.Type == expr.Invalid {
			return
		}
		v = f.o.get("expression")
	}
	mode := expr.Mode{Round: true, Aggregates: grouped, MeanFloat: f.infer, EmptyNull: f.field.Nullable,
		Null: f.field.Type}
	c := l.compile(v, path, sc, mode)
	if c != nil && grouped && !c.Aggregate() {
		mode.Round = false // in a grouped lookup only aggregates are rounded
		c = l.compile(v, path, sc, mode)
	}
	if c != nil && lookup != nil && lookup.Left && !f.o.has("default_value") {
		f.field.NullUnmatched = unmatchedNull(f.field, c, lookup.Group)
		if f.field.NullUnmatched && !lookup.Group {
			c = l.compile(v, path, sc.nullable(allNull("l", d.looks)), mode)
		}
	}
	l.fieldType(v, path, f.field.Type, c)
	if f.field.Type != expr.Invalid {
		l.fieldNull(v, path, "field", f.field.Nullable, c)
	}
	f.field.Expr = c
	l.fieldDefault(f, lookup != nil && lookup.Left && (c == nil || mentions(c, "l") || c.Aggregate()))
}

// inferType writes the type of a short form's expression into its long form,
// and whether it may be NULL. len() and the like need the int(…) that the long
// form would have.
func (l *loader) inferType(o *object, sc scope, mode expr.Mode) expr.Type {
	v, path := o.expression("expression"), o.keyPath("expression")
	if v == nil {
		return expr.Invalid
	}
	c := l.compile(v, path, sc, mode)
	if c == nil {
		return expr.Invalid
	}
	t := columnTypeOf(c.Type())
	switch {
	case t == expr.Invalid:
		l.ErrorAt(v, path, "the expression is %s, which no field can hold", article(c.Type()))
		return t
	case c.Type() == expr.GoInt:
		whole := *v
		whole.Text, whole.Made = "int("+v.Text+")", true
		o.replace("expression", &whole)
	}
	o.add("type", textAt(v, t.String()))
	if c.Nullable() || l.sumsNulls(v, path, sc, mode, c) {
		yes := textAt(v, "true")
		yes.Kind = document.Bool
		o.add("nullable", yes)
	}
	return t
}

// sumsNulls reports an aggregate over values that may all be NULL, which is
// NULL then if its field allows that.
func (l *loader) sumsNulls(v *document.Value, path string, sc scope, mode expr.Mode, c *expr.Compiled) bool {
	if !c.Aggregate() || !slices.ContainsFunc(c.Refs(), func(r expr.Ref) bool { return sc.nulls[r] }) {
		return false
	}
	mode.EmptyNull = true
	open := l.compile(v, path, sc, mode)
	return open != nil && open.Nullable() // a count is not
}

func mentions(c *expr.Compiled, alias string) bool {
	for _, ref := range c.Refs() {
		if ref.Alias == alias {
			return true
		}
	}
	return false
}

// fieldType reports an expression whose type is not the declared one.
func (l *loader) fieldType(v *document.Value, path string, want expr.Type, c *expr.Compiled) {
	if c == nil || want == expr.Invalid || c.Fits(want) {
		return
	}
	at := l.ErrorAt(v, path, "the expression is %s, but the declared type is %s", article(c.Type()), want)
	switch {
	case c.Type().IsDecimal() && want.IsDecimal():
		digits, scale := want.Digits()
		at.Hint = fmt.Sprintf("it may have more digits behind the point: round(…, %d), or decimal(…, %d, %d) where "+
			"they are zero, or declare the type %s", scale, digits, scale, c.Type())
	case want.IsDecimal() && want != expr.Decimal && (c.Type().IsNumber() || c.Type() == expr.String):
		digits, scale := want.Digits()
		at.Hint = fmt.Sprintf("convert it with decimal(…, %d, %d), or declare the type %s", digits, scale, c.Type())
	case c.Type() == expr.GoInt && want == expr.Int:
		at.Hint = "write int(" + document.Shorten(v.Text, document.MaxShownTextChars) + ")"
	case want == expr.Date || want == expr.Instant || want == expr.String ||
		((want == expr.Int || want == expr.Float || want == expr.Decimal) && c.Type() != expr.DateTime):
		at.Hint = "convert it with " + want.String() + "(…), or declare the type " + c.Type().String()
	}
}

// fieldDefault checks default_value, which counts for rows of a left lookup
// that have no match.
func (l *loader) fieldDefault(f *fieldDraft, counts bool) {
	v := f.o.text("default_value")
	if v == nil || v.Text == "" || f.field.Type == expr.Invalid {
		return
	}
	_, err := expr.DefaultSQL(f.field.Type, v.Text, "")
	switch {
	case err == nil:
	case counts:
		l.exprError(v, f.o.keyPath("default_value"), err)
	default:
		l.exprError(v, f.o.keyPath("default_value"), err).Severity = document.Warning
	}
}
