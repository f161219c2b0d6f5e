package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/reuse"
	"thalweg/internal/store/state"
)

// A node that has the identity of one that an earlier run has completed is not
// computed: its plan says whose rows it has, and has no batches. That is always
// the node that computed them, so that readers go one step (holder). What was
// found before the plan was made true may be gone by then: Settle looks again.

// identify says what a node's rows follow from. That its input files cannot be
// looked at is not said here: planning it does.
func (p *Pipeline) identify(ctx context.Context, n *script.Node, in plan.Inputs) (reuse.Identity, error) {
	id, err := reuse.Of(ctx, n, in, reuse.World{Dir: p.cfg.Dir, Budget: p.cfg.Planning, Python: p.cfg.Surroundings})
	switch {
	case ctx.Err() != nil:
		return id, ctx.Err()
	case err != nil:
		id.Why = "its input files cannot be looked at: " + err.Error()
	}
	return id, nil
}

// mayTakeOver reports whether a node may have rows of another run. One that
// somebody has named, or ordered to be done again, is computed.
func (p *Pipeline) mayTakeOver(node state.Node) bool {
	return p.cfg.Reuse && node.Generation == 0 && !slices.Contains(p.cfg.Chosen, node.Name)
}

// takeOver gives the plan of a node that has the rows of another run's; false
// if there is none whose rows are all there.
func (p *Pipeline) takeOver(ctx context.Context, n *script.Node, node state.Node, in plan.Inputs,
	id reuse.Identity) (state.Plan, bool, error) {
	if id.Why != "" || !p.mayTakeOver(node) {
		return state.Plan{}, false, nil
	}
	origin, err := p.findSame(ctx, id.Digest(), func(ctx context.Context, found state.Node) (bool, error) {
		if found.NodeKey == node.NodeKey {
			return false, nil
		}
		return p.whole(ctx, found)
	})
	if err != nil || origin == nil {
		return state.Plan{}, false, err
	}
	np, err := plan.DecodeNodePlan(origin.Plan)
	if err != nil {
		return state.Plan{}, false, err
	}
	np.Sources, np.Follows = plan.SourcesOf(n, in), id.Encode()
	inputs, err := state.All(ctx, p.cfg.Store.Inputs, origin.NodeKey)
	if err != nil {
		return state.Plan{}, false, fmt.Errorf("read the input files of %s in run %d: %w", origin.Name, origin.Run, err)
	}
	read, err := localSlices(p.cfg.Dir, inputs)
	if err != nil {
		return state.Plan{}, false, err
	}
	if len(read) > 0 {
		if err := p.recallInputs(ctx); err != nil {
			return state.Plan{}, false, err
		}
	}
	if err := p.noteInputs(n.Name, read); err != nil {
		return state.Plan{}, false, err
	}
	err = orders.NoteReads(ctx, p.cfg.Store, node.NodeKey, []state.NodeKey{origin.NodeKey}, time.Now())
	if errors.Is(err, orders.ErrDropping) {
		return state.Plan{}, false, nil
	}
	if err != nil {
		return state.Plan{}, false, err
	}
	data, err := np.Encode()
	if err != nil {
		return state.Plan{}, false, fmt.Errorf("encode the plan of %s: %w", n.Name, err)
	}
	p.cfg.Logger.Debug("taken over", "node", n.Name, "from_run", origin.Run, "from_node", origin.Name)
	return state.Plan{Record: data, Inputs: inputs, InputDigest: id.Digest(), ReusedFrom: &origin.NodeKey}, true, nil
}

// whole reports whether all that a node has written is there: its parts, by
// their sizes, and its files, by their contents.
func (p *Pipeline) whole(ctx context.Context, n state.Node) (bool, error) {
	all, err := state.All(ctx, p.cfg.Store.Parts, n.NodeKey)
	if err != nil {
		return false, fmt.Errorf("read the manifest of %s in run %d: %w", n.Name, n.Run, err)
	}
	there := map[string]int64{}
	listed := map[string]bool{}
	for _, part := range all {
		dir := path.Dir(part.Key) + "/"
		if listed[dir] {
			continue
		}
		listed[dir] = true
		for info, err := range p.cfg.Parts.List(ctx, dir, "") {
			if err != nil {
				return false, fmt.Errorf("look for the parts of %s in run %d: %w", n.Name, n.Run, err)
			}
			there[info.Key] = info.Bytes
		}
	}
	for _, part := range all {
		if bytes, ok := there[part.Key]; !ok || bytes != part.Bytes {
			return false, nil
		}
	}
	files, err := state.All(ctx, p.cfg.Store.Files, n.NodeKey)
	if err != nil {
		return false, fmt.Errorf("read the files of %s in run %d: %w", n.Name, n.Run, err)
	}
	for _, f := range files {
		if same, err := SameFile(ctx, f); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// SameFile reports whether an output file of this machine is as it was written.
func SameFile(ctx context.Context, f state.File) (bool, error) {
	if address.Remote(f.URL) {
		return false, nil
	}
	sum, bytes, err := sumFile(ctx, f.URL)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return err == nil && bytes == f.Bytes && sum == f.Checksum, nil
}

// Settle implements job.Job: before a node counts as done it is seen to that
// what it has read or taken over is still there to be read, and what it has
// computed can be found by others.
func (p *Pipeline) Settle(ctx context.Context, node state.Node) error {
	if gate.Is(node.NodeSpec) {
		return nil // what people decide is not taken over
	}
	node, err := p.own(ctx, node.Name) // with its plan
	if err == nil {
		err = p.planAgain(ctx, p.settle(ctx, node))
	}
	var often *orders.TooOftenError
	if errors.As(err, &often) {
		err = &job.UnsettledError{Err: err}
	}
	return err
}

func (p *Pipeline) settle(ctx context.Context, node state.Node) error {
	err := p.oneState(ctx, node)
	if changed := (*fault.Error)(nil); errors.As(err, &changed) {
		return &job.UnsettledError{Err: err}
	}
	if err != nil {
		return err
	}
	if node.ReusedFrom == nil {
		if err := p.rowsStand(ctx, node); err != nil {
			return err
		}
		return p.noteSame(ctx, node)
	}
	_, err = holder(ctx, p.cfg.Store, node)
	if errors.Is(err, ErrTableGone) {
		err = &lostTable{plans: node, err: err}
	}
	return err
}

// ErrTableGone is in failures to read a table that was taken over from another
// run, and is not to be had there any more.
var ErrTableGone = errors.New("its rows cannot be read any more")

// holder is the node that has computed a node's rows: itself, or the one from
// which they were taken over.
func holder(ctx context.Context, store state.Store, node state.Node) (state.Node, error) {
	if node.ReusedFrom == nil {
		return node, nil
	}
	origin, err := store.Node(ctx, *node.ReusedFrom)
	gone := &fault.Error{Kind: fault.Environment, Err: ErrTableGone, Hint: "run it again: a new run computes the node"}
	taken := fmt.Sprintf("what node %s of run %d wrote was taken over from node %s of run %d", node.Name, node.Run,
		node.ReusedFrom.Node, node.ReusedFrom.Run)
	switch {
	case errors.Is(err, state.ErrNotFound):
		gone.Message = taken + ", which is not there any more"
	case err != nil:
		return origin, fmt.Errorf("read node %s of run %d: %w", node.ReusedFrom.Node, node.ReusedFrom.Run, err)
	case origin.Status == state.Invalidated:
		gone.Message = taken + ": " + fault.Of(Voided(ctx, store, origin)).Message
	case origin.Status != state.Succeeded:
		gone.Message = fmt.Sprintf("%s, which is %s now", taken, origin.Status)
	case origin.ReusedFrom != nil || origin.InputDigest != node.InputDigest:
		gone.Message = taken + ", which has been done again since, from other inputs"
	default:
		return origin, nil
	}
	return origin, gone
}
