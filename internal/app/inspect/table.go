package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// RunTable is a complete table of a run.
type RunTable struct {
	*plan.Table
	Name   string
	Unique []plan.UniqueKey // what is known to be true of its keys
}

// TableOf finds a table of a run by its name, side tables among them. One that
// was invalidated since can be looked at.
func TableOf(ctx context.Context, home *instance.Instance, run state.RunKey, name string) (RunTable, error) {
	nodes, err := home.State.Nodes(ctx, run)
	if err != nil {
		return RunTable{}, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	r := state.Run{RunKey: run}
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, state.NodeBrief{Name: n.Name, Table: n.Table, Status: n.Status})
	}
	tables, err := runTables(ctx, home, r, strings.ToLower(name))
	if err != nil {
		return RunTable{}, err
	}
	at := slices.IndexFunc(tables, func(t queryTable) bool { return t.name == name })
	if at < 0 {
		at = slices.IndexFunc(tables, func(t queryTable) bool { return strings.EqualFold(t.name, name) })
	}
	if at < 0 {
		return RunTable{}, noTable(run, name, nodes)
	}
	t := RunTable{Table: tables[at].table, Name: tables[at].name}
	if err := tables[at].readable(nodes); err != nil {
		return t, err
	}
	if slices.ContainsFunc(nodes, func(n state.Node) bool { return n.Table == t.Name }) {
		t.Unique, err = uniqueKeys(ctx, home.State, state.NodeKey{RunKey: t.Run, Node: t.Writer})
	}
	return t, err
}

// noTable says that a run has not got a table, and which ones it has.
func noTable(run state.RunKey, name string, nodes []state.Node) error {
	f := &fault.Error{Kind: fault.Script, Code: fault.NotFound,
		Message: fmt.Sprintf("run %d has no table %s", run.Run, name)}
	var known []string
	for _, n := range nodes {
		if n.Table == "" {
			continue
		}
		known = append(known, n.Table)
		if strings.EqualFold(n.Table, name) {
			f.Message = fmt.Sprintf("table %s of run %d is not there: its node %s is %s", n.Table, run.Run,
				n.Name, n.Status)
			f.Hint = run.Do("nodes").String() + " says more"
			return f
		}
	}
	f.Hint = "its tables: " + strings.Join(known, ", ")
	if near := similar.Nearest(name, known); near != "" {
		f.Hint = "did you mean " + near + "?"
	}
	return f
}

// readable says why a table is not whole, or not stored.
func (t queryTable) readable(nodes []state.Node) error {
	what := fmt.Sprintf("table %s of run %d", t.name, t.table.Run.Run)
	if t.table.ComputedIn != "" {
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("%s was not stored: it was computed in node %s", what,
				t.table.ComputedIn),
			Hint: "a run that computes no table inside of another node stores it"}
	}
	if t.complete {
		return nil
	}
	status := state.Pending
	if at := slices.IndexFunc(nodes, func(n state.Node) bool { return n.Name == t.table.Writer }); at >= 0 {
		if status = nodes[at].Status; status == state.Invalidated && nodes[at].BatchesDone == nodes[at].BatchesTotal {
			return nil
		}
	}
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%s is not complete: its node %s is %s", what,
		t.table.Writer, status),
		Hint: "finish the run first, or name another one"}
}

// uniqueKeys lists the keys that a node's table was planned to have, and has:
// the checks that hold them have passed.
func uniqueKeys(ctx context.Context, store state.Store, key state.NodeKey) ([]plan.UniqueKey, error) {
	n, err := store.Node(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
	}
	np, err := plan.DecodeNodePlan(n.Plan)
	if err != nil {
		return nil, err
	}
	checks, err := state.All(ctx, store.Checks, key)
	if err != nil {
		return nil, fmt.Errorf("read the checks of %s in run %d: %w", key.Node, key.Run, err)
	}
	return slices.DeleteFunc(np.Unique, func(u plan.UniqueKey) bool {
		return u.Check != "" && !slices.ContainsFunc(checks, func(c state.CheckResult) bool {
			return c.Name == u.Check &&
				c.Passed
		})
	}), nil
}
