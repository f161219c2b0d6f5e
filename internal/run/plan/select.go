package plan

import (
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
)

// SelectAll reads the whole table under the script's names for its columns,
// in canonical order where that costs no sort.
func (t *Table) SelectAll(paths Paths) string {
	return t.selectSlices(t.Layout.Columns, wholeTable(t), paths)
}

// SelectRows reads columns of a range of the rows, from and before to, in canonical order. Only paths of the parts of
// RowSlices are needed. Tables that are Scattered have no such ranges.
func (t *Table) SelectRows(columns []Column, from, to int64, paths Paths) string {
	return t.selectSlices(columns, rowRange(t, from, to), paths)
}

// RowSlices lists the parts in which a range of the rows lies, from and before to: see SelectRows.
func (t *Table) RowSlices(from, to int64) []PartSlice { return rowRange(t, from, to) }

// SelectOrdered is SelectAll with columns behind it, order, that say the canonical order of the rows.
func (t *Table) SelectOrdered(paths Paths) (query string, order []string) {
	if t.ComputedIn != "" {
		return t.notStored(), nil
	}
	names, cols := named(t.Layout.Columns)
	s := scan{table: t, slices: wholeTable(t), fields: names, paths: paths, order: true}
	order = orderColumns(s.orderCols())
	return fmt.Sprintf("SELECT %s FROM (%s)", strings.Join(append(cols, order...), ", "), s.sql()), order
}

func (t *Table) selectSlices(columns []Column, slices []PartSlice, paths Paths) string {
	if t.ComputedIn != "" {
		return t.notStored()
	}
	names, cols := named(columns)
	s := scan{table: t, slices: slices, fields: names, paths: paths}
	return fmt.Sprintf("SELECT %s FROM (%s)", strings.Join(cols, ", "), s.sql())
}

// named lists the names of columns, and SQL that gives each its name of the script, or the one that it is stored
// under, if DuckDB could not keep it apart from another.
func named(columns []Column) (names, cols []string) {
	for _, c := range columns {
		names = append(names, c.Name)
		if c.Physical != "" {
			cols = append(cols, sqltext.Ident(c.Physical))
		} else {
			cols = append(cols, sqltext.Ident(c.Stored())+" AS "+sqltext.Ident(c.Name))
		}
	}
	return names, cols
}
