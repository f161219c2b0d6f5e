package python

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
)

// Config configures a pool of interpreters. Zero values are defaults.
type Config struct {
	Interpreter string // "python3" if empty; looked for in PATH if it has no slash
	Size        int    // number of processes; GOMAXPROCS if 0
	Early       int    // so many of them are started at once, the others when there is work for them
	MemoryBytes int64  // limit of each process, at least MinMemoryBytes; 0: none
	// a process that has grown beyond is replaced between chunks; 3/4 of MemoryBytes, or DefaultRecycleBytes
	RecycleBytes  int64
	RowTimeout    time.Duration // that one row may take; DefaultRowTimeout
	GroupTimeout  time.Duration // that one call of a function over many rows may take; DefaultGroupTimeout
	MaxGroupBytes int64         // rows of one such call, as they travel; DefaultMaxGroupBytes
	ImportTimeout time.Duration // that a program's files may take to import; DefaultImportTimeout
	ChunkTarget   time.Duration // that a chunk of rows should take; DefaultChunkTarget
	// a chunk is closed when it has so many bytes; DefaultMaxChunkBytes. A Run holds about 2·Size+2 times as much
	MaxChunkBytes  int64
	MaxResultBytes int64  // results of one chunk; DefaultMaxResultBytes
	Dir            string // working directory of the interpreters; ours if empty
	// executable that is a keeper when it is called as one (package keeper), so that what formulas start ends with
	// them; "": process groups do what they can
	Keeper string
	// "NAME=value": the interpreters' environment, beyond PATH, HOME and LANG of ours, TZ=UTC, PYTHONHASHSEED=0, PyPy's
	// limits and one thread for libraries
	Env    []string
	Logger *slog.Logger // discarded if nil

	clock func() time.Time // for tests: of the limits of rows, calls and imports, instead of a stopwatch
}

func (c *Config) setDefaults() {
	c.Interpreter = or(c.Interpreter, "python3")
	c.Size = or(c.Size, runtime.GOMAXPROCS(0))
	c.RowTimeout = or(c.RowTimeout, DefaultRowTimeout)
	c.GroupTimeout = or(c.GroupTimeout, DefaultGroupTimeout)
	c.MaxGroupBytes = or(c.MaxGroupBytes, DefaultMaxGroupBytes)
	c.ImportTimeout = or(c.ImportTimeout, DefaultImportTimeout)
	c.ChunkTarget = or(c.ChunkTarget, DefaultChunkTarget)
	c.MaxChunkBytes = or(c.MaxChunkBytes, DefaultMaxChunkBytes)
	c.MaxResultBytes = or(c.MaxResultBytes, DefaultMaxResultBytes)
	if c.MemoryBytes > 0 {
		c.RecycleBytes = or(c.RecycleBytes, c.MemoryBytes/4*3)
	}
	c.RecycleBytes = or(c.RecycleBytes, DefaultRecycleBytes)
	c.Logger = or(c.Logger, slog.New(slog.DiscardHandler))
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Pool owns a number of interpreter processes. They are started with it or when there
// is work for them, and live until Close. Its methods may be called by any number of
// goroutines.
type Pool struct {
	cfg  Config
	path string // of the interpreter

	closing chan struct{}  // closed by Close
	starts  chan func()    // what is to be done by the thread that starts processes
	slotsWG sync.WaitGroup // goroutines of slots
	startWG sync.WaitGroup // the starter
	runsWG  sync.WaitGroup // Runs

	mu       sync.Mutex // guards what follows, the schedule's part of runs and slots included
	closed   bool
	runs     []*run
	slots    []*slot
	limit    int    // so many of them work
	sequence uint64 // of the last chunk made
}

// Find gives the path of an interpreter: "python3" if it is empty.
func Find(interpreter string) (path string, err error) {
	interpreter = or(interpreter, "python3")
	if path, err = keeper.Find(interpreter); err != nil {
		f := fault.New(fault.Environment, "the Python interpreter %s is not there", interpreter)
		f.Err, f.Hint = err, "install Python 3.9 or later (or PyPy), or name another interpreter"
		return "", f
	}
	return path, nil
}

// NewPool makes a pool. It looks for the interpreter, but does not wait for processes to start.
func NewPool(cfg Config) (*Pool, error) {
	cfg.setDefaults()
	if cfg.Size < 0 || cfg.MemoryBytes < 0 || cfg.RowTimeout < 0 || cfg.GroupTimeout < 0 || cfg.MaxGroupBytes < 0 ||
		cfg.ChunkTarget < 0 || cfg.MaxChunkBytes < 0 {
		return nil, fault.New(fault.Bug, "a negative limit for Python")
	}
	if cfg.MemoryBytes > 0 && cfg.MemoryBytes < MinMemoryBytes {
		return nil, fault.New(fault.Environment,
			"%d bytes of memory are too few for a Python process: at least %d are needed",
			cfg.MemoryBytes, MinMemoryBytes)
	}
	path, err := Find(cfg.Interpreter)
	if err != nil {
		return nil, err
	}
	p := &Pool{cfg: cfg, path: path, limit: cfg.Size, closing: make(chan struct{}), starts: make(chan func())}
	for i := range cfg.Size {
		s := &slot{pool: p, index: i, wake: make(chan struct{}, 1), early: i < cfg.Early}
		p.slots = append(p.slots, s)
	}
	p.startWG.Add(1)
	go p.starter()
	p.slotsWG.Add(len(p.slots))
	for _, s := range p.slots {
		go s.serve()
	}
	return p, nil
}

// starter keeps one thread for starting processes: where they die with their
// parent, the system takes the thread that started them for it, and the Go
// runtime may end any other thread.
func (p *Pool) starter() {
	defer p.startWG.Done()
	runtime.LockOSThread()
	for f := range p.starts {
		f()
	}
}

// Limit has n processes at most from now on, and as many as Size at most. It does not
// wait: it reports whether the others have ended. Those end when they have computed
// what they have got. Of 0 there is nobody who computes until there are more.
func (p *Pool) Limit(n int) (done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	more := n > p.limit
	p.limit, done = n, true
	for _, s := range p.slots[min(n, len(p.slots)):] {
		if s.load > 0 || s.live {
			done = false
			s.rouse()
		}
	}
	if more {
		p.schedule()
	}
	return done
}

// start starts a process.
func (p *Pool) start() (proc *process, err error) {
	done := make(chan struct{})
	p.starts <- func() {
		defer close(done)
		proc, err = startProcess(&p.cfg, p.path)
	}
	<-done
	return proc, err
}

// Close ends every process and waits for it, and for Runs that are under way:
// they fail as canceled. It may be called twice.
func (p *Pool) Close() error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.mu.Unlock()
	if first {
		close(p.closing)
	}
	p.slotsWG.Wait()
	if first {
		close(p.starts)
	}
	p.startWG.Wait()
	p.runsWG.Wait()
	return nil
}

// Doubt names, in what Check answers, something in the code that may give
// another result each time, or read what nobody knows of: a clock, chance, a
// file. It is looked for in the text, and errs on the side of doubt.
const Doubt = "doubt"

// Check imports the program's code in one interpreter and compiles its
// expressions, to find out what is wrong with them before a run starts. It
// answers with what decides about the program's results beside the program,
// by name: the interpreter's version and the modules that the code imports.
func (p *Pool) Check(ctx context.Context, prog *Program) (surroundings map[string]string, err error) {
	ready, err := prepare(prog, false)
	if err != nil {
		return nil, err
	}
	r := p.newRun(ready)
	if err := p.join(r); err != nil {
		return nil, err
	}
	defer p.leave(r)
	c := &chunk{run: r, columns: newEncoder(ready).encode(), done: make(chan struct{})} // no rows
	if !p.offer(c) {
		return nil, fault.New(fault.Bug, "the pool has no room for a check")
	}
	if err := r.await(ctx, c); err != nil {
		return nil, err
	}
	if c.err != nil {
		return nil, c.err
	}
	if c.answer == nil {
		return nil, p.canceled(ctx)
	}
	return c.answer.report.Surroundings, nil
}

// canceled is the failure of work that was given up for ctx, or for the pool's end.
func (p *Pool) canceled(ctx context.Context) error {
	f := fault.New(fault.Canceled, "the Python formulas were stopped")
	f.Retryable = true
	if f.Err = context.Cause(ctx); f.Err == nil {
		f.Err = ErrClosed
	}
	return f
}

// ErrClosed is the cause of failures after Close.
var ErrClosed = errors.New("the pool of Python interpreters is closed")
