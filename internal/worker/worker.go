package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"thalweg/internal/fault"
	"thalweg/internal/queue"
	"thalweg/internal/state"
)

// Defaults and limits.
const (
	// LeaseDefault is how long a claim lives without a heartbeat.
	LeaseDefault = 30 * time.Second
	// heartbeatsPerLease leaves room for missed ones.
	heartbeatsPerLease = 3
	// reconcileEvery repeats the search for work that a lost hint hides.
	reconcileEvery = 2 * time.Second
	// offersPerSlot is how many batches of a node are offered at once.
	offersPerSlot = 4
	// commitTries is how often a commit is tried whose outcome is not known.
	commitTries = 3
	// finishTimeout bounds the state changes that follow a shutdown.
	finishTimeout = 30 * time.Second
	// GraceDefault is how long executions may take to end when the run's context
	// or the run itself has. DuckDB looks for an interrupt between two vectors, which may be far apart.
	GraceDefault = time.Second
)

// errRunOver cancels what is still in flight when the run has failed.
var errRunOver = errors.New("the run is over")

// errLeaseLost cancels an execution whose batch is somebody else's now.
var errLeaseLost = errors.New("the batch's lease was lost")

// Result is a finished execution: what to commit, and what to make visible
// just before.
type Result struct {
	Outcome state.Outcome
	// Publish puts output files under their final names; nil if there are none.
	// Doing it twice must be harmless: a crash may fall between it and the commit.
	Publish func(ctx context.Context) error
	// Discard removes what will not be published; nil if there is nothing.
	Discard func()
}

// Job is a run's content: how its nodes are planned and its batches executed.
type Job interface {
	// Plan decides a node's batches; all of its inputs are complete. It answers
	// with *NotReadyError rather than keep the other nodes waiting for long.
	Plan(ctx context.Context, node state.Node) (state.Plan, error)
	// Execute does a batch's work. It publishes nothing. A result beside an
	// error is what the failure leaves for people to look at: side parts and
	// checks, which become visible together with it.
	Execute(ctx context.Context, c state.Claim) (Result, error)
}

// NotReadyError is Plan's answer while what a node needs from outside is on
// its way: Plan is called again when Until ends.
type NotReadyError struct{ Until context.Context }

// Error implements error.
func (e *NotReadyError) Error() string { return "what the node needs is on its way" }

// Event is what happened, for people who watch.
type Event struct {
	Time    time.Time
	Kind    EventKind
	Node    string
	Batch   int
	Attempt int
	Batches int // planned batches of the node
	Stats   state.Stats
	Checks  []state.CheckResult // of a batch that finished or failed
	Failure *state.Failure
	Status  state.Status // of the run, when it finished
}

// EventKind names an event. The texts appear in JSON output: they do not change.
type EventKind string

// The events.
const (
	NodePlanned   EventKind = "node_planned"
	BatchStarted  EventKind = "batch_started"
	BatchFinished EventKind = "batch_finished"
	BatchFailed   EventKind = "batch_failed"
	BatchReleased EventKind = "batch_released"
	NodeFinished  EventKind = "node_finished"
	RunFinished   EventKind = "run_finished"
)

// Config of a worker. Observe is called from several goroutines; nil is allowed.
type Config struct {
	Store   state.Store
	Queue   queue.Queue
	Job     Job
	Owner   string // unique to this process and run
	Slots   int    // batches in flight
	Lease   time.Duration
	Grace   time.Duration // see GraceDefault
	Now     func() time.Time
	Logger  *slog.Logger
	Observe func(Event)
	// Checkpoint is called at each CrashPoint; tests die there. nil is allowed.
	Checkpoint func(CrashPoint)
}

// CrashPoint names a place between two steps at which a process may die with
// a different state left behind: docs/guarantees.md says what follows.
type CrashPoint string

// The crash points, in the order in which a batch passes them.
const (
	Planned   CrashPoint = "planned"   // a node's batches are stored, none is offered
	Claimed   CrashPoint = "claimed"   // nothing is done yet
	Executed  CrashPoint = "executed"  // parts are stored, files written under temporary names
	Published CrashPoint = "published" // files have their final names, nothing is committed
	Committed CrashPoint = "committed" // the batch is done, nobody has noticed
)

// CrashPoints lists them all.
func CrashPoints() []CrashPoint {
	return []CrashPoint{Planned, Claimed, Executed, Published, Committed}
}

// Worker executes one run's batches.
type Worker struct {
	cfg    Config
	run    state.RunKey
	wake   chan struct{}   // something changed: reconcile
	late   map[string]bool // nodes whose Plan was not ready: see NotReadyError
	flight *flight
}

// New returns a worker for a run.
func New(cfg Config, run state.RunKey) *Worker {
	if cfg.Lease == 0 {
		cfg.Lease = LeaseDefault
	}
	if cfg.Grace == 0 {
		cfg.Grace = GraceDefault
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Event) {}
	}
	if cfg.Checkpoint == nil {
		cfg.Checkpoint = func(CrashPoint) {}
	}
	cfg.Slots = max(cfg.Slots, 1)
	return &Worker{cfg: cfg, run: run, wake: make(chan struct{}, 1), late: map[string]bool{}, flight: newFlight()}
}

// Run works until the run is over and returns its final status, or until ctx
// ends: then batches in flight are given back and the run becomes Stopped.
// An error means that the state could not be kept: the run can be resumed.
//
// An execution that does not end within Config.Grace of ctx, or of the end of a
// run that has failed, is left behind: its batch is given back, and what it
// still does goes nowhere, because its claim does not hold any more. The caller
// should end the process then.
func (w *Worker) Run(ctx context.Context) (state.Status, error) {
	decided, ended := make(chan ending, 1), make(chan struct{})
	go func() {
		defer close(ended)
		w.work(ctx, decided)
	}()
	e := ending{status: state.Running}
	select { // what comes first, if anything does, starts the grace of those in flight
	case e = <-decided:
	case <-ctx.Done():
	}
	grace := time.NewTimer(w.cfg.Grace)
	defer grace.Stop()
	var left error
	select {
	case <-ended:
	case <-grace.C:
		left = w.abandon(ctx)
	}
	select {
	case e = <-decided: // ctx had ended, and then the run did
	default:
	}
	if err := errors.Join(e.err, left); err != nil {
		return e.status, err
	}
	if e.status == state.Running { // ctx ended
		return w.stop(ctx)
	}
	w.observe(Event{Time: w.cfg.Now(), Kind: RunFinished, Status: e.status})
	return e.status, nil
}

// ending is how a run ended: Running if ctx did.
type ending struct {
	status state.Status
	err    error
}

// work drives the run and its slots until it is over or ctx ends. How it ended
// is told before the slots are waited for.
func (w *Worker) work(ctx context.Context, decided chan<- ending) {
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var slots sync.WaitGroup
	slotErrs := make(chan error, w.cfg.Slots)
	for range w.cfg.Slots {
		slots.Go(func() {
			if err := w.serve(work); err != nil {
				slotErrs <- err
				w.poke()
			}
		})
	}
	status, err := w.drive(ctx, work, slotErrs)
	cancel(errRunOver)
	decided <- ending{status, err}
	slots.Wait()
}

// drive reconciles until the run is over or ctx ends.
func (w *Worker) drive(ctx, work context.Context, slotErrs <-chan error) (state.Status, error) {
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	for {
		status, err := w.reconcile(work)
		if ctx.Err() != nil {
			return state.Running, nil
		}
		if err != nil || status != state.Running {
			return status, err
		}
		select {
		case <-ctx.Done():
			return state.Running, nil
		case err := <-slotErrs:
			return state.Running, err
		case <-w.wake:
		case <-tick.C:
		}
	}
}

// stop records that somebody ended the run before it was over.
func (w *Worker) stop(ctx context.Context) (state.Status, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	err := state.Direct(ctx, w.cfg.Store, w.run, w.order(state.OrderStop))
	if errors.Is(err, state.ErrConflict) { // it was over already
		run, err := w.cfg.Store.Run(ctx, w.run)
		if err != nil {
			return state.Running, fmt.Errorf("read run %d: %w", w.run.Run, err)
		}
		w.observe(Event{Time: w.cfg.Now(), Kind: RunFinished, Status: run.Status})
		return run.Status, nil
	}
	if err != nil {
		return state.Running, fmt.Errorf("record that run %d was stopped: %w", w.run.Run, err)
	}
	w.observe(Event{Time: w.cfg.Now(), Kind: RunFinished, Status: state.Stopped})
	return state.Stopped, nil
}

func (w *Worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// serve takes hints until ctx ends.
func (w *Worker) serve(ctx context.Context) error {
	for {
		d, err := w.cfg.Queue.Receive(ctx)
		if ctx.Err() != nil || errors.Is(err, queue.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("receive a batch: %w", err)
		}
		if err := w.take(ctx, d); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// take claims the hinted batch, and only then tells the queue that the hint
// is used, so that no broker's patience limits how long a batch may take.
func (w *Worker) take(ctx context.Context, d queue.Delivery) error {
	now := w.cfg.Now()
	claim, err := w.cfg.Store.Claim(ctx, state.Bid{Offer: d.Offer, Owner: w.cfg.Owner, Token: rand.Text(), Now: now, Lease: now.Add(w.cfg.Lease)})
	if done := d.Done(ctx); done != nil {
		w.cfg.Logger.Warn("a used hint could not be acknowledged; it may come again", "batch", d.BatchKey, "error", done)
	}
	if errors.Is(err, state.ErrNotClaimable) {
		w.poke() // it may be on offer in another way by now
		return nil
	}
	if err != nil {
		return fmt.Errorf("claim %s batch %d: %w", d.Node, d.Batch, err)
	}
	w.cfg.Checkpoint(Claimed)
	w.observe(Event{Time: now, Kind: BatchStarted, Node: d.Node, Batch: d.Batch, Attempt: claim.Attempt})
	err = w.attempt(ctx, claim)
	w.poke()
	return err
}

// attempt executes a claimed batch under its lease and records how it ended.
func (w *Worker) attempt(ctx context.Context, claim state.Claim) error {
	exec, cancel := context.WithCancelCause(ctx)
	var beat sync.WaitGroup
	beat.Go(func() { w.heartbeat(exec, claim, cancel) })
	start := w.cfg.Now()
	w.flight.begin(claim)
	res, err := w.cfg.Job.Execute(exec, claim)
	defer w.flight.land(claim)()
	res.Outcome.Stats.Elapsed = w.cfg.Now().Sub(start)
	failed := err != nil
	w.cfg.Checkpoint(Executed)
	// What follows must happen even when ctx ends now.
	final, stop := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer stop()
	if err == nil {
		err = w.commit(final, claim, &res)
	}
	lost := errors.Is(context.Cause(exec), errLeaseLost)
	cancel(nil)
	beat.Wait()
	if err == nil {
		w.observe(Event{Time: w.cfg.Now(), Kind: BatchFinished, Node: claim.Node, Batch: claim.Batch, Attempt: claim.Attempt, Stats: res.Outcome.Stats, Checks: res.Outcome.Checks})
		return nil
	}
	if !failed { // to publish: nothing of it is left
		discard(res)
		res = Result{Outcome: state.Outcome{Stats: res.Outcome.Stats}}
	}
	if lost || errors.Is(err, state.ErrLeaseLost) {
		level := slog.LevelWarn
		if ctx.Err() != nil {
			level = slog.LevelDebug // the run is over: nothing is lost that anybody waits for
		}
		discard(res)
		w.cfg.Logger.Log(final, level, "an attempt lost its lease and was dropped", "node", claim.Node, "batch", claim.Batch, "attempt", claim.Attempt)
		return nil
	}
	return w.fail(final, claim, err, res)
}

func discard(res Result) {
	if res.Discard != nil {
		res.Discard()
	}
}

// commit makes files visible and publishes the parts, if the lease still holds.
func (w *Worker) commit(ctx context.Context, claim state.Claim, res *Result) error {
	if res.Publish != nil {
		if err := w.cfg.Store.Extend(ctx, claim, w.cfg.Now().Add(w.cfg.Lease)); err != nil {
			return fmt.Errorf("confirm the lease before publishing: %w", err)
		}
		if err := res.Publish(ctx); err != nil {
			return err
		}
		w.cfg.Checkpoint(Published)
	}
	err := w.cfg.Store.Commit(ctx, claim, res.Outcome, w.cfg.Now())
	for try := 1; err != nil && try < commitTries && !errors.Is(err, state.ErrLeaseLost) && ctx.Err() == nil; try++ {
		// The answer may have been lost behind a commit that took effect:
		// repeating one is harmless, dropping its parts is not.
		w.cfg.Logger.Warn("a commit failed; it is repeated", "node", claim.Node, "batch", claim.Batch, "error", err)
		err = w.cfg.Store.Commit(ctx, claim, res.Outcome, w.cfg.Now())
	}
	if err != nil {
		if !errors.Is(err, state.ErrLeaseLost) {
			res.Discard = nil // nobody knows whether the manifest lists them: gc will
		}
		return fmt.Errorf("commit: %w", err)
	}
	w.cfg.Checkpoint(Committed)
	return nil
}

// fail records a failed attempt, or gives the batch back if it was only interrupted.
func (w *Worker) fail(ctx context.Context, claim state.Claim, err error, res Result) error {
	f := fault.Of(err)
	if f.Kind == fault.Canceled || errors.Is(err, context.Canceled) {
		discard(res)
		if err := w.cfg.Store.Release(ctx, claim, w.cfg.Now()); err != nil && !errors.Is(err, state.ErrLeaseLost) {
			return fmt.Errorf("give back %s batch %d: %w", claim.Node, claim.Batch, err)
		}
		w.observe(Event{Time: w.cfg.Now(), Kind: BatchReleased, Node: claim.Node, Batch: claim.Batch, Attempt: claim.Attempt})
		return nil
	}
	failure := FailureOf(err, claim.BatchKey)
	if err := w.cfg.Store.Fail(ctx, claim, failure, res.Outcome, w.cfg.Now()); err != nil {
		if errors.Is(err, state.ErrLeaseLost) {
			discard(res)
			return nil
		}
		return fmt.Errorf("record the failure of %s batch %d: %w", claim.Node, claim.Batch, errors.Join(err, errors.New(failure.Message)))
	}
	w.observe(Event{Time: w.cfg.Now(), Kind: BatchFailed, Node: claim.Node, Batch: claim.Batch, Attempt: claim.Attempt, Stats: res.Outcome.Stats, Checks: res.Outcome.Checks, Failure: &failure})
	return nil
}

// FailureOf turns an error into what state keeps of it.
func FailureOf(err error, key state.BatchKey) state.Failure {
	f := fault.Of(err)
	message := f.Message
	if f.Err != nil {
		message += ": " + f.Err.Error()
	}
	return state.Failure{Kind: f.Kind, Retryable: f.Retryable, Place: f.Place, Message: message, Hint: f.Hint, Detail: f.Detail, Node: key.Node, Batch: key.Batch}
}

// heartbeat extends the lease until ctx ends; a lost lease cancels the execution.
func (w *Worker) heartbeat(ctx context.Context, claim state.Claim, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(w.cfg.Lease / heartbeatsPerLease)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := w.cfg.Store.Extend(ctx, claim, w.cfg.Now().Add(w.cfg.Lease))
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, state.ErrLeaseLost):
			cancel(errLeaseLost)
			return
		case err != nil:
			w.cfg.Logger.Warn("a heartbeat failed; it is repeated", "node", claim.Node, "batch", claim.Batch, "error", err)
		}
	}
}
