package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// A table of another run may be done again, invalidated or dropped at any time:
// orders of that run do not reach those who read it. So a plan says which of a
// node's results it was made from (plan.Source), each batch looks before and
// after its work whether those stand, and the node once more when all batches
// have committed. If they do not, the node is planned again, with all that comes
// behind it: from what stands then, or not at all.

// lostTable is the failure to read rows that a node's plan counts on: they are
// not to be read any more, or are others than it was made from.
type lostTable struct {
	plans state.Node // of this run, as it was when it was planned
	err   error      // why
}

func (l *lostTable) Error() string { return l.err.Error() }

func (l *lostTable) Unwrap() error { return l.err }

// errPlannedAgain says that what was going on with a node is worth nothing.
var errPlannedAgain = fmt.Errorf("the node is planned again: %w", state.ErrConflict)

// planAgain orders what an error asks for that says that rows are lost, and
// answers errPlannedAgain then.
func (p *Pipeline) planAgain(ctx context.Context, err error) error {
	var lost *lostTable
	if !errors.As(err, &lost) || ctx.Err() != nil {
		return err
	}
	p.cfg.Logger.Info("a node is planned again", "node", lost.plans.Name, "why", lost)
	mark := state.Mark{Actor: job.Owner(), Time: time.Now(), Reason: fault.Of(lost.err).Message}
	if err := orders.PlanAgain(ctx, p.cfg.Store, lost.plans, mark); err != nil {
		return err
	}
	return errPlannedAgain
}

// asPlanned refuses tables that are not those that a node's plan was made from.
func asPlanned(node state.Node, np plan.NodePlan, n *script.Node, in plan.Inputs) error {
	for _, t := range in.Tables(n) {
		if from, ok := np.Sources[t.Node.Table.Name]; ok && cmp.Or(from.Identity, t.Identity) != t.Identity {
			return &lostTable{plans: node, err: doneAgain(t.Source())}
		}
	}
	return nil
}

// stillThere refuses what was read of other runs while somebody ruled otherwise:
// once that is done, nothing more of it counts.
func (x *attempt) stillThere(ctx context.Context) error {
	return x.p.stillThere(ctx, x.node, x.in, x.state)
}

func (p *Pipeline) stillThere(ctx context.Context, n *script.Node, in plan.Inputs, node state.Node) error {
	for _, t := range in.Tables(n) {
		var err error
		switch {
		case t.Inner != nil:
			var inner state.Node
			if inner, err = p.own(ctx, t.Writer); err == nil {
				err = p.stillThere(ctx, t.Node, *t.Inner, inner)
			}
		case t.Run != p.cfg.Run:
			err = p.stands(ctx, t.Source(), node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rowsStand is stillThere by the plan of a node whose batches are done.
func (p *Pipeline) rowsStand(ctx context.Context, node state.Node) error {
	np, err := plan.DecodeNodePlan(node.Plan)
	if err != nil {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(np.Sources)) {
		from := np.Sources[table]
		switch source := p.cfg.Script.Node(from.Node); {
		case from.Identity == "": // a plan of an earlier version
		case from.RunKey != p.cfg.Run:
			err = p.stands(ctx, from, node)
		case source != nil && source.Table != nil && p.planner.Ephemeral(source):
			var inner state.Node
			if inner, err = p.own(ctx, from.Node); err == nil {
				err = p.rowsStand(ctx, inner)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stands reports an error unless what a node was planned to read of another run
// can be read still, and is what it was.
func (p *Pipeline) stands(ctx context.Context, from plan.Source, reader state.Node) error {
	now, err := p.complete(ctx, from.NodeKey, reader)
	if err == nil && cmp.Or(from.Identity, identityOf(now)) != identityOf(now) {
		err = &lostTable{plans: reader, err: doneAgain(from)}
	}
	return err
}

func (p *Pipeline) own(ctx context.Context, name string) (state.Node, error) {
	node, err := p.cfg.Store.Node(ctx, state.NodeKey{RunKey: p.cfg.Run, Node: name})
	if err != nil {
		return node, fmt.Errorf("read node %s: %w", name, err)
	}
	return node, nil
}

func doneAgain(from plan.Source) error {
	f := fault.New(fault.Environment, "node %s of run %d, whose table it reads, has been done again",
		from.Node, from.Run)
	f.Hint = "the rows that it was planned to read are gone: a new run reads those that are there now"
	return f
}
