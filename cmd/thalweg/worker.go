package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/metrics"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/job"
)

// workerCmd takes part in runs that others have begun.
type workerCmd struct {
	engineFlags
	remoteFlags
	openLineageFlag
	placeFlags
	metricsFlag
	Concurrency []string      `help:"How much is done at once, instead of what is found by measuring: N batches, or CLASS=N, or CLASS.KNOB=N. Classes are load, join, python and write; knobs are batches (in flight), threads (of the engine, a batch) and writers (requests at once that write parts)." placeholder:"CLASS=N"`
	Config      string        `help:"The same as --cluster." type:"path" placeholder:"FILE"`
	Drain       time.Duration `help:"How long batches in flight may take when the worker is asked to end (SIGTERM); default: what the cluster's configuration says." placeholder:"TIME"`
	Isolate     *bool         `help:"Execute batches in processes of their own, one a slot: a crash of the engine, or the system's end of one that needs too much memory, costs one attempt; default: in a cluster." negatable:""`
	Verbose     bool          `short:"v" help:"Log what the machinery does, to standard error."`
}

// engineFlags say what a process may use.
type engineFlags struct {
	Memory         string        `help:"Memory for everything, Python included, e.g. 4GB; default: 60 % of the machine's." placeholder:"SIZE"`
	Cores          int           `help:"Cores to use; 0 or default: all."`
	Python         string        `help:"Python interpreter: CPython 3.9 or later, or PyPy." default:"python3" env:"THALWEG_PYTHON"`
	RowTimeout     time.Duration `help:"Longest that Python may work on one row." default:"1m"`
	GroupTimeout   time.Duration `help:"Longest that a py_table's function may work on one call." default:"10m"`
	AttemptTimeout time.Duration `help:"Longest that one attempt at a batch may take, without waits for memory; then it is tried again." default:"24h"`
	Tries          int           `help:"How often a batch is tried whose attempts fail for what may pass (a server that is away, a full disk), or end their process." default:"5"`
}

func (c *workerCmd) Run(ctx context.Context, a *app) (err error) {
	c.keep = true
	fixed, err := concurrency.ParseFixed(c.Concurrency)
	if err != nil {
		return err
	}
	cfg, err := c.config(a)
	if err != nil {
		return err
	}
	c.away = newOutage(a, workerLevel(c.Verbose))
	if err := c.findPython(cfg, c.away.logger); err != nil {
		return err
	}
	drain, measuredAt := c.configured(cfg, fixed)
	a.polite.Store(drain > 0)
	m := metrics.New(version)
	seen, err := c.watch(ctx, a, m, measuredAt)
	if err != nil {
		return err
	}
	place, err := openMeasured(ctx, a, c.placeFlags, c.engineFlags, c.remoteFlags, workerLevel(c.Verbose), observers(m))
	if errors.Is(err, errToldToEnd) {
		return seen.close()
	}
	if err != nil {
		return errors.Join(err, seen.close())
	}
	defer place.close()
	defer func() { err = errors.Join(err, seen.close()) }()
	told, err := place.openLineageOf(ctx, a, c.OpenLineage)
	if err != nil {
		return err
	}
	defer told.close()
	opts := worker.WorkerOptions{Process: place.process(a, c.engineFlags), Engine: engineSaid, Drain: a.drain,
		DrainTime: drain, Concurrency: fixed, Joined: a.joined}
	opts.Observe = func(e job.Event) { c.observe(a, e) }
	if c.isolates(place.home) {
		opts.Isolate = &worker.Isolation{Command: slotProcess, Client: c.remoteFlags}
	}
	told.wrapWorker(ctx, &opts)
	seen.measure(place.home, &opts)
	return worker.Serve(ctx, place.home, opts)
}

// configured settles what a cluster's configuration says of its workers and the command line does not:
// how long batches in flight may take at the end, and where the address of metrics is said, if not there.
func (c *workerCmd) configured(cfg *clusterconfig.Config, fixed concurrency.Fixed) (drain time.Duration,
	metricsAt fault.Place) {
	if cfg == nil {
		return c.Drain, metricsAt
	}
	c.Cores = cmp.Or(c.Cores, cfg.Worker.Cores)
	if c.Metrics == "" && cfg.Worker.Metrics != "" {
		c.Metrics, metricsAt = cfg.Worker.Metrics, cfg.Place("worker.metrics")
	}
	for of, n := range cfg.Worker.Concurrency {
		if fixed[of] == 0 {
			fixed[of] = n
		}
	}
	return cmp.Or(c.Drain, cfg.Worker.Drain), metricsAt
}

// pythonDefault is the interpreter that nobody has named.
const pythonDefault = "python3"

// findPython settles which interpreter is used, and refuses one that was named and is not there: else
// that would be told when a run comes. Without any there are runs that need none.
func (f *engineFlags) findPython(cfg *clusterconfig.Config, logger *slog.Logger) error {
	var at fault.Place
	if cfg != nil && cfg.Worker.Python != "" && f.Python == pythonDefault {
		f.Python, at = cfg.Worker.Python, cfg.Place("worker.python")
	}
	err := runtime.FindInterpreter(f.Python, at)
	if err != nil && f.Python == pythonDefault && at == (fault.Place{}) {
		logger.Warn("there is no Python: scripts with Python cannot be worked on here", "error", err)
		return nil
	}
	return err
}

// isolates says whether batches are executed in processes of their own: in a
// cluster, whose workers nobody watches, unless somebody says otherwise.
func (c *workerCmd) isolates(home *instance.Instance) bool {
	if c.Isolate != nil {
		return *c.Isolate
	}
	return home.Cluster() != nil
}

func (a *app) joined(s runner.Started) {
	fmt.Fprintf(a.stderr, "run %d in workspace %s: at work\n", s.Key.Run, s.Key.Workspace)
}

// What a batch may be given.
const (
	attemptTimeoutMin = time.Second
	triesMax          = 100
)

// check refuses limits that no batch could work within.
func (f engineFlags) check() error {
	switch {
	case f.AttemptTimeout < attemptTimeoutMin:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("--attempt-timeout %s is too short", f.AttemptTimeout),
			Hint: fmt.Sprintf("the smallest possible is %s", attemptTimeoutMin)}
	case f.Tries < 1 || f.Tries > triesMax:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("--tries %d: a batch is tried 1 to %d times",
			f.Tries, triesMax)}
	}
	return nil
}

// workplace is what a process that executes batches has open.
type workplace struct {
	home        *instance.Instance
	client      *remote.Client
	logger      *slog.Logger
	memoryBytes int64
	openLineage string // see openLineageOf
	detach      bool   // runs of a cluster are submitted and not followed
}

// process returns what this command works with, here.
func (w *workplace) process(a *app, flags engineFlags) runtime.Process {
	return runtime.Process{Caller: a.caller(), Program: version, Known: a.known, MemoryBytes: w.memoryBytes,
		Cores: flags.Cores, Interpreter: flags.Python, Keeper: ownExecutable, RowTimeout: flags.RowTimeout,
		GroupTimeout: flags.GroupTimeout, Tries: flags.Tries, AttemptTimeout: flags.AttemptTimeout,
		Remote: w.client, Logger: w.logger, Waiting: a.waiting}
}

func openWorkplace(ctx context.Context, a *app, at placeFlags, engine engineFlags, far remoteFlags,
	verbose bool) (*workplace, error) {
	return openMeasured(ctx, a, at, engine, far, levelOf(verbose), instance.Observers{})
}

// openMeasured is openWorkplace with somebody who is told what a cluster's services do.
func openMeasured(ctx context.Context, a *app, at placeFlags, engine engineFlags, far remoteFlags, level slog.Level,
	told instance.Observers) (*workplace, error) {
	if err := engine.check(); err != nil {
		return nil, err
	}
	memory, err := parseSize(engine.Memory)
	if err != nil {
		return nil, err
	}
	logger := logTo(a, level)
	client, err := far.client(logger)
	if err != nil {
		return nil, err
	}
	home, err := at.openObserved(ctx, a, true, instance.ClusterOptions{Observers: told})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	place := &workplace{home: home, client: client, logger: logger, memoryBytes: memory}
	if cfg := home.Cluster(); cfg != nil && memory == 0 {
		place.memoryBytes = cfg.Worker.Memory
	}
	return place, nil
}

func (w *workplace) close() {
	w.client.Close()
	w.home.Close()
}

func (c *workerCmd) observe(a *app, e job.Event) {
	switch e.Kind {
	case job.RunFinished:
		fmt.Fprintf(a.stderr, "run %d in workspace %s: %s\n", e.Run.Run, e.Run.Workspace, e.Status)
	case job.BatchFailed:
		fmt.Fprintf(a.stderr, "run %d in workspace %s: batch %d of node %s: %s\n", e.Run.Run, e.Run.Workspace, e.Batch,
			e.Node, e.Failure.Message)
	case job.BatchRetried:
		fmt.Fprintf(a.stderr, "run %d in workspace %s: batch %d of node %s is tried again: %s\n", e.Run.Run, e.Run.Workspace,
			e.Batch, e.Node, e.Failure.Message)
	}
}

// waiting says that other processes hold the memory of the state directory.
func (a *app) waiting(text string) {
	if text == "" {
		return // what goes on says so by itself
	}
	fmt.Fprintf(a.stderr, "waiting for memory: %s\n", text)
}

// newLogger logs to standard error: what somebody has to look at, or everything.
func newLogger(a *app, verbose bool) *slog.Logger {
	return logTo(a, levelOf(verbose))
}

func levelOf(verbose bool) slog.Level {
	if verbose {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// workerLevel is what a worker logs: it works for days, and nobody watches it.
func workerLevel(verbose bool) slog.Level { return min(levelOf(verbose), slog.LevelInfo) }

func logTo(a *app, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}
