package inspect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/app/view"
	"thalweg/internal/ops/compare"
)

// ResultFrom returns the rows of a page with cells as Query gives them.
func ResultFrom(page view.Page) (QueryResult, error) {
	out := QueryResult{More: page.Next != nil, Warnings: page.Warnings}
	for _, c := range page.Columns {
		out.Columns, out.Types, out.Text = append(out.Columns, c.Name), append(out.Types, c.Type), append(out.Text, c.Text)
	}
	for _, texts := range page.Rows {
		if len(texts) != len(out.Columns) {
			return out, fmt.Errorf("a row of %d cells in a page of %d columns", len(texts), len(out.Columns))
		}
		row := make([]any, len(texts))
		for i, text := range texts {
			if text != nil {
				row[i] = cellFrom(*text, out.Types[i])
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// cellFrom returns a cell from its text and DuckDB's name of its type: see view.CellText.
func cellFrom(text, typ string) any {
	base, _, _ := strings.Cut(typ, "(")
	switch {
	case strings.HasSuffix(typ, "]"), base == "JSON", base == "STRUCT", base == "MAP", base == "UNION":
		return Nested(text)
	case base == "BOOLEAN":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case strings.HasSuffix(base, "INT"), base == "INTEGER", base == "UINTEGER":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case base == "FLOAT", base == "DOUBLE":
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	}
	return text
}

// ComparisonFrom returns the comparison that a view was made of. Of rows that have changed it has the key and what has
// changed.
func ComparisonFrom(v view.Diff) Comparison {
	out := Comparison{Table: v.Table, Runs: [2]int64{v.RunA, v.RunB}, Names: [2]string{runName(v.RunA), runName(v.RunB)},
		Result: &compare.Result{Schema: v.Schema, Key: v.Key, Columns: v.Columns, KeyOf: v.KeyOf, RowsA: v.RowsA,
			RowsB: v.RowsB, Removed: v.Removed, Added: v.Added, Changed: v.Changed, ChangedIn: v.ChangedIn,
			RepeatedA: v.RepeatedA, RepeatedB: v.RepeatedB}}
	row := func(parts ...*view.Object) []any {
		cells := make([]any, len(v.Columns))
		for _, o := range parts {
			for i := 0; o != nil && i < len(o.Names); i++ {
				if at := slices.Index(v.Columns, o.Names[i]); at >= 0 {
					cells[at] = o.Cells[i]
					if raw, is := cells[at].(json.RawMessage); is {
						cells[at] = Nested(raw)
					}
				}
			}
		}
		return cells
	}
	for _, r := range v.SampleRemoved {
		out.SampleRemoved = append(out.SampleRemoved, compare.Difference{A: row(r.Row), Times: r.Times})
	}
	for _, r := range v.SampleAdded {
		out.SampleAdded = append(out.SampleAdded, compare.Difference{B: row(r.Row), Times: r.Times})
	}
	for _, r := range v.SampleChanged {
		d := compare.Difference{A: row(r.Key, r.A), B: row(r.Key, r.B), Times: r.Times}
		for i := 0; r.A != nil && i < len(r.A.Names); i++ {
			if at := slices.Index(v.Columns, r.A.Names[i]); at >= 0 {
				d.Changed = append(d.Changed, at)
			}
		}
		out.SampleChanged = append(out.SampleChanged, d)
	}
	return out
}
