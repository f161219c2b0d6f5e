package plan

import (
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// side is one side of a lookup within one batch: its rows with key columns
// __k0 …
type side struct {
	keyed
	alias  string
	scan   scan
	source string // SELECT of the scan's columns to read instead, "" for none
	filter string // SQL over alias's columns, "" for none
	others string // the same, that leaves out rows of other batches
}

// newSide is one side with the fields that refs name.
func newSide(n *script.Node, in Inputs, w Work, right bool, refs []expr.Ref, paths Paths) side {
	s := side{alias: "r", keyed: leftSide(n, in)}
	if right {
		s = side{alias: "l", keyed: rightSide(n, in)}
	}
	s.scan = s.keyed.scan(w.Cut, paths)
	if !right && (w.Cut.Buckets == 0 || w.Parts != nil) {
		s.scan.slices = w.Parts
	}
	s.scan.order, s.scan.fields = true, usedFields(s.table.Layout, s.alias, refs)
	s.others = s.keyed.filter(w.Cut, s.alias)
	return s
}

func leftSide(n *script.Node, in Inputs) keyed  { return keyed{in.Reader, sideKey(n, false)} }
func rightSide(n *script.Node, in Inputs) keyed { return keyed{in.Lookup, sideKey(n, true)} }

// sql renders the side's rows.
func (s side) sql() string {
	keys := s.keySQL(s.alias)
	cols := make([]string, len(keys))
	for i, k := range keys {
		cols[i] = fmt.Sprintf("%s AS __k%d", k, i)
	}
	var where []string
	if s.others != "" {
		where = append(where, s.others)
	}
	if s.filter != "" {
		where = append(where, "("+s.filter+")")
	}
	if s.scan.table.inlined != nil && len(where) > 0 {
		where = []string{fmt.Sprintf("CASE WHEN %s.%s THEN %s ELSE false END", s.alias, keepColumn,
			strings.Join(where, " AND "))}
	}
	source := s.source
	if source == "" {
		source = s.scan.sql()
	}
	q := fmt.Sprintf("SELECT %s.*, %s FROM (%s) AS %s", s.alias, strings.Join(cols, ", "), source, s.alias)
	if len(where) > 0 {
		q += " WHERE " + strings.Join(where, " AND ")
	}
	return q
}

// joinSlices lists what a lookup's batch reads of its two sides.
func joinSlices(n *script.Node, in Inputs, w Work) (left, right []PartSlice) {
	if w.Cut.Buckets == 0 {
		return w.Parts, wholeTable(in.Lookup)
	}
	side := leftSide(n, in)
	if left = side.slices(w.Cut); w.Parts != nil {
		left = slices.Clone(w.Parts)
		for i, s := range left {
			left[i].buckets = side.spanOf(s.Part, w.Cut)
		}
	}
	return left, rightSide(n, in).slices(w.Cut)
}

// joinQuery is the SELECT of a lookup's rows in one batch.
func joinQuery(n *script.Node, in Inputs, plan NodePlan, w Work, paths Paths) string {
	return newJoiner(n, in, plan, w, paths).query()
}

func newJoiner(n *script.Node, in Inputs, plan NodePlan, w Work, paths Paths) joiner {
	refs := append(fieldRefs(n.Table), joinRefs(n)...)
	left, right := newSide(n, in, w, false, refs, paths), newSide(n, in, w, true, refs, paths)
	if n.Lookup.Filter != nil {
		right.filter = n.Lookup.Filter.SQL(columns{"l": in.Lookup.Layout}.ref, "")
	}
	return joiner{n: n, in: in, left: left, right: right, layout: plan.Layout}
}

// query renders the form that the lookup needs.
func (j joiner) query() string {
	if !j.n.Lookup.Group {
		return j.plain()
	}
	if j.mixed() {
		return j.groupedByRow()
	}
	return j.groupedByKey()
}

// joinRefs are the references of a lookup that its fields do not show.
func joinRefs(n *script.Node) []expr.Ref {
	var refs []expr.Ref
	for i, k := range n.Lookup.Index.Key {
		refs = append(refs, expr.Ref{Alias: "l", Field: k.Field}, expr.Ref{Alias: "r", Field: n.Lookup.JoinOn[i]})
	}
	if n.Lookup.Filter != nil {
		refs = append(refs, n.Lookup.Filter.Refs()...)
	}
	return refs
}

// joiner renders the three forms of a lookup.
type joiner struct {
	n           *script.Node
	in          Inputs
	left, right side
	layout      Layout
}

func (j joiner) word() string {
	if j.n.Lookup.Left {
		return "LEFT JOIN"
	}
	return "INNER JOIN"
}

func (j joiner) on() string {
	equal := "="
	if j.n.Lookup.NullsMatch {
		equal = "IS NOT DISTINCT FROM"
	}
	parts := make([]string, len(j.left.key))
	for i := range parts {
		parts[i] = fmt.Sprintf("r.__k%d %s l.__k%d", i, equal, i)
	}
	return strings.Join(parts, " AND ")
}

func (j joiner) keys(alias string) []string {
	cols := make([]string, len(j.left.key))
	for i := range cols {
		cols[i] = fmt.Sprintf("%s.__k%d", alias, i)
	}
	return cols
}

func (j joiner) ref() func(expr.Ref) string {
	return columns{"r": j.in.Reader.Layout, "l": j.in.Lookup.Layout}.ref
}

// orDefault gives value where the left row has a match, else the field's
// default, for fields that look at the right row. Some want what the value is
// without a match, where every column of l is NULL.
func (j joiner) orDefault(f *script.Field, value string) string {
	if !j.n.Lookup.Left || f.NullUnmatched || !(f.Expr.Aggregate() || refersTo(f.Expr, "l")) {
		return value
	}
	return fmt.Sprintf("CASE WHEN l.__m THEN %s ELSE %s END", value, defaultSQL(f))
}

// plain pairs each left row with each of its matches.
func (j joiner) plain() string {
	from := fmt.Sprintf("(%s) AS r %s (SELECT *, true AS __m FROM (%s)) AS l ON %s",
		j.left.sql(), j.word(), j.right.sql(), j.on())
	// NULL without a match: there is one such row
	order := append(prefixed("r", j.left.scan.orderCols()), prefixed("l", j.right.scan.orderCols())...)
	rel := relation{from: from, aliases: columns{"r": j.in.Reader.Layout, "l": j.in.Lookup.Layout}, order: order,
		keep: j.met(order)}
	return tableQuery(j.n, j.layout, rel,
		func(f *script.Field, v form) string { return j.orDefault(f, v.sql(f, j.ref(), "")) })
}

// mixed reports whether a field needs a left and a right row at once, so that
// right rows cannot be grouped before they meet the left ones: it refers to
// both, or it gathers a left field over the right rows.
func (j joiner) mixed() bool {
	for _, f := range j.n.Table.Fields {
		if refersTo(f.Expr, "r") && (refersTo(f.Expr, "l") || f.Expr.Aggregate()) {
			return true
		}
	}
	return false
}

// groupedByKey groups the right rows once for each key and then joins: left
// rows that share a key share the work.
func (j joiner) groupedByKey() string {
	order := strings.Join(prefixed("l", j.right.scan.orderCols()), ", ")
	var values []string
	ofRight := func(f *script.Field) bool { return f.Expr.Aggregate() || refersTo(f.Expr, "l") }
	for i, f := range j.n.Table.Fields {
		if ofRight(f) {
			values = append(values, fmt.Sprintf("%s AS %s", j.groupValue(f, order, stored, ""), groupColumn(i, stored)))
		}
	}
	for _, i := range finerValues(j.n) {
		if f := j.n.Table.Fields[i]; ofRight(f) {
			values = append(values, fmt.Sprintf("%s AS %s", j.groupValue(f, order, computed, ""),
				groupColumn(i, computed)))
		}
	}
	values = append(append(j.keys("l"), "true AS __m"), values...)
	// Right rows without a left one need not be grouped at all. That leaves out
	// those of other batches as well: their keys need not be looked at.
	j.right.others = ""
	grouped := fmt.Sprintf("SELECT %s FROM (%s) AS l SEMI JOIN (SELECT DISTINCT %s FROM (%s) AS r) AS r ON %s "+
		"GROUP BY %s", strings.Join(values, ", "), j.right.sql(), strings.Join(j.keys("r"), ", "), j.left.sql(), j.on(),
		strings.Join(j.keys("l"), ", "))
	rel := relation{
		from:    fmt.Sprintf("(%s) AS r %s (%s) AS l ON %s", j.left.sql(), j.word(), grouped, j.on()),
		aliases: columns{"r": j.in.Reader.Layout},
		order:   prefixed("r", j.left.scan.orderCols()),
		keep:    j.met(append(prefixed("r", j.left.scan.orderCols()), "l.__m")),
	}
	index := map[*script.Field]int{}
	for i, f := range j.n.Table.Fields {
		index[f] = i
	}
	return tableQuery(j.n, j.layout, rel, func(f *script.Field, v form) string {
		if ofRight(f) {
			return j.orDefault(f, "l."+groupColumn(index[f], v))
		}
		return v.sql(f, rel.aliases.ref, "")
	})
}

// met keeps conditions on the rows of a lookup above it, where a side is
// computed on the way and could fail for rows that do not meet: it is true,
// and cannot be said of one side alone. "": nothing of that.
func (j joiner) met(columns []string) string {
	if j.left.scan.table.inlined == nil && j.right.scan.table.inlined == nil || j.n.Having() == nil {
		return ""
	}
	return computedSQL(columns)
}

// groupColumn is the column of a field among the grouped right rows.
func groupColumn(field int, v form) string {
	return fmt.Sprintf(map[form]string{stored: "__a%d", computed: "__b%d"}[v], field)
}

// groupValue is a field of a grouped lookup within its group: an aggregate, or
// the value at the last of the joined rows. Rows without present do not count.
func (j joiner) groupValue(f *script.Field, order string, v form, present string) string {
	value := v.sql(f, j.ref(), order)
	switch {
	case f.Expr.Aggregate():
		return value
	case present != "":
		value = "CASE WHEN " + present + " THEN " + value + " END"
	}
	return fmt.Sprintf("last(%s ORDER BY %s)", value, order)
}

// groupedByRow joins first and groups by left row: for aggregates that look at
// both sides.
func (j joiner) groupedByRow() string {
	leftOrder, order := prefixed("r", j.left.scan.orderCols()),
		strings.Join(prefixed("l", j.right.scan.orderCols()), ", ")
	values := make([]string, 0, len(j.n.Table.Fields)+len(leftOrder))
	var hidden []string
	for i, f := range j.n.Table.Fields {
		values = append(values, j.rowValue(f, order, stored)+" AS "+sqltext.Ident(j.layout.Columns[i].Stored()))
	}
	for _, i := range finerValues(j.n) {
		values = append(values, j.rowValue(j.n.Table.Fields[i], order, computed)+" AS "+finerColumn(i))
		hidden = append(hidden, finerColumn(i))
	}
	for i, o := range leftOrder {
		values = append(values, fmt.Sprintf("%s AS __o%d", o, i))
	}
	q := fmt.Sprintf("SELECT %s FROM (%s) AS r %s (SELECT *, true AS __m FROM (%s)) AS l ON %s GROUP BY %s",
		strings.Join(values, ", "), j.left.sql(), j.word(), j.right.sql(), j.on(), strings.Join(leftOrder, ", "))
	return having(j.n, j.layout, q, hidden, false)
}

// rowValue is a field of a left row's group, or what it is without a match.
func (j joiner) rowValue(f *script.Field, order string, v form) string {
	if !f.Expr.Aggregate() && !refersTo(f.Expr, "l") {
		return fmt.Sprintf("any_value(%s)", v.sql(f, j.ref(), ""))
	}
	if !j.n.Lookup.Left {
		return j.groupValue(f, order, v, "")
	}
	const matched = "l.__m"
	among := *f
	among.Expr = f.Expr.Among(matched)
	value := j.groupValue(&among, order, v, matched)
	otherwise := defaultSQL(f)
	if f.NullUnmatched {
		otherwise = "NULL"
	}
	return fmt.Sprintf("CASE WHEN bool_or(%s) THEN %s ELSE %s END", matched, value, otherwise)
}

func refersTo(e *expr.Compiled, alias string) bool {
	for _, r := range e.Refs() {
		if r.Alias == alias {
			return true
		}
	}
	return false
}

// defaultSQL is a field's default_value, without blanks around it; the script's loader has checked its text.
func defaultSQL(f *script.Field) string {
	text, err := expr.DefaultSQL(f.Type, strings.TrimSpace(f.Default), "")
	if err != nil {
		return expr.Raised{Message: err.Error()}.SQL()
	}
	return text
}
