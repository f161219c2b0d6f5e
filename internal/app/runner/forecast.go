package runner

import (
	"context"
	"errors"
	"slices"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/outputs"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/base/address"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// Foreseen describes the work that a run which began now would have with a node.
type Foreseen = pipeline.Forecast

// Replaces lists the existing outputs that a new run of a script with these options would replace.
func Replaces(ctx context.Context, client *remote.Client, s *script.Script, opts Options) ([]view.Replaced, error) {
	nodes, err := opts.nodes(s)
	if err != nil {
		return nil, err
	}
	return outputs.Replaced(ctx, client.Within(opts.Policy), s, nodes)
}

// PlannedNode says whether a new run computes a node or takes over its rows, and why.
type PlannedNode struct {
	Node string
	From *state.NodeKey // whose rows it takes over; nil: it is computed
	Why  string         // why it is computed
	// Bytes are those of its files; -1: it reads none, or they are not known before it does.
	Bytes int64
}

// PlanRun says what a new run of a script with these options does with each of its nodes.
func PlanRun(ctx context.Context, home *instance.Instance, s *script.Script, opts Options) (out []PlannedNode,
	err error) {
	nodes, err := opts.nodes(s)
	if err != nil {
		return nil, err
	}
	foreseen := map[*script.Node]Foreseen{}
	if opts.Reuse {
		if foreseen, err = Forecast(ctx, home, s, nodes, opts); err != nil {
			return nil, err
		}
	}
	computed := map[string]bool{}
	chosen := opts.chosen(s)
	for _, n := range nodes {
		one := PlannedNode{Node: n.Name}
		f, known := foreseen[n]
		by := slices.IndexFunc(n.Sources(s), func(from *script.Node) bool { return computed[from.Name] })
		switch {
		case slices.Contains(chosen, n.Name):
			one.Why = "named"
		case !known:
			one.Why = "all nodes are computed with {{set fresh}}"
		case by >= 0:
			one.Why = "reads what " + n.Sources(s)[by].Name + " computes"
		default:
			one.From, one.Why = f.From, f.Why
		}
		computed[n.Name] = one.From == nil
		if one.Bytes = -1; one.From == nil {
			if one.Bytes, err = inputBytes(ctx, n, opts); err != nil {
				return nil, err
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// inputBytes returns the bytes of a node's files; -1: there are none, or some are remote or not there yet.
func inputBytes(ctx context.Context, n *script.Node, opts Options) (int64, error) {
	if n.Files == nil || slices.ContainsFunc(n.Files.URLs, func(u script.FileURL) bool { return address.Remote(u.URL) }) {
		return -1, nil
	}
	dir, err := opts.seenFrom()
	if err != nil {
		return -1, err
	}
	bytes, err := files.Bytes(ctx, n.Files, files.Places{Dir: dir, Policy: opts.Policy})
	if f := new(fault.Error); errors.As(err, &f) && f.Kind != fault.Canceled {
		return -1, nil // a run says it
	}
	return bytes, err
}

// Forecast says of nodes of a script what a run of them, with these options, would
// take over of earlier runs. Interpreters are asked what formulas import;
// nothing else is run.
func Forecast(ctx context.Context, home *instance.Instance, s *script.Script, nodes []*script.Node,
	opts Options) (_ map[*script.Node]pipeline.Forecast, err error) {
	t, err := runtime.New(home, opts.Process)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if t.OwnBudget, err = runtime.ShareOf(opts.MemoryBytes, opts.Cores, runtime.NeedsPython(nodes)); err != nil {
		return nil, err
	}
	if t.Budget = t.OwnBudget; t.Budget.Interpreters > 1 {
		t.Budget.Interpreters = 1
	}
	if err := t.OpenPool(); err != nil {
		return nil, err
	}
	dir, err := opts.seenFrom()
	if err != nil {
		return nil, err
	}
	python, err := t.CheckPython(ctx, dir, nodes)
	if err != nil {
		return nil, err
	}
	return pipeline.New(pipeline.Config{Script: s, Run: state.RunKey{Workspace: opts.Workspace},
		Identity: home.Identity(s.Name, address.SeenFrom(dir, opts.ScriptPath)), Identify: home.IdentityOf,
		From: opts.From, Chosen: opts.chosen(s),
		Surroundings: python, Store: t.Store, Parts: home.Parts, Budget: t.Budget, Room: budget.NewRoom(t.Budget),
		Planning: t.OwnBudget, Fuse: opts.Ephemeral, Pool: t.Pool,
		Engine: t.Engine, Dir: dir, Remote: opts.Remote.Within(opts.Policy),
		WorkDir: t.WorkDir, Logger: opts.Logger}).Forecast(ctx, nodes)
}
