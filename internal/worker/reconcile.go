package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"thalweg/internal/queue"
	"thalweg/internal/state"
)

// reconcile looks at the whole run and does what is due: settles nodes whose
// batches are done, plans nodes whose inputs are complete, offers batches that
// can be taken, settles the run. It may be repeated at any time by anybody.
func (w *Worker) reconcile(ctx context.Context) (state.Status, error) {
	for {
		// Looked at each time: a plan that fails ends the run, and nodes of a
		// run that is over cannot be planned.
		run, err := w.cfg.Store.Run(ctx, w.run)
		if err != nil {
			return state.Running, fmt.Errorf("read run %d: %w", w.run.Run, err)
		}
		if run.Order.Pending() { // whoever gave it may have died over it
			if err := state.Carry(ctx, w.cfg.Store, run, w.cfg.Now()); err != nil {
				return state.Running, fmt.Errorf("%s run %d: %w", run.Order.Kind, w.run.Run, err)
			}
			continue
		}
		if run.Status != state.Running {
			return run.Status, nil
		}
		nodes, err := w.cfg.Store.Nodes(ctx, w.run)
		if err != nil {
			return state.Running, fmt.Errorf("read the nodes of run %d: %w", w.run.Run, err)
		}
		changed, err := w.advance(ctx, nodes)
		if err != nil {
			return state.Running, err
		}
		if !changed {
			return w.settle(ctx, run, nodes)
		}
	}
}

// advance moves each node that can move and reports whether any did.
func (w *Worker) advance(ctx context.Context, nodes []state.Node) (bool, error) {
	done := map[string]bool{}
	for _, n := range nodes {
		done[n.Name] = n.Status == state.Succeeded
	}
	changed := false
	for _, n := range nodes {
		var moved bool
		var err error
		switch {
		case n.Status == state.Pending && allDone(n.Inputs, done):
			moved, err = w.plan(ctx, n)
		case n.Status == state.Running && n.BatchesFailed > 0:
			moved, err = w.setNode(ctx, n, state.Failed, nil)
		case n.Status == state.Running && n.BatchesDone == n.BatchesTotal:
			moved, err = w.setNode(ctx, n, state.Succeeded, nil)
		case n.Status == state.Running:
			err = w.offer(ctx, n)
		}
		if err != nil {
			return false, err
		}
		changed = changed || moved
	}
	return changed, nil
}

func allDone(inputs []string, done map[string]bool) bool {
	for _, in := range inputs {
		if !done[in] {
			return false
		}
	}
	return true
}

// plan plans a node. A plan that fails is the run's failure: nothing that a
// batch could be blamed for exists yet.
func (w *Worker) plan(ctx context.Context, n state.Node) (bool, error) {
	plan, err := w.cfg.Job.Plan(ctx, n)
	if ctx.Err() != nil {
		return false, nil
	}
	var later *NotReadyError
	if errors.As(err, &later) {
		if !w.late[n.Name] {
			w.late[n.Name] = true
			context.AfterFunc(later.Until, w.poke)
		}
		return false, nil
	}
	delete(w.late, n.Name)
	if err != nil {
		failure := FailureOf(err, state.BatchKey{NodeKey: n.NodeKey, Batch: -1})
		if _, err := w.setNode(ctx, n, state.Failed, &failure); err != nil {
			return false, err
		}
		return false, w.failRun(ctx, failure)
	}
	standing, err := state.PlanNode(ctx, w.cfg.Store, n.NodeKey, n.Epoch, plan, w.cfg.Owner, w.cfg.Now())
	if errors.Is(err, state.ErrConflict) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("store the plan of %s: %w", n.Name, err)
	}
	if !standing.Mine { // another planner came first, with another plan: that one is worked on
		return true, nil
	}
	w.cfg.Checkpoint(Planned)
	w.observe(Event{Time: w.cfg.Now(), Kind: NodePlanned, Node: n.Name, Batches: len(plan.Batches)})
	return true, nil
}

func (w *Worker) setNode(ctx context.Context, n state.Node, to state.Status, failure *state.Failure) (bool, error) {
	err := w.cfg.Store.MoveNode(ctx, n.NodeKey, state.Move{Epoch: n.Epoch, From: n.Status, To: to, Failure: failure, Actor: w.cfg.Owner, Now: w.cfg.Now()})
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return false, fmt.Errorf("settle node %s: %w", n.Name, err)
	}
	if err == nil && to == state.Succeeded {
		w.observe(Event{Time: w.cfg.Now(), Kind: NodeFinished, Node: n.Name, Batches: n.BatchesTotal,
			Stats: state.Stats{RowsIn: n.RowsIn, RowsOut: n.RowsOut, BytesIn: n.BytesIn, BytesOut: n.BytesOut}})
	}
	return true, nil
}

// offer publishes hints for some of a node's batches that can be taken: enough
// to keep the slots busy until one of them ends and looks again.
func (w *Worker) offer(ctx context.Context, n state.Node) error {
	offers, _, err := w.cfg.Store.Offers(ctx, n.NodeKey, w.cfg.Now(), state.Page{Limit: offersPerSlot * w.cfg.Slots})
	if err != nil {
		return fmt.Errorf("look for work in %s: %w", n.Name, err)
	}
	if len(offers) == 0 {
		return nil
	}
	hints := make([]queue.Hint, len(offers))
	for i, o := range offers {
		hints[i].Offer = o
	}
	if err := w.cfg.Queue.Publish(ctx, hints...); err != nil && ctx.Err() == nil {
		return fmt.Errorf("offer the batches of %s: %w", n.Name, err)
	}
	return nil
}

// settle ends the run when all nodes have succeeded or one has failed.
func (w *Worker) settle(ctx context.Context, run state.Run, nodes []state.Node) (state.Status, error) {
	done := 0
	for _, n := range nodes {
		switch n.Status {
		case state.Failed:
			failure, err := w.firstFailure(ctx, n)
			if err != nil {
				return state.Running, err
			}
			if err := w.failRun(ctx, failure); err != nil {
				return state.Running, err
			}
			return w.status(ctx)
		case state.Succeeded:
			done++
		}
	}
	if done < len(nodes) {
		return w.status(ctx)
	}
	err := w.cfg.Store.CompleteRun(ctx, w.run, run.Epoch, w.cfg.Owner, w.cfg.Now())
	if errors.Is(err, state.ErrConflict) { // an order came in between
		return w.status(ctx)
	}
	if err != nil {
		return state.Running, fmt.Errorf("complete run %d: %w", w.run.Run, err)
	}
	return state.Complete, nil
}

func (w *Worker) status(ctx context.Context) (state.Status, error) {
	run, err := w.cfg.Store.Run(ctx, w.run)
	if err != nil {
		return state.Running, fmt.Errorf("read run %d: %w", w.run.Run, err)
	}
	return run.Status, nil
}

// order is one that this worker gives.
func (w *Worker) order(kind state.OrderKind) state.Order {
	return state.Order{Kind: kind, Token: rand.Text(), Mark: state.Mark{Actor: w.cfg.Owner, Time: w.cfg.Now()}}
}

func (w *Worker) failRun(ctx context.Context, failure state.Failure) error {
	order := w.order(state.OrderFail)
	order.Cause = &failure
	err := state.Direct(ctx, w.cfg.Store, w.run, order)
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("record that run %d failed: %w", w.run.Run, err)
	}
	return nil
}

// firstFailure is the failure of the node's first failed batch.
func (w *Worker) firstFailure(ctx context.Context, n state.Node) (state.Failure, error) {
	if n.Failure != nil {
		return *n.Failure, nil
	}
	batches, err := state.All(ctx, w.cfg.Store.Batches, n.NodeKey)
	if err != nil {
		return state.Failure{}, fmt.Errorf("read the batches of %s: %w", n.Name, err)
	}
	for _, b := range batches {
		if b.Failure != nil {
			return *b.Failure, nil
		}
	}
	return state.Failure{Kind: "bug", Message: "node " + n.Name + " failed without a failed batch", Node: n.Name}, nil
}
