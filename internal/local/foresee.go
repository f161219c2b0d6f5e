package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"thalweg/internal/budget"
	"thalweg/internal/pipeline"
	"thalweg/internal/script"
	"thalweg/internal/state"
)

// Foreseen is what a run that began now would do with a node.
type Foreseen = pipeline.Foreseen

// SelectedOf lists the nodes of a new run with these options, and the names of those that are computed in any case.
func SelectedOf(s *script.Script, opts Options) (nodes []*script.Node, named []string, err error) {
	if nodes, err = opts.nodes(s); err != nil {
		return nil, nil, err
	}
	return nodes, opts.named(s), nil
}

// Foresee says what a run of all nodes of a script, with these options, would
// take over of earlier runs. Interpreters are asked what formulas import;
// nothing else is run.
func Foresee(ctx context.Context, home *Home, s *script.Script, opts Options) (_ map[*script.Node]pipeline.Foreseen, err error) {
	t, err := newTools(home, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if t.whole, err = share(opts.MemoryBytes, opts.Cores, needsPython(s.Nodes)); err != nil {
		return nil, err
	}
	if t.budget = t.whole; t.budget.Interpreters > 1 {
		t.budget.Interpreters = 1
	}
	if err := t.openPool(); err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	python, err := t.checkPython(ctx, dir, s.Nodes)
	if err != nil {
		return nil, err
	}
	return pipeline.New(pipeline.Config{Script: s, Run: state.RunKey{Workspace: opts.Workspace}, Identity: home.identity(s.Name, opts.ScriptPath), Identify: home.identityOf,
		Surroundings: python, Store: t.store, Parts: home.Parts, Budget: t.budget, Room: budget.NewRoom(t.budget), Planning: t.whole, Fuse: opts.Ephemeral, Pool: t.pool,
		Engine: t.engine, Dir: dir, WorkDir: t.work, Logger: opts.Logger}).Foresee(ctx)
}
