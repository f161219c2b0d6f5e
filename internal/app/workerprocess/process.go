package workerprocess

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/samples"
	"thalweg/internal/run/coordinator"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/queue/inproc"
	"thalweg/internal/store/state"
)

// Process runs the work of one process: an executor, and a coordinator for each run that is
// open. It implements executor.Runs.
type Process struct {
	cfg    Config
	Owner  string
	Queue  queue.Queue
	taken  *drained // what the executor takes hints from
	Exec   *executor.Executor
	cancel context.CancelFunc // of the executor
	ended  chan struct{}      // closed when the executor has ended
	err    error              // of the executor, then

	mu   sync.Mutex
	runs map[state.RunKey]*OpenRun
}

// Config says how a process works.
type Config struct {
	Store      state.Store
	Slots      int
	Most       int // batches in flight that admit lets claim; 0: slots and ahead
	Admit      func(ctx context.Context) (release func(), err error)
	Room       func(class string) (leave func(), ok bool) // of a kind of node; nil: always
	Able       func() bool                                // whether this process can lead runs now; nil: always
	Ahead      int                                        // see AheadOf
	Lease      time.Duration                              // of batches and roles; 0: their defaults
	Tries      int
	Deadline   time.Duration // of attempts
	Logger     *slog.Logger
	Checkpoint func(job.CrashPoint)
	Queue      queue.Queue                                       // closed by Stop; nil: one of its own
	Open       func(ctx context.Context, key state.RunKey) error // opens a run of which a hint has come; nil: none is
	Heard      func(queue.Signal)                                // of a run that is not open; may be nil
	Hinted     func(executor.Fate)                               // see executor.Config
	Slowest    time.Duration                                     // see coordinator.Config.FollowSlowest
	Clock      job.Clock
	Sampler    *samples.Sampler // of what this process uses, while it works; nil: none
	Sheets     *Sheets          // of what this process does for runs; nil: none
}

// aheadMost is the most batches that a process has in flight beside those that it computes. More
// would be missing to others when a node has few left.
const aheadMost = 1

// AheadOf returns the number of such batches for a process that keeps its parts in store: 0 where
// nothing has to be moved.
func AheadOf(store parts.Store) int {
	if store.Properties().Local {
		return 0
	}
	return aheadMost
}

// OpenRun is a run that this process works on.
type OpenRun struct {
	*coordinator.Coordinator
	Job  *pipeline.Pipeline
	Lock *instance.RunLock
}

// SamplerOf returns what takes the samples of this process for an instance.
func SamplerOf(home *instance.Instance) *samples.Sampler {
	return samples.New(home.State, job.Owner(), home.Clock.Now, samples.Reader(home.Dir))
}

// New starts an executor, which works until ctx ends or stop is called.
func New(ctx context.Context, cfg Config) *Process {
	if cfg.Queue == nil {
		cfg.Queue = inproc.New(0)
	}
	c := &Process{cfg: cfg, Owner: job.Owner(), Queue: cfg.Queue, runs: map[state.RunKey]*OpenRun{},
		ended: make(chan struct{})}
	c.taken = newDrained(c.Queue)
	c.Exec = executor.New(executor.Config{Store: cfg.Store, Queue: c.taken, Runs: c, Owner: c.Owner,
		Slots: cmp.Or(cfg.Most, cfg.Slots+cfg.Ahead), Admit: cfg.Admit, Room: cfg.Room, Lease: cfg.Lease,
		Tries: cfg.Tries, Deadline: cfg.Deadline,
		Logger: cfg.Logger, Checkpoint: cfg.Checkpoint, Hinted: cfg.Hinted, Clock: cfg.Clock,
		Sheet: cfg.Sheets.Meter()})
	ctx, c.cancel = context.WithCancel(ctx)
	go func() {
		defer close(c.ended)
		var listening sync.WaitGroup
		listening.Go(func() { c.listen(ctx) })
		listening.Go(func() { c.notice(ctx) })
		listening.Go(func() { c.sample(ctx) })
		listening.Go(func() { c.keepSheets(ctx) })
		c.err = c.Exec.Work(ctx)
		c.cancel()
		listening.Wait()
	}()
	return c
}

// sample takes samples until ctx ends, and then the last one of what it has samples of.
func (c *Process) sample(ctx context.Context) {
	if c.cfg.Sampler == nil {
		return
	}
	take := func(ctx context.Context) {
		c.mu.Lock()
		runs := slices.Collect(maps.Keys(c.runs))
		c.mu.Unlock()
		if err := c.cfg.Sampler.Take(ctx, runs); err != nil && ctx.Err() == nil {
			c.cfg.Logger.Debug("what this worker uses could not be recorded", "error", err)
		}
	}
	began := time.Now()
	take(ctx)
	instance.Every(ctx, samples.Every, take)
	if time.Since(began) < samples.Every {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), instance.PresenceTimeout)
	defer cancel()
	take(limited)
}

// End ends the executor: what is in flight has its grace, and is given back.
func (c *Process) End() error {
	c.cancel()
	<-c.ended
	for _, run := range c.cfg.Sheets.Meter().Runs() {
		c.closeSheet(run)
	}
	return c.err
}

// Stop is end, and the end of the queue. Whoever still has to tell others that it
// leaves a run does so before.
func (c *Process) Stop() error { return errors.Join(c.End(), c.Queue.Close()) }

// Drain begins no more batches, and waits for those in flight, for so long at most.
func (c *Process) Drain(ctx context.Context, most time.Duration) {
	c.taken.close()
	patience := time.NewTimer(most)
	defer patience.Stop()
	select {
	case <-c.ended:
	case <-patience.C:
	case <-ctx.Done():
	}
}

// Open begins to work on a run whose job is done by content: itself, or others
// in its name. The lock is the process's from now on.
func (c *Process) Open(ctx context.Context, key state.RunKey, urgent state.Priority, job *pipeline.Pipeline,
	content job.Job, lock *instance.RunLock, observe func(job.Event)) *OpenRun {
	r := &OpenRun{Job: job, Lock: lock,
		Coordinator: coordinator.New(ctx, coordinator.Config{Store: c.cfg.Store, Queue: keeping{c.Queue, c.Exec},
			Job: content, Owner: c.Owner, Able: c.cfg.Able,
			Slots: c.cfg.Slots + c.cfg.Ahead, Priority: levelOf(urgent), Near: job.Near, Lease: c.cfg.Lease,
			FollowSlowest: c.cfg.Slowest, Logger: c.cfg.Logger, Observe: observe, Checkpoint: c.cfg.Checkpoint,
			Clock: c.cfg.Clock}, key)}
	c.cfg.Sheets.Meter().Open(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[key] = r
	return r
}

// levelOf is which hints of the queue are those of a run.
func levelOf(p state.Priority) queue.Priority {
	switch p {
	case state.PriorityHigh:
		return queue.High
	case state.PriorityLow:
		return queue.Low
	}
	return queue.Normal
}

// Leave ends the work on a run whose coordinator has ended: what is in flight
// has its grace, and hints that are left are dropped.
func (c *Process) Leave(ctx context.Context, key state.RunKey) error {
	c.mu.Lock()
	delete(c.runs, key)
	c.mu.Unlock()
	err := c.Exec.Leave(ctx, key)
	c.closeSheet(key)
	if c.Queue.Shared() { // what was given back is free now
		c.signal(ctx, queue.Signal{RunKey: key, Kind: queue.Freed})
	}
	return err
}
