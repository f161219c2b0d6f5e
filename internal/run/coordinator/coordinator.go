package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// Defaults and limits.
const (
	// Role is the name of the duty that one coordinator of a run has at a time.
	Role = "coordinator"
	// LeaseDefault is the time for which the role is held without being renewed.
	LeaseDefault = 15 * time.Second
	// renewalsPerLease leaves room for missed ones.
	renewalsPerLease = 3
	// FollowDefault is the shortest interval between two looks at a run in which nothing happens here. Changes
	// by other processes are seen that late. A random part, up to half, is added to each interval, so that
	// processes do not look all at once.
	FollowDefault = 200 * time.Millisecond
	// askEvery is the number of these intervals between two tries to take the lead of a run that somebody
	// else leads.
	askEvery = 5
	// askShared is the same where processes share the queue.
	askShared = 10
	// quietShare sets the pause before the next look at a run in which nothing changes. The pause is the time
	// since the last change divided by quietShare, at least Follow and at most FollowSlowest.
	quietShare = 8
	// followShared raises the longest pause where processes share the queue, because signals tell of changes.
	// It is followShared times Follow then, or FollowSlowest if that is more. For followers it is twice that.
	followShared = 5
	// GraceDefault is the time for which hints that are missing in a shared queue may still be on their way.
	// A process may be opening the run for the first of them.
	GraceDefault = 10 * time.Second
	// windowMin and windowMax bound the window: the most batches of a node that have hints in a shared queue. It
	// begins small, so that runs take turns, and doubles when all are taken before there are more.
	windowMin = 128
	windowMax = state.PageMax
	// lastBatches is a number of batches. If no more of a node are left, each that ends is reported at once,
	// whatever waits in the queue.
	lastBatches = 4
	// offersPerSlot limits the batches of a node that are on offer here at once. More are looked for when a
	// quarter of them is left.
	offersPerSlot = 8
	offersMin     = 32
	// followedPerSlot limits the batches that are read at once where others lead.
	followedPerSlot = 4
	// nearPage limits the offers that are searched for batches whose inputs are at hand: see Config.Near.
	nearPage = 256
	// planTries limits the tries to plan a node whose plan fails for reasons that may pass. planPause spaces
	// them, twice as long each time.
	planTries = 4
	planPause = time.Second
	// finishTimeout limits the call by which a leaving coordinator gives up its role.
	finishTimeout = 10 * time.Second
)

// errOver ends the context of a run that is over.
var errOver = errors.New("the run is over")

// Config holds the settings of a coordinator. Zero values are defaults.
type Config struct {
	Store  state.Store
	Queue  queue.Queue
	Job    job.Job
	Owner  string // see job.Owner
	Slots  int    // of the executor that takes the offers
	Lease  time.Duration
	Follow time.Duration
	// FollowSlowest is the longest interval between two looks at a run in which nothing happens. With 0, the
	// interval is always Follow.
	FollowSlowest time.Duration
	Priority      queue.Priority   // of the run's hints
	Grace         time.Duration    // see GraceDefault
	Now           func() time.Time // the clock's
	Clock         job.Clock
	Logger        *slog.Logger
	// Near returns a function that reports whether a batch of the node reads what this process has at hand.
	// Such batches are offered first; none is waited for. nil, or a nil function: all are the same.
	Near    func(ctx context.Context, n state.Node) (func(batch int) bool, error)
	Stay    bool            // Run also stays while the run is paused or waits for people
	Able    func() bool     // reports whether this process can plan and settle nodes now; nil: always
	Observe func(job.Event) // called from several goroutines; nil is allowed
	// Checkpoint is called at each CrashPoint; tests die there. nil is allowed.
	Checkpoint func(job.CrashPoint)
}

func (c Config) withDefaults() Config {
	if c.Lease == 0 {
		c.Lease = LeaseDefault
	}
	if c.Follow == 0 {
		c.Follow = FollowDefault
	}
	c.FollowSlowest = max(c.Follow, c.FollowSlowest)
	if c.Grace == 0 {
		c.Grace = GraceDefault
	}
	if c.Clock == nil {
		c.Clock = job.WallClock{}
	}
	if c.Now == nil {
		c.Now = c.Clock.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Observe == nil {
		c.Observe = func(job.Event) {}
	}
	if c.Checkpoint == nil {
		c.Checkpoint = func(job.CrashPoint) {}
	}
	if c.Able == nil {
		c.Able = func() bool { return true }
	}
	return c
}

// Coordinator drives one run. An executor uses it as its view of the run.
type Coordinator struct {
	job.Job
	cfg    Config
	run    state.RunKey
	ctx    context.Context // ends when the run is over, or left
	cancel context.CancelCauseFunc
	wake   job.Alarm   // something happened: look
	ended  job.Alarm   // attempts have ended here; report decides whether the leader must look
	others atomic.Bool // another process leads, as far as is known
	freed  atomic.Bool // an attempt has ended here and its batch can be claimed again
	again  atomic.Bool // a signal says that batches can be claimed again: read the offers
	fresh  time.Time   // until then offers may be new because of such a signal
	urgent atomic.Bool // report must not wait until the queue is empty
	shared atomic.Bool // processes shared the queue at the latest look

	reporting sync.Once
	reports   sync.WaitGroup

	mu     sync.Mutex
	nodes  map[string]*node
	done   map[string]bool // nodes of which attempts have ended here since they were counted
	broken error
	over   state.Status // final status, if the run ended while a node was planned; "": it did not

	leads  time.Time           // the role is held until then; zero: another process has it
	askAt  time.Time           // when to ask for the role again, while another process has it
	leader string              // the owner of the role when it was last asked for; "": not known
	vacant atomic.Bool         // the role may have been given up since
	buried time.Time           // when claims of dead processes were last looked for: see giveUp
	seen   map[string]string   // the last observed status and generation by node; nil before the first look
	plans  map[string]planning // nodes whose planning is to be tried again
	apart  time.Time           // the run goes on without the shared queue until then
	alone  time.Duration       // how long it last did so because hints did not arrive
	hunger hunger
	held   *held     // to the run's limit; nil: it has none
	as     sharedAs  // how the queue was used at the latest look
	last   string    // epochs, statuses and revisions at the latest look: see notice
	moved  time.Time // when last changed

	probed   time.Time     // when lost hints were last searched for: see stuck
	patience time.Duration // how long nothing must change before the next search
}

// node is the coordinator's memory of a node between two looks.
type node struct {
	offered map[int]mark // batches that have hints in the queue, as far as is known here
	left    int          // batches that are not done, as far as is known here
	shared  sharing
	near    func(batch int) bool // see Config.Near; nil: nothing is near
	asked   string               // digest of the plan that near belongs to
}

// planning is the state of a node whose planning is to be tried again.
type planning struct {
	tries int             // that have failed
	until time.Time       // the next try is not before then
	waits context.Context // the next try is not before this has ended; nil: no such condition
}

// New returns a coordinator. Its context ends with ctx.
func New(ctx context.Context, cfg Config, run state.RunKey) *Coordinator {
	c := &Coordinator{Job: cfg.Job, cfg: cfg.withDefaults(), run: run, nodes: map[string]*node{},
		done: map[string]bool{}, plans: map[string]planning{}}
	c.wake, c.ended = c.cfg.Clock.NewAlarm(), c.cfg.Clock.NewAlarm()
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// Run drives the run until it is over and returns its final status. It returns
// Running if the coordinator's context ends first. Without Config.Stay it also
// leaves a run that cannot go on before people decide. It returns Paused then, if
// nobody works on a batch, or Waiting if a node waits. An error means that the
// state could not be kept; the run can be resumed. The context has ended when Run
// returns.
func (c *Coordinator) Run() (state.Status, error) {
	status, err := c.drive()
	c.cancel(errOver)
	c.resign()
	c.reports.Wait()
	if c.shared.Load() && !c.others.Load() {
		c.signal(c.ctx, queue.Ordered)
	}
	return status, err
}

func (c *Coordinator) drive() (state.Status, error) {
	for {
		status, err := c.look(c.ctx)
		if over := c.seenOver(); over != "" {
			return over, c.failed()
		}
		if c.ctx.Err() != nil && !status.Terminal() {
			return state.Running, c.failed()
		}
		if err = errors.Join(err, c.failed()); err != nil || status != state.Running {
			return status, err
		}
		c.wake.Wait(c.ctx, c.untilLimit(c.interval()))
		if c.ctx.Err() != nil {
			return state.Running, c.failed()
		}
	}
}

// resign gives the role up, so that another coordinator can take it at once.
func (c *Coordinator) resign() {
	if c.leads.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), finishTimeout)
	defer cancel()
	if err := c.cfg.Store.Resign(ctx, c.run, Role, c.cfg.Owner); err != nil {
		c.cfg.Logger.Debug("the role of the coordinator ends by itself", "run", c.run.Run, "error", err)
	}
}

// Poke makes the coordinator look at its run now.
func (c *Coordinator) Poke() { c.wake.Ring() }

// upTo returns a random duration from 0 to most.
func (c *Coordinator) upTo(most time.Duration) time.Duration {
	return time.Duration(rand.New(c.cfg.Clock).Int64N(int64(most) + 1)) //nolint:gosec // spacing, not a secret
}

// Context returns a context that ends when the run is over, or left.
func (c *Coordinator) Context() context.Context { return c.ctx }

// Leave ends the context with a cause; Run then returns.
func (c *Coordinator) Leave(cause error) { c.cancel(cause) }

// Observe passes an executor's event on to Config.Observe.
func (c *Coordinator) Observe(e job.Event) {
	c.begins(e)
	c.cfg.Observe(e)
}

// Broken ends the coordinator with an error: the state of the run could not be kept.
func (c *Coordinator) Broken(err error) {
	c.mu.Lock()
	c.broken = errors.Join(c.broken, err)
	c.mu.Unlock()
	c.Poke()
}

func (c *Coordinator) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Taken records that this process has taken a hint, so that the queue no longer has it.
func (c *Coordinator) Taken(key state.BatchKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[key.Node]
	if n == nil {
		return
	}
	if _, marked := n.offered[key.Batch]; c.shared.Load() && !marked && !c.others.Load() { // not published here
		return
	}
	if c.shared.Load() { // it stays marked: offers that were read earlier must not be published again
		n.shared.taken++
		if n.shared.more && n.shared.low(n) {
			c.Poke()
		}
		return
	}
	delete(n.offered, key.Batch)
	if n.left > len(n.offered) && c.hungry(n) {
		c.Poke()
	}
}

// Ended records the status with which an attempt of this process has ended. If the
// node may be done by that, this coordinator or the leader looks at the run.
func (c *Coordinator) Ended(claim state.Claim, as state.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[claim.Node]
	if n != nil && as == state.Succeeded {
		n.left--
	}
	c.spent(claim)
	switch {
	case c.shared.Load():
		if as != state.Succeeded {
			c.freed.Store(true)
		}
		if as != state.Succeeded || n == nil || n.left <= lastBatches {
			c.urgent.Store(true)
		}
		c.done[claim.Node] = true
		c.ended.Ring()
	case n == nil:
	case as != state.Succeeded || n.left <= 0 || len(n.offered) == 0: // a node, or a phase of it, may be done
		c.Poke()
	}
}

// hungry reports whether so few batches of a node are on offer that more are
// to be looked for; mu is held.
func (c *Coordinator) hungry(n *node) bool { return len(n.offered) <= c.offersMax()/4 }

func (c *Coordinator) offersMax() int { return max(offersMin, offersPerSlot*c.cfg.Slots) }

// look does what is due in the run, and returns the status that Run is to return.
// Running means that the run is to be looked at again. Any coordinator may call
// look at any time.
func (c *Coordinator) look(ctx context.Context) (state.Status, error) {
	for {
		known := c.spentHere()
		run, err := c.cfg.Store.Run(ctx, c.run)
		if err != nil {
			return state.Running, fmt.Errorf("read run %d: %w", c.run.Run, err)
		}
		if run.Command.Pending() {
			if err := state.Carry(ctx, c.cfg.Store, run, c.cfg.Now()); err != nil {
				return state.Running, fmt.Errorf("carry out what was ordered of run %d: %w", c.run.Run, err)
			}
			if c.shared.Load() {
				c.signal(ctx, queue.Ordered)
			}
			continue
		}
		if run.Status.Terminal() {
			return run.Status, nil
		}
		nodes, err := c.cfg.Store.Nodes(ctx, c.run)
		if err != nil {
			return state.Running, fmt.Errorf("read the nodes of run %d: %w", c.run.Run, err)
		}
		if slices.ContainsFunc(nodes, run.Behind) {
			continue // an order was given between the two reads: run and nodes do not fit together
		}
		c.tell(nodes)
		c.notice(run, nodes)
		if run.Status == state.Paused {
			c.letGo() // state refuses claims now
			return c.paused(ctx, nodes)
		}
		changed := false
		if err := errors.Join(c.measure(ctx, run, nodes, known), c.lead(ctx)); err != nil {
			return state.Running, err
		}
		if !c.leads.IsZero() {
			if changed, err = c.keepTo(ctx, run, nodes); err == nil && !changed {
				changed, err = c.advance(ctx, run, nodes)
			}
			if err != nil {
				return state.Running, err
			}
		}
		if changed {
			continue
		}
		if !c.cfg.Stay && state.Waits(nodes) {
			return state.Waiting, nil
		}
		return state.Running, c.offer(ctx, nodes)
	}
}

// paused returns Paused if the coordinator may leave a paused run. It returns
// Running while somebody still works on a batch, or with Config.Stay. Nothing of a
// paused run is offered or planned.
func (c *Coordinator) paused(ctx context.Context, nodes []state.Node) (state.Status, error) {
	if c.cfg.Stay {
		return state.Running, nil
	}
	for _, n := range nodes {
		batches, err := state.All(ctx, c.cfg.Store.Unsettled, n.NodeKey)
		if err != nil {
			return state.Running, fmt.Errorf("read the batches of %s: %w", n.Name, err)
		}
		if slices.ContainsFunc(batches, func(b state.Batch) bool { return c.atWork(n, b) }) {
			return state.Running, nil
		}
	}
	return state.Paused, nil
}

// atWork reports whether somebody works on a batch, as far as can be known.
func (c *Coordinator) atWork(n state.Node, b state.Batch) bool {
	return b.Status == state.Claimed && n.Holds(b.Epoch) && !b.Lease.Before(c.cfg.Now()) && !job.Gone(b.Owner)
}

// tell observes an event for each node that any process has moved since the last look.
func (c *Coordinator) tell(nodes []state.Node) {
	first := c.seen == nil
	if first {
		c.seen = map[string]string{}
	}
	for _, n := range nodes {
		before, now := c.seen[n.Name], fmt.Sprint(n.Status, n.Generation)
		c.seen[n.Name] = now
		if first || before == now {
			continue
		}
		event := job.Event{Run: c.run, Time: c.cfg.Now(), Node: n.Name, Batches: n.BatchesTotal,
			ReusedFrom: n.ReusedFrom,
			Stats:      state.Stats{RowsIn: n.RowsIn, RowsOut: n.RowsOut, BytesIn: n.BytesIn, BytesOut: n.BytesOut}}
		switch n.Status {
		case state.Running:
			event.Kind, event.Stats = job.NodePlanned, state.Stats{}
		case state.Succeeded:
			event.Kind = job.NodeFinished
		case state.Waiting:
			event.Kind = job.NodeWaiting
			if r, err := gate.Decode(n.Gate); err == nil {
				event.Gate = &r
			}
		default:
			continue
		}
		c.cfg.Observe(event)
	}
}

// lead takes the role, or renews it once a third of its lease is over. A process that is not Able gives it up.
func (c *Coordinator) lead(ctx context.Context) error {
	now := c.cfg.Now()
	if !c.cfg.Able() { // another process may be able
		if !c.leads.IsZero() {
			c.resign()
			c.signal(ctx, queue.Ordered)
		}
		c.leads, c.leader, c.askAt = time.Time{}, "", now
		c.others.Store(true)
		return nil
	}
	if c.leads.Sub(now) > c.cfg.Lease-c.cfg.Lease/renewalsPerLease || now.Before(c.askAt) && !c.vacant.Swap(false) &&
		!job.Gone(c.leader) {
		return nil
	}
	until := now.Add(c.cfg.Lease)
	role, err := c.cfg.Store.Acquire(ctx, c.run, Role, c.cfg.Owner, now, until)
	switch {
	case errors.Is(err, state.ErrHeld) && job.Gone(role.Owner):
		// The leader has died: free the role, and take it at the next look.
		c.leader = ""
		c.vacant.Store(true)
		c.Poke()
		return c.cfg.Store.Resign(ctx, c.run, Role, role.Owner)
	case errors.Is(err, state.ErrHeld):
		c.leads, c.leader, c.askAt = time.Time{}, role.Owner, now.Add(askEvery*c.cfg.Follow)
		if c.shared.Load() && role.Until.After(c.askAt) { // a leader that leaves signals it; older programs do not
			c.askAt = now.Add(min(askShared*c.cfg.Follow, role.Until.Sub(now)))
		}
		c.others.Store(true)
		return nil
	case err != nil:
		return fmt.Errorf("take the lead of run %d: %w", c.run.Run, err)
	}
	c.leads = until
	c.others.Store(false)
	return nil
}
