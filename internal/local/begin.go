package local

import (
	"context"
	"errors"
	"slices"
	"time"

	"thalweg/internal/script"
	"thalweg/internal/state"
)

// Begin records a new run and leaves the work on it to others (Serve). What can
// be known to be wrong beforehand is an error, and there is no run then. With the
// token of a run that was begun before, it gives that run.
func Begin(ctx context.Context, home *Home, opts Options) (key state.RunKey, err error) {
	if err := CheckWorkspace(opts.Workspace); err != nil {
		return key, err
	}
	t, err := newTools(home, opts)
	if err != nil {
		return key, err
	}
	defer func() { err = errors.Join(err, t.engine.Close()) }()
	r := &runner{tools: t, start: time.Now()}
	if err := r.begin(ctx); err != nil {
		// What is wrong now need not have been so when it was begun.
		if key, found := begunBefore(ctx, t.store, opts.Workspace, opts.Token); found {
			return key, nil
		}
		return key, err
	}
	return r.key, nil
}

// begin does what comes before the work on a new run.
func (r *runner) begin(ctx context.Context) error {
	if _, err := r.load(ctx); err != nil {
		return err
	}
	affected, err := r.script.Affected(nil)
	if err != nil {
		return err
	}
	python := needsPython(affected)
	if r.whole, err = r.split(r.opts.MemoryBytes, python); err != nil {
		return err
	}
	if err := r.tryPython(ctx, python, affected); err != nil {
		return err
	}
	return r.enlist(ctx, affected)
}

// begunBefore looks for a token among the latest runs.
func begunBefore(ctx context.Context, store state.Store, workspace, token string) (state.RunKey, bool) {
	runs, _, err := store.Runs(ctx, workspace, state.Page{})
	if err != nil || token == "" {
		return state.RunKey{}, false
	}
	i := slices.IndexFunc(runs, func(run state.Run) bool { return run.Token == token })
	if i < 0 {
		return state.RunKey{}, false
	}
	return runs[i].RunKey, true
}

// tryPython imports the Python code in an interpreter that ends again.
func (r *runner) tryPython(ctx context.Context, python bool, affected []*script.Node) (err error) {
	if !python {
		return nil
	}
	if r.budget = r.whole; r.budget.Interpreters > 1 {
		r.budget.Interpreters = 1
	}
	if err := r.openPool(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.pool.Close()) }()
	_, err = r.checkPython(ctx, r.dir, affected)
	return err
}
