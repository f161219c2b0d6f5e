package plan

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// Preview describes a node before anything ran.
type Preview struct {
	Node      *script.Node
	Plan      NodePlan
	Batches   int
	Checks    int    // of Batches: they look at what the others wrote, and write nothing
	Shares    int    // of Checks: they look at a share each, for the last of Checks; 0: it looks at all
	Rows      int64  // that the node will read; -1: not known
	Bytes     int64  // uncompressed
	RowsOut   int64  // at most, in its table
	Cut       string // how a query is cut into batches, and why not; "" for other nodes
	Estimated bool   // batches, rows and bytes are guesses from what its sources may give
	Problem   error  // why it could not be planned; all behind it is a guess from nothing
	Task      engine.Task

	Stored string // why its table is stored, although it was asked for no table to be that can be ephemeral
	inputs Inputs
}

// Directories in SQL that people see: where a run would have files of its own.
const (
	PreviewParts   = "/parts"
	PreviewScratch = "/scratch"
)

// Preview plans all nodes of the script as a first run with all of them would,
// in topological order. Input files are looked at as planning does; their rows,
// where only reading would count them, and all tables are estimated. Nothing
// is run, and nothing is written.
func (p *Planner) Preview(ctx context.Context) ([]Preview, error) {
	tables := map[*script.Node]*Table{}
	var out []Preview
	for _, n := range p.Script.Topological() {
		v, err := p.preview(ctx, n, tables)
		if err != nil {
			return nil, err
		}
		switch {
		case v.Plan.ComputedIn != "":
			tables[n] = &Table{Node: n, Layout: v.Plan.Layout, ComputedIn: v.Plan.ComputedIn, Inner: &v.inputs}
		case n.Table != nil:
			tables[n] = previewTable(n, v)
		}
		out = append(out, v)
	}
	return out, nil
}

func (p *Planner) preview(ctx context.Context, n *script.Node, tables map[*script.Node]*Table) (Preview, error) {
	v := Preview{Node: n, Estimated: n.Files == nil}
	in := Inputs{Named: map[string]*Table{}, Places: p.Places}
	if n.Reader != nil {
		var read []*Table
		for _, source := range n.Reader.Creators {
			read = append(read, tables[source])
		}
		in.Reader = Together(n.Reader.Fields(), read)
	}
	if n.Lookup != nil {
		in.Lookup = tables[n.Lookup.Index.Node]
	}
	for _, source := range n.Named() {
		in.Named[source.Table.Name] = tables[source]
	}
	in.Query = in.QueryTables(n)
	if v.inputs = in; n.Table != nil && p.Fuse {
		v.Stored = p.Script.NotEphemeral(n)
	}
	if n.Table != nil && p.Ephemeral(n) {
		v.Plan = p.PlanEphemeral(n, in)
		return v, nil
	}
	var specs []state.BatchSpec
	if v.Problem = p.copiedInputs(ctx, n, in); v.Problem == nil {
		v.Plan, specs, v.Problem = p.PlanNode(ctx, n, in)
	}
	var f *fault.Error
	switch {
	case ctx.Err() != nil:
		return v, &fault.Error{Kind: fault.Canceled, Message: "explaining was interrupted", Err: context.Cause(ctx)}
	case v.Problem != nil && !errors.As(v.Problem, &f):
		return v, v.Problem
	case v.Problem != nil:
		if n.Table != nil {
			v.Plan.Layout, v.Rows = layoutOf(n.Table.Fields), -1
			v.Plan.Layout.OrderCols = orderColsOf(n, in)
		}
		return v, nil
	}
	v.Batches = len(specs)
	if n.Query != nil {
		v.Cut = p.queryCut(n, in)
	}
	var first *Work
	for _, s := range specs {
		var w Work
		if err := w.Decode(s); err != nil {
			return v, err
		}
		if w.Manifest {
			v.Batches--
			continue
		}
		if w.Check || w.BadCaps {
			v.Checks++
			if w.Share.Looks() {
				v.Shares++
			}
			continue
		}
		if first == nil {
			first = &w
		}
		v.Bytes += s.BytesIn
		if s.RowsIn < 0 || v.Rows < 0 {
			v.Rows = -1
		} else {
			v.Rows += s.RowsIn
		}
	}
	v.RowsOut = estimateRows(n, in, v)
	if first != nil {
		v.Problem = p.previewTask(n, in, &v, *first)
	}
	return v, nil
}

// copiedInputs refuses to look at files that a run copies before it reads them: those of
// other machines, and those that have to be unpacked.
func (p *Planner) copiedInputs(ctx context.Context, n *script.Node, in Inputs) error {
	for _, t := range []*Table{in.Reader, in.Lookup} {
		if !t.Ephemeral() {
			continue
		}
		if err := p.copiedInputs(ctx, t.Node, *t.Inner); err != nil {
			return err
		}
	}
	for _, r := range n.FileReaders() {
		for _, u := range r.URLs {
			if files.RemotePattern(u.URL) {
				return &fault.Error{Kind: fault.Environment, Message: address.Redact(u.URL) + " is " +
					address.Where(u.URL) + ": it is looked at when a run begins"}
			}
		}
		urls, err := files.Expand(ctx, in.Places, r.URLs)
		if err != nil {
			return err
		}
		for _, u := range urls {
			if address.Remote(u.URL) {
				return &fault.Error{Kind: fault.Environment, Message: address.Redact(u.URL) + " is " +
					address.Where(u.URL) + ": it is looked at when a run begins"}
			}
			if path, err := files.PathOf(in.Places, u.URL); err == nil && files.Packed(r, path) {
				if r.Records != "" {
					return &fault.Error{Kind: fault.Environment, Message: u.URL +
						" is made into CSV when a run begins, and cut into batches then"}
				}
				return &fault.Error{Kind: fault.Environment, Message: u.URL +
					" is unpacked when a run begins, and cut into batches then"}
			}
		}
	}
	return nil
}

// previewTask builds the task of the first batch, with made-up places.
func (p *Planner) previewTask(n *script.Node, in Inputs, v *Preview, w Work) error {
	b := Batch{Work: w, Paths: Paths{}, Scratch: PreviewScratch, StageDir: PreviewParts, Run: state.RunKey{Run: 1},
		RowsIn: v.Rows}
	if n.Out != nil {
		b.OutPath = script.ExpandURL(n.Out.URL, 1, 0)
	}
	for _, read := range p.Reads(n, in, b.Work, nil) {
		for _, s := range read.Slices {
			key := read.Table.Parts[s.Part].Key
			b.Paths[key] = filepath.Join(PreviewParts, key)
		}
	}
	var err error
	v.Task, err = p.Task(n, in, v.Plan, nil, b)
	return err
}

// estimateRows guesses how many rows n's table may have.
func estimateRows(n *script.Node, in Inputs, v Preview) int64 {
	rows := v.Rows
	switch {
	case n.Table == nil:
		return 0
	case n.Files != nil && rows < 0:
		return v.Bytes / max(readerWidth(n.Files), 1)
	case n.Query != nil:
		rows = 0
		for _, t := range in.Tables(n) {
			rows = max(rows, t.Rows())
		}
		return rows
	case in.Reader != nil:
		return in.Reader.Rows()
	}
	return rows
}

// readerWidth is about what a CSV record of r takes.
func readerWidth(r *script.FileReader) int64 {
	const numberBytes, textBytes = 8, 16
	var n int64
	for _, c := range r.Columns {
		n += numberBytes
		if c.Type == expr.String || c.Type == expr.DateTime || c.Type == expr.Date || c.Type == expr.Instant {
			n += textBytes - numberBytes
		}
	}
	return n
}

// previewTable stands in for the table that n will write: as many parts as
// there will be, at most, of equal sizes.
func previewTable(n *script.Node, v Preview) *Table {
	t := &Table{Node: n, Layout: v.Plan.Layout}
	parts := v.Batches - v.Checks
	bytes := estimateBytes(n, []size{{v.RowsOut, v.Bytes}}, v.RowsOut)
	for i := range int64(parts) {
		part := state.Part{Key: fmt.Sprintf("%s/%05d.parquet", n.Table.Name, i), Batch: int(i), Bucket: -1,
			Rows: v.RowsOut*(i+1)/int64(parts) - v.RowsOut*i/int64(parts), RawBytes: bytes / int64(parts)}
		t.Parts = append(t.Parts, part)
	}
	return t
}
