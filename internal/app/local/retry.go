package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/orders"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// RetryOptions say what of a run is to be done again, and how its sources are read.
type RetryOptions struct {
	Process
	Again orders.RedoSelection // nothing: what failed, and what follows from an edit
}

// Retry is what a retry of a run does.
type Retry struct {
	Run     state.Run
	Closure orders.RedoPlan // of the run itself
	// Changed is why the run cannot go on as it is: then a new one begins.
	Changed []Change
	// Passed is what would have been Changed, had the user not named what is done again:
	// that is done as the run began with it.
	Passed  []Change
	Options Options // for Run
}

// Change is something that a run was begun with and that is another now.
type Change struct {
	What string `json:"what"` // "node", "input", "script"
	Name string `json:"name,omitempty"`
	How  string `json:"how"`
}

// PlanRetry finds out what a retry of a run does, and does none of it.
func PlanRetry(ctx context.Context, home *Instance, key state.RunKey, opts RetryOptions) (out Retry, err error) {
	t := &tools{home: home, opts: opts.Process, store: home.State}
	if out.Run, err = carried(ctx, home.control(), key); err != nil {
		return out, err
	}
	if out.Run.Dropped != nil {
		return out, wasDropped(out.Run)
	}
	if out.Run.Status == state.Running && home.AtWork(key) {
		return out, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d is being worked on", key.Run),
			Hint: "wait until it is over, or stop it: `" + key.Command(fmt.Sprintf("stop %d", key.Run)) + "`"}
	}
	nodes, err := home.State.Nodes(ctx, key)
	if err != nil {
		return out, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	opts.Again.Inside = ComputedIn(ctx, home.State, nodes)
	if out.Closure, err = orders.Close(ctx, home.State, out.Run, opts.Again); err != nil {
		return out, err
	}
	rec, err := t.recall(ctx, key)
	if err != nil {
		return out, err
	}
	if opts.Again.Empty() {
		if changed, err := t.changed(ctx, rec, nodes, &out); changed || err != nil {
			return out, err
		}
		if !out.Closure.Failed() && len(out.Closure.Redo) == 0 {
			return out, nothingFailed(out.Run, nodes)
		}
	} else {
		now := Retry{Run: out.Run}
		if _, err := t.changed(ctx, rec, nodes, &now); err == nil { // else it cannot be said: the script may be gone
			out.Passed = now.Changed
		}
	}
	out.Options = Options{Workspace: key.Workspace, Resume: true, Pinned: true, ResumeRun: key.Run, Again: opts.Again}
	return out, nil
}

// carried reads a run, whose order, if one was left half done, is carried out before.
func carried(ctx context.Context, store state.Store, key state.RunKey) (state.Run, error) {
	run, err := store.Run(ctx, key)
	if err == nil && run.Order.Pending() {
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
		Hint:    "--node NODE or --batch NODE:N does something again that was done"}
	switch {
	case state.Waits(nodes):
		f.Message += ": it waits for a decision"
		f.Hint = "`" + run.Command("approvals") + "` says about what, and how to decide; " + f.Hint
	case run.Status != state.Complete:
		f.Hint += "; `" + run.Command(fmt.Sprintf("resume %d", run.Run)) + "` lets the run go on"
	}
	return f
}

// changed looks whether a run would be begun with the same sources and input
// files now. If not, out is the run that begins instead.
func (t *tools) changed(ctx context.Context, rec recorded, nodes []state.Node, out *Retry) (bool, error) {
	now, src, err := t.reload(ctx, rec)
	if err != nil {
		return false, err
	}
	if now == nil {
		now, src = rec.script, &rec.sources
	}
	// another message is no other node
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n state.Node) bool { return gate.Is(n.NodeSpec) })
	for _, n := range nodes {
		node := now.Node(n.Name)
		switch {
		case node == nil:
			out.Changed = append(out.Changed, Change{What: "node", Name: n.Name, How: "is not in the script any more"})
		case node.Fingerprint != n.Fingerprint && n.Fingerprint != "":
			out.Changed = append(out.Changed, Change{What: "node", Name: n.Name, How: "is another one now"})
		}
		input, err := changedInput(ctx, t.store, rec.Dir, n)
		if err != nil {
			return false, err
		}
		if input != nil {
			out.Changed = append(out.Changed, Change{What: "input", Name: n.Name, How: input.Error()})
		}
	}
	if len(out.Changed) == 0 && now.Fingerprint != rec.run.Fingerprint {
		out.Changed = append(out.Changed, Change{What: "script", How: "has changed"})
	}
	if len(out.Changed) == 0 {
		return false, nil
	}
	opts := Options{Script: now, ScriptSources: src, ScriptPath: rec.run.ScriptPath, ParamsPath: rec.run.ParamsPath,
		Params: rec.params, Offered: rec.Offered, Lenient: rec.Lenient, Ephemeral: rec.Ephemeral, Reuse: true,
		Workspace: rec.run.Workspace, From: rec.run.Sources, Description: rec.run.Description, Priority: rec.run.Priority,
		Dir: rec.Dir, Parent: rec.run.Run}
	hooks, _, err := hooksOf(ctx, t.store, rec.run)
	if err != nil {
		return false, err
	}
	opts.Hooks = hooks[min(len(rec.script.Notify), len(hooks)):] // those beside the script's
	if opts.Select = rec.Select; opts.Select.Empty() {
		if byThemselves, err := rec.script.Affected(nil); err != nil || len(byThemselves) != len(nodes) {
			opts.Start = rec.run.StartNodes
		}
	}
	out.Options = opts
	return true, nil
}

// reload loads the script from where the run was begun with it; nil if it is
// not there any more.
func (t *tools) reload(ctx context.Context, rec recorded) (*script.Script, *script.Sources, error) {
	at := seenFrom(rec.Dir, rec.run.ScriptPath)
	if !address.Remote(at) {
		if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
	}
	src := Sources(t.opts.Remote, rec.Dir, rec.run.ScriptPath, rec.run.ParamsPath)
	src.Known, src.Params, src.Offered, src.Lenient = t.opts.Known, rec.params, rec.Offered, rec.Lenient
	read := src.Read
	src.Read = remembered(func(ctx context.Context, url string) ([]byte,
		error) {
		return read(ctx, seenFrom(rec.Dir, url))
	})
	s, diags := script.Load(ctx, src)
	if diags.HasErrors() {
		return nil, nil, &InvalidScriptError{Diagnostics: diags}
	}
	return s, &src, nil
}

// seenFrom is the path or address of a file whose relative name is seen from dir.
func seenFrom(dir, name string) string {
	if name == "" || address.Remote(name) {
		return name
	}
	plain, err := address.Local(name)
	if err != nil || filepath.IsAbs(plain) {
		return name
	}
	return filepath.Join(dir, plain)
}

// changedInput is what has become of an input file of a node; nil: nothing.
// One that is gone concerns only those who still want to read it.
func changedInput(ctx context.Context, store state.Store, dir string, n state.Node) (*fault.Error, error) {
	read, err := pipeline.LocalInputs(ctx, store, dir, n.NodeKey)
	if err != nil {
		return nil, err
	}
	read = slices.DeleteFunc(read, func(s files.Slice) bool { return n.Status == state.Succeeded && s.Gone() })
	if err := files.Unchanged(read); err != nil {
		return fault.Of(err), nil
	}
	return nil, nil
}
