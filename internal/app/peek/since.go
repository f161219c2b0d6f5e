package peek

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Limits of what is looked at for a difference since an approval.
const (
	sinceRuns   = 2_000 // earlier runs
	sinceGates  = 50    // of those of the same script: gates
	sinceTables = 20    // that a gate shows
)

// Since says what of the tables that a gate shows has changed since it was last approved in an earlier run of the same
// script. Sums read the columns of numbers, once: tables do not change.
func (p *Pool) Since(ctx context.Context, by caller.Caller, run state.Run, name string) (view.GateSince, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.LongTime)
	defer cancel()
	out := view.GateSince{Workspace: run.Workspace, Run: run.Run, Gate: name, Tables: []view.SinceTable{}}
	now, _, err := p.asked(ctx, run.RunKey, name)
	if err != nil {
		return out, err
	}
	if now == nil {
		return out, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: fmt.Sprintf("gate %s of run %d has shown nothing yet", name, run.Run)}
	}
	then, approved, err := p.lastApproved(ctx, run, name)
	if err != nil {
		return out, err
	}
	out.Approved = approved
	for _, s := range now.Shows[:min(len(now.Shows), sinceTables)] {
		one, err := p.since(ctx, by, run.Workspace, s, then)
		if err != nil {
			return out, err
		}
		out.Tables = append(out.Tables, one)
	}
	return out, nil
}

// asked reads what a gate of a run has asked, and what was decided; nil: there is no such gate, or it has not asked.
func (p *Pool) asked(ctx context.Context, run state.RunKey, name string) (*gate.Record, *state.Decision, error) {
	n, err := p.home.State.Node(ctx, state.NodeKey{RunKey: run, Node: gate.Prefix + name})
	if errors.Is(err, state.ErrNotFound) || err == nil && len(n.Gate) == 0 {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read gate %s of run %d: %w", name, run.Run, err)
	}
	r, err := gate.Decode(n.Gate)
	return &r, n.Decision, err
}

// lastApproved finds the latest earlier run of the same script in which a gate was approved; nil: there is none.
func (p *Pool) lastApproved(ctx context.Context, run state.Run, name string) (*gate.Record, *view.GateBefore, error) {
	identity, read, gates := p.home.IdentityOf(run), 0, 0
	for page := (state.Page{From: run.Run, Limit: state.PageMax, Brief: true}); ; {
		runs, next, err := p.home.State.Runs(ctx, run.Workspace, page)
		if err != nil {
			return nil, nil, fmt.Errorf("list the runs of workspace %s: %w", run.Workspace, err)
		}
		for _, r := range runs {
			if r.Dropped != nil || r.Invalidated != nil || p.home.IdentityOf(r) != identity || gates == sinceGates {
				continue
			}
			gates++
			record, d, err := p.asked(ctx, r.RunKey, name)
			if err != nil {
				return nil, nil, err
			}
			if record != nil && d != nil && d.Approved {
				return record, &view.GateBefore{Run: r.Run, By: d.Mark, Role: d.Role, Digest: d.Digest}, nil
			}
		}
		read += len(runs)
		if page.From = next; next == 0 || read >= sinceRuns || gates == sinceGates {
			return nil, nil, nil
		}
	}
}

// since compares a table with what the gate showed then; nil: nothing.
func (p *Pool) since(ctx context.Context, by caller.Caller, workspace string, s gate.Shown,
	then *gate.Record) (view.SinceTable, error) {
	out := view.SinceTable{Table: s.Table, Rows: s.Rows, RunNow: s.Run, Columns: []view.SinceColumn{}}
	now, err := p.figures(ctx, by, workspace, s)
	if err != nil {
		return out, err
	}
	var before []column
	if then != nil {
		if i := slices.IndexFunc(then.Shows, func(o gate.Shown) bool { return o.Table == s.Table }); i >= 0 {
			o := then.Shows[i]
			out.Before, out.RunThen, out.Same = &o.Rows, o.Run, o.Digest == s.Digest
			before, err = p.figures(ctx, by, workspace, o)
			if err != nil && ctx.Err() != nil {
				return out, err
			}
			if err != nil { // it may be collected, or be made again meanwhile
				out.Why = fault.Of(err).Message
			}
		}
	}
	out.Columns = sinceColumns(now, before, out.Before != nil && out.Why == "")
	return out, nil
}

// column is a column of a table with its figures.
type column struct {
	name string
	is   view.ColumnFigures
}

// sinceColumns puts columns beside those of then, if these are known.
func sinceColumns(now, then []column, known bool) []view.SinceColumn {
	out := []view.SinceColumn{}
	find := func(in []column, name string) *view.ColumnFigures {
		if i := slices.IndexFunc(in, func(c column) bool { return c.name == name }); i >= 0 {
			return &in[i].is
		}
		return nil
	}
	for i, c := range now {
		one := view.SinceColumn{Name: c.name, Now: &now[i].is, Then: find(then, c.name)}
		switch {
		case !known:
		case one.Then == nil:
			one.Change = "added"
		case one.Then.Type != c.is.Type:
			one.Change = "retyped"
		}
		out = append(out, one)
	}
	for i, c := range then {
		if find(now, c.name) == nil {
			out = append(out, view.SinceColumn{Name: c.name, Change: "removed", Then: &then[i].is})
		}
	}
	return out
}

// figures returns the columns of a table as a gate has shown it, with what its parts say of them, and the sums of
// numbers. A table that was made again since is refused.
func (p *Pool) figures(ctx context.Context, by caller.Caller, workspace string, shown gate.Shown) ([]column, error) {
	run, table := state.RunKey{Workspace: workspace, Run: shown.Run}, shown.Table
	profile, err := p.Profile(ctx, by, run, table)
	if err != nil {
		return nil, err
	}
	sums, err := p.sumsOf(ctx, run, table)
	if err != nil {
		return nil, err
	}
	t, _, err := p.table(ctx, Table{Run: run, Table: table})
	if err != nil {
		return nil, err
	}
	if is, _, _ := gate.TableDigest(t.Parts); is != shown.Digest {
		return nil, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: fmt.Sprintf("table %s of run %d is another one by now", table, run.Run), Hint: "look at the gate again"}
	}
	out := make([]column, len(profile.Columns))
	for i, c := range profile.Columns {
		out[i] = column{c.Name, view.ColumnFigures{Type: c.Type, Nulls: c.Nulls, Min: c.Min, Max: c.Max, Sum: sums[c.Name]}}
	}
	return out, nil
}

// sumsOf returns the sums of the columns of a table that have numbers, by name. A column without values has none.
func (p *Pool) sumsOf(ctx context.Context, run state.RunKey, table string) (map[string]string, error) {
	t, columns, err := p.table(ctx, Table{Run: run, Table: table})
	if err != nil {
		return nil, err
	}
	columns = slices.DeleteFunc(slices.Clone(columns), func(c plan.Column) bool {
		typ, known := expr.ParseType(c.Type)
		return !known || typ.Nested() || !typ.IsNumber()
	})
	if len(t.Parts) == 0 || len(columns) == 0 {
		return nil, nil
	}
	key := digestOf(t.Table)
	if known, ok := p.sums.get(key); ok {
		return known, nil
	}
	paths, release, err := pipeline.FetchTables(ctx, p.home.Parts, []*plan.Table{t.Table})
	if err != nil {
		return nil, err
	}
	defer release()
	pieces := make([]string, len(columns))
	for i, c := range columns {
		pieces[i] = fmt.Sprintf("coalesce(CAST(sum(%s) AS VARCHAR), '')", sqltext.Ident(c.Stored()))
	}
	d := distributor{pool: p, prepared: inspect.Prepared{Ours: true, Paths: slices.Sorted(maps.Values(paths)),
		CellBytes: topBytes, Setup: []string{"CREATE VIEW t AS " + t.SelectRows(columns, 0, t.Rows(), paths)}}}
	out := map[string]string{}
	err = d.query(ctx, "SELECT "+strings.Join(pieces, ", ")+" FROM t", func(row []any) error {
		for i, c := range columns {
			if text := inspect.Text(row[i]); text != "" {
				out[c.Name] = text
			}
		}
		return nil
	}, len(columns))
	if err != nil {
		return nil, err
	}
	p.sums.put(key, out)
	return out, nil
}
