package plan

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/io/outfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

// outputRows are the rows of one batch's file, before they are put into its form.
type outputRows struct {
	all       string // SELECT of the columns, and of the order columns __o0 …
	sorted    string // the same in the order of the file, without what the script's limit cuts off
	orderCols int
	rel       relation // what the columns are computed from
}

// outputOf gives the rows of a batch's file. With ordered they carry their
// canonical order even where the file needs none.
func outputOf(n *script.Node, in Inputs, work Work, paths Paths, ordered bool) outputRows {
	var refs []expr.Ref
	for _, c := range n.Out.Columns {
		refs = append(refs, c.Expr.Refs()...)
	}
	s := scan{table: in.Reader, paths: paths, fields: usedFields(in.Reader.Layout, "r", refs), order: ordered,
		placed: in.placed}
	source := s.ofFile(n.Out, work)
	return outputFrom(n, relation{
		from:      "(" + source + ") AS r",
		aliases:   columns{"r": in.Reader.Layout},
		order:     prefixed("r", s.orderCols()),
		unknown:   in.Reader.Scattered(),
		keep:      in.Reader.keep(),
		positions: in.placed,
		slices:    in.Reader.places(),
	})
}

// ofFile renders the scan of what a batch's file is computed from: with order
// columns if their order is not that of the parts, or has to be kept beside another.
func (s *scan) ofFile(w *script.FileWriter, work Work) string {
	scattered := s.table.Layout.OrderCols > 0
	s.slices, s.order = work.Parts, s.order || scattered || w.Order != nil
	switch {
	case !work.Ranged:
		return s.sql()
	case !scattered:
		s.slices = rowRange(s.table, work.FromRow, work.ToRow)
		return s.sql()
	}
	s.slices = wholeTable(s.table)
	return fmt.Sprintf("SELECT * FROM (%s) ORDER BY %s LIMIT %d OFFSET %d", s.sql(),
		strings.Join(orderColumns(s.orderCols()), ", "), work.ToRow-work.FromRow, work.FromRow)
}

// outputFrom computes the rows of n's file from rel.
func outputFrom(n *script.Node, rel relation) outputRows {
	w := n.Out
	types := map[string]expr.Type{}
	for _, c := range w.Columns {
		types[c.Name] = c.Type
	}
	out := outputRows{orderCols: len(rel.order), rel: rel}
	out.all = outputQuery(n, out.rel)
	out.sorted = w.Order.SortedSQL(out.all, types, sqltext.Ident, append(orderColumns(out.orderCols), inKey(w)...),
		w.LimitRows)
	return out
}

// inKey lists the columns that w's order does not name, if all of them can be
// behind what decides: then nothing is carried beside the sort's key, and put
// in order after it. That pays where a text makes the key long anyway.
func inKey(w *script.FileWriter) (names []string) {
	text := false
	for _, c := range w.Columns {
		ordered := slices.ContainsFunc(w.Order, func(item expr.OrderItem) bool { return item.Field == c.Name })
		switch {
		case c.Type == expr.Float, c.Type == expr.String && !ordered: // a key loses the sign of zeros
			return nil
		case !ordered:
			names = append(names, sqltext.Ident(c.Name))
		case c.Type == expr.String:
			text = true
		}
	}
	if !text {
		return nil
	}
	return names
}

// fileLayout gives a file's columns.
func fileLayout(w *script.FileWriter) Layout {
	var l Layout
	for _, c := range w.Columns {
		l.Columns = append(l.Columns, Column{Name: c.Name, Type: c.Type.String()})
	}
	return l
}

// fileTask writes an output file: in the script's order, ties and everything
// else in canonical order.
func (p *Planner) fileTask(t engine.Task, n *script.Node, in Inputs, b Batch) (engine.Task, error) {
	out := outputOf(n, in, b.Work, b.Paths, b.Trace)
	if b.Trace {
		t.Query, t.Output.Part = out.sorted, tracedOutput(b)
		t.Paths = append(t.Paths, b.StageDir)
		return t, nil
	}
	// The COPY writes into the directory of the final file, so that the
	// commit's rename stays within one file system.
	t.Paths = append(t.Paths, b.OutPath, filepath.Dir(b.OutPath))
	var err error
	if t.Output.File, err = fileOutput(n, out.sorted, b); err != nil {
		return t, fmt.Errorf("write %s: %w", n.Name, err)
	}
	t.Explain = lazily(func() explanation {
		return explainOutput(n, outputOf(n, in.placedRows(), b.Work, b.Paths, false).rel)
	})
	return t, nil
}

// fileOutput writes the rows of a SELECT as the batch's file.
func fileOutput(n *script.Node, rows string, b Batch) (*engine.FileOutput, error) {
	c, err := files.WriteSQL(n.Out, rows, b.OutPath)
	out := &engine.FileOutput{Copy: c}
	if outfile.Needed(n.Out) {
		out.Write = func(ctx context.Context, in *engine.Instance) (written []engine.Written, err error) {
			made, err := outfile.Write(ctx, in, outfile.Output{Writer: n.Out, Rows: rows, Path: b.OutPath,
				Scratch: b.Scratch, Source: n.Name})
			for _, f := range made {
				written = append(written, engine.Written{Path: f.Path, Name: f.Name, Rows: f.Rows})
			}
			return written, err
		}
	}
	return out, err
}

// outputQuery is the SELECT of a file's rows under the names of its columns.
func outputQuery(n *script.Node, rel relation) string {
	cols := make([]string, 0, len(n.Out.Columns)+len(rel.order))
	for _, c := range n.Out.Columns {
		cols = append(cols, expr.StoreSQL(c.Type, c.Expr.SQL(rel.ref, ""))+" AS "+sqltext.Ident(c.Name))
	}
	for i, o := range rel.order {
		cols = append(cols, fmt.Sprintf("%s AS __o%d", o, i))
	}
	var hidden []string
	for _, i := range finerValues(n) {
		cols = append(cols, n.Out.Columns[i].Expr.ComputedSQL(rel.ref, "")+" AS "+finerColumn(i))
		hidden = append(hidden, finerColumn(i))
	}
	if rel.keep != "" && n.Out.Having != nil {
		cols, hidden = append(cols, rel.keep+" AS "+belowColumn), append(hidden, belowColumn)
	}
	return having(n, fileLayout(n.Out), fmt.Sprintf("SELECT %s FROM %s", strings.Join(cols, ", "), rel.from), hidden,
		rel.keep != "")
}
