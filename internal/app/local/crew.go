package local

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"thalweg/internal/run/coordinator"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/queue/inproc"
	"thalweg/internal/store/state"
)

// crew is what works in one process: an executor, and a coordinator for each
// run that is open. It implements executor.Runs.
type crew struct {
	cfg    crewConfig
	owner  string
	queue  queue.Queue
	taken  *drained // what the executor takes hints from
	exec   *executor.Executor
	cancel context.CancelFunc // of the executor
	ended  chan struct{}      // closed when the executor has ended
	err    error              // of the executor, then

	mu   sync.Mutex
	runs map[state.RunKey]*openRun
}

// crewConfig says how a crew works.
type crewConfig struct {
	store      state.Store
	slots      int
	most       int // batches in flight that admit lets claim; 0: slots and ahead
	admit      func(ctx context.Context) (release func(), err error)
	room       func(class string) (leave func(), ok bool) // of a kind of node; nil: always
	able       func() bool                                // whether this process can lead runs now; nil: always
	ahead      int                                        // see aheadOf
	lease      time.Duration                              // of batches and roles; 0: their defaults
	tries      int
	deadline   time.Duration // of attempts
	logger     *slog.Logger
	checkpoint func(job.CrashPoint)
	queue      queue.Queue                                       // closed by the crew; nil: one of its own
	open       func(ctx context.Context, key state.RunKey) error // opens a run of which a hint has come; nil: none is
	heard      func(queue.Signal)                                // of a run that is not open; may be nil
	hinted     func(executor.Fate)                               // see executor.Config
	slowest    time.Duration                                     // see coordinator.Config.FollowSlowest
	clock      job.Clock
}

// aheadMost is how many batches a process has in flight beside those that it
// computes. More would be missing to others when a node has few left.
const aheadMost = 1

// aheadOf is how many a process has that keeps its parts in store: none where
// nothing has to be moved.
func aheadOf(store parts.Store) int {
	if store.Properties().Local {
		return 0
	}
	return aheadMost
}

// openRun is a run that this process works on.
type openRun struct {
	*coordinator.Coordinator
	job  *pipeline.Pipeline
	lock *RunLock
}

// newCrew starts an executor, which works until ctx ends or stop is called.
func newCrew(ctx context.Context, cfg crewConfig) *crew {
	if cfg.queue == nil {
		cfg.queue = inproc.New(0)
	}
	c := &crew{cfg: cfg, owner: job.Owner(), queue: cfg.queue, runs: map[state.RunKey]*openRun{},
		ended: make(chan struct{})}
	c.taken = newDrained(c.queue)
	c.exec = executor.New(executor.Config{Store: cfg.store, Queue: c.taken, Runs: c, Owner: c.owner,
		Slots: cmp.Or(cfg.most, cfg.slots+cfg.ahead), Admit: cfg.admit, Room: cfg.room, Lease: cfg.lease, Tries: cfg.tries,
		Deadline: cfg.deadline,
		Logger:   cfg.logger, Checkpoint: cfg.checkpoint, Hinted: cfg.hinted, Clock: cfg.clock})
	ctx, c.cancel = context.WithCancel(ctx)
	go func() {
		defer close(c.ended)
		var listening sync.WaitGroup
		listening.Go(func() { c.listen(ctx) })
		listening.Go(func() { c.notice(ctx) })
		c.err = c.exec.Work(ctx)
		c.cancel()
		listening.Wait()
	}()
	return c
}

// end ends the executor: what is in flight has its grace, and is given back.
func (c *crew) end() error {
	c.cancel()
	<-c.ended
	return c.err
}

// stop is end, and the end of the queue. Whoever still has to tell others that it
// leaves a run does so before.
func (c *crew) stop() error { return errors.Join(c.end(), c.queue.Close()) }

// drain begins no more batches, and waits for those in flight, for so long at most.
func (c *crew) drain(ctx context.Context, most time.Duration) {
	c.taken.close()
	patience := time.NewTimer(most)
	defer patience.Stop()
	select {
	case <-c.ended:
	case <-patience.C:
	case <-ctx.Done():
	}
}

// open begins to work on a run whose job is done by content: itself, or others
// in its name. The lock is the crew's from now on.
func (c *crew) open(ctx context.Context, key state.RunKey, urgent state.Priority, job *pipeline.Pipeline,
	content job.Job, lock *RunLock, observe func(job.Event)) *openRun {
	r := &openRun{job: job, lock: lock,
		Coordinator: coordinator.New(ctx, coordinator.Config{Store: c.cfg.store, Queue: keeping{c.queue, c.exec},
			Job: content, Owner: c.owner, Able: c.cfg.able,
			Slots: c.cfg.slots + c.cfg.ahead, Priority: levelOf(urgent), Near: job.Near, Lease: c.cfg.lease,
			FollowSlowest: c.cfg.slowest, Logger: c.cfg.logger, Observe: observe, Checkpoint: c.cfg.checkpoint,
			Clock: c.cfg.clock}, key)}
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

// leave ends the work on a run whose coordinator has ended: what is in flight
// has its grace, and hints that are left are dropped.
func (c *crew) leave(ctx context.Context, key state.RunKey) error {
	c.mu.Lock()
	delete(c.runs, key)
	c.mu.Unlock()
	err := c.exec.Leave(ctx, key)
	if c.queue.Shared() { // what was given back is free now
		c.signal(ctx, queue.Signal{RunKey: key, Kind: queue.Freed})
	}
	return err
}
