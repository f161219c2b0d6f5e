package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/app/workerprocess"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/orders"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// RetryOptions say what of a run is to be done again, and how its sources are read.
type RetryOptions struct {
	runtime.Process
	Again orders.RedoSelection // nothing: what failed, and what follows from an edit
}

// Retry describes a retry of a run: the work that is done again, and whether a new run does it.
type Retry struct {
	Run     state.Run
	Closure orders.RedoPlan // of the run itself
	// Changed lists the changes for which the run cannot go on as it is: then a new one begins.
	Changed []view.Change
	// Passed lists the changes that would be in Changed if the user had not named what is done
	// again. That is done as the run began with it; with another input file it is refused.
	Passed  []view.Change
	Options Options // for Run
}

// View returns what is done again as programs see it; nodes are those of the new run, if there is one.
func (r Retry) View(nodes []view.PlannedNode) view.RetryPlanned {
	out := view.RetryPlanned{Event: "retry_planned", Workspace: r.Run.Workspace, Run: r.Run.Run,
		NewRun: len(r.Changed) > 0, Changed: r.Changed, Passed: r.Passed, Nodes: nodes}
	if !out.NewRun {
		out.Tasks = r.Closure.Tasks
	}
	return out
}

// PlanRetry finds out what a retry of a run does, and does none of it.
func PlanRetry(ctx context.Context, home *instance.Instance, key state.RunKey, opts RetryOptions) (out Retry,
	err error) {
	t := &runtime.Runtime{Instance: home, Process: opts.Process, Store: home.State}
	if out.Run, err = carried(ctx, home.Control(), key); err != nil {
		return out, err
	}
	if out.Run.Dropped != nil {
		return out, instance.RunDropped(out.Run)
	}
	if out.Run.Status == state.Running && home.AtWork(key) {
		return out, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d is being worked on", key.Run),
			Hint: "wait until it is over, or stop it: " + key.Do("stop").String()}
	}
	nodes, err := home.State.Nodes(ctx, key)
	if err != nil {
		return out, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	opts.Again.Inside = inspect.ComputedIn(ctx, home.State, nodes)
	if out.Closure, err = orders.Close(ctx, home.State, out.Run, opts.Again); err != nil {
		return out, err
	}
	rec, err := t.Recall(ctx, key)
	if err != nil {
		return out, err
	}
	if opts.Again.Empty() {
		if changed, err := findChanges(ctx, t, rec, nodes, &out); changed || err != nil {
			return out, err
		}
		if !out.Closure.Failed() && len(out.Closure.Redo) == 0 {
			return out, nothingFailed(out.Run, nodes)
		}
	} else {
		if err := goesOnWithInputs(ctx, home.State, rec, nodes, out.Closure); err != nil {
			return out, err
		}
		now := Retry{Run: out.Run}
		if _, err := findChanges(ctx, t, rec, nodes, &now); err == nil {
			// else it cannot be said: the script may be gone
			out.Passed = now.Changed
		}
	}
	out.Options = Options{Workspace: key.Workspace, Resume: true, Pinned: true, ResumeRun: key.Run, Again: opts.Again}
	return out, nil
}

// carried reads a run, whose order, if one was left half done, is carried out before.
func carried(ctx context.Context, store state.Store, key state.RunKey) (state.Run, error) {
	run, err := store.Run(ctx, key)
	if err == nil && run.Command.Pending() {
		if err = state.Carry(ctx, store, run, time.Now()); err == nil {
			run, err = store.Run(ctx, key)
		}
	}
	if err != nil {
		return run, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	return run, nil
}

func nothingFailed(run state.Run, nodes []state.Node) error {
	f := &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("nothing of run %d has failed, and what it was begun with has not changed", run.Run),
		Hint:    "{{set node=NODE}} or {{set batch=NODE:N}} does something again that was done"}
	switch {
	case state.Waits(nodes):
		f.Message += ": it waits for a decision"
		f.Hint = run.Beside("approvals").String() + " says about what, and how to decide; " + f.Hint
	case run.Status != state.Complete:
		f.Hint += "; " + run.Do("resume").String() + " lets the run go on"
	}
	return f
}

// findChanges looks whether a run would be begun with the same sources and input
// files now. If not, out is the run that begins instead.
func findChanges(ctx context.Context, t *runtime.Runtime, rec runtime.PinnedRun, nodes []state.Node,
	out *Retry) (bool, error) {
	now, src, err := t.Reload(ctx, rec)
	if err != nil {
		return false, err
	}
	if now == nil {
		now, src = rec.Script, &rec.Sources
	}
	// another message is no other node
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n state.Node) bool { return gate.Is(n.NodeSpec) })
	for _, n := range nodes {
		node := now.Node(n.Name)
		switch {
		case node == nil:
			out.Changed = append(out.Changed, view.Change{What: "node", Name: n.Name,
				How: "is not in the script any more"})
		case node.Fingerprint != n.Fingerprint && n.Fingerprint != "":
			out.Changed = append(out.Changed, view.Change{What: "node", Name: n.Name, How: "is another one now"})
		}
		input, err := changedInput(ctx, t.Store, rec.Dir, n, n.Status != state.Succeeded)
		if err != nil {
			return false, err
		}
		if input != nil {
			out.Changed = append(out.Changed, view.Change{What: "input", Name: n.Name, How: input.Error()})
		}
	}
	if len(out.Changed) == 0 && now.Fingerprint != rec.Run.Fingerprint {
		out.Changed = append(out.Changed, view.Change{What: "script", How: "has changed"})
	}
	if len(out.Changed) == 0 {
		return false, nil
	}
	opts := Options{Script: now, ScriptSources: src, ScriptPath: rec.Run.ScriptPath, ParamsPath: rec.Run.ParamsPath,
		Params: rec.Params, Offered: rec.Offered, Lenient: rec.Lenient, Literal: rec.Literal,
		Ephemeral: rec.Ephemeral, Reuse: true,
		Workspace: rec.Run.Workspace, From: rec.Run.Sources, Description: rec.Run.Description,
		Priority: rec.Run.Priority, Most: workerprocess.AskOf(rec.Run.Limit), Dir: rec.Dir, Policy: rec.Policy,
		Parent: rec.Run.Run}
	hooks, _, err := runtime.HooksOf(ctx, t.Store, rec.Run)
	if err != nil {
		return false, err
	}
	opts.Hooks = hooks[min(len(rec.Script.Notify), len(hooks)):] // those beside the script's
	if opts.Select = rec.Select; opts.Select.Empty() {
		if byThemselves, err := rec.Script.Affected(nil); err != nil || len(byThemselves) != len(nodes) {
			opts.Start = rec.Run.StartNodes
		}
	}
	out.Options = opts
	return true, nil
}

// PlanResume refuses what a run is not resumed with: input files that have changed since.
func PlanResume(ctx context.Context, home *instance.Instance, key state.RunKey, process runtime.Process) error {
	t := &runtime.Runtime{Instance: home, Process: process, Store: home.State}
	rec, err := t.Recall(ctx, key)
	if err != nil {
		return err
	}
	nodes, err := home.State.Nodes(ctx, key)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	return goesOnWithInputs(ctx, home.State, rec, nodes, orders.RedoPlan{})
}

// goesOnWithInputs returns the change of an input file for which a run does not go on: pipeline.CheckInputs refuses it.
func goesOnWithInputs(ctx context.Context, store state.Store, rec runtime.PinnedRun, nodes []state.Node,
	again orders.RedoPlan) error {
	for _, n := range nodes {
		wanted := n.Status != state.Succeeded || again.Redoes(n.Name)
		if input, err := changedInput(ctx, store, rec.Dir, n, wanted); input != nil || err != nil {
			return cmp.Or(err, error(input))
		}
	}
	return nil
}

// changedInput returns the change of an input file of a node; nil: none. A file that is gone
// concerns only those who still want to read it.
func changedInput(ctx context.Context, store state.Store, dir string, n state.Node, wanted bool) (*fault.Error, error) {
	read, err := pipeline.LocalInputs(ctx, store, dir, n.NodeKey)
	if err != nil {
		return nil, err
	}
	read = slices.DeleteFunc(read, func(s files.Slice) bool { return !wanted && s.Gone() })
	if err := files.Unchanged(read); err != nil {
		return fault.Of(err), nil
	}
	return nil, nil
}
