package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"thalweg/internal/budget"
	"thalweg/internal/plan"
	"thalweg/internal/remote"
	"thalweg/internal/script"
	"thalweg/internal/secret"
	"thalweg/internal/state"
	"thalweg/internal/worker"
)

// How often a worker looks for runs that it does not work on yet, and how long it
// leaves alone one on which it cannot work: twice as long each time.
const (
	lookForRuns = 250 * time.Millisecond
	refusalMin  = time.Second
	refusalMax  = time.Minute
)

// WorkerOptions say how a worker works.
type WorkerOptions struct {
	Known        *secret.Known
	MemoryBytes  int64 // 0: a share of the machine's
	Cores        int   // 0: the machine's
	Interpreter  string
	Keeper       string        // see python.Config
	RowTimeout   time.Duration // see Options
	GroupTimeout time.Duration
	Remote       *remote.Client
	Logger       *slog.Logger
	Observe      func(worker.Event)      // of all runs; called from several goroutines
	Lease        time.Duration           // of claims; 0: the default
	Checkpoint   func(worker.CrashPoint) // for tests that die there; may be nil
	Joined       func(key state.RunKey)  // it works on a run now; may be nil
	Waiting      func(text string)       // see Options
}

// Serve takes batches of all runs of the state directory until ctx ends. It
// coordinates them as well, where nobody else does. When ctx ends it gives back
// what is in flight: the runs go on in other processes, or when they are resumed.
func Serve(ctx context.Context, home *Home, opts WorkerOptions) (err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Observe == nil {
		opts.Observe = func(worker.Event) {}
	}
	t, err := newTools(home, Options{MemoryBytes: opts.MemoryBytes, Cores: opts.Cores, Interpreter: opts.Interpreter, Keeper: opts.Keeper, RowTimeout: opts.RowTimeout,
		GroupTimeout: opts.GroupTimeout, Remote: opts.Remote, Known: opts.Known, Logger: opts.Logger, Waiting: opts.Waiting})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	s := &server{tools: t, opts: opts, refused: map[string]refusal{}, joined: map[state.RunKey]bool{},
		crew: newCrew(ctx, crewConfig{store: t.store, slots: slotsOf(opts.Cores), lease: opts.Lease, logger: opts.Logger, checkpoint: opts.Checkpoint})}
	err = s.watch(ctx)
	err = errors.Join(err, s.crew.stop())
	s.runs.Wait()
	return err
}

// server is one call of Serve.
type server struct {
	*tools
	opts WorkerOptions
	crew *crew
	runs sync.WaitGroup

	mu      sync.Mutex
	joined  map[state.RunKey]bool
	refused map[string]refusal // by run and epoch; only join reads and writes it
}

// refusal is of a run that cannot be worked on here, as it and this machine are.
type refusal struct {
	until time.Time
	wait  time.Duration
}

// watch joins every run that comes up, until ctx ends.
func (s *server) watch(ctx context.Context) error {
	tick := time.NewTicker(lookForRuns)
	defer tick.Stop()
	for all := true; ; all = false {
		if err := s.join(ctx, all); err != nil && ctx.Err() == nil {
			return err
		}
		if err := s.rest(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// rest gives back the memory while there is nothing to do.
func (s *server) rest() error {
	s.mu.Lock()
	busy := len(s.joined) > 0
	s.mu.Unlock()
	if busy || s.shares == nil {
		return nil
	}
	return s.giveBack()
}

// join joins the runs that are running: all of them, or those among the latest.
func (s *server) join(ctx context.Context, all bool) error {
	workspaces, err := s.store.Workspaces(ctx)
	if err != nil {
		return fmt.Errorf("look for workspaces: %w", err)
	}
	for _, w := range workspaces {
		for page := (state.Page{}); ; {
			runs, next, err := s.store.Runs(ctx, w, page)
			if err != nil {
				return fmt.Errorf("look for runs of workspace %s: %w", w, err)
			}
			for _, r := range runs {
				s.consider(ctx, r)
			}
			if page.From = next; next == 0 || !all {
				break
			}
		}
	}
	return nil
}

func (s *server) consider(ctx context.Context, r state.Run) {
	how := fmt.Sprint(r.RunKey, r.Epoch)
	s.mu.Lock()
	known := r.Status != state.Running || s.joined[r.RunKey] || time.Now().Before(s.refused[how].until)
	s.mu.Unlock()
	if known || ctx.Err() != nil {
		return
	}
	run, err := s.open(ctx, r.RunKey)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		s.refuse(how, r, err)
		return
	}
	delete(s.refused, how)
	s.mu.Lock()
	s.joined[r.RunKey] = true
	s.mu.Unlock()
	if s.opts.Joined != nil {
		s.opts.Joined(r.RunKey)
	}
	s.runs.Go(func() { s.drive(ctx, r.RunKey, run) })
}

// refuse leaves a run alone for a while, and says so the first time.
func (s *server) refuse(how string, r state.Run, err error) {
	before := s.refused[how].wait
	if before == 0 {
		s.opts.Logger.Warn("a run cannot be worked on here", "run", r.Run, "workspace", r.Workspace, "error", err)
	}
	wait := min(max(refusalMin, 2*before), refusalMax)
	s.refused[how] = refusal{until: time.Now().Add(wait), wait: wait}
}

// open loads a run from what was pinned of it.
func (s *server) open(ctx context.Context, key state.RunKey) (_ *openRun, err error) {
	run, err := s.store.Run(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	pins, err := pinnedOf(ctx, s.store, run)
	if err != nil {
		return nil, err
	}
	if pins == nil {
		return nil, notPinned(key)
	}
	src := Sources(s.opts.Remote, pins.Dir, run.ScriptPath, run.ParamsPath)
	src.Known = s.opts.Known
	sc, err := pins.load(ctx, run, src)
	if err != nil {
		return nil, err
	}
	lock, _, err := s.home.JoinRun(key)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	if err := s.enter(ctx, true); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, sc, pins.Dir, key); err != nil {
		return nil, err
	}
	job := s.job(jobOf{script: sc, run: key, identity: s.home.identityOf(run), from: run.Sources, planning: pins.Budget, ephemeral: pins.Ephemeral, dir: pins.Dir, ownCopies: true})
	return s.crew.open(ctx, key, job, lock, s.opts.Observe), nil
}

// prepare has the interpreters import the run's Python code, once there are any.
func (s *server) prepare(ctx context.Context, sc *script.Script, dir string, key state.RunKey) error {
	nodes, err := s.store.Nodes(ctx, key)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	var mine []*script.Node
	python := false
	for _, n := range nodes {
		if node := sc.Node(n.Name); node != nil {
			mine, python = append(mine, node), python || plan.ProgramOf(node) != nil
		}
	}
	if !python {
		return nil
	}
	if err := s.openPool(); err != nil {
		return err
	}
	return s.checkPython(ctx, dir, mine)
}

// drive works on a run until it is over, or ctx ends.
func (s *server) drive(ctx context.Context, key state.RunKey, run *openRun) {
	status, err := run.Run()
	err = errors.Join(err, s.crew.leave(ctx, key))
	run.job.Close()
	if status != state.Running && ctx.Err() == nil {
		s.sweepLeavings(ctx, key, false)
	}
	err = errors.Join(err, run.lock.Close())
	if err != nil && ctx.Err() == nil {
		s.opts.Logger.Error("the state of a run could not be kept", "run", key.Run, "error", err)
	}
	if status != state.Running {
		s.opts.Observe(worker.Event{Run: key, Time: time.Now(), Kind: worker.RunFinished, Status: status})
	}
	s.mu.Lock()
	delete(s.joined, key)
	s.mu.Unlock()
}

// slotsOf is how many batches a worker has in flight at most; its memory may
// allow fewer at once.
func slotsOf(cores int) int {
	if cores == 0 {
		return budget.Cores()
	}
	return cores
}
