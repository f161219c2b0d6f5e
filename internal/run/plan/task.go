package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/python"
	"thalweg/internal/store/state"
)

// Batch holds Task's inputs for one batch besides the plan.
type Batch struct {
	Number   int
	Work     Work
	Paths    Paths                                     // local paths of the parts that Reads lists
	Scratch  string                                    // directory for slices of CSV files; removed by the caller
	Stage    func(ctx context.Context) (string, error) // path for a new part, in StageDir
	StageDir string
	OutPath  string // temporary path of the output file, for nodes that write one
	Run      state.RunKey
	RowsIn   int64        // as planned; -1: not known
	RowsDone int64        // written by the pieces of the batch before this one (see Pieces)
	Checks   CheckContext // for batches that check (Work.Check)
	Bad      BadTotals    // of the node's batches, for the one that compares them (Work.BadCaps)
	Trace    bool         // its rows are wanted with what says which they are made of: see TraceTask
	Traced   string       // of queries, with Trace: the query with lists of rowids behind its columns
}

// Read lists the slices that a batch reads of a table.
type Read struct {
	Table  *Table
	Slices []PartSlice
}

// Reads lists what a batch reads of its node's sources, and of own, the table
// or side table that the node writes itself.
func (p *Planner) Reads(n *script.Node, in Inputs, w Work, own *Table) []Read {
	var out []Read
	for _, r := range p.reads(n, in, w, own) {
		if !r.Table.Ephemeral() {
			out = append(out, r)
		} else if inner := w.Inner[r.Table.Node.Table.Name]; inner != nil {
			out = append(out, p.Reads(r.Table.Node, *r.Table.Inner, *inner, nil)...)
		}
	}
	return out
}

// reads is Reads with ephemeral tables as they are.
func (p *Planner) reads(n *script.Node, in Inputs, w Work, own *Table) []Read {
	switch {
	case w.Check:
		return checkReads(n, in, own, w)
	case w.BadCaps:
		return []Read{{own, wholeTable(own)}}
	case w.Manifest:
		return nil
	case n.Files != nil:
		return nil
	case n.Query != nil:
		var out []Read
		for _, t := range in.Tables(n) {
			out = append(out, Read{t, queryScan(n, in, t, w, nil).slices})
		}
		return out
	case n.Lookup != nil:
		left, right := joinSlices(n, in, w)
		return []Read{{in.Reader, left}, {in.Lookup, right}}
	case n.PyTable != nil && w.Parts == nil:
		return []Read{{in.Reader, groupSlices(n, in.Reader, w)}}
	case n.Type == script.Distinct:
		if key := distinctKey(n, in.Reader.Layout); key != nil {
			return []Read{{in.Reader, keyed{in.Reader, key}.slices(w.Cut)}}
		}
		return []Read{{in.Reader, wholeTable(in.Reader)}}
	case w.Ranged && in.Reader.Layout.OrderCols > 0:
		return []Read{{in.Reader, wholeTable(in.Reader)}}
	case w.Ranged:
		return []Read{{in.Reader, rowRange(in.Reader, w.FromRow, w.ToRow)}}
	}
	return []Read{{in.Reader, w.Parts}}
}

// Task builds a batch's task. own is what n has written so far, its table or
// for Work.BadCaps the bad rows beside it; only batches that look at it need it.
func (p *Planner) Task(n *script.Node, in Inputs, plan NodePlan, own *Table, b Batch) (engine.Task, error) {
	t := engine.Task{Name: fmt.Sprintf("batch %d", b.Number), Paths: []string{b.Scratch}}
	for _, path := range b.Paths {
		t.Paths = append(t.Paths, path)
	}
	if err := b.Work.check(); err != nil {
		return t, err
	}
	if b.Work.Check {
		return p.checkTask(t, n, in, own, b)
	}
	if b.Work.BadCaps {
		return p.badCapsTask(t, n, in, own, b), nil
	}
	in, err := p.inline(&t, n, in, b, b.Trace)
	if err != nil {
		return t, err
	}
	inside := t.Explain
	t.Explain = nil
	if n.Out != nil {
		t, err = p.fileTask(t, n, in, b)
	} else {
		t, err = p.tableTask(t, n, in, plan, b)
	}
	if err == nil {
		p.quarantine(&t, n, in, plan, b)
	}
	t.Explain = atLines(in.Reader, b.Scratch, first(inside, t.Explain))
	if t.Python != nil {
		t.Python.Program.Dir = p.Dir
	}
	return t, err
}

// tableTask writes rows of a node's table.
func (p *Planner) tableTask(t engine.Task, n *script.Node, in Inputs, plan NodePlan, b Batch) (engine.Task, error) {
	rel, err := p.relation(&t, n, in, b)
	if err != nil {
		return t, err
	}
	switch {
	case n.Query != nil:
		if err := p.queryTask(&t, n, in, plan.Layout, b); err != nil {
			return t, err
		}
	case n.Lookup != nil:
		t.Query = joinQuery(n, in, plan, b.Work, b.Paths)
	case n.Type == script.Distinct:
		t.Query = distinctQuery(n, in, plan.Layout, b)
	case n.Tag != nil:
		ref := tagRef(n.Tag, rel)
		t.Query = tableQuery(n, plan.Layout, rel, func(f *script.Field, v form) string { return v.sql(f, ref, "") })
	case b.Trace && n.PyCalc != nil && eachRow(n):
		t.Query, t.Python = positionsQuery(rowRelation(n, in, b, true)), nil
	default:
		t.Query = tableQuery(n, plan.Layout, rel, nil)
	}
	t.FreeOrder = t.FreeOrder || orderColsOf(n, in) > 0
	t.Output.Part = p.partOutput(n, in, plan, b)
	t.Paths = append(t.Paths, b.StageDir)
	switch {
	case t.Explain != nil: // files know more
	case n.Lookup != nil:
		t.Explain = explainLookup(n, in, plan, b.Work, b.Paths)
	case n.Type == script.Distinct:
		t.Explain = explainDistinct(n, in, b.Paths)
	case n.Tag != nil, in.Reader != nil && in.Reader.inlined != nil:
		t.Explain = lazily(func() explanation { return explainRows(n, sourceRelation(n, in.placedRows(), b)) })
	default:
		t.Explain = explainRows(n, rel)
	}
	return t, err
}

// relation returns the rows from which a table node's fields are computed; it adds the inputs to the task.
// Lookups and distinct tables have their own.
func (p *Planner) relation(t *engine.Task, n *script.Node, in Inputs, b Batch) (relation, error) {
	switch {
	case n.Files != nil:
		return p.filesRelation(t, n, b)
	case n.Lookup != nil, n.Type == script.Distinct, n.Query != nil:
		return relation{}, nil
	}
	if n.PyTable != nil {
		return pyTableRelation(t, n, in, b), nil
	}
	rel := rowRelation(n, in, b, b.Trace)
	if n.PyCalc != nil {
		s := sourceScan(n, in, b)
		s.order = s.order || b.Trace
		t.Python = pythonStep(n, in.Reader, b)
		// Both sides keep the order of the slices, so rows meet by position.
		if n.BadRows != nil {
			rel.from = "(" + s.inOrder() + ") AS r"
		}
		rel.from += " POSITIONAL JOIN " + engine.ResultTable + " AS p"
		if n.BadRows != nil {
			rel.from += " WHERE NOT p." + engine.BadFlag
		}
	}
	return rel, nil
}

// sourceScan reads what a node that computes row by row reads of its table.
func sourceScan(n *script.Node, in Inputs, b Batch) scan {
	s := scan{table: in.Reader, slices: b.Work.Parts, paths: b.Paths, order: in.Reader.Scattered(), placed: in.placed,
		fields: usedFields(in.Reader.Layout, "r", readRefs(n))}
	if n.Type == script.Distinct {
		s.slices = wholeTable(in.Reader)
	}
	return s
}

// sourceRelation returns the rows of sourceScan.
func sourceRelation(n *script.Node, in Inputs, b Batch) relation {
	return scanned(sourceScan(n, in, b), in)
}

func scanned(s scan, in Inputs) relation {
	return relation{from: "(" + s.sql() + ") AS r", aliases: columns{"r": in.Reader.Layout},
		order:   prefixed("r", s.orderCols()),
		unknown: in.Reader.Scattered(), keep: in.Reader.keep(), positions: in.placed, slices: in.Reader.places()}
}

// rowRelation returns the rows from which the fields of such a node are computed. need asks for order columns
// in any case.
func rowRelation(n *script.Node, in Inputs, b Batch, need bool) relation {
	s := sourceScan(n, in, b)
	s.order = s.order || need
	rel := scanned(s, in)
	if n.Tag == nil {
		return rel
	}
	tagged := tagRelation(n.Tag, s.sql(), in.Reader.Layout, rel.order)
	tagged.keep, tagged.positions, tagged.slices = rel.keep, rel.positions, rel.slices
	return tagged
}

func (p *Planner) filesRelation(t *engine.Task, n *script.Node, b Batch) (relation, error) {
	how := files.Unnumbered
	if b.Trace {
		how = files.Positioned
	}
	reading, err := files.Read(n.Files, b.Work.Files, b.Scratch, how)
	if err != nil {
		return relation{}, err
	}
	for _, s := range b.Work.Files {
		t.Paths = append(t.Paths, s.Path)
	}
	t.Prepare = reading.Prepare
	countCSV(t, n.Files, reading)
	t.Explain = func(ctx context.Context, db engine.Querier, cause error) error {
		var found *fault.Error
		if err := files.Diagnose(ctx, db, n.Files, b.Work.Files, b.Scratch, cause); errors.As(err, &found) {
			return err
		}
		positioned, prepare, err := files.ReadSQL(n.Files, b.Work.Files, b.Scratch, files.Positioned)
		if err != nil || prepare(ctx) != nil {
			return nil
		}
		rel := relation{from: positioned + " AS r", positions: true, slices: b.Work.Files}
		return atLine(ctx, db, n.Files, b.Work.Files, b.Scratch, explainRows(n, rel)(ctx, db, cause))
	}
	rel := relation{from: reading.SQL + " AS r"}
	if b.Trace {
		rel.order = fileOrder()
	}
	return rel, nil
}

// countCSV has the engine count what is read of CSV text.
func countCSV(t *engine.Task, r *script.FileReader, reading *files.Reading) {
	if !r.Parquet {
		t.CSV = append(t.CSV, csvSource{reading})
	}
}

// csvSource is a reading as the engine knows it.
type csvSource struct{ *files.Reading }

func (s csvSource) Recount(ctx context.Context, db engine.Querier) error {
	return s.Reading.Recount(ctx, db)
}

// atLine adds to a failure at a row of a file the record, and the line at which people find it.
func atLine(ctx context.Context, db engine.Querier, r *script.FileReader, read []files.Slice, scratch string,
	err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || r.Parquet && len(r.Columns) == 0 || f.Place.Line > 0 || f.Place.Record == 0 {
		return err
	}
	for _, s := range read {
		if s.URL != f.Place.File {
			continue
		}
		at := []files.Place{{File: s.File, Row: f.Place.Record - 1}}
		place := f.Place
		if files.Locate(ctx, db, r, read, scratch, at, func(l files.Located) error {
			place.Line, place.Raw = l.Line, files.ShownRecord(l.Text)
			return nil
		}) == nil { // else the row says it, too
			f.Place = place
		}
		break
	}
	return err
}

// atLines does so for the rows of an ephemeral table, whose places are those in files.
func atLines(t *Table, scratch string, explain explanation) explanation {
	r := t.fileReader()
	if r == nil || explain == nil {
		return explain
	}
	return func(ctx context.Context, db engine.Querier, cause error) error {
		return atLine(ctx, db, r, t.places(), scratch, explain(ctx, db, cause))
	}
}

// partOutput says how a table's rows lie in the batch's part. Rows that are
// about to leave their canonical order get a number first.
func (p *Planner) partOutput(n *script.Node, in Inputs, plan NodePlan, b Batch) *engine.PartOutput {
	l := plan.Layout
	out := &engine.PartOutput{Stage: b.Stage, Floats: l.floats()}
	if b.Trace {
		return tracedOutput(b)
	}
	if out.RowGroupRows, out.Wide = plan.RowGroup, plan.Wide; plan.RowGroup == 0 {
		out.RowGroupRows, out.Wide = p.rowGroupRows(n, in)
	}
	if l.Buckets > 0 && orderColsOf(n, in) == 0 && l.Sort == nil {
		out.NumberSQL = fmt.Sprintf("%d + row_number() OVER ()", int64(b.Number)*orderStride+b.RowsDone)
	}
	if l.Buckets == 0 || l.Hash == "" { // parts of a plan that names no hash need not lie by its buckets
		return out
	}
	out.BucketSQL = bucketSQL(l.Hash, l.keySQL(l.Key, "q"), l.keyTypes(l.Key), l.Buckets)
	out.SortedBy = append([]string{engine.BucketColumn}, orderColumns(l.OrderCols)...)
	out.RowGroupRows = min(out.RowGroupRows, p.bucketRows(l, b))
	out.Cluster = p.clusterOf(n, in, l, out.RowGroupRows)
	return out
}

// bucketRows limits the rows of a part's row group, so that reading a bucket reads little of others: about
// half a bucket's. The limit has a floor, because the footer costs by the row groups of all buckets.
func (p *Planner) bucketRows(l Layout, b Batch) int {
	rows := b.RowsIn
	if rows < 0 {
		rows = p.Budget.BatchBytes / rowWidth(l)
	}
	return int(max(rows/int64(2*l.Buckets), bucketGroupRowsMin))
}

// rowGroupRows keeps the row group that is being written, which the memory
// limit does not count, within a quarter of it when rows are wide. Where parts travel
// wide ones are kept small, too, rather than quick to read.
func (p *Planner) rowGroupRows(n *script.Node, in Inputs) (rows int, wide bool) {
	var widest int64 = 1
	for _, t := range in.Tables(n) {
		for _, part := range t.Parts {
			widest = max(widest, partBytes(t.Layout, part)/max(part.Rows, 1))
		}
	}
	if n.Lookup != nil && n.Lookup.Group && joinsText(n) {
		widest = max(widest, in.Lookup.Bytes()/max(in.Reader.Rows(), 1)) // the texts of many rows in one
	}
	rows = int(min(max(p.Budget.SlotEngineBytes/4/widest, rowGroupRowsFew), engine.PartRowGroupRows))
	return rows, rows < engine.PartRowGroupRows && !p.Budget.Far
}

// pythonStep streams the columns that the formulas use to Python.
func pythonStep(n *script.Node, t *Table, b Batch) *engine.PythonStep {
	prog := PythonProgram(n.PyCalc, t.Layout)
	s := scan{table: t, slices: b.Work.Parts, paths: b.Paths}
	cols := make([]string, len(prog.Inputs))
	for i, in := range prog.Inputs {
		s.fields = append(s.fields, in.Name)
		c, _ := t.Layout.column(in.Name)
		cols[i] = engine.TransportSQL(in.Type, sqltext.Ident(c.Stored()))
	}
	if len(cols) == 0 {
		cols = []string{"1"} // formulas of nothing: still one row for each row
	}
	// Rows meet their results by position. Bad ones are listed in canonical order.
	source := s.sql()
	if n.BadRows != nil {
		source = s.inOrder()
	}
	return &engine.PythonStep{Program: prog,
		Source: fmt.Sprintf("SELECT %s FROM (%s)", strings.Join(cols, ", "), source), Bad: badPython(n, t, b)}
}

// badPython describes rows whose formulas fail; nil where the first one fails the node.
func badPython(n *script.Node, t *Table, b Batch) func(*fault.Error, string) (fault.BadRow, string) {
	if n.BadRows == nil {
		return nil
	}
	action := engine.ActionQuarantined
	if n.BadRows.Action == script.BadNull {
		action = engine.ActionKept
	}
	return func(f *fault.Error, reason string) (fault.BadRow, string) {
		p := f.Place
		if p.File != "" && p.Line > 0 {
			reason += fmt.Sprintf(" (%s:%d)", p.File, p.Line)
		}
		at := fault.Place{Field: p.Field, Value: p.Value, Expr: p.Expr}
		at.PutInTable(t.Name(), recordOf(t, b.Work, p.Record-1))
		return fault.BadRow{Reason: reason, Place: at}, action
	}
}

// atPos is a place of a script for people.
func atPos(p document.Pos) string {
	if p.Line == 0 || p.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// PythonProgram returns the Python program of a py_calc that reads a table of this layout.
func PythonProgram(calc *script.PyCalc, layout Layout) *python.Program {
	prog := &python.Program{}
	for _, f := range calc.Code {
		prog.Files = append(prog.Files, python.Source{Name: f.URL, Text: f.Text})
	}
	var refs []expr.Ref
	for _, f := range calc.Fields {
		refs = append(refs, f.Refs...)
		prog.Fields = append(prog.Fields, python.Field{Name: f.Name, Type: f.Type, Expr: f.Expr, Nullable: f.Nullable,
			At: atPos(f.Pos)})
	}
	types := layout.types()
	for _, name := range usedFields(layout, "r", refs) {
		prog.Inputs = append(prog.Inputs, python.Column{Name: name, Type: types[name]})
	}
	return prog
}

// ProgramOf is a node's Python program, known from the script alone; nil for nodes without Python.
func ProgramOf(n *script.Node) *python.Program {
	switch {
	case n.PyCalc != nil:
		return PythonProgram(n.PyCalc, layoutOf(n.Reader.Fields()))
	case n.PyTable != nil:
		return tableProgram(n.PyTable, layoutOf(n.Reader.Fields()))
	}
	return nil
}

// distinctQuery keeps the first row, in canonical order, of each key.
func distinctQuery(n *script.Node, in Inputs, layout Layout, b Batch) string {
	s, others := scan{table: in.Reader, slices: wholeTable(in.Reader), paths: b.Paths}, ""
	keys := layout.keySQL(uniqueKey(n), "d")
	if source := distinctKey(n, in.Reader.Layout); source != nil {
		k := keyed{in.Reader, source}
		s = k.scan(b.Work.Cut, b.Paths)
		if f := k.filter(b.Work.Cut, "r"); f != "" {
			others = " WHERE " + f
		}
	}
	s.order, s.fields = true, usedFields(in.Reader.Layout, "r", fieldRefs(n.Table))
	rel := relation{from: "(" + s.sql() + ") AS r" + others, aliases: columns{"r": in.Reader.Layout},
		order: prefixed("r", s.orderCols())}
	where := ""
	if !b.Work.whole() && distinctKey(n, in.Reader.Layout) == nil {
		where = fmt.Sprintf(" WHERE %s = %d", bucketSQL(b.Work.Hash, keys, layout.keyTypes(uniqueKey(n)),
			b.Work.Buckets),
			b.Work.Bucket)
	}
	// DuckDB makes values anew from sort keys, or does not, as it plans: -0 is 0 in any case.
	var floats []string
	for _, name := range layout.floats() {
		floats = append(floats, fmt.Sprintf("%s + CAST(0 AS DOUBLE) AS %s", ident("d", name), sqltext.Ident(name)))
	}
	all := "d.*"
	if len(floats) > 0 {
		all += " REPLACE (" + strings.Join(floats, ", ") + ")"
	}
	return fmt.Sprintf("SELECT %s FROM (%s) AS d%s QUALIFY row_number() OVER (PARTITION BY %s ORDER BY %s) = 1", all,
		tableQuery(n, layout, rel, nil), where, strings.Join(keys, ", "),
		strings.Join(prefixed("d", s.orderCols()), ", "))
}

// uniqueKey is the key of which a distinct table keeps one row each.
func uniqueKey(n *script.Node) expr.Order {
	var key expr.Order
	for _, ix := range n.Table.Indexes {
		if ix.Unique {
			key = ix.Key
		}
	}
	return key
}

// distinctKey is a distinct table's key in terms of the fields that it reads:
// rows that could be the same can be read together. nil if the key is computed.
func distinctKey(n *script.Node, source Layout) expr.Order {
	types := source.types()
	key := append(expr.Order{}, uniqueKey(n)...)
	for i, k := range key {
		for _, f := range n.Table.Fields {
			if f.Name != k.Field {
				continue
			}
			refs := f.Expr.Refs()
			if len(refs) != 1 || f.Expr.Source() != "r."+refs[0].Field || types[refs[0].Field] != f.Type {
				return nil
			}
			key[i].Field = refs[0].Field
		}
	}
	return key
}
