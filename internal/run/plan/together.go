package plan

import (
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/script"
)

// member is one of the tables that are read as one.
type member struct {
	*Table
	first int // index of its first part among those of all
}

// Together makes one table of several whose rows come one behind the other, with
// the fields that a reader has of them. Their parts stay what they are.
func Together(fields []*script.Field, tables []*Table) *Table {
	if len(tables) == 1 {
		return tables[0]
	}
	all := &Table{Layout: layoutOf(fields)}
	for _, t := range tables {
		if t.Scattered() { // the number of the table, and a key of what orders its rows
			all.Layout.OrderCols = 2
		}
		all.members = append(all.members, member{t, len(all.Parts)})
		all.Parts = append(all.Parts, t.Parts...)
	}
	return all
}

// each lists a table's members: itself, if it is one table.
func (t *Table) each() []member {
	if t.members == nil {
		return []member{{t, 0}}
	}
	return t.members
}

// memberOf says which member has a part, as its index.
func (t *Table) memberOf(part int) int {
	members := t.each()
	at := len(members) - 1
	for at > 0 && members[at].first > part {
		at--
	}
	return at
}

// rowsBefore counts the rows of a part's batch in the parts before it: those of
// its earlier pieces.
func (t *Table) rowsBefore(part int) (rows int64) {
	for i := part - 1; i >= 0 && t.Parts[i].Batch == t.Parts[part].Batch; i-- {
		rows += t.Parts[i].Rows
	}
	return rows
}

// Holder is the table that a part is of: the table itself, or a member.
func (t *Table) Holder(part int) *Table { return t.each()[t.memberOf(part)].Table }

// Name returns the table's name in messages.
func (t *Table) Name() string {
	var names []string
	for _, m := range t.each() {
		names = append(names, m.Node.Table.Name)
	}
	return strings.Join(names, ", ")
}

// memberFields reads fields of all tables from one of them.
func (s scan) memberFields(m member) []string {
	types := s.table.Layout.types()
	cols := make([]string, 0, len(s.fields)+1)
	for _, f := range s.fields {
		c, _ := s.table.Layout.column(f)
		own, ok := m.Layout.column(f)
		switch {
		case !ok:
			cols = append(cols, fmt.Sprintf("CAST(NULL AS %s) AS %s", types[f].SQL(), sqltext.Ident(c.Stored())))
		case own.Stored() == c.Stored():
			cols = append(cols, sqltext.Ident(c.Stored()))
		default:
			cols = append(cols, sqltext.Ident(own.Stored())+" AS "+sqltext.Ident(c.Stored()))
		}
	}
	return cols
}

// memberOrder gives the order columns of the rows of some parts of member at, of
// which the first is part.
func (s scan) memberOrder(at, part int) []string {
	m := s.table.each()[at]
	position := fmt.Sprintf("(CAST(file_index AS BIGINT) + %d) * %d + file_row_number", part, int64(orderStride))
	own := orderColumns(m.Layout.OrderCols)
	switch {
	case !s.table.Scattered():
		return []string{position + " AS __o0"}
	case asCame(m.Parts[part-m.first]) && len(own) > 0: // the numbers that its rows would have got
		position = fmt.Sprintf("(CAST(file_index AS BIGINT) + %d) * %d + file_row_number + %d",
			m.Parts[part-m.first].Batch, int64(orderStride), m.rowsBefore(part-m.first)+1)
		if own = []string{position}; s.table.members == nil {
			return []string{position + " AS __o0"}
		}
	case s.table.members == nil:
		return own
	case len(own) == 0:
		own = []string{position}
	}
	return []string{fmt.Sprintf("CAST(%d AS BIGINT) AS __o0", at),
		fmt.Sprintf("create_sort_key(%s, 'ASC NULLS LAST') AS __o1", strings.Join(own, ", 'ASC NULLS LAST', "))}
}
