package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// Begin records a new run and leaves the work on it to others (Serve). What can
// be known to be wrong beforehand is an error, and there is no run then. With the
// token of a run that was begun before, it gives that run.
func Begin(ctx context.Context, home *instance.Instance, opts Options) (key state.RunKey, err error) {
	if err := instance.CheckWorkspace(opts.Workspace); err != nil {
		return key, err
	}
	opts.Process = opts.WithDefaults()
	t, err := runtime.New(home, opts.Process)
	if err != nil {
		return key, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	r := &runner{Runtime: t, opts: opts, start: time.Now()}
	if err := r.begin(ctx); err != nil {
		// What is wrong now need not have been so when it was begun.
		if key, found := begunBefore(ctx, t.Store, opts.Workspace, opts.Token); found {
			return key, nil
		}
		return key, err
	}
	home.Ordered(ctx, r.key)
	return r.key, nil
}

// Submit records a new run, or the order that lets a run go on, and leaves the
// work to others. With the token of a run that was begun before, it gives that run.
func Submit(ctx context.Context, home *instance.Instance, opts Options) (key state.RunKey,
	warnings view.Diagnostics,
	err error) {
	if err := instance.CheckWorkspace(opts.Workspace); err != nil {
		return key, nil, err
	}
	opts.Process = opts.WithDefaults()
	t, err := runtime.New(home, opts.Process)
	if err != nil {
		return key, nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if key, found := begunBefore(ctx, t.Store, opts.Workspace, opts.Token); found {
		return key, nil, nil // whatever is wrong with it now
	}
	r := &runner{Runtime: t, opts: opts, start: time.Now()}
	if opts.Resume {
		warnings, err = r.letGoOn(ctx)
	} else if err = r.begin(ctx); err == nil {
		warnings, err = r.warnings, r.replaceParent(ctx)
	}
	if r.key.Run != 0 && err == nil {
		home.Ordered(ctx, r.key)
	}
	return r.key, warnings, err
}

// letGoOn gives the order that lets a run go on.
func (r *runner) letGoOn(ctx context.Context) (warnings view.Diagnostics, err error) {
	if warnings, err = r.load(ctx); err != nil {
		return nil, err
	}
	if err := r.onlyResume(); err != nil {
		return nil, err
	}
	if r.key, err = r.toResume(ctx); err != nil {
		return nil, err
	}
	if r.OwnBudget, err = r.Split(r.opts.MemoryBytes, false); err != nil {
		return nil, err
	}
	r.joined = r.Instance.AtWork(r.key)
	if err := r.alone(ctx, r.script.Nodes); err != nil {
		return nil, err
	}
	if err := r.resume(ctx); err != nil {
		return nil, err
	}
	r.content.Close()
	return warnings, nil
}

// begin does what comes before the work on a new run.
func (r *runner) begin(ctx context.Context) error {
	var err error
	if r.warnings, err = r.load(ctx); err != nil {
		return err
	}
	affected, err := r.opts.nodes(r.script)
	if err != nil {
		return err
	}
	python := runtime.NeedsPython(affected)
	if r.OwnBudget, err = r.Split(r.opts.MemoryBytes, python); err != nil {
		return err
	}
	if err := r.tryPython(ctx, python, affected); err != nil {
		return err
	}
	if err := r.alone(ctx, affected); err != nil {
		return err
	}
	if err := r.enlist(ctx, affected); err != nil {
		return err
	}
	return r.stillAlone(ctx, affected)
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
	if err := r.CheckRequirements(ctx, r.script); err != nil {
		return err
	}
	if r.Budget = r.OwnBudget; r.Budget.Interpreters > 1 {
		r.Budget.Interpreters = 1
	}
	if err := r.OpenPool(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.ClosePool()) }()
	r.python, err = r.CheckPython(ctx, r.dir, affected)
	return err
}
