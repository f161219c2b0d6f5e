package plan

import (
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// relation is a FROM clause whose aliases compiled expressions refer to, with
// the order columns of its rows.
type relation struct {
	from    string                // everything behind FROM, WHERE included
	aliases columns               // alias -> layout, for tables
	refer   func(expr.Ref) string // how references are written, where aliases do not say it
	order   []string              // SQL of the order columns, most significant first; nil: canonical as it comes
	unknown bool                  // its rows have no numbers: they come in no order, but have one in order
	row     string                // the number, from 0, of the row that one of its rows is of; "": rowNumber
	// condition that comes before any other, for rows that are computed on the way; "": none
	keep string

	positions bool          // its rows have files.FileColumn and files.RowColumn
	slices    []files.Slice // what they are positions in
}

// ref writes a reference.
func (r relation) ref(ref expr.Ref) string {
	if r.refer != nil {
		return r.refer(ref)
	}
	return r.aliases.ref(ref)
}

// rowNumber is the number of a row from 0: in the order as it comes or, where that
// says nothing, in canonical order.
func (r relation) rowNumber() string {
	switch {
	case r.row != "":
		return r.row
	case r.unknown:
		return "row_number() OVER (ORDER BY " + strings.Join(r.order, ", ") + ") - 1"
	}
	return "row_number() OVER () - 1"
}

// fieldList renders w's fields over the relation as stored columns, order
// columns behind them.
func fieldList(w *script.TableWriter, layout Layout, render func(*script.Field) string, order []string) string {
	cols := make([]string, 0, len(w.Fields)+len(order))
	for i, f := range w.Fields {
		cols = append(cols, render(f)+" AS "+sqltext.Ident(layout.Columns[i].Stored()))
	}
	for i, o := range order {
		cols = append(cols, fmt.Sprintf("%s AS __o%d", o, i))
	}
	return strings.Join(cols, ", ")
}

// form is one of the two in which fields are computed: as the table keeps them,
// and as having sees them.
type form int

const (
	stored form = iota
	computed
)

// sql renders a field's value.
func (v form) sql(f *script.Field, ref func(expr.Ref) string, order string) string {
	if v == computed {
		return f.Expr.ComputedSQL(ref, order)
	}
	return expr.StoreSQL(f.Type, f.Expr.SQL(ref, order))
}

// tableQuery is the SELECT of the rows that n's table gets from rel.
func tableQuery(n *script.Node, layout Layout, rel relation, render func(*script.Field, form) string) string {
	rows, hidden := rowsQuery(n, layout, rel, render)
	return having(n, layout, rows, hidden, rel.keep != "")
}

// rowsQuery is the same with what having leaves out, and columns for it, which
// it lists.
func rowsQuery(n *script.Node, layout Layout, rel relation, render func(*script.Field, form) string) (query string,
	hidden []string) {
	if render == nil {
		render = func(f *script.Field, v form) string { return v.sql(f, rel.ref, "") }
	}
	list := fieldList(n.Table, layout, func(f *script.Field) string { return render(f, stored) }, rel.order)
	for _, i := range finerValues(n) {
		list += fmt.Sprintf(", %s AS %s", render(n.Table.Fields[i], computed), finerColumn(i))
		hidden = append(hidden, finerColumn(i))
	}
	if rel.keep != "" {
		list += fmt.Sprintf(", %s AS %s", rel.keep, belowColumn)
		hidden = append(hidden, belowColumn)
	}
	if rel.positions {
		list += fmt.Sprintf(", r.%s, r.%s", files.FileColumn, files.RowColumn)
	}
	return fmt.Sprintf("SELECT %s FROM %s", list, rel.from), hidden
}

// finerValues lists the numbers of the fields or columns of which n's having
// sees more than is written.
func finerValues(n *script.Node) []int {
	var out []int
	if n.Having() == nil {
		return out
	}
	for i, v := range n.Written() {
		if slices.ContainsFunc(n.Having().Refs(), func(r expr.Ref) bool {
			return r.Field == v.Name &&
				n.SeenByHaving(r) != nil
		}) {
			out = append(out, i)
		}
	}
	return out
}

// finerColumn is the column of a value as having sees it: no field and no
// column of a file has such a name.
func finerColumn(value int) string { return sqltext.Ident(fmt.Sprintf("#h%d", value)) }

// having leaves out of rows, which have what n writes and hidden columns, those
// for which n's having does not hold. kept says that they have belowColumn.
func having(n *script.Node, layout Layout, rows string, hidden []string, kept bool) string {
	if n.Having() == nil {
		if len(hidden) == 0 {
			return rows
		}
		return fmt.Sprintf("SELECT *%s FROM (%s)", excluded(hidden), rows)
	}
	where := havingCondition(n, layout)
	if kept {
		where = fmt.Sprintf("CASE WHEN w.%s THEN %s ELSE false END", belowColumn, where)
	}
	return fmt.Sprintf("SELECT *%s FROM (%s) AS w WHERE %s", excluded(hidden), rows, where)
}

func excluded(columns []string) string {
	if len(columns) == 0 {
		return ""
	}
	return " EXCLUDE (" + strings.Join(columns, ", ") + ")"
}

// havingCondition is n's having over rows w that have what n writes and the finer values.
func havingCondition(n *script.Node, layout Layout) string {
	w, finer := columns{"w": layout}, map[string]string{}
	for _, i := range finerValues(n) {
		finer[n.Written()[i].Name] = finerColumn(i)
	}
	return n.Having().SQL(func(r expr.Ref) string {
		if column, ok := finer[r.Field]; ok {
			return "w." + column
		}
		return w.ref(r)
	}, "")
}

// usedFields lists the fields of alias that a node's expressions use, in the
// order of the table's columns.
func usedFields(layout Layout, alias string, refs ...[]expr.Ref) []string {
	used := map[string]bool{}
	for _, list := range refs {
		for _, r := range list {
			if r.Alias == alias {
				used[r.Field] = true
			}
		}
	}
	var out []string
	for _, c := range layout.Columns {
		if used[c.Name] {
			out = append(out, c.Name)
		}
	}
	return out
}

// fieldRefs gathers what a table creator's fields refer to.
func fieldRefs(w *script.TableWriter) []expr.Ref {
	var refs []expr.Ref
	for _, f := range w.Fields {
		refs = append(refs, f.Expr.Refs()...)
	}
	return refs
}

// tagRelation multiplies the rows of source: one for each criterion that
// holds, in the order of the criteria. The rows have the number of their
// criterion as __t: its text stays out of them until the last moment.
func tagRelation(tag *script.Tag, source string, layout Layout, order []string) relation {
	in := columns{"r": layout}
	hits := make([]string, len(tag.Criteria))
	for i, c := range tag.Criteria {
		hits[i] = fmt.Sprintf("CASE WHEN %s THEN %d END", c.Expr.SQL(in.ref, ""), i)
	}
	from := fmt.Sprintf("(SELECT *, unnest(list_filter(CAST([%s] AS INTEGER[]), lambda x: x IS NOT NULL)) AS __t FROM "+
		"(%s) AS r) AS r", strings.Join(hits, ", "), source)
	if len(order) > 0 {
		order = append(append([]string{}, order...), "CAST(r.__t AS BIGINT)")
	}
	return relation{from: from, aliases: in, order: order}
}

// tagRef writes references in a tag node's fields. The tags are a constant
// list: a table of them would have to be joined, and joins lose the order of rows.
func tagRef(tag *script.Tag, rel relation) func(expr.Ref) string {
	names := make([]string, len(tag.Criteria))
	for i, c := range tag.Criteria {
		names[i] = c.Tag
	}
	text := sqltext.Strings(names) + "[r.__t + 1]"
	return func(r expr.Ref) string {
		if r.Alias == "p" && r.Field == tag.Field {
			return text
		}
		return rel.aliases.ref(r)
	}
}

// prefixed puts an alias before order columns.
func prefixed(alias string, n int) []string {
	cols := orderColumns(n)
	for i := range cols {
		cols[i] = alias + "." + cols[i]
	}
	return cols
}
