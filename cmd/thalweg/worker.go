package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// workerCmd takes part in runs that others have begun.
type workerCmd struct {
	engineFlags
	remoteFlags
	openLineageFlag
	placeFlags
	metricsFlag
	Concurrency []string      `help:"How much is done at once: N, CLASS=N, CLASS.KNOB=N." placeholder:"CLASS=N"`
	Config      string        `help:"The same as --cluster." type:"path" placeholder:"FILE"`
	Drain       time.Duration `help:"How long it may finish batches after SIGTERM." placeholder:"TIME"`
	Isolate     *bool         `help:"Execute each batch in a process of its own; default: in a cluster." negatable:""`
	Verbose     bool          `short:"v" help:"Log what the machinery does, to standard error."`
}

// engineFlags say what a process may use.
type engineFlags struct {
	Memory         string        `help:"Memory for all, e.g. 4GB; default: 60 % of the machine's." placeholder:"SIZE"`
	Cores          int           `help:"Cores to use; 0 or default: all."`
	Python         string        `help:"CPython of 3.9 or later, or PyPy." default:"python3" env:"THALWEG_PYTHON"`
	RowTimeout     time.Duration `help:"Longest that Python may work on one row." default:"1m"`
	GroupTimeout   time.Duration `help:"Longest that a py_table's function may work on one call." default:"10m"`
	AttemptTimeout time.Duration `help:"Longest that an attempt may take, without waits for memory." default:"24h"`
	Tries          int           `help:"How often a batch is tried whose failures may pass." default:"5"`
}

// Help implements kong.HelpProvider.
func (c *workerCmd) Help() string {
	return "It works until it is told to end. How much it does at once is found by measuring; --concurrency fixes a " +
		"number. Classes are load, join, python and write. Knobs are batches (in flight), threads (of the engine, a " +
		"batch) and writers (requests at once that write parts). How long it finishes batches after SIGTERM is said by " +
		"the cluster's configuration, or --drain. With --isolate a crash of the engine, or the system's end of a " +
		"process that needs too much memory, costs one attempt."
}

func (c *workerCmd) Run(ctx context.Context, a *console) (err error) {
	c.keep = true
	fixed, err := app.ParseFixed(c.Concurrency)
	if err != nil {
		return err
	}
	cfg, err := c.config(a)
	if err != nil {
		return err
	}
	logger := logTo(a, workerLevel(c.Verbose))
	c.away = app.NewOutage(logger, a.drain)
	if err := c.findPython(cfg, logger); err != nil {
		return err
	}
	drain, measuredAt := c.configured(cfg, fixed)
	a.polite.Store(drain > 0)
	m := app.NewMetrics(version, a.drain, c.away)
	if err := c.listen(ctx, a, m, measuredAt, logger); err != nil {
		return err
	}
	place, err := openMeasured(ctx, a, c.placeFlags, c.engineFlags, c.remoteFlags,
		workerLevel(c.Verbose), m.Observers())
	if errors.Is(err, app.ErrToldToEnd) {
		return m.Close()
	}
	if err != nil {
		return errors.Join(err, m.Close())
	}
	defer place.close()
	defer func() { err = errors.Join(err, m.Close()) }() // it answers from what the place has
	told, err := place.home.Tell(ctx, c.OpenLineage)
	if err != nil {
		return err
	}
	defer told.Close()
	opts := app.WorkOptions{Engine: engineSaid, Drain: a.drain, DrainTime: drain, Concurrency: fixed, Joined: a.joined}
	opts.Observe, opts.Waiting = a.observeWork, a.waiting
	if c.isolates(place.home) {
		opts.Isolate = app.Isolation(ownExecutable, c.remoteFlags)
	}
	told.WrapWorker(ctx, &opts)
	return place.home.Work(ctx, a.caller(), opts, m)
}

// metricsFlag says where a worker shows what it measures.
type metricsFlag struct {
	Metrics string `help:"Serve metrics and health there; without HOST on loopback only." placeholder:"HOST:PORT"`
}

// listen begins to show what is measured of a worker at an address, which the place of a cluster's
// configuration or, without one, the command line names.
func (c *workerCmd) listen(ctx context.Context, a *console, m *app.Metrics, at fault.Place, logger *slog.Logger) error {
	if c.Metrics == "" {
		return nil
	}
	address, err := m.Listen(ctx, c.Metrics, logger)
	if err == nil {
		fmt.Fprintf(a.stderr, "metrics: http://%s/metrics\n", address)
		return nil
	}
	f := *fault.Of(err)
	if f.Place = at; f.Kind == fault.Script {
		return &f
	}
	f.Hint = "each worker of a machine has a port of its own: give this one another with --metrics HOST:PORT, or " +
		"--metrics :0 for any that is free"
	if f.Place.Line > 0 {
		f.Message += ", as worker.metrics says"
		f.Hint += "; worker: {metrics: \":0\"} lets all workers choose one"
	}
	return &f
}

// configured settles what a cluster's configuration says of its workers and the command line does not:
// how long batches in flight may take at the end, and where the address of metrics is said, if not there.
func (c *workerCmd) configured(cfg *app.Config, fixed app.Fixed) (drain time.Duration,
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
func (f *engineFlags) findPython(cfg *app.Config, logger *slog.Logger) error {
	var at fault.Place
	if cfg != nil && cfg.Worker.Python != "" && f.Python == pythonDefault {
		f.Python, at = cfg.Worker.Python, cfg.Place("worker.python")
	}
	err := app.FindPython(f.Python, at)
	if err != nil && f.Python == pythonDefault && at == (fault.Place{}) {
		logger.Warn("there is no Python: scripts with Python cannot be worked on here", "error", err)
		return nil
	}
	return err
}

// isolates says whether batches are executed in processes of their own: in a
// cluster, whose workers nobody watches, unless somebody says otherwise.
func (c *workerCmd) isolates(home *app.App) bool {
	if c.Isolate != nil {
		return *c.Isolate
	}
	return home.Cluster() != nil
}

func (a *console) joined(s app.Started) {
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
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("--attempt-timeout %s is too short",
			f.AttemptTimeout),
			Hint: fmt.Sprintf("the smallest possible is %s", attemptTimeoutMin)}
	case f.Tries < 1 || f.Tries > triesMax:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("--tries %d: a batch is tried 1 to %d times",
			f.Tries, triesMax)}
	}
	return nil
}

// workplace holds the resources that a process which executes batches has open.
type workplace struct {
	home        *app.App
	logger      *slog.Logger
	openLineage string // see app.Tell
	detach      bool   // runs of a cluster are submitted and not followed
}

func openWorkplace(ctx context.Context, a *console, at placeFlags, engine engineFlags, far remoteFlags,
	verbose bool) (*workplace, error) {
	return openMeasured(ctx, a, at, engine, far, levelOf(verbose), app.Observers{})
}

// openMeasured is openWorkplace with somebody who is told what a cluster's services do.
func openMeasured(ctx context.Context, a *console, at placeFlags, engine engineFlags, far remoteFlags,
	level slog.Level, told app.Observers) (*workplace, error) {
	if err := engine.check(); err != nil {
		return nil, err
	}
	memory, err := parseSize(engine.Memory)
	if err != nil {
		return nil, err
	}
	logger := logTo(a, level)
	if a.server != "" { // it has its own way to other machines
		home, err := a.elsewhereApp()
		return &workplace{home: home, logger: logger}, err
	}
	client, err := far.client(logger)
	if err != nil {
		return nil, err
	}
	home, err := at.openObserved(ctx, a, true, told, func(p *app.Process) {
		p.Remote, p.Logger, p.MemoryBytes, p.Cores, p.Interpreter = client, logger, memory, engine.Cores, engine.Python
		p.RowTimeout, p.GroupTimeout, p.AttemptTimeout = engine.RowTimeout, engine.GroupTimeout, engine.AttemptTimeout
		p.Tries = engine.Tries
	})
	if err != nil {
		return nil, err
	}
	return &workplace{home: home, logger: logger}, nil
}

func (w *workplace) close() { w.home.Close() }

// process says what a command lends to what it does, as settings say.
func (a *console) process(settings ...func(*app.Process)) app.Process {
	p := app.Process{Program: version, Known: a.known, Keeper: ownExecutable, Waiting: a.waiting}
	p.Dir, _ = os.Getwd() // else relative names are seen from it all the same, as long as it can be found
	for _, set := range settings {
		set(&p)
	}
	return p
}

// observeWork says what happens to the runs that this process works on.
func (a *console) observeWork(e view.Event) {
	switch e.Kind {
	case view.RunEnded:
		fmt.Fprintf(a.stderr, "run %d in workspace %s: %s\n", e.Run.Run, e.Run.Workspace, e.Status)
	case view.BatchFailed:
		fmt.Fprintf(a.stderr, "run %d in workspace %s: batch %d of node %s: %s\n", e.Run.Run, e.Run.Workspace, e.Batch,
			e.Node, e.Failure.Message)
	case view.BatchRetried:
		fmt.Fprintf(a.stderr, "run %d in workspace %s: batch %d of node %s is tried again: %s\n", e.Run.Run,
			e.Run.Workspace, e.Batch, e.Node, e.Failure.Message)
	}
}

// waiting says that other processes hold the memory of the state directory.
func (a *console) waiting(text string) {
	if text == "" {
		return // what goes on says so by itself
	}
	fmt.Fprintf(a.stderr, "waiting for memory: %s\n", text)
}

// newLogger logs to standard error: what somebody has to look at, or everything.
func newLogger(a *console, verbose bool) *slog.Logger {
	return logTo(a, levelOf(verbose))
}

func levelOf(verbose bool) slog.Level {
	if verbose {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// workerLevel returns the log level of a worker: at least info, as it works for days and nobody
// watches it.
func workerLevel(verbose bool) slog.Level { return min(levelOf(verbose), slog.LevelInfo) }

func logTo(a *console, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}
