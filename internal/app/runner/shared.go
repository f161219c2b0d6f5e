package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"thalweg/internal/app/outputs"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// SharedOutput is an output of a run that another run, which is under way, writes, too.
type SharedOutput struct {
	Run    int64  // the other one
	Node   string // of this run
	Output string // without secrets
	By     string // the node of the other one
	key    state.RunKey
}

// refuse is the refusal to begin beside the other run.
func (o SharedOutput) refuse() error {
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d is under way and writes %s, too, in node %s",
		o.Run, o.Output, o.By),
		Hint: "wait until it is over, or stop it: " + o.key.Do("stop").String()}
}

// alone looks for other runs that write what this one writes. Where the options say so, it refuses the first;
// else whoever called is told of all, once. It is called before the run begins, so that a refusal
// leaves none behind, and when others can see it: of two that begin together, one at least sees the other.
func (r *runner) alone(ctx context.Context, nodes []*script.Node) error {
	shared, err := r.shared(ctx, nodes)
	if err != nil {
		return err
	}
	for _, o := range shared {
		switch {
		case r.opts.Exclusive:
			return o.refuse()
		case r.told[o]:
		case r.opts.Shared != nil:
			r.opts.Shared(state.RunKey{Workspace: r.opts.Workspace, Run: r.key.Run}, o)
		default:
			r.opts.Logger.Warn("another run that is under way writes the same output", "run", r.key.Run, "node", o.Node,
				"output", o.Output, "other_run", o.Run)
		}
		if r.told == nil {
			r.told = map[SharedOutput]bool{}
		}
		r.told[o] = true
	}
	return nil
}

// sharedRunsMax is the most runs that are looked at: the latest of those that are not over.
const sharedRunsMax = 100

// shared lists what other runs of the workspace, which are under way, write, too.
func (r *runner) shared(ctx context.Context, nodes []*script.Node) ([]SharedOutput, error) {
	nodes, err := r.toWrite(ctx, nodes)
	if err != nil {
		return nil, err
	}
	own, err := writtenBy(r.dir, nodes)
	if err != nil || len(own) == 0 {
		return nil, err
	}
	open, err := state.AllNotes(ctx, r.Store, r.opts.Workspace, state.TopicOpen)
	if err != nil {
		return nil, err
	}
	var out []SharedOutput
	for _, note := range open[max(len(open)-sharedRunsMax, 0):] {
		key := state.RunKey{Workspace: r.opts.Workspace, Run: note.Run}
		if key == r.key || key.Run == r.opts.Parent || r.Instance.ClusterConfig == nil && !r.Instance.AtWork(key) {
			continue
		}
		theirs, err := r.writes(ctx, key)
		if err != nil {
			return nil, err
		}
		for _, mine := range own {
			for _, their := range theirs {
				if mine.Meets(their) && !outputs.BothAdd(mine.Node, their.Node) {
					out = append(out, SharedOutput{Run: key.Run, Node: mine.Node.Name, Output: mine.Shown,
						By: their.Node.Name, key: key})
				}
			}
		}
	}
	return out, nil
}

// toWrite leaves out what a run that goes on has done.
func (r *runner) toWrite(ctx context.Context, nodes []*script.Node) ([]*script.Node, error) {
	if !r.opts.Resume || !r.opts.Again.Empty() {
		return nodes, nil
	}
	stored, err := r.Store.Nodes(ctx, r.key)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", r.key.Run, err)
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *script.Node) bool {
		return slices.ContainsFunc(stored,
			func(s state.Node) bool { return s.Name == n.Name && s.Status == state.Succeeded })
	}), nil
}

// writes lists what a run that is under way has still to write; nothing if what it was made from is not known.
func (r *runner) writes(ctx context.Context, key state.RunKey) ([]outputs.Target, error) {
	run, err := r.Store.Run(ctx, key)
	switch {
	case errors.Is(err, state.ErrNotFound): // its note comes before it: it looks for others when it is there
		return nil, nil
	case err != nil || run.Status != state.Running:
		return nil, err
	}
	rec, err := r.RecallFrom(ctx, key, true)
	if err != nil {
		return nil, ctx.Err() //nolint:nilerr // it is no reason not to begin another run
	}
	nodes, err := r.Store.Nodes(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	var left []*script.Node
	for _, n := range nodes {
		if node := rec.Script.Node(n.Name); node != nil && !n.Status.Terminal() {
			left = append(left, node)
		}
	}
	return writtenBy(rec.Dir, left)
}

// writtenBy lists the outputs of nodes whose names are the same for all runs, seen from a directory.
func writtenBy(dir string, nodes []*script.Node) (out []outputs.Target, err error) {
	for _, n := range nodes {
		if n.Out == nil || script.ExpandURL(n.Out.URL, 1, 0) != script.ExpandURL(n.Out.URL, 2, 0) {
			continue
		}
		written, err := outputs.WrittenTargets(dir, n)
		if err != nil {
			return nil, err
		}
		out = append(out, written...)
	}
	return out, nil
}
