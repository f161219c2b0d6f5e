package plan

import (
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// checkedRows are the rows that a node's checks look at, under the alias w:
// its table, or what its files will hold.
type checkedRows struct {
	from    string // "(SELECT …) AS w"
	layout  Layout
	order   []string  // columns of w that give the canonical order
	unknown bool      // the rows come in no order, so that they have no numbers
	source  *relation // what a file's columns are computed from; nil for a table
}

func (r checkedRows) ref(ref expr.Ref) string { return columns{"w": r.layout}.ref(ref) }

// column writes a field of w.
func (r checkedRows) column(field string) string { return r.ref(expr.Ref{Alias: "w", Field: field}) }

// tableRows are the rows of a table that is complete but for its checks.
func tableRows(own *Table, slices []PartSlice, paths Paths) checkedRows {
	s := scan{table: own, slices: slices, paths: paths, fields: allFields(own.Layout), order: true}
	return checkedRows{from: "(" + s.sql() + ") AS w", layout: own.Layout, order: prefixed("w", s.orderCols()),
		unknown: own.Scattered()}
}

// rows are those of a cut, behind an alias: of the fields, with the columns of
// their order.
func (k keyed) rows(c Cut, paths Paths, fields []string, alias string) (from string, order []string) {
	s := k.scan(c, paths)
	s.fields, s.order = fields, true
	from = "(" + s.sql() + ") AS " + alias
	if f := k.filter(c, alias); f != "" {
		from = "(SELECT * FROM " + from + " WHERE " + f + ") AS " + alias
	}
	return from, prefixed(alias, s.orderCols())
}

// fileRows are the rows that all batches of a file writer together will
// write. They are computed once more for their checks, of the columns that
// these need only: no file may appear before they have passed.
func (p *Planner) fileRows(n *script.Node, in Inputs, paths Paths) (checkedRows, error) {
	works, sizes, err := p.outputWorks(n, in)
	if err != nil {
		return checkedRows{}, err
	}
	limit := int64(n.Out.LimitRows)
	var largest int64
	for _, s := range sizes {
		largest = max(largest, s.rows)
	}
	if limit == 0 || largest <= limit { // nothing is cut off: one scan has all rows
		works = []Work{{Parts: wholeTable(in.Reader)}}
	}
	var pieces []string
	var out outputRows
	for _, w := range works {
		out = outputOf(n, in, w, paths, true)
		rows := out.all
		if largest > limit && limit > 0 {
			rows = out.sorted
		}
		pieces = append(pieces, "("+rows+")")
	}
	return checkedRows{from: "(" + strings.Join(pieces, " UNION ALL ") + ") AS w", layout: fileLayout(n.Out),
		order:   prefixed("w", out.orderCols),
		unknown: in.Reader.Scattered(), source: &out.rel}, nil
}

// targetFields lists the fields of a check's other table that it needs.
func targetFields(c *script.Check, layout Layout) []string {
	var refs []expr.Ref
	for _, list := range [][]string{c.To, c.ByEq} {
		for _, f := range list {
			refs = append(refs, expr.Ref{Alias: "r", Field: f})
		}
	}
	if c.Equals != nil {
		refs = append(refs, c.Equals.Refs()...)
	}
	return usedFields(layout, "r", refs)
}

func allFields(l Layout) []string {
	out := make([]string, len(l.Columns))
	for i, c := range l.Columns {
		out[i] = c.Name
	}
	return out
}

// Columns of a table of failed rows behind the row's own. Fields whose names
// begin so are stored under other names: see layoutOf.
const (
	failedCheck    = "__check"
	failedSeverity = "__severity"
	failedMessage  = "__message"
)

// rowLayout is that of the rows that a node writes.
func rowLayout(n *script.Node) Layout {
	if n.Table != nil {
		return layoutOf(n.Table.Fields)
	}
	return fileLayout(n.Out)
}

// failedLayout is that of the side table of rows that failed a check.
func failedLayout(rows Layout) Layout {
	out := Layout{Columns: append([]Column{}, rows.Columns...)}
	for _, name := range []string{failedCheck, failedSeverity, failedMessage} {
		out.Columns = append(out.Columns, Column{Name: name, Type: expr.String.String()})
	}
	return out
}

// stored lists the quoted columns of w's rows as they are stored.
func (r checkedRows) stored() []string {
	out := make([]string, len(r.layout.Columns))
	for i, c := range r.layout.Columns {
		out[i] = ident("w", c.Stored())
	}
	return out
}

// shown writes fields of w as text for a message: "a = 1, b = 'x'".
func (r checkedRows) shown(names []string) string {
	types := r.layout.types()
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = sqltext.String(name+" = ") + " || " + shownValue(types[name], r.column(name))
	}
	return joinedTexts(parts)
}

// joinedTexts writes texts one after the other.
func joinedTexts(parts []string) string {
	if len(parts) == 0 {
		return "''"
	}
	return "concat_ws(', ', " + strings.Join(parts, ", ") + ")"
}

// shownValue writes a value as text for a message: strings in quotes.
func shownValue(t expr.Type, sql string) string {
	text := fmt.Sprintf("left(CAST(%s AS VARCHAR), %d)", sql, shownRunesMax)
	if t == expr.String {
		text = "'''' || " + text + " || ''''"
	}
	return "coalesce(" + text + ", 'NULL')"
}
