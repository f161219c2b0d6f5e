package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// advance moves each node that can move, and then the run, and reports whether
// anything did.
func (c *Coordinator) advance(ctx context.Context, run state.Run, nodes []state.Node) (bool, error) {
	done := map[string]bool{}
	for _, n := range nodes {
		done[n.Name] = n.Status == state.Succeeded
	}
	changed, succeeded := false, 0
	for _, n := range nodes {
		var moved bool
		var err error
		switch {
		case n.Status == state.Failed:
			return true, c.fail(ctx, run, n)
		case n.Status == state.Succeeded:
			succeeded++
		case n.Status == state.Pending && n.Ready(done):
			moved, err = c.plan(ctx, n)
		case n.Status == state.Waiting:
			moved, err = gate.Expire(ctx, c.cfg.Store, n, c.cfg.Owner, c.cfg.Now())
		case n.Status == state.Running && n.BatchesFailed > 0:
			moved, err = true, c.move(ctx, n, state.Failed, nil)
		case n.Status == state.Running && n.BatchesDone == n.BatchesTotal:
			moved, err = true, c.settle(ctx, n)
		}
		if err != nil {
			return false, err
		}
		changed = changed || moved
	}
	if succeeded < len(nodes) {
		return changed, nil
	}
	err := state.Finish(ctx, c.cfg.Store, c.run, run.Epoch, c.cfg.Owner, c.cfg.Now())
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return false, fmt.Errorf("complete run %d: %w", c.run.Run, err)
	}
	return true, nil // the run is read again, whoever has completed it
}

// plan plans a node, and reports whether anything has changed. If planning fails,
// the node fails itself, because it has no batches yet.
func (c *Coordinator) plan(ctx context.Context, n state.Node) (bool, error) {
	p := c.plans[n.Name]
	if c.cfg.Now().Before(p.until) || p.waits != nil && p.waits.Err() == nil {
		return false, nil
	}
	plan, err := c.ask(ctx, n)
	var later *job.NotReadyError
	var ask *job.AskError
	switch {
	case ctx.Err() != nil:
		return false, nil
	case errors.Is(err, state.ErrConflict):
		return true, nil // an order was given: read again
	case errors.As(err, &ask):
		return true, c.wait(ctx, n, ask.Record)
	case errors.As(err, &later):
		c.plans[n.Name] = planning{tries: p.tries, waits: later.Until}
		context.AfterFunc(later.Until, c.Poke)
		return false, nil
	case err != nil:
		return c.planFailed(ctx, n, p.tries+1, err)
	}
	delete(c.plans, n.Name)
	standing, err := state.PlanNode(ctx, c.cfg.Store, n.NodeKey, n.Epoch, plan, c.cfg.Owner, c.cfg.Now())
	switch {
	case errors.Is(err, state.ErrConflict):
		return true, nil // somebody else came first, or an order: read again
	case err != nil:
		return false, fmt.Errorf("store the plan of %s: %w", n.Name, err)
	case !standing.Mine:
		c.cfg.Logger.Warn("another plan of the node stands", "node", n.Name)
	}
	c.cfg.Checkpoint(job.Planned)
	return true, nil
}

// ask lets the job plan a node. That may take long: meanwhile ask renews the role,
// and ends the coordinator's context if the run ends.
func (c *Coordinator) ask(ctx context.Context, n state.Node) (plan state.Plan, err error) {
	beside, stop := context.WithCancel(ctx)
	defer c.cfg.Clock.Every(c.cfg.Lease/renewalsPerLease, func() bool { c.keep(beside); return beside.Err() == nil })()
	defer c.cfg.Clock.Every(c.cfg.Follow, func() bool { c.overtaken(beside); return beside.Err() == nil })()
	defer stop()
	err = fault.Guard("planning node "+n.Name, func() (err error) {
		plan, err = c.Plan(ctx, n)
		return err
	})
	return plan, err
}

// keep renews the role. Losing it does no harm: a plan is stored only if the node
// has none yet.
func (c *Coordinator) keep(ctx context.Context) {
	now := c.cfg.Now()
	if _, err := c.cfg.Store.Acquire(ctx, c.run, Role, c.cfg.Owner, now, now.Add(c.cfg.Lease)); err != nil &&
		ctx.Err() == nil {
		c.cfg.Logger.Debug("the lead of a run could not be renewed", "run", c.run.Run, "error", err)
	}
}

// overtaken ends the coordinator's context if somebody has ended the run meanwhile.
// Nobody needs the plan or the attempts any more.
func (c *Coordinator) overtaken(ctx context.Context) {
	run, err := c.cfg.Store.Run(ctx, c.run)
	if err == nil && run.Command.Pending() {
		if err = state.Carry(ctx, c.cfg.Store, run, c.cfg.Now()); err == nil {
			run, err = c.cfg.Store.Run(ctx, c.run)
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			c.cfg.Logger.Debug("the run could not be looked at while a node is planned", "run", c.run.Run, "error", err)
		}
		return
	}
	if run.Status.Terminal() {
		c.mu.Lock()
		c.over = run.Status
		c.mu.Unlock()
		c.cancel(errOver)
	}
}

// seenOver returns the final status that overtaken has found; "": none.
func (c *Coordinator) seenOver() state.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

func (c *Coordinator) planFailed(ctx context.Context, n state.Node, tries int, err error) (bool, error) {
	failure := job.FailureOf(err, state.BatchKey{NodeKey: n.NodeKey, Batch: -1})
	if failure.Retryable && failure.Kind == fault.Environment && tries < planTries {
		pause := planPause << (tries - 1)
		c.plans[n.Name] = planning{tries: tries, until: c.cfg.Now().Add(pause)}
		time.AfterFunc(pause, c.Poke)
		c.cfg.Logger.Warn("a node could not be planned; it is tried again", "node", n.Name, "error", err)
		return false, nil
	}
	return true, c.move(ctx, n, state.Failed, &failure)
}

// settle moves a node whose batches are done to Succeeded, if the job agrees. Rows of
// other runs that it read may be gone: then it is planned again, or fails.
func (c *Coordinator) settle(ctx context.Context, n state.Node) error {
	err := c.Settle(ctx, n)
	var failed *job.UnsettledError
	switch {
	case errors.Is(err, state.ErrConflict):
		return nil // read again
	case errors.As(err, &failed):
		failure := job.FailureOf(failed.Err, state.BatchKey{NodeKey: n.NodeKey, Batch: -1})
		return c.move(ctx, n, state.Failed, &failure)
	case err != nil:
		return fmt.Errorf("settle node %s: %w", n.Name, err)
	}
	c.cfg.Checkpoint(job.Settling)
	return c.move(ctx, n, state.Succeeded, nil)
}

// order gives the run an order that was decided on the run as read. It does
// nothing if the run has had another order since.
func (c *Coordinator) order(ctx context.Context, read state.Run, o state.Command) error {
	o.Actor, o.Time = c.cfg.Owner, c.cfg.Now()
	err := state.Decide(ctx, c.cfg.Store, c.run, rand.Text(), o.Time, func(run state.Run) (state.Command, error) {
		if run.Epoch != read.Epoch {
			return o, state.ErrConflict
		}
		return o, nil
	})
	if errors.Is(err, state.ErrConflict) {
		return nil // it is read again
	}
	return err
}

func (c *Coordinator) move(ctx context.Context, n state.Node, to state.Status, failure *state.Failure) error {
	err := c.cfg.Store.MoveNode(ctx, n.NodeKey, state.Move{Epoch: n.Epoch, From: n.Status, To: to, Failure: failure,
		Actor: c.cfg.Owner, Now: c.cfg.Now()})
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("settle node %s: %w", n.Name, err)
	}
	return nil
}

// fail ends the run because a node has failed.
func (c *Coordinator) fail(ctx context.Context, run state.Run, n state.Node) error {
	failure, err := c.firstFailure(ctx, n)
	if err != nil {
		return err
	}
	err = c.order(ctx, run, state.Command{Kind: state.CommandFail, Cause: &failure,
		Mark: state.Mark{Reason: "node " + n.Name + " failed"}})
	if err != nil {
		return fmt.Errorf("record that run %d failed: %w", run.Run, err)
	}
	return nil
}

// firstFailure returns a failed node's own failure, or that of its first failed batch.
func (c *Coordinator) firstFailure(ctx context.Context, n state.Node) (state.Failure, error) {
	if n.Failure != nil {
		return *n.Failure, nil
	}
	batches, err := state.All(ctx, c.cfg.Store.Unsettled, n.NodeKey)
	if err != nil {
		return state.Failure{}, fmt.Errorf("read the batches of %s: %w", n.Name, err)
	}
	for _, b := range batches {
		if b.Status == state.Failed && b.Failure != nil {
			return *b.Failure, nil
		}
	}
	return state.Failure{Kind: fault.Bug, Message: "node " + n.Name + " failed without a failed batch", Node: n.Name,
		Batch: -1}, nil
}

// works reports whether a node has batches left to do.
func works(n state.Node) bool {
	return n.Status == state.Running && n.BatchesDone < n.BatchesTotal && n.BatchesFailed == 0
}

// offer publishes hints for batches that can be claimed, a page at a time.
func (c *Coordinator) offer(ctx context.Context, nodes []state.Node) error {
	if c.sharing() {
		return c.share(ctx, nodes)
	}
	for _, n := range nodes {
		if !works(n) || !c.wanted(n) {
			continue
		}
		offers, err := c.offers(ctx, n)
		if err != nil {
			return fmt.Errorf("read what is on offer of %s: %w", n.Name, err)
		}
		if err := c.publish(ctx, n, offers); err != nil {
			return err
		}
		if err := c.giveUp(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// offers reads which batches of a node can be claimed. The leader reads from the
// first batch on. Followers begin at a random batch and read few, because others
// soon take what they have read. Batches that are near come first: see Config.Near.
func (c *Coordinator) offers(ctx context.Context, n state.Node) ([]state.Offer, error) {
	limit, near := c.offersMax(), c.partLocality(ctx, n)
	follows := c.leads.IsZero()
	if follows && n.BatchesTotal > limit {
		limit = min(limit, followedPerSlot*max(c.cfg.Slots, 1))
	}
	page := limit
	if near != nil {
		page = max(limit, nearPage)
	}
	from := int64(0)
	if follows && n.BatchesTotal > page {
		from = mathrand.New(c.cfg.Clock).Int64N(int64(n.BatchesTotal)) //nolint:gosec // spacing, not a secret
	}
	offers, _, err := c.cfg.Store.Offers(ctx, n.NodeKey, c.cfg.Now(), state.Page{From: from, Limit: page})
	if err == nil && len(offers) < page && from > 0 {
		var front []state.Offer
		front, _, err = c.cfg.Store.Offers(ctx, n.NodeKey, c.cfg.Now(), state.Page{Limit: page - len(offers)})
		offers = append(offers, front...)
	}
	if err != nil {
		return nil, err
	}
	if follows {
		mathrand.New(c.cfg.Clock).Shuffle(len(offers), func(i, j int) { offers[i], offers[j] = offers[j], offers[i] })
	}
	return nearest(offers, near)[:min(len(offers), limit)], nil
}

// partLocality returns the answer of Config.Near for a node, which it asks once for each plan; nil: not known.
func (c *Coordinator) partLocality(ctx context.Context, n state.Node) func(batch int) bool {
	if c.cfg.Near == nil || n.BatchesTotal < 2 {
		return nil
	}
	c.mu.Lock()
	known := c.know(n)
	near, asked := known.near, known.asked
	known.near, known.asked = nil, n.PlanDigest
	if asked == n.PlanDigest {
		known.near = near
	}
	c.mu.Unlock()
	if asked == n.PlanDigest {
		return near
	}
	near, err := c.cfg.Near(ctx, n)
	if err != nil {
		c.cfg.Logger.Debug("it is not known what is at hand of what a node reads", "node", n.Name, "error", err)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known.near = near
	return near
}

// nearest sorts batches that read what is at hand before the others, and keeps the order otherwise.
func nearest(offers []state.Offer, near func(batch int) bool) []state.Offer {
	if near != nil {
		held := make(map[int]bool, len(offers))
		for _, o := range offers {
			held[o.Batch] = near(o.Batch)
		}
		slices.SortStableFunc(offers, func(a, b state.Offer) int {
			switch {
			case held[a.Batch] == held[b.Batch]:
				return 0
			case held[a.Batch]:
				return -1
			}
			return 1
		})
	}
	return offers
}

// giveUp ends claims of processes that are known to have died, because their leases
// may still be long. It does so only while no other batch of the node is on offer
// here. Each costs the batch a try, as the end of the lease would.
func (c *Coordinator) giveUp(ctx context.Context, n state.Node) error {
	now := c.cfg.Now()
	if c.leads.IsZero() || !c.idle(n) || now.Sub(c.buried) < askEvery*c.cfg.Follow {
		return nil
	}
	c.buried = now
	batches, err := state.All(ctx, c.cfg.Store.Unsettled, n.NodeKey)
	if err != nil {
		return fmt.Errorf("read the batches of %s: %w", n.Name, err)
	}
	for _, b := range batches {
		if b.Status != state.Claimed || !job.Gone(b.Owner) {
			continue
		}
		claim := state.Claim{BatchKey: b.BatchKey, Epoch: b.Epoch, Attempt: b.Attempt, Owner: b.Owner, Lease: b.Lease}
		failure := state.Failure{Kind: fault.Environment, Retryable: true, Again: true, Node: n.Name,
			Batch: b.BatchKey.Batch, Message: "the process that worked on it, " + b.Owner + ", has ended"}
		err := c.cfg.Store.Retry(ctx, claim, failure, state.Stats{}, now, now)
		switch {
		case errors.Is(err, state.ErrLeaseLost):
		case err != nil:
			return fmt.Errorf("give back %s batch %d: %w", n.Name, b.BatchKey.Batch, err)
		default:
			c.Poke()
		}
	}
	return nil
}

// idle reports whether nothing of a node is on offer here.
func (c *Coordinator) idle(n state.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.nodes[n.Name].offered) == 0
}

// wanted updates the memory of a node, and reports whether to look for more of its
// batches.
func (c *Coordinator) wanted(n state.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hungry(c.know(n))
}

// know updates the memory of a node, and returns it; mu is held.
func (c *Coordinator) know(n state.Node) *node {
	known := c.nodes[n.Name]
	if known == nil {
		known = &node{offered: map[int]mark{}}
		c.nodes[n.Name] = known
	}
	known.left = n.BatchesTotal - n.BatchesDone
	return known
}

func (c *Coordinator) publish(ctx context.Context, n state.Node, offers []state.Offer) error {
	var hints []queue.Hint
	c.mu.Lock()
	known := c.nodes[n.Name]
	for _, o := range offers {
		if _, ok := known.offered[o.Batch]; !ok {
			known.offered[o.Batch] = markOf(o, 0, time.Time{})
			hints = append(hints, c.hint(o))
		}
	}
	c.mu.Unlock()
	if len(hints) == 0 {
		return nil
	}
	if err := c.cfg.Queue.Keep(ctx, hints...); err != nil && ctx.Err() == nil {
		return fmt.Errorf("offer the batches of %s: %w", n.Name, err)
	}
	return nil
}

func (c *Coordinator) hint(o state.Offer) queue.Hint {
	return queue.Hint{Offer: o, Priority: c.cfg.Priority}
}
