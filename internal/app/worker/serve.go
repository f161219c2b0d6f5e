package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/workerprocess"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/retrying"
)

// How often a worker looks for runs that it does not work on yet, by itself and
// where signals and hints come that tell of them; and how long it leaves alone one
// on which it cannot work: twice as long each time.
const (
	lookForRuns = 250 * time.Millisecond
	lookShared  = 2 * time.Second
	refusalMin  = time.Second
	refusalMax  = time.Minute
	refusalKept = time.Hour // that it is remembered of a run that nobody has asked for since
)

// WorkerOptions say how a worker works.
type WorkerOptions struct {
	runtime.Process
	Joined        func(runner.Started)       // it works on a run now; may be nil
	Left          func(key state.RunKey)     // it does no more; may be nil
	Introspect    func(Introspection)        // called once, to look inside while it works; may be nil
	Wants         func(run state.Run) bool   // whether it works on a run; nil: on all
	Most          int                        // runs that it works on at once; 0: any number
	Isolate       *Isolation                 // its slots are processes; nil: they are goroutines
	Hinted        func(executor.Fate)        // see executor.Config
	SlotEnded     func(sandbox.End)          // see slot.Config
	Concurrency   concurrency.Fixed          // how much is done at once; what is not said is found by measuring
	Decided       func(concurrency.Decision) // how much is done at once was changed; may be nil
	FollowSlowest time.Duration              // see coordinator.Config
	// version of DuckDB that it says it has, for tests of upgrades; "": its own
	Engine string
	// closed: no more batches are begun, and Serve ends when those in flight have; nil: never
	Drain     <-chan struct{}
	DrainTime time.Duration // that those may take then
}

// Serve takes batches of all runs of the state directory until ctx ends. It
// coordinates them as well, where nobody else does. When ctx ends it gives back
// what is in flight: the runs go on in other processes, or when they are resumed.
func Serve(ctx context.Context, home *instance.Instance, opts WorkerOptions) (err error) {
	opts.Process = opts.WithDefaults()
	if opts.Observe == nil {
		opts.Observe = func(job.Event) {}
	}
	process := opts.Process
	process.Isolated, process.StateWithin, process.Observe = opts.Isolate != nil, retrying.Forever, nil
	t, err := runtime.New(home, process)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if _, err := t.Split(cmp.Or(opts.MemoryBytes, budget.Default()), false); err != nil {
		return err // too little for any run
	}
	sheets, counted, err := workerprocess.Account(home, t.Store, workerprocess.Means{Getenv: t.Process.Getenv,
		Cores: opts.Cores, Slots: slotsOf(opts.Cores), Memory: opts.MemoryBytes, Held: t.Held})
	if err != nil {
		return err
	}
	t.Store = counted
	shared, err := home.OpenQueue(ctx, opts.Logger)
	if err != nil {
		return err
	}
	s := &Server{Runtime: t, opts: opts, refused: map[string]refusal{}, joined: map[state.RunKey]bool{},
		unread: map[string]string{}, called: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	s.able = newAble(s)
	if q, ok := shared.(interface{ Stats() queue.Stats }); ok {
		s.able.broker = q.Stats
	}
	s.Runtime.Process.Waiting = s.waiting
	s.opts.Observe = s.sums.wrap(s.draining, s.heeding(opts.Observe))
	ready := make(chan struct{})
	works, leave := context.WithCancelCause(ctx)
	s.limiter = s.newLimiter()
	s.work = workerprocess.New(ctx, workerprocess.Config{Queue: shared, Most: opts.inFlightMost(),
		Admit: s.admit, Room: s.room,
		Able: s.able.is, Heard: s.look, Hinted: opts.Hinted, Slowest: opts.FollowSlowest,
		Open: func(use context.Context, key state.RunKey) error {
			<-ready
			if s.draining() || use.Err() != nil {
				return executor.ErrElsewhere
			}
			return s.hinted(works, key)
		},
		Store: t.Store, Slots: slotsOf(opts.Cores), Ahead: workerprocess.AheadOf(home.Parts), Lease: opts.Lease,
		Tries:    opts.Tries,
		Deadline: opts.AttemptTimeout, Clock: home.Clock, Logger: opts.Logger, Checkpoint: opts.Checkpoint,
		Sampler: workerprocess.SamplerOf(home), Sheets: sheets})
	close(ready)
	if opts.Introspect != nil {
		opts.Introspect(Introspection{Queue: s.work.Queue, Budget: s.Held, AtOnce: s.limiter.Settings, Able: s.reasons})
	}
	stopTelling := s.Tell(ctx)
	stopWatching := s.watchAble(ctx)
	stopRegistering := s.registerWorker(ctx)
	stopKeepingTime := s.keepTime(ctx)
	stopSettling := s.settle(works)
	err = s.watch(works)
	if s.draining() {
		s.drain(works)
		leave(runner.ErrLeave)
	}
	leave(nil)
	err = errors.Join(err, s.work.End())
	s.wait()
	s.drained()
	err = errors.Join(err, s.work.Stop())
	stopTelling()
	stopRegistering()
	stopWatching()
	stopKeepingTime()
	stopSettling()
	return err
}

// Introspection holds the functions by which anybody can look at a worker while it works.
type Introspection struct {
	Queue  queue.Queue
	Budget func() (b budget.Budget, held bool) // that its batches have now
	AtOnce func() []concurrency.Setting        // how much is done at once
	Able   func() (cannot, notices []string)   // why it takes no work, and what somebody should look at
}

// settle has it decided how much is done at once, until ctx has ended; done waits for that.
func (s *Server) settle(ctx context.Context) (done func()) {
	var loop sync.WaitGroup
	loop.Go(func() { s.limiter.Watch(ctx) })
	return loop.Wait
}

// wait returns when nothing is worked on; the context of the runs has ended.
func (s *Server) wait() {
	s.joining.Lock() // who joins a run now begins none any more
	defer s.joining.Unlock()
	s.runs.Wait()
}

// Server is one call of Serve.
type Server struct {
	*runtime.Runtime
	opts    WorkerOptions
	work    *workerprocess.Process
	limiter *concurrency.Limiter
	able    *able
	sums    drainSums
	runs    sync.WaitGroup

	called  chan struct{} // somebody has asked to look for runs
	changed chan struct{} // its note says something else now
	joining sync.Mutex    // one run is joined at a time
	mu      sync.Mutex
	joined  map[state.RunKey]bool
	refused map[string]refusal // by run and epoch
	enters  state.RunKey       // the run that is being joined
	unread  map[string]string  // what cannot be read of workspaces; watch's own
}

// refusal is of a run that cannot be worked on here, as it and this machine are.
type refusal struct {
	until time.Time
	wait  time.Duration
	run   state.RunKey
	why   string
	// passes says that why may be over soon, by itself.
	passes bool
}

// watch joins every run that comes up, until ctx ends. A worker waits for a state that
// cannot be reached: its calls do, and what goes by them is tried again.
func (s *Server) watch(ctx context.Context) error {
	for {
		if err := s.join(ctx); err != nil && ctx.Err() == nil {
			if !retrying.Passes(err) {
				return err
			}
			s.opts.Logger.Debug("runs could not be looked for; it is tried again", "error", err)
		}
		if err := s.rest(); err != nil {
			return err
		}
		every := lookForRuns
		if s.work.Queue.Shared() {
			every = lookShared
		}
		pause := time.NewTimer(every)
		select {
		case <-ctx.Done():
			return nil
		case <-s.opts.Drain:
			return nil
		case <-s.called:
		case <-pause.C:
		}
		pause.Stop()
	}
}

// draining reports whether this worker was asked to finish what it has, and end.
func (s *Server) draining() bool {
	select {
	case <-s.opts.Drain:
		return true
	default:
		return false
	}
}

// rest gives back the memory while there is nothing to do.
func (s *Server) rest() error {
	s.mu.Lock()
	busy := len(s.joined) > 0
	s.mu.Unlock()
	if busy || s.Shares == nil {
		return nil
	}
	return s.GiveBack()
}

// join joins the runs that are running. What of a workspace cannot be read, and will not be
// later by itself, keeps nobody from the other runs: the first time it is told.
func (s *Server) join(ctx context.Context) (passing error) {
	workspaces, err := s.Store.Workspaces(ctx)
	if err != nil {
		return fmt.Errorf("look for workspaces: %w", err)
	}
	open := map[state.RunKey]bool{}
	for _, w := range workspaces {
		runs, err := state.OpenRuns(ctx, s.Store, w, s.worksOn)
		for _, r := range runs {
			open[r.RunKey] = true
			s.consider(ctx, r)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			delete(s.unread, w)
		case retrying.Passes(err):
			passing = errors.Join(passing, fmt.Errorf("look for runs of workspace %s: %w", w, err))
		case s.unread[w] != err.Error():
			s.unread[w] = err.Error()
			s.opts.Logger.Error("runs of a workspace cannot be read, and nobody works on them", "workspace",
				w, "error", err)
		}
	}
	var unread []string
	for _, w := range slices.Sorted(maps.Keys(s.unread)) {
		unread = append(unread, registry.Shorten(fmt.Sprintf("runs of workspace %s cannot be read: %s", w,
			s.opts.Known.Text(s.unread[w]))))
	}
	if s.able.cannotRead(unread) {
		s.saysElse()
	}
	if passing == nil && len(s.unread) == 0 {
		s.forgetRefused(open)
	}
	return passing
}

// forgetRefused forgets what was refused of runs that are over.
func (s *Server) forgetRefused(open map[state.RunKey]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.refused)
	maps.DeleteFunc(s.refused, func(_ string, r refusal) bool {
		return r.run != state.RunKey{} && !open[r.run] &&
			!s.joined[r.run]
	})
	if len(s.refused) < before {
		s.saysElse()
	}
}

// worksOn reports whether this process works on a run.
func (s *Server) worksOn(key state.RunKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joined[key]
}

func (s *Server) consider(ctx context.Context, r state.Run) {
	s.joining.Lock()
	defer s.joining.Unlock()
	how := fmt.Sprint(r.RunKey, r.Epoch)
	s.mu.Lock()
	known := !r.GoesOn() || s.joined[r.RunKey] || s.opts.Most > 0 && len(s.joined) >= s.opts.Most ||
		s.opts.Wants != nil && !s.opts.Wants(r) || time.Now().Before(s.refused[how].until)
	s.mu.Unlock()
	if known || ctx.Err() != nil || !s.able.is() {
		return
	}
	s.entering(r.RunKey)
	defer s.entering(state.RunKey{})
	run, rec, err := s.open(ctx, r.RunKey)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		s.refuse(how, r, err)
		return
	}
	s.mu.Lock()
	s.Follow(ctx, r.RunKey)
	delete(s.refused, how)
	s.joined[r.RunKey] = true
	s.mu.Unlock()
	s.saysElse()
	if s.opts.Joined != nil {
		s.opts.Joined(runner.Started{Key: r.RunKey, Resumed: true, Script: rec.Script, Dir: rec.Dir})
	}
	s.runs.Go(func() { s.drive(ctx, r.RunKey, how, run) })
}

// entering says which run is being joined, if any.
func (s *Server) entering(key state.RunKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enters = key
}

// entersOther reports whether a run other than this one is being joined.
func (s *Server) entersOther(key state.RunKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enters != state.RunKey{} && s.enters != key
}

// refuse leaves a run alone for a while, and says so the first time.
func (s *Server) refuse(how string, r state.Run, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.refused[how].wait
	if before == 0 {
		s.opts.Logger.Warn("a run cannot be worked on here", "run", r.Run, "workspace", r.Workspace, "error", err)
	}
	wait := min(max(refusalMin, 2*before), refusalMax)
	why, passes := WhyNot(err), fault.Passes(err) || errors.Is(err, state.ErrUnknown)
	maps.DeleteFunc(s.refused, func(_ string, r refusal) bool { return time.Now().After(r.until.Add(refusalKept)) })
	s.refused[how] = refusal{until: time.Now().Add(wait), wait: wait, run: r.RunKey, why: why, passes: passes}
	s.able.look() // it may be the reason
	s.saysElse()
}

// WhyNot is a refusal for those who read of it elsewhere: where, and what; without causes
// below, which may go on over pages.
func WhyNot(err error) string {
	f := fault.Of(err)
	if where := f.Place.String(); where != "" {
		return where + ": " + f.Message
	}
	return f.Message
}

// saysElse makes the worker's note say at once what has changed.
func (s *Server) saysElse() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// open loads a run from what was pinned of it.
func (s *Server) open(ctx context.Context, key state.RunKey) (_ *workerprocess.OpenRun, rec runtime.PinnedRun, err error) {
	rec, err = s.Recall(ctx, key)
	if err != nil {
		return nil, rec, err
	}
	if err := s.compatible(rec.Run); err != nil {
		return nil, rec, err
	}
	lock, _, err := s.Instance.JoinRun(key)
	if err != nil {
		return nil, rec, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	err = s.Enter(ctx, true)
	s.waiting("")
	if err != nil {
		return nil, rec, err
	}
	python, err := s.likePython(ctx, rec)
	if err != nil {
		return nil, rec, err
	}
	if err := s.openSlots(); err != nil {
		return nil, rec, err
	}
	job := s.Job(runtime.JobSpec{Policy: rec.Policy, Script: rec.Script, Sources: &rec.Sources, Run: key,
		Identity: s.Instance.IdentityOf(rec.Run),
		From:     rec.Run.Sources, Planning: rec.Budget, Ephemeral: rec.Ephemeral, Dir: rec.Dir, OwnCopies: true,
		Reuse: rec.Reuse, Chosen: rec.Chosen, Python: python})
	return s.work.Open(ctx, key, rec.Run.Priority, job, s.isolated(key, job), lock, s.opts.Observe), rec, nil
}

// likePython imports a run's Python code, and refuses one that began with another Python.
func (s *Server) likePython(ctx context.Context, rec runtime.PinnedRun) (map[string]map[string]string, error) {
	found, err := s.prepare(ctx, rec.Script, rec.Dir, rec.Run.RunKey)
	if err != nil {
		return nil, err
	}
	return found, s.samePython(rec.Settings, found)
}

// prepare has the interpreters import the run's Python code, once there are any.
func (s *Server) prepare(ctx context.Context, sc *script.Script, dir string,
	key state.RunKey) (map[string]map[string]string, error) {
	nodes, err := s.Store.Nodes(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	var mine []*script.Node
	python := false
	for _, n := range nodes {
		if node := sc.Node(n.Name); node != nil {
			mine, python = append(mine, node), python || plan.ProgramOf(node) != nil
		}
	}
	if !python {
		return nil, nil
	}
	if err := s.CheckRequirements(ctx, sc); err != nil {
		return nil, err
	}
	if err := s.OpenPool(); err != nil {
		return nil, err
	}
	found, err := s.CheckPython(ctx, dir, mine)
	if s.opts.Isolate != nil { // those that execute are the slots'
		err = errors.Join(err, s.ClosePool())
	}
	return found, err
}

// drive works on a run until it is over, nothing of it can be done before people
// decide, or ctx ends. how names the run as it was when it was joined.
func (s *Server) drive(ctx context.Context, key state.RunKey, how string, run *workerprocess.OpenRun) {
	status, err := run.Run()
	err = errors.Join(err, s.work.Leave(ctx, key))
	run.Job.Close()
	if s.Slots != nil {
		s.Slots.Leave(key)
	}
	if status.Terminal() && ctx.Err() == nil {
		s.SweepLeavings(ctx, key, false)
	}
	err = errors.Join(err, run.Lock.Close())
	if err != nil && ctx.Err() == nil {
		s.opts.Logger.Error("the state of a run could not be kept", "run", key.Run, "error", err)
	}
	if status.Terminal() {
		s.opts.Observe(job.Event{Run: key, Time: time.Now(), Kind: job.RunFinished, Status: status})
	}
	if s.opts.Left != nil {
		s.opts.Left(key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.joined, key)
	if err == nil { // an order to go on may have come meanwhile
		s.look(queue.Signal{})
	}
	if status == state.Waiting { // until somebody has decided, or may have been too late to
		s.refused[how] = refusal{until: time.Now().Add(refusalMax), wait: refusalMax}
	}
}

// slotsOf returns the most batches that a worker computes at once; its memory may allow fewer.
func slotsOf(cores int) int {
	if cores == 0 {
		return budget.Cores()
	}
	return cores
}
