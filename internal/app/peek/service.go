package peek

import (
	"context"
	"encoding/json"
	"fmt"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/view"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/compare"
	"thalweg/internal/store/state"
)

var _ inspect.Children = (*Pool)(nil)

// Diff implements inspect.Children.
func (p *Pool) Diff(ctx context.Context, by caller.Caller, runs [2]state.RunKey,
	o inspect.DiffOptions) (out inspect.Comparison, err error) {
	if err := p.look(ctx, by, askDiff, "the comparison", diffArgs{runs, o}, &out); err != nil {
		return out, err
	}
	if out.Result == nil {
		return out, errGarbled
	}
	for _, list := range [][]compare.Difference{out.SampleRemoved, out.SampleAdded, out.SampleChanged} {
		for i, d := range list {
			if list[i].A, list[i].B = fromWire(d.A), fromWire(d.B); !fits(d, len(out.Columns)) {
				return out, errGarbled
			}
		}
	}
	return out, nil
}

// fits reports whether a difference is one of rows with so many columns.
func fits(d compare.Difference, columns int) bool {
	for _, row := range [][]any{d.A, d.B} {
		if row != nil && len(row) != columns {
			return false
		}
	}
	for _, i := range d.Changed {
		if i < 0 || i >= columns {
			return false
		}
	}
	return true
}

// Trace implements inspect.Children.
func (p *Pool) Trace(ctx context.Context, by caller.Caller, o inspect.TraceOptions) (*view.Tree, error) {
	var tree view.Tree
	err := p.look(ctx, by, askTrace, "the trace", traceArgs{o.Workspace, o.Name, o.Run, o.Trace}, &tree)
	return &tree, err
}

// ExplainBatch implements inspect.Children.
func (p *Pool) ExplainBatch(ctx context.Context, by caller.Caller, key state.BatchKey) (out view.BatchSQL, err error) {
	err = p.look(ctx, by, askExplain, "the plan", key, &out)
	return out, err
}

// Check implements inspect.Children. The script is loaded once more where the checks are made: it is the one of
// o.Named, or the run's own if that has no path.
func (p *Pool) Check(ctx context.Context, by caller.Caller, sc *script.Script, run state.Run,
	o inspect.CheckOptions) (out []inspect.CheckFound, err error) {
	args := checkArgs{Script: o.Named, Run: run, Nodes: o.Nodes, RowsMax: o.RowsMax}
	if sc != nil {
		args.Fingerprint = sc.Fingerprint
	}
	if err := p.look(ctx, by, askCheck, "the checks", args, &out); err != nil {
		return nil, err
	}
	for i := range out {
		for n, row := range out[i].Failing.Rows {
			if out[i].Failing.Rows[n] = fromWire(row); len(row) != len(out[i].Failing.Columns) {
				return nil, errGarbled
			}
		}
	}
	return out, nil
}

// look asks a child that is lent the instance.
func (p *Pool) look(ctx context.Context, by caller.Caller, method, doing string, args, into any) error {
	text, err := p.ask(ctx, question{by: by.Actor, heavy: true, lent: true, method: method, args: args, doing: doing,
		limit: p.limits.LongTime}, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("decode an answer: %w", err)
	}
	return nil
}
