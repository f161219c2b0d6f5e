package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"thalweg/internal/base/awake"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
	"thalweg/internal/io/inputcache"
	"thalweg/internal/run/job"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// Config of a worker's slots. Zero values are defaults.
type Config struct {
	Command  func() keeper.Program // a child: the same program, with Command; Slots says the rest
	Size     int                   // slots
	WorkDir  string                // for what children keep on the disk: private to this process
	Settings json.RawMessage       // for the children's Host
	State    state.Store
	Parts    parts.Store
	Room     Room
	Nice     int           // by how much children give way to this process, 0 to 19
	Grace    time.Duration // see GraceDefault
	Silence  time.Duration // see SilenceDefault
	Logger   *slog.Logger
	Ended    func(End) // is told of each child that was not told to end; may be nil. Called from several goroutines
}

// batches is the kind of the children that execute batches.
func (c Config) batches() Kind { return Kind{Command: c.Command, Settings: c.Settings} }

// End is the reason for which a child ended without being told to. The texts name metrics: they do not
// change. The texts name metrics: they do not change.
type End string

// Why children end.
const (
	Memory End = "memory" // the system had none for it, as far as one can tell
	Killed End = "killed" // by its worker: it stood still, did not stop, or could not begin
	Died   End = "died"
)

// Slots are a worker's children. Each is started when there is a batch for it.
// Its methods may be called by any number of goroutines; Close after all others.
type Slots struct {
	cfg    Config
	free   chan *place // all that no batch has
	all    []*place
	starts chan func() // what is to be done by the thread that starts children
	work   sync.WaitGroup
	stop   context.CancelFunc // of those who watch the children
	life   context.Context    //nolint:containedctx // of the slots

	noted    sync.Once // of what children note at their start: it is the same of all
	openings atomic.Int64
	mu       sync.Mutex
	copiers  map[state.RunKey]Copier
}

// place is a slot: nobody but who has it uses its process.
type place struct {
	number   int
	process  *process // nil: none was started yet
	failures int      // starts that failed, one after the other
	used     time.Time
}

// New returns slots, none of which has a child yet.
func New(cfg Config) *Slots {
	cfg.Size = max(cfg.Size, 1)
	if cfg.Grace == 0 {
		cfg.Grace = GraceDefault
	}
	if cfg.Silence == 0 {
		cfg.Silence = SilenceDefault
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Ended == nil {
		cfg.Ended = func(End) {}
	}
	s := &Slots{cfg: cfg, free: make(chan *place, cfg.Size), starts: make(chan func()),
		copiers: map[state.RunKey]Copier{}}
	s.life, s.stop = context.WithCancel(context.Background())
	for i := range cfg.Size {
		at := &place{number: i + 1}
		s.all = append(s.all, at)
		s.free <- at
	}
	s.work.Go(s.starter)
	return s
}

// starter keeps one thread for starting children: the system ends a child with
// the thread that has started it, and the Go runtime may end any other.
func (s *Slots) starter() {
	runtime.LockOSThread()
	giveWay(s.cfg.Nice) // only this thread does, and what it starts
	for start := range s.starts {
		start()
	}
}

// Close ends the children and waits for them.
func (s *Slots) Close() error {
	s.stop()
	var ends sync.WaitGroup
	for _, at := range s.all {
		if at.process != nil {
			ends.Go(at.process.end)
		}
	}
	ends.Wait()
	close(s.starts)
	s.work.Wait()
	return nil
}

// Job executes the batches of a run in children; all else of it stays inner's.
// Each Job makes the children open the run anew.
func (s *Slots) Job(key state.RunKey, inner job.Job, copies Copier) job.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copiers[key] = copies
	return &sandboxedJob{Job: inner, slots: s, opening: s.openings.Add(1)}
}

// Leave forgets a run of which nothing is executed any more.
func (s *Slots) Leave(key state.RunKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.copiers, key)
}

// copies makes copies of remote files for a child.
func (s *Slots) copies(ctx context.Context, a copiesArgs) (any, error) {
	s.mu.Lock()
	copier := s.copiers[a.Run]
	s.mu.Unlock()
	if copier == nil {
		return nil, fault.New(fault.Bug, "run %d is not open any more", a.Run.Run)
	}
	return copiesOf(ctx, copier, a.Wants)
}

func copiesOf(ctx context.Context, copier Copier, wants []inputcache.Want) ([]inputcache.Copy, error) {
	return copier.EnsureAll(ctx, wants)
}

// take waits for a slot, and for a child of a kind in it.
func (s *Slots) take(ctx context.Context, kind Kind) (*place, error) {
	var at *place
	stopWait := awake.Waits(ctx)
	defer stopWait()
	select {
	case at = <-s.free:
		stopWait()
	case <-ctx.Done():
		return nil, canceled(ctx, "waiting for a slot")
	}
	at = s.better(at, kind)
	if err := s.ready(ctx, at, kind); err != nil {
		s.free <- at
		return nil, err
	}
	return at, nil
}

// better exchanges a place for a free one whose child is of a kind; else for one that has no child, or whose child is
// idle for longest.
func (s *Slots) better(at *place, kind Kind) *place {
	rank := func(p *place) (n int) {
		switch {
		case p.process == nil || p.process.gone():
			return 1
		case p.process.kind.is(kind):
			return 2
		}
		return 0
	}
	for range len(s.free) {
		select {
		case other := <-s.free:
			if a, b := rank(at), rank(other); b > a || b == a && other.used.Before(at.used) {
				at, other = other, at
			}
			s.free <- other
		default: // somebody was faster
			return at
		}
	}
	return at
}

// ready sees to it that a slot has a child of a kind that lives.
func (s *Slots) ready(ctx context.Context, at *place, kind Kind) error {
	if p := at.process; p != nil && !p.gone() && !p.worn() && p.kind.is(kind) {
		return nil
	}
	if p := at.process; p != nil {
		if p.gone() && p.reason.Load() == nil && !p.told.Load() {
			s.cfg.Logger.Warn("a slot's process is replaced", "slot", at.number, "error", p.death("idle", ""))
		}
		p.end()
		at.process = nil
	}
	var err error
	for range startsMax {
		if err = pause(ctx, at.failures); err != nil {
			return canceled(ctx, "starting a slot's process")
		}
		if at.process, err = s.start(ctx, at.number, kind); err == nil {
			at.failures = 0
			return nil
		}
		if ctx.Err() != nil {
			return canceled(ctx, "starting a slot's process")
		}
		at.failures++
		s.cfg.Logger.Warn("a slot's process could not be started", "slot", at.number, "error", err)
	}
	return &fault.Error{Kind: fault.Environment, Retryable: true, Message: fmt.Sprintf("slot %d has no process",
		at.number), Err: err,
		Hint: "look whether the machine has memory and processes left (ulimit -u), or start the worker with {{set " +
			"no-isolate}}"}
}

// pause waits before a start that comes behind so many that failed.
func pause(ctx context.Context, failures int) error {
	if failures == 0 {
		return ctx.Err()
	}
	wait := startFirst
	for range failures - 1 {
		wait = min(2*wait, startLongest)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// start starts a child and tells it how to work.
func (s *Slots) start(ctx context.Context, number int, kind Kind) (p *process, err error) {
	done := make(chan struct{})
	s.starts <- func() {
		defer close(done)
		p, err = s.startProcess(number, kind)
	}
	<-done
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { p.kill("it did not begin to work in time") })()
	said := hello{Protocol: protocol, Slot: number, WorkDir: p.dir, Settings: kind.Settings, Bare: kind.Bare,
		Level: lowest(s.cfg.Logger), Beat: min(beatEvery, s.cfg.Silence/silenceTicks)}
	if !kind.Bare {
		said.Budget = s.cfg.Room.Budget()
	}
	answer, err := ask[helloAnswer](ctx, p.peer, "hello", said)
	if err == nil && answer.Protocol != protocol {
		err = fault.New(fault.Bug, "the child speaks version %d of the slots' protocol, not %d",
			answer.Protocol, protocol)
	}
	if errors.Is(err, errGone) {
		p.await()
		err = p.death("starting", "")
	}
	if err != nil {
		p.kill("it could not begin to work")
		p.await()
		return nil, err
	}
	p.first = answer.HeldBytes
	p.killsAt.Store(memoryKills())
	s.work.Go(func() { p.watch(s.life, s.cfg.Silence) })
	p.logger.Debug("a slot's process has started")
	for _, note := range answer.Notes {
		s.noted.Do(func() { p.logger.Warn("a slot's process is not held as it should be", "what", note) })
	}
	return p, nil
}

// worn reports whether a child has executed enough.
func (p *process) worn() bool { return p.batches >= batchesMax }

func canceled(ctx context.Context, doing string) error {
	return &fault.Error{Kind: fault.Canceled, Retryable: true, Message: doing + " was interrupted",
		Err: context.Cause(ctx)}
}
