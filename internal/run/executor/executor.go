package executor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"thalweg/internal/base/awake"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// Defaults and limits.
const (
	// LeaseDefault is the lifetime of a claim without a heartbeat.
	LeaseDefault = 30 * time.Second
	// heartbeatsPerLease leaves room for missed ones.
	heartbeatsPerLease = 3
	// DeadlineDefault limits one attempt. It is there for an attempt that would never end; nothing that does
	// comes near it.
	DeadlineDefault = 24 * time.Hour
	// TriesDefault limits the tries of a batch whose attempts fail for reasons that may pass, or do not come
	// back.
	TriesDefault = 5
	// retryFirst and retryLongest space the tries of a batch: each pause is
	// twice the one before, shortened by up to half.
	retryFirst   = time.Second
	retryLongest = time.Minute
	// finishTimeout bounds the state changes that go on after a shutdown.
	finishTimeout = 30 * time.Second
	// claimPatience bounds claims that have begun, and hints that have come, as a run or the executor ends.
	claimPatience = 2 * time.Second
	// GraceDefault is the time that executions have to end once their run or the executor has ended. DuckDB
	// looks for an interrupt between two vectors, which may be far apart.
	GraceDefault = time.Second
	// refusedFirst is the pause of a slot that has handed on a hint of a run that cannot be worked on here. It
	// doubles each time, up to refusedLongest.
	refusedFirst   = 50 * time.Millisecond
	refusedLongest = 2 * time.Second
)

// ErrElsewhere is the answer of Runs.Use for a run that cannot be worked on in
// this process, but perhaps in another: its hints are handed on.
var ErrElsewhere = errors.New("the run cannot be worked on in this process")

// Fate is the end of a hint. The texts name metrics: they do not change. The texts name metrics: they do not
// change.
type Fate string

// The fates. In a run that nothing disturbs there is only the first.
const (
	Used    Fate = "used"    // its batch was claimed
	Refused Fate = "refused" // the batch could not be claimed any more, or not yet
	Handed  Fate = "handed"  // given to other processes
	Unknown Fate = "unknown" // of a run that is not worked on, or is over, or of what is not there
	Broken  Fate = "broken"  // state did not answer
)

// Why an execution is ended.
var (
	errLeaseLost = errors.New("the batch's lease was lost")
	errDeadline  = errors.New("the attempt took too long")
)

// Run is a run that is worked on: its content, and who coordinates it here.
type Run interface {
	job.Job
	// Context ends when the run is over, or is not worked on any more.
	Context() context.Context
	// Taken says that a hint is used up, whether there is a claim now or not.
	Taken(key state.BatchKey)
	// Full reports whether the run has reached its limit: no more of it may be claimed.
	Full() bool
	// Ended says that an attempt is recorded, and how: Succeeded, Failed, or
	// Pending where the batch can be claimed again.
	Ended(c state.Claim, as state.Status)
	// Broken says that the state of the run could not be kept.
	Broken(err error)
	// Observe is called from several goroutines.
	Observe(e job.Event)
}

// Runs gives a run until release is called, and opens it where that is needed: a
// queue that processes share gives hints of any run. The error is state.ErrNotFound
// if there is nothing to do for it, or nobody shall do it here, and ErrElsewhere if
// others may be able to.
type Runs interface {
	Use(ctx context.Context, key state.RunKey) (r Run, release func(), err error)
}

// Config of an executor. Zero values are defaults.
type Config struct {
	Store state.Store
	Queue queue.Queue
	Runs  Runs
	Owner string // see worker.Owner
	Slots int    // batches that are computed at once
	// Ahead are batches in flight beside those: what they read is fetched while
	// others are computed, and what others have written is stored while they are.
	// The Job decides which of them compute. 0 where parts are on this machine.
	Ahead    int
	Lease    time.Duration
	Deadline time.Duration // of an attempt
	Tries    int
	Grace    time.Duration    // see GraceDefault
	Now      func() time.Time // the clock's
	Clock    job.Clock
	Logger   *slog.Logger
	// Checkpoint is called at each CrashPoint; tests die there. nil is allowed.
	Checkpoint func(job.CrashPoint)
	// Admit waits until one more batch may be claimed; release is called when it has
	// ended. nil: always.
	Admit func(ctx context.Context) (release func(), err error)
	// Room reports whether a batch of a class of work may be claimed now; leave is called
	// when it has ended. What may not is given back to the queue. nil: always.
	Room func(class string) (leave func(), ok bool)
	// Hinted is told what has become of each hint; nil is allowed. It is called from
	// several goroutines.
	Hinted func(f Fate)
	// Sheet measures what the time of places goes to; nil is allowed.
	Sheet *sheet.Meter
}

func (c Config) withDefaults() Config {
	c.Lease = or(c.Lease, LeaseDefault)
	c.Deadline = or(c.Deadline, DeadlineDefault)
	c.Tries = or(c.Tries, TriesDefault)
	c.Grace = or(c.Grace, GraceDefault)
	c.Slots, c.Ahead = max(c.Slots, 1), max(c.Ahead, 0)
	if c.Clock == nil {
		c.Clock = job.WallClock{}
	}
	if c.Now == nil {
		c.Now = c.Clock.Now
	}
	c.Logger = or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Checkpoint == nil {
		c.Checkpoint = func(job.CrashPoint) {}
	}
	if c.Room == nil {
		c.Room = func(string) (func(), bool) { return func() {}, true }
	}
	if c.Admit == nil {
		c.Admit = func(context.Context) (func(), error) { return func() {}, nil }
	}
	if c.Hinted == nil {
		c.Hinted = func(Fate) {}
	}
	return c
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Executor executes batches.
type Executor struct {
	cfg      Config
	inflight inflight
	hunger   hunger
	kept     chan struct{} // rung where a slot that pauses has something to look at
}

// New returns an executor.
func New(cfg Config) *Executor {
	cfg = cfg.withDefaults()
	return &Executor{cfg: cfg, inflight: newFlight(), kept: make(chan struct{}, cfg.Slots+cfg.Ahead)}
}

// Work takes hints until ctx ends or the queue is closed, and returns when what
// was in flight has ended and is recorded. An execution that does not end
// within Config.Grace is left behind: its batch is given back, and what it
// still does goes nowhere, because its claim does not hold any more. The caller
// should end the process then.
func (e *Executor) Work(ctx context.Context) error {
	var slots sync.WaitGroup
	errs := make([]error, e.cfg.Slots+e.cfg.Ahead)
	for i := range errs {
		slots.Go(func() { errs[i] = e.serve(ctx, i+1) })
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		slots.Wait()
	}()
	select {
	case <-ended:
		return errors.Join(errs...)
	case <-ctx.Done():
	}
	grace := time.NewTimer(e.cfg.Grace)
	defer grace.Stop()
	select {
	case <-ended:
		return errors.Join(errs...)
	case <-grace.C:
		return e.abandon(ctx, func(state.RunKey) bool { return true })
	}
}

// serve takes hints until ctx ends, as a slot of the worker.
func (e *Executor) serve(ctx context.Context, slot int) error {
	m := mouth{place: e.cfg.Sheet.Place(), slot: slot}
	defer m.place.Leave()
	defer func() { e.hunger.end(&m) }()
	for refused := time.Duration(0); ; {
		fate, err := e.next(ctx, &m)
		if ctx.Err() != nil || errors.Is(err, queue.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if fate != Handed {
			refused = 0
			continue
		}
		refused = min(max(refusedFirst, 2*refused), refusedLongest)
		select {
		case <-ctx.Done():
		case <-e.kept:
		case <-time.After(refused):
		}
	}
}

// next takes a hint when it may, and executes its batch.
func (e *Executor) next(ctx context.Context, m *mouth) (Fate, error) {
	release, err := e.cfg.Admit(ctx)
	if err != nil {
		return "", fmt.Errorf("wait for a turn: %w", err)
	}
	defer release()
	e.hunger.begin(m, e.cfg.Now())
	d, err := e.cfg.Queue.Receive(ctx)
	if err != nil {
		return "", fmt.Errorf("receive a batch: %w", err)
	}
	if ctx.Err() != nil {
		// Nobody else has the hint while the connection stands.
		finish, stop := outliving(ctx, claimPatience)
		defer stop()
		return "", errors.Join(ctx.Err(), d.Back(finish))
	}
	return e.take(ctx, d, m), nil
}

// take claims the hinted batch, and only then tells the queue that the hint
// is used, so that no broker's patience limits how long a batch may take.
func (e *Executor) take(ctx context.Context, d queue.Delivery, m *mouth) Fate {
	leave, ok := e.cfg.Room(d.Class)
	if !ok {
		e.hunger.served(e.cfg.Now()) // there is work, and no place for it
		return e.handOn(ctx, d)
	}
	defer leave()
	run, release, err := e.cfg.Runs.Use(ctx, d.RunKey)
	if err != nil {
		e.cfg.Logger.Debug("a hint is for a run that is not worked on here", "run", d.Run, "error", err)
		if errors.Is(err, ErrElsewhere) {
			return e.handOn(ctx, d)
		}
		e.done(ctx, d)
		return e.hinted(Unknown)
	}
	defer release()
	if run.Full() {
		return e.handOn(ctx, d)
	}
	m.place.Claims(d.RunKey)
	claim, err := e.claim(run.Context(), d.Offer)
	m.place.Claimed(claim, err)
	if err != nil && !state.Stray(err) && run.Context().Err() != nil { // it is left: the batch may still be free
		run.Taken(d.BatchKey)
		return e.handOn(ctx, d)
	}
	e.done(ctx, d)
	run.Taken(d.BatchKey)
	switch {
	case err == nil:
		e.hunger.served(e.cfg.Now())
		e.hunger.end(m)
		e.hinted(Used)
	case errors.Is(err, state.ErrNotClaimable):
		return e.hinted(Refused)
	case state.Stray(err): // a queue decides nothing: it may hold anything
		e.cfg.Logger.Debug("a hint names what is not there", "batch", d.BatchKey, "error", err)
		return e.hinted(Unknown)
	default:
		run.Broken(fmt.Errorf("claim %s batch %d: %w", d.Node, d.Batch, err))
		return e.hinted(Broken)
	}
	e.cfg.Checkpoint(job.Claimed)
	run.Observe(e.event(job.BatchStarted, claim))
	moved, committed := e.attempt(ctx, run, claim, m)
	m.place.Ended(committed, moved)
	return Used
}

func (e *Executor) handOn(ctx context.Context, d queue.Delivery) Fate {
	if err := d.Back(ctx); err != nil && ctx.Err() == nil {
		e.cfg.Logger.Warn("a hint could not be given to others; it is published again later", "batch", d.BatchKey,
			"error", err)
	}
	return e.hinted(Handed)
}

func (e *Executor) hinted(f Fate) Fate {
	e.cfg.Hinted(f)
	return f
}

// claim claims a batch while ctx lasts. One that is being written when ctx ends would be
// held by nobody: it is waited for, and whoever has it then gives it back.
func (e *Executor) claim(ctx context.Context, o state.Offer) (state.Claim, error) {
	if err := ctx.Err(); err != nil {
		return state.Claim{}, err
	}
	ctx, stop := outliving(ctx, claimPatience)
	defer stop()
	now := e.cfg.Now()
	return e.cfg.Store.Claim(ctx, state.ClaimRequest{Offer: o, Owner: e.cfg.Owner, Token: rand.Text(), Now: now,
		Lease: now.Add(e.cfg.Lease)})
}

func (e *Executor) done(ctx context.Context, d queue.Delivery) {
	if err := d.Done(ctx); err != nil {
		e.cfg.Logger.Warn("a used hint could not be acknowledged; it may come again", "batch", d.BatchKey, "error", err)
	}
}

func (e *Executor) event(kind job.EventKind, c state.Claim) job.Event {
	return job.Event{Run: c.RunKey, Time: e.cfg.Now(), Kind: kind, Node: c.Node, Batch: c.Batch, Attempt: c.Attempt}
}

// attempt executes a claimed batch under its lease and records how it ended: what it moved, and whether it is
// committed.
func (e *Executor) attempt(ctx context.Context, run Run, claim state.Claim, m *mouth) (moved sheet.Moved,
	committed bool) {
	place := m.place
	exec, cancel := context.WithCancelCause(place.Context(run.Context()))
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	defer cancel(nil)
	// What follows the execution must happen even when its context has ended.
	finish, stop := finishing(ctx)
	defer stop()
	if claim.Tries >= e.cfg.Tries {
		e.record(finish, run, claim, job.Result{}, gaveUp(claim), nil)
		return moved, false
	}
	defer e.cfg.Clock.Every(e.cfg.Lease/heartbeatsPerLease, func() bool { return e.heartbeat(exec, claim, cancel) })()
	defer cancel(nil)
	e.inflight.begin(run, claim)
	limited, stop := awake.WithTimeoutCause(exec, e.cfg.Deadline, errDeadline)
	defer stop()
	start := e.cfg.Now()
	var res job.Result
	err := fault.Guard("executing "+nameOf(claim), func() (err error) {
		res, err = run.Execute(limited, claim)
		return err
	})
	if !e.inflight.land(claim) { // left behind: nobody listens any more
		discard(res)
		return moved, false
	}
	place.Commits()
	defer e.inflight.recorded(claim)
	res.Outcome.Stats.Elapsed, res.Outcome.Stats.Slot = e.cfg.Now().Sub(start), m.slot
	e.cfg.Checkpoint(job.Executed)
	if err != nil && errors.Is(context.Cause(limited), errDeadline) {
		err = &fault.Error{Kind: fault.Environment, Retryable: true, Message: fmt.Sprintf("%s did not end within %s",
			nameOf(claim), e.cfg.Deadline), Detail: err.Error()}
	}
	moved = movedBy(claim, res.Outcome)
	return moved, e.record(finish, run, claim, res, err, context.Cause(exec))
}

// movedBy says what an attempt read and wrote of parts.
func movedBy(c state.Claim, out state.Outcome) (m sheet.Moved) {
	m.PeakBytes = out.Stats.PeakBytes
	if concurrency.ClassOf(c.Spec.Class) != concurrency.Load { // those read files
		m.Read = c.Spec.BytesIn
	}
	for _, p := range out.Parts {
		m.Written += p.Bytes
	}
	return m
}

// finishing is a context for what follows an execution: it goes on when ctx ends, for
// finishTimeout. Until then the state is waited for, however long that takes.
func finishing(ctx context.Context) (finish context.Context, stop context.CancelFunc) {
	return outliving(ctx, finishTimeout)
}

// outliving is a context that ends so long after ctx.
func outliving(ctx context.Context, by time.Duration) (finish context.Context, stop context.CancelFunc) {
	finish, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		patience := time.NewTimer(by)
		defer patience.Stop()
		select {
		case <-patience.C:
			cancel()
		case <-finish.Done():
		}
	})
	return finish, func() {
		unwatch()
		cancel()
	}
}

// record commits an attempt or says how it failed. ended is why its execution
// was ended from outside, if it was.
func (e *Executor) record(ctx context.Context, run Run, claim state.Claim, res job.Result, err,
	ended error) (committed bool) {
	failed := err != nil
	if !failed {
		err = fault.Guard("publishing "+nameOf(claim), func() error { return e.commit(ctx, claim, &res) })
	}
	if err == nil {
		event := e.event(job.BatchFinished, claim)
		event.Stats, event.Checks = res.Outcome.Stats, res.Outcome.Checks
		run.Observe(event)
		run.Ended(claim, state.Succeeded)
		return true
	}
	if !failed { // to publish: nothing of it is left
		discard(res)
		res = job.Result{Outcome: state.Outcome{Stats: res.Outcome.Stats}}
	}
	if errors.Is(ended, errLeaseLost) || errors.Is(err, state.ErrLeaseLost) {
		e.lost(run, claim, res)
		return false
	}
	as, event, err := e.fail(ctx, claim, err, res)
	switch {
	case errors.Is(err, state.ErrLeaseLost):
		e.lost(run, claim, res)
	case err != nil:
		run.Broken(err)
	default:
		run.Observe(event)
		run.Ended(claim, as)
	}
	return false
}

func (e *Executor) lost(run Run, claim state.Claim, res job.Result) {
	level := slog.LevelWarn
	if run.Context().Err() != nil {
		level = slog.LevelDebug // the run is over: nothing is lost that anybody waits for
	}
	discard(res)
	e.cfg.Logger.Log(context.Background(), level, "an attempt lost its lease and was dropped", "node",
		claim.Node, "batch", claim.Batch, "attempt", claim.Attempt)
	run.Ended(claim, state.Pending)
}

func discard(res job.Result) {
	if res.Discard != nil {
		res.Discard()
	}
}

// commit makes files visible and publishes the parts, if the lease still holds.
func (e *Executor) commit(ctx context.Context, claim state.Claim, res *job.Result) error {
	began := e.cfg.Now()
	if res.Publish != nil {
		if err := e.cfg.Store.Announce(ctx, claim, res.Publications, e.cfg.Now().Add(e.cfg.Lease)); err != nil {
			return fmt.Errorf("announce what is published: %w", err)
		}
		if err := res.Publish(ctx); err != nil {
			return err
		}
		e.cfg.Checkpoint(job.Published)
	}
	res.Outcome.Stats.Commit = e.cfg.Now().Sub(began)
	res.Outcome.Stats.Elapsed += res.Outcome.Stats.Commit
	if err := e.cfg.Store.Commit(ctx, claim, res.Outcome, e.cfg.Now()); err != nil {
		if !errors.Is(err, state.ErrLeaseLost) {
			res.Discard = nil // nobody knows whether the manifest lists them: gc will
		}
		return fmt.Errorf("commit: %w", err)
	}
	e.cfg.Checkpoint(job.Committed)
	return nil
}

// fail records a failed attempt: the batch is given back if it was only
// interrupted, tried again later if the cause may pass, and fails otherwise.
func (e *Executor) fail(ctx context.Context, claim state.Claim, err error, res job.Result) (state.Status,
	job.Event, error) {
	now := e.cfg.Now()
	if job.Interrupted(err) {
		discard(res)
		if err := e.cfg.Store.Release(ctx, claim, now); err != nil {
			return "", job.Event{}, fmt.Errorf("give back %s: %w", nameOf(claim), err)
		}
		return state.Pending, e.event(job.BatchReleased, claim), nil
	}
	failure := job.FailureOf(err, claim.BatchKey)
	again := failure.Retryable && failure.Kind == fault.Environment
	event := e.event(job.BatchFailed, claim)
	event.Stats, event.Checks, event.Failure = res.Outcome.Stats, res.Outcome.Checks, &failure
	if again && claim.Tries+1 < e.cfg.Tries {
		discard(res)
		event.Kind, failure.Again = job.BatchRetried, true
		if err := e.cfg.Store.Retry(ctx, claim, failure, res.Outcome.Stats, now.Add(e.retryPause(claim.Tries)),
			now); err != nil {
			return "", event, fmt.Errorf("record that %s is tried again: %w", nameOf(claim),
				errors.Join(err, errors.New(failure.Message)))
		}
		return state.Pending, event, nil
	}
	if again {
		failure.Message += fmt.Sprintf(" (try %d of %d)", claim.Tries+1, e.cfg.Tries)
	}
	if err := e.cfg.Store.Fail(ctx, claim, failure, res.Outcome, now); err != nil {
		return "", event, fmt.Errorf("record the failure of %s: %w", nameOf(claim),
			errors.Join(err, errors.New(failure.Message)))
	}
	return state.Failed, event, nil
}

// retryPause returns the pause before the next try of a batch that has been tried so often.
func (e *Executor) retryPause(tries int) time.Duration {
	d := retryFirst
	for range tries {
		d = min(2*d, retryLongest)
	}
	return d - time.Duration(mathrand.New(e.cfg.Clock).Int64N(int64(d/2))) //nolint:gosec // spacing, not a secret
}

// gaveUp is the failure of a batch that has been tried too often.
func gaveUp(c state.Claim) error {
	attempts := fmt.Sprintf("%d attempts", c.Tries)
	if c.Tries == 1 {
		attempts = "1 attempt"
	}
	return &fault.Error{Kind: fault.Environment,
		Message: fmt.Sprintf("%s was given up: %s before did not come back, or failed", nameOf(c), attempts),
		Hint: "a batch whose process dies each time mostly needs more memory than the machine gives: see " +
			c.Do("batches", "node", c.Node).String() + " and the system's log; {{set resume}} tries it again"}
}

func nameOf(c state.Claim) string { return fmt.Sprintf("batch %d of node %s", c.Batch, c.Node) }

// extend renews a claim's lease from now on. A state that is away is waited for, and told a
// new moment again and again: one of before it was away may be over when it is back.
func (e *Executor) extend(ctx context.Context, claim state.Claim) error {
	for {
		limited, stop := context.WithTimeout(ctx, e.cfg.Lease/heartbeatsPerLease)
		err := e.cfg.Store.Extend(limited, claim, e.cfg.Now().Add(e.cfg.Lease))
		late := limited.Err() != nil
		stop()
		if err == nil || !late || ctx.Err() != nil {
			return err
		}
	}
}

// heartbeat extends the lease; a lost one cancels the execution, and is the last.
func (e *Executor) heartbeat(ctx context.Context, claim state.Claim, cancel context.CancelCauseFunc) (again bool) {
	if ctx.Err() != nil {
		return false
	}
	err := e.extend(ctx, claim)
	switch {
	case ctx.Err() != nil:
		return false
	case errors.Is(err, state.ErrLeaseLost):
		cancel(errLeaseLost)
		return false
	case err != nil:
		e.cfg.Logger.Warn("a heartbeat failed; it is repeated", "node", claim.Node, "batch", claim.Batch, "error", err)
	}
	return true
}
