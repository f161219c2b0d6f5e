package script

import (
	"slices"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// joinPair is one equality of on: fields of r and l, with the place of each.
type joinPair struct{ left, right *document.Value }

// shortLookup reads a lookup that names a table and fields instead of an
// index: it puts the index into the table's long form, and uses it.
func (l *loader) shortLookup(d *nodeDraft, k *Lookup) {
	o := d.l
	for _, key := range []string{"index_name", "join_on"} {
		if o.has(key) {
			l.ErrorAt(o.keys[key].Key, o.keyPath(key), "a lookup names either table and on, or index_name and join_on")
			return
		}
	}
	table, on := o.one("table", "name the table to look up"),
		o.one("on", "say which fields are equal: a field of r = a field of the table")
	if table == nil {
		return
	}
	creator := l.script.byTable[table.Text]
	if creator == nil {
		l.noCreator(table, o.keyPath("table"), table.Text)
		return
	}
	d.looks, d.looksOrder, d.looksOK = l.fieldsOf(creator)
	if on == nil {
		return
	}
	pairs, ok := l.joinPairs(d, on)
	if !ok || !d.looksOK || !d.readsOK {
		k.Index = &Index{Node: creator} // what it would be is not known; nothing else is wrong with it
		return
	}
	k.Index = l.indexOn(creator, pairs)
	var names []string
	for _, p := range pairs {
		k.JoinOn = append(k.JoinOn, p.left.Text)
		names = append(names, "r."+p.left.Text)
		start, end := p.left.Span()
		l.joinComponent(d, k, p.left.Src, start, end, o.keyPath("on"))
	}
	o.drop("table")
	o.drop("on")
	o.add("index_name", textAt(table, k.Index.Name))
	o.add("join_on", textAt(on, strings.Join(names, ", ")))
}

// joinPairs reads "a = b, c": fields of r and of l; one name stands for both.
func (l *loader) joinPairs(d *nodeDraft, on *document.Value) ([]joinPair, bool) {
	var pairs []joinPair
	at, ok := 0, true
	for item := range strings.SplitSeq(on.Text, ",") {
		left, _, found := strings.Cut(item, "=")
		p := joinPair{left: trimmedPart(on, at, at+len(left))}
		p.right = p.left
		if found {
			p.right = trimmedPart(on, at+len(left)+1, at+len(item))
		}
		at += len(item) + 1
		if strings.HasPrefix(p.left.Text, "l.") && strings.HasPrefix(p.right.Text, "r.") {
			p.left, p.right = p.right, p.left
		}
		ok = l.joinSide(d, &p.left, "r", d.reads, d.readsOK) && l.joinSide(d, &p.right, "l", d.looks, d.looksOK) && ok
		pairs = append(pairs, p)
	}
	return pairs, ok
}

// trimmedPart is text[start:end] of v without blanks around it.
func trimmedPart(v *document.Value, start, end int) *document.Value {
	text := v.Text[start:end]
	start += len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	return partAt(v, start, start+len(strings.TrimSpace(text)))
}

// isKey refuses lists and structs as keys.
func (l *loader) isKey(v *document.Value, path, name string, t expr.Type) bool {
	problem, hint := t.KeyProblem()
	if problem != "" {
		l.ErrorAt(v, path, "field %s %s", document.Quote(name), problem).Hint = hint
	}
	return problem == ""
}

// joinSide takes the alias off one side of an equality and looks for its field.
func (l *loader) joinSide(d *nodeDraft, side **document.Value, alias string, fields map[string]expr.Type,
	known bool) bool {
	v, path := *side, d.l.keyPath("on")
	bare := *v
	bare.Text = strings.TrimPrefix(v.Text, alias+".")
	*side = &bare
	if !isWord(bare.Text) {
		l.ErrorSpan(v.Src, v.Off, v.End, path, "%s is not a field of %s", document.Quote(v.Text),
			alias).Hint = "on lists equalities such as id = order_id, separated by commas: a field of r, then one of l"
		return false
	}
	if _, ok := fields[bare.Text]; known && !ok {
		l.ErrorSpan(v.Src, v.Off, v.End, path, "%s has no field %s", alias, document.Quote(bare.Text)).Hint =
			document.SuggestKey(bare.Text, fields)
		return false
	}
	if problem, hint := fields[bare.Text].KeyProblem(); problem != "" {
		l.ErrorSpan(v.Src, v.Off, v.End, path, "field %s %s", document.Quote(bare.Text), problem).Hint = hint
		return false
	}
	return true
}

// indexOn gives the table an index on the right sides of the equalities, or
// finds the one that is there.
func (l *loader) indexOn(creator *Node, pairs []joinPair) *Index {
	cd := l.drafts[creator]
	var items []string
	for _, p := range pairs {
		items = append(items, p.right.Text)
	}
	def := strings.Join(items, ", ")
	_, key, err := expr.ParseIndex("non_unique("+def+")", fieldTypes(creator.Table))
	if err != nil { // a field occurs twice, or its type is not known
		if !mentionsBroken(def, fieldTypes(creator.Table)) {
			l.ErrorAt(pairs[0].right, "", "%s", errorText(err))
		}
		return &Index{Node: creator}
	}
	for _, ix := range creator.Table.Indexes {
		if sameKey(ix.Key, key) {
			return ix
		}
	}
	name := l.indexNameFor(creator.Table.Name, def)
	ix := &Index{Name: name, Pos: l.pos(pairs[0].right), Node: creator, Key: key}
	creator.Table.Indexes = append(creator.Table.Indexes, ix)
	l.script.byIndex[name] = ix
	l.indexKeys[ix] = pairs[0].right
	e := entryAt(pairs[0].right, name, textAt(pairs[0].right, "non_unique("+def+")"))
	if cd.w.has("indexes") {
		own(cd.w.keys["indexes"]).Entries = append(cd.w.get("indexes").Entries, e)
	} else {
		cd.w.drop("indexes")
		cd.w.add("indexes", mapAt(pairs[0].right, e))
	}
	return ix
}

// sameKey reports whether two keys hold the same rows to be equal.
func sameKey(a, b expr.Order) bool {
	return slices.EqualFunc(a, b, func(x, y expr.OrderItem) bool {
		return x.Field == y.Field && x.IgnoreCase == y.IgnoreCase && x.Length == y.Length
	})
}
