package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"thalweg/internal/local"
	"thalweg/internal/state"
	"thalweg/internal/worker"
)

// workerCmd takes part in runs that others have begun.
type workerCmd struct {
	engineFlags
	remoteFlags
	State   string `help:"State directory." default:"${state}" type:"path" env:"THALWEG_STATE" placeholder:"DIR"`
	Verbose bool   `short:"v" help:"Log what the machinery does, to standard error."`
}

// engineFlags say what a process may use.
type engineFlags struct {
	Memory       string        `help:"Memory for everything, Python included, e.g. 4GB; default: 60 % of the machine's." placeholder:"SIZE"`
	Cores        int           `help:"Cores to use; default: all."`
	Python       string        `help:"Python interpreter: CPython 3.9 or later, or PyPy." default:"python3" env:"THALWEG_PYTHON"`
	RowTimeout   time.Duration `help:"Longest that Python may work on one row." default:"1m"`
	GroupTimeout time.Duration `help:"Longest that a py_table's function may work on one call." default:"10m"`
}

func (c *workerCmd) Run(ctx context.Context, a *app) error {
	memory, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	home, err := local.Open(ctx, c.State, true)
	if err != nil {
		return err
	}
	defer home.Close()
	logger := newLogger(a, c.Verbose)
	client, err := c.client(logger)
	if err != nil {
		return err
	}
	defer client.Close()
	err = local.Serve(ctx, home, local.WorkerOptions{
		Known: a.known, MemoryBytes: memory, Cores: c.Cores, Interpreter: c.Python, Keeper: ownExecutable, RowTimeout: c.RowTimeout, GroupTimeout: c.GroupTimeout,
		Remote: client, Logger: logger,
		Waiting: a.waiting,
		Observe: func(e worker.Event) { c.observe(a, e) },
		Joined: func(key state.RunKey) {
			fmt.Fprintf(a.stderr, "run %d in workspace %s: at work\n", key.Run, key.Workspace)
		},
	})
	return err
}

func (c *workerCmd) observe(a *app, e worker.Event) {
	switch e.Kind {
	case worker.RunFinished:
		fmt.Fprintf(a.stderr, "run %d in workspace %s: %s\n", e.Run.Run, e.Run.Workspace, e.Status)
	case worker.BatchFailed, worker.BatchRetried:
		fmt.Fprintf(a.stderr, "run %d in workspace %s: batch %d of node %s: %s\n", e.Run.Run, e.Run.Workspace, e.Batch, e.Node, e.Failure.Message)
	}
}

// waiting says that other processes hold the memory of the state directory.
func (a *app) waiting(text string) {
	fmt.Fprintf(a.stderr, "waiting for memory: %s\n", text)
}

// newLogger logs to standard error: what somebody has to look at, or everything.
func newLogger(a *app, verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}
