package script

import (
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// lookup resolves l of a table_lookup_table: what l.* is, and how rows join.
func (l *loader) lookup(d *nodeDraft) {
	o := d.l
	if d.node.Type != LookupTable || o == nil {
		return
	}
	k := &Lookup{Pos: l.pos(o.where()), Group: o.boolean("group")}
	d.node.Lookup = k
	k.NullsMatch = o.choice("nulls", "never_match") == "match"
	l.joinType(o, k)
	for _, key := range []string{"idx_read_batch_size", "right_lookup_read_batch_size"} {
		o.integer(key, 0)
	}
	if o.has("table") || o.has("on") {
		l.shortLookup(d, k)
	} else {
		l.indexLookup(d, k)
	}
	if v := o.expression("filter"); v != nil {
		k.Filter = l.condition(v, o.keyPath("filter"), newScope("a lookup's filter").nullable(d.nulls()).
			with("l", d.looks,
				d.looksOK))
	}
}

// indexLookup reads the long form: an index, and the fields that match it.
func (l *loader) indexLookup(d *nodeDraft, k *Lookup) {
	o := d.l
	if v := o.one("index_name", "name the index to look up; or say table: name, on: field"); v != nil {
		if k.Index = l.script.byIndex[v.Text]; k.Index == nil {
			l.ErrorAt(v, o.keyPath("index_name"), "no table has index %s", document.Quote(v.Text)).Hint =
				document.SuggestKey(v.Text, l.script.byIndex)
		} else {
			d.looks, d.looksOrder, d.looksOK = l.fieldsOf(k.Index.Node)
		}
	}
	l.joinOn(d, k)
}

func (l *loader) joinType(o *object, k *Lookup) {
	v := o.one("join_type", "it is inner or left")
	if v == nil {
		return
	}
	switch v.Text {
	case "inner":
	case "left":
		k.Left = true
	default:
		l.ErrorAt(v, o.keyPath("join_type"), "there is no join_type %s",
			document.Quote(v.Text)).Hint = "it is inner or left"
	}
}

// joinOn reads the fields of r that are matched, one by one, with the
// components of the index.
func (l *loader) joinOn(d *nodeDraft, k *Lookup) {
	o := d.l
	v := o.one("join_on", "list the fields of r that match the index, such as r.a, r.b")
	if v == nil {
		return
	}
	path := o.keyPath("join_on")
	at := 0
	for item := range strings.SplitSeq(v.Text, ",") {
		name := strings.TrimSpace(item)
		start := at + strings.Index(item, name)
		from, to := v.Part(start, start+len(name))
		at += len(item) + 1
		field, isRead := strings.CutPrefix(name, "r.")
		switch {
		case !isRead:
			l.ErrorSpan(v.Src, from, to, path, "%s is not a field of r",
				document.Quote(name)).Hint = "join_on lists fields such as r.name, separated by commas"
			return
		case !d.readsOK:
			return
		}
		if _, ok := d.reads[field]; !ok {
			l.ErrorSpan(v.Src, from, to, path, "r has no field %s",
				document.Quote(field)).Hint = document.SuggestKey(field,
				d.reads)
			return
		}
		k.JoinOn = append(k.JoinOn, field)
		l.joinComponent(d, k, v.Src, from, to, path)
	}
	if k.Index != nil && k.Index.Key != nil && len(k.JoinOn) < len(k.Index.Key) {
		l.ErrorAt(v, path, "join_on has %d fields, but index %s has %d", len(k.JoinOn), document.Quote(k.Index.Name),
			len(k.Index.Key)).Related = []document.Pos{k.Index.Pos}
	}
}

// joinComponent compares the field added last with its component of the index.
func (l *loader) joinComponent(d *nodeDraft, k *Lookup, src *document.Source, from, to int, path string) {
	if k.Index == nil || k.Index.Key == nil {
		return
	}
	i := len(k.JoinOn) - 1
	if i >= len(k.Index.Key) {
		l.ErrorSpan(src, from, to, path, "join_on has more fields than index %s, which has %d",
			document.Quote(k.Index.Name), len(k.Index.Key)).Related = []document.Pos{k.Index.Pos}
		return
	}
	left, right := d.reads[k.JoinOn[i]], d.looks[k.Index.Key[i].Field]
	if left != right && left != expr.Invalid && right != expr.Invalid {
		at := l.ErrorSpan(src, from, to, path, "r.%s is %s, but field %s of index %s is %s", k.JoinOn[i], article(left),
			document.Quote(k.Index.Key[i].Field), document.Quote(k.Index.Name), article(right))
		at.Related = []document.Pos{k.Index.Pos}
		at.Hint = "give both the same type where they are read, or convert one of them in the node before"
	}
}
