package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// mark identifies a hint that was given to a queue.
type mark struct {
	epoch   int64
	attempt int
	seq     int64     // position: hints with a higher one are behind it in the queue
	seen    time.Time // when the batch was first seen to be free although its hint does not wait in the queue
}

func markOf(o state.Offer, seq int64, seen time.Time) mark {
	return mark{epoch: o.Epoch, attempt: o.Attempt, seq: seq, seen: seen}
}

// of reports whether the hint was made for this same offer, not for an earlier attempt or epoch.
func (m mark) of(o state.Offer) bool { return m.epoch == o.Epoch && m.attempt == o.Attempt }

// sharing is the state of a node whose hints are in a queue that processes share.
type sharing struct {
	window int       // batches that may have hints at once
	more   bool      // there may be batches that have no hint yet
	read   bool      // offers have been read at least once
	done   int       // batches that were done at that last read
	looked time.Time // time of the last read
	taken  int       // hints that were taken since the last read
	seq    int64     // of the latest hint
	short  time.Time // since then fewer hints wait in the queue than should

	probe   probe // see Coordinator.stuck
	passed  int64 // seq of the last probe that was taken: earlier hints whose batches are still free are lost
	overdue bool  // there are such hints
}

// probe is the latest hint of a node, published a second time.
type probe struct {
	batch int
	seq   int64 // 0: there is none
}

// left returns how many of a node's hints may still wait in the queue, or be worked on elsewhere.
func (s *sharing) left(n *node) int { return len(n.offered) - s.taken }

// low reports whether they are so few that more are due.
func (s *sharing) low(n *node) bool { return s.left(n) <= s.window/4 }

// sharedAs is a way of using the queue: alone or shared, and if shared, as leader or follower.
type sharedAs struct{ shared, leads bool }

// sharing reports whether processes share the queue now. When the way of using the
// queue changes, the coordinator forgets which hints it has given to the queue.
func (c *Coordinator) sharing() bool {
	shared := c.cfg.Queue.Shared() && !c.cfg.Now().Before(c.apart)
	c.shared.Store(shared)
	if shared {
		c.reporting.Do(func() { c.cfg.Clock.Go(&c.reports, func() { c.report(c.ctx) }) })
	}
	if as := (sharedAs{shared, shared && !c.leads.IsZero()}); c.as != as {
		c.as = as
		c.mu.Lock()
		defer c.mu.Unlock()
		c.nodes = map[string]*node{}
	}
	return shared
}

// share keeps the shared queue filled, if this process leads the run. If it
// follows, it relies on the leader's hints. The leader may be cut off: a follower
// offers batches to its own process if they stay free while the queue is empty.
func (c *Coordinator) share(ctx context.Context, nodes []state.Node) error {
	if c.again.Swap(false) {
		c.fresh = c.cfg.Now().Add(c.cfg.Grace)
	}
	work := slices.DeleteFunc(slices.Clone(nodes), func(n state.Node) bool { return !works(n) })
	c.hunger.looked(c.cfg.Now(), c.moved, len(work) > 0)
	if len(work) == 0 {
		return nil
	}
	starved, err := c.starved(ctx, work)
	if err != nil {
		return err
	}
	if starved {
		return c.feed(ctx)
	}
	waiting, err := c.waiting(ctx)
	if err != nil {
		return nil //nolint:nilerr // by the next look the broker answers again, or the queue is not shared any more
	}
	stuck := false
	if !c.leads.IsZero() {
		if stuck, err = c.stuck(ctx, work); err != nil {
			return err
		}
	}
	for _, n := range work {
		if c.leads.IsZero() {
			err = c.shadow(ctx, n, waiting)
		} else {
			err = c.fill(ctx, n, waiting, stuck)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// probeGraces limits the number of graces after which an idle run is searched for lost hints again.
const probeGraces = 32

// stuck reports whether nothing has changed in the run for two graces, and nobody works on it. Its hints may be lost,
// or only wait behind those of other runs. If it is stuck, fill publishes the last hint of each node again, as a probe.
// Once a probe is taken, all hints before it have been taken or are lost. Each time costs a run that only waits
// one extra hint a node, so the patience before the next time doubles.
func (c *Coordinator) stuck(ctx context.Context, work []state.Node) (bool, error) {
	now, since := c.cfg.Now(), c.moved
	if c.probed.After(since) {
		since = c.probed
	}
	c.patience = max(c.patience, 2*c.cfg.Grace)
	if now.Sub(since) < c.patience {
		return false, nil
	}
	c.probed = now
	for _, n := range work {
		batches, err := state.All(ctx, c.cfg.Store.Unsettled, n.NodeKey)
		if err != nil {
			return false, fmt.Errorf("read the batches of %s: %w", n.Name, err)
		}
		if slices.ContainsFunc(batches, func(b state.Batch) bool { return c.atWork(n, b) }) {
			return false, nil
		}
	}
	c.patience = min(2*c.patience, probeGraces*c.cfg.Grace)
	return true, nil
}

// fill publishes hints for batches of a node that have none, or whose hints are lost.
func (c *Coordinator) fill(ctx context.Context, n state.Node, waiting int, stuck bool) error {
	now := c.cfg.Now()
	c.mu.Lock()
	known := c.know(n)
	s := &known.shared
	s.window = max(s.window, windowMin)
	s.taken = max(s.taken, n.BatchesDone-s.done)
	due := !s.read || s.low(known) && s.mayHaveNew(known, n, waiting, now, c.fresh, c.cfg.Grace/4)
	if s.missing(waiting < s.left(known), now, c.cfg.Grace/4) {
		s.short, due = now, true
	}
	if s.read && s.more && waiting == 0 {
		s.window, due = min(2*s.window, windowMax), true
	}
	stuck = stuck && s.read && s.probe.seq == 0
	if stuck || (s.overdue || s.probe.seq > 0 && c.moved.After(c.probed)) && now.Sub(s.looked) >= c.cfg.Grace/4 {
		due = true
	}
	window := s.window
	c.mu.Unlock()
	if !due {
		return nil
	}
	offers, _, err := c.cfg.Store.Offers(ctx, n.NodeKey, now, state.Page{Limit: window})
	if err != nil {
		return fmt.Errorf("read what is on offer of %s: %w", n.Name, err)
	}
	if err := c.publishAll(ctx, n, c.settleOffers(n, offers, waiting, now)); err != nil {
		return err
	}
	if stuck {
		if err := c.probeLast(ctx, n, offers); err != nil {
			return err
		}
	}
	return c.giveUp(ctx, n)
}

// probeLast publishes the latest hint of a node again.
func (c *Coordinator) probeLast(ctx context.Context, n state.Node, offers []state.Offer) error {
	if len(offers) == 0 {
		return nil
	}
	c.mu.Lock()
	offered := c.nodes[n.Name].offered
	last := slices.MaxFunc(offers,
		func(a, b state.Offer) int { return cmp.Compare(offered[a.Batch].seq, offered[b.Batch].seq) })
	c.mu.Unlock()
	if err := c.publishAll(ctx, n, []state.Offer{last}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.nodes[n.Name]
	known.shared.probe = probe{last.Batch, known.offered[last.Batch].seq}
	return nil
}

// mayHaveNew reports whether batches may be on offer that were not when offers were last read. That is so if the page
// was full, if batches were given back lately, if all that had hints have ended, or if the last look is old.
// If no hints wait, it returns true, because looking then delays nobody.
func (s *sharing) mayHaveNew(known *node, n state.Node, waiting int, now, fresh time.Time, every time.Duration) bool {
	ended := n.BatchesDone - s.done
	return s.more || waiting == 0 || now.Before(fresh) || now.Sub(s.looked) >= every || ended > 0 &&
		len(known.offered) <= ended
}

// missing records since when fewer hints wait than should. It reports whether that
// has been so for a grace.
func (s *sharing) missing(fewer bool, now time.Time, grace time.Duration) bool {
	switch {
	case !fewer:
		s.short = time.Time{}
	case s.short.IsZero():
		s.short = now
	}
	return fewer && now.Sub(s.short) >= grace
}

// settleOffers compares the offers with the hints that were published. It returns
// the offers that need a hint: those that never had one, and those whose hint is lost.
func (c *Coordinator) settleOffers(n state.Node, offers []state.Offer, waiting int, now time.Time) (due []state.Offer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.nodes[n.Name]
	s, before := &known.shared, known.offered
	s.read, s.looked, s.done, s.taken, s.more = true, now, n.BatchesDone, 0, len(offers) == s.window
	known.offered = map[int]mark{}
	if s.more { // keep what is known of batches after the page
		last := offers[len(offers)-1].Batch
		maps.Copy(known.offered, before)
		maps.DeleteFunc(known.offered, func(batch int, _ mark) bool { return batch <= last })
	}
	defer func() {
		s.overdue = s.passed > 0 &&
			slices.ContainsFunc(offers, func(o state.Offer) bool { return s.late(known.offered[o.Batch]) })
	}()
	var standing []state.Offer
	for _, o := range offers {
		if m, ok := before[o.Batch]; ok && m.of(o) {
			known.offered[o.Batch] = m
			standing = append(standing, o)
		} else {
			due = append(due, o)
		}
	}
	if s.probe.seq > 0 && known.offered[s.probe.batch].seq != s.probe.seq {
		s.passed, s.probe = s.probe.seq, probe{}
	}
	return append(due, c.lost(known, standing, waiting, now)...)
}

// late reports whether a hint was published before a probe that has been taken.
func (s *sharing) late(m mark) bool { return m.seq > 0 && m.seq < s.passed }

// lost returns the offers whose hints are lost. Of n published hints whose batches can be claimed, only waiting are
// in the queue: the n - waiting oldest are missing. A hint is also missing for a moment while somebody claims
// its batch. So it counts as lost only after it has been missing for a grace.
func (c *Coordinator) lost(known *node, standing []state.Offer, waiting int, now time.Time) (lost []state.Offer) {
	slices.SortFunc(standing, func(a, b state.Offer) int {
		return cmp.Compare(known.offered[a.Batch].seq, known.offered[b.Batch].seq)
	})
	for i, o := range standing {
		m := known.offered[o.Batch]
		switch {
		case i >= len(standing)-waiting && !known.shared.late(m):
			m.seen = time.Time{}
		case m.seen.IsZero():
			m.seen = now
		case now.Sub(m.seen) >= c.cfg.Grace:
			lost = append(lost, o)
		}
		known.offered[o.Batch] = m
	}
	if len(lost) > 0 {
		c.patience = 0
		c.cfg.Logger.Warn("hints of batches are missing in the queue; they are published again", "run",
			c.run.Run, "node", lost[0].Node, "hints", len(lost))
	}
	return lost
}

// publishAll publishes hints for all processes. If the queue does not accept them,
// the run goes on without the shared queue for a while.
func (c *Coordinator) publishAll(ctx context.Context, n state.Node, offers []state.Offer) error {
	if len(offers) == 0 {
		return nil
	}
	hints := make([]queue.Hint, len(offers))
	for i, o := range offers {
		hints[i] = c.hint(o)
	}
	limited, stop := context.WithTimeout(ctx, publishPatience)
	defer stop()
	if err := c.cfg.Queue.Publish(limited, hints...); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		c.cfg.Logger.Warn("hints could not be published; the run goes on from what is in state", "run", c.run.Run,
			"error", err)
		c.leaveQueue(c.cfg.Grace / 2)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.nodes[n.Name]
	for _, o := range offers {
		known.shared.seq++
		known.offered[o.Batch] = markOf(o, known.shared.seq, time.Time{})
	}
	return nil
}

// shadow offers batches to this process alone if they have stayed free for half a
// grace although the queue is empty.
func (c *Coordinator) shadow(ctx context.Context, n state.Node, waiting int) error {
	now := c.cfg.Now()
	c.mu.Lock()
	s := &c.know(n).shared
	due := s.missing(waiting == 0, now, c.cfg.Grace/2)
	c.mu.Unlock()
	if !due {
		return nil
	}
	offers, _, err := c.cfg.Store.Offers(ctx, n.NodeKey, now, state.Page{Limit: c.offersMax()})
	if err != nil {
		return fmt.Errorf("read what is on offer of %s: %w", n.Name, err)
	}
	free := c.forgotten(n, offers, now)
	rand.New(c.cfg.Clock).Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] }) //nolint:gosec // spacing, not a secret
	if err := c.cfg.Queue.Keep(ctx, free...); err != nil && ctx.Err() == nil {
		return fmt.Errorf("offer the batches of %s: %w", n.Name, err)
	}
	return nil
}

// forgotten returns hints for the offers that have been there for at least half a grace.
func (c *Coordinator) forgotten(n state.Node, offers []state.Offer, now time.Time) (free []queue.Hint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.nodes[n.Name]
	known.shared.short = now // so that the next look is half a grace later
	before := known.offered
	known.offered = map[int]mark{}
	for _, o := range offers {
		m, ok := before[o.Batch]
		if !ok || !m.of(o) {
			m = markOf(o, 0, now)
		}
		known.offered[o.Batch] = m
		if now.Sub(m.seen) >= c.cfg.Grace/2 {
			free = append(free, c.hint(o))
		}
	}
	return free
}

// Signalled handles a signal that has come for the run.
func (c *Coordinator) Signalled(kind queue.SignalKind) {
	switch kind {
	case queue.Freed:
		c.again.Store(true)
	case queue.Ordered: // an order to go on, perhaps, or the leader has left
		c.again.Store(true)
		c.vacant.Store(true)
	case queue.Starved:
		c.hunger.told()
	}
	if kind != queue.Moved && kind != queue.Freed || !c.others.Load() {
		c.Poke()
	}
}

// report makes the leader look at the run when an attempt that has ended here may
// have ended its node or a phase of it. That may be so if no hint waits in the
// queue, or if few batches of the node are left. It ends with ctx.
func (c *Coordinator) report(ctx context.Context) {
	pause := c.cfg.Clock.NewAlarm()
	for {
		c.ended.Wait(ctx, 0)
		if ctx.Err() != nil {
			return
		}
		if !c.urgent.Swap(false) {
			waiting, err := c.cfg.Queue.Waiting(ctx, c.cfg.Priority)
			if err == nil && waiting > 0 && !c.nearEnd(ctx) {
				pause.Wait(ctx, countPause)
				continue
			}
		}
		kind := queue.Moved
		if c.freed.Swap(false) {
			kind = queue.Freed
		}
		if c.others.Load() {
			c.signal(ctx, kind)
		} else {
			c.Signalled(kind)
		}
	}
}

// countPause is the least time between two counts of the batches that are left of nodes.
const countPause = 50 * time.Millisecond

// nearEnd reports whether few batches are left of a node of which an attempt has
// ended here. It reads the nodes, because other processes may have ended batches that
// this one believes to be left. Hints that wait do not tell: they may be of other runs.
func (c *Coordinator) nearEnd(ctx context.Context) (near bool) {
	c.mu.Lock()
	names := slices.Sorted(maps.Keys(c.done))
	clear(c.done)
	c.mu.Unlock()
	nodes, err := c.cfg.Store.Nodes(ctx, c.run) // without their plans
	if err != nil {
		return true // the leader's look will tell
	}
	for _, n := range nodes {
		if !slices.Contains(names, n.Name) {
			continue
		}
		c.mu.Lock()
		left := c.know(n).left
		c.mu.Unlock()
		near = near || left <= lastBatches
	}
	return near
}

// signal sends a signal to all processes. A failure is only logged: looks find the change later.
func (c *Coordinator) signal(ctx context.Context, kind queue.SignalKind) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signalTimeout)
	defer cancel()
	if err := c.cfg.Queue.Signal(ctx, queue.Signal{RunKey: c.run, Kind: kind}); err != nil {
		c.cfg.Logger.Debug("processes were not asked to look at a run", "run", c.run.Run, "error", err)
	}
}

// signalTimeout limits the time in which a signal is sent.
const signalTimeout = 2 * time.Second

// notice records the time of the last change in the run.
func (c *Coordinator) notice(run state.Run, nodes []state.Node) {
	var now strings.Builder
	fmt.Fprint(&now, run.Epoch, run.Status)
	for _, n := range nodes {
		fmt.Fprint(&now, " ", n.Revision, n.Status)
	}
	if c.last != now.String() {
		c.last, c.moved, c.patience = now.String(), c.cfg.Now(), 0
	}
}

// moreToOffer reports whether batches have no hint in the shared queue yet.
func (c *Coordinator) moreToOffer() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if n.shared.more {
			return true
		}
	}
	return false
}

// interval returns the pause until the next look at the run. It grows with the
// time since the last change.
func (c *Coordinator) interval() time.Duration {
	shortest, longest := c.cfg.Follow, c.cfg.FollowSlowest
	if c.shared.Load() {
		longest = max(longest, followShared*c.cfg.Follow)
		if c.others.Load() {
			longest *= 2
		}
		if c.others.Load() || !c.moreToOffer() && !c.cfg.Now().Before(c.fresh) {
			// a process that ends what a node waits for signals that
			shortest = longest
		}
	}
	d := min(max(shortest, c.cfg.Now().Sub(c.moved)/quietShare), longest)
	return d + c.upTo(d/2)
}
