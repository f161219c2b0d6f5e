package plan

import (
	"fmt"
	"path/filepath"
	"strings"

	"thalweg/internal/engine"
	"thalweg/internal/expr"
	"thalweg/internal/files"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
)

// fileTask writes an output file: in the script's order, ties and everything
// else in canonical order.
func (p *Planner) fileTask(t engine.Task, n *script.Node, in Inputs, b Batch) (engine.Task, error) {
	w := n.Out
	types := map[string]expr.Type{}
	var layout Layout
	var refs []expr.Ref
	for _, c := range w.Columns {
		types[c.Name] = c.Type
		layout.Columns = append(layout.Columns, Column{Name: c.Name, Type: c.Type.String()})
		refs = append(refs, c.Expr.Refs()...)
	}
	scattered := in.Reader.Layout.OrderCols > 0
	s := scan{table: in.Reader, slices: b.Work.Parts, paths: b.Paths, fields: usedFields(in.Reader.Layout, "r", refs), order: scattered || w.Order != nil}
	source := s.sql()
	if b.Work.Ranged {
		s.slices = rowRange(in.Reader, b.Work.FromRow, b.Work.ToRow)
		if scattered {
			s.slices = wholeTable(in.Reader)
		}
		source = s.sql()
		if scattered {
			source = fmt.Sprintf("SELECT * FROM (%s) ORDER BY %s LIMIT %d OFFSET %d", source,
				strings.Join(orderColumns(s.orderCols()), ", "), b.Work.ToRow-b.Work.FromRow, b.Work.FromRow)
		}
	}
	rel := relation{from: "(" + source + ") AS r", aliases: columns{"r": in.Reader.Layout}, order: prefixed("r", s.orderCols())}
	rows := outputQuery(w, layout, rel)
	orderBy := strings.Join(orderColumns(s.orderCols()), ", ")
	if w.Order != nil {
		orderBy = w.Order.SortSQL(types, sqltext.Ident) + ", " + orderBy
	}
	if w.LimitRows > 0 {
		rows = fmt.Sprintf("SELECT * FROM (%s) ORDER BY %s LIMIT %d", rows, orderBy, w.LimitRows)
	}
	// The COPY writes into the directory of the final file, so that the
	// commit's rename stays within one file system.
	t.Paths = append(t.Paths, b.OutPath, filepath.Dir(b.OutPath))
	copySQL, err := files.WriteSQL(w, rows, orderBy, b.OutPath)
	if err != nil {
		return t, fmt.Errorf("write %s: %w", n.Name, err)
	}
	t.Output.File = &engine.FileOutput{Path: b.OutPath, CopySQL: copySQL}
	t.Explain = explainOutput(n, rel)
	return t, nil
}

// outputQuery is the SELECT of a file's rows under the names of its columns.
func outputQuery(w *script.FileWriter, layout Layout, rel relation) string {
	cols := make([]string, 0, len(w.Columns)+len(rel.order))
	for _, c := range w.Columns {
		cols = append(cols, expr.StoreSQL(c.Type, c.Expr.SQL(rel.aliases.ref, ""))+" AS "+sqltext.Ident(c.Name))
	}
	for i, o := range rel.order {
		cols = append(cols, fmt.Sprintf("%s AS __o%d", o, i))
	}
	q := fmt.Sprintf("SELECT %s FROM %s", strings.Join(cols, ", "), rel.from)
	if w.Having == nil {
		return q
	}
	return fmt.Sprintf("SELECT * FROM (%s) AS w WHERE %s", q, w.Having.SQL(columns{"w": layout}.ref, ""))
}
