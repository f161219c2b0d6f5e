// Command thalweg-serve measures a server: `thalweg serve` over a state directory, asked over loopback, while
// processes of `thalweg run` work on the same directory. It writes its figures where the benchmark looks for them:
// steps in seconds, of 50 requests the 95th hundredth, and counts. See serveCases of bench/internal/bench for what
// each of them may be.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"thalweg/bench/internal/cluster"

	"github.com/alecthomas/kong"
)

type options struct {
	Case    string          `required:"" enum:"${cases},listen" help:"What to measure: ${cases}. Or listen: what readers do."`
	Thalweg string          `type:"path" help:"Command under test."`
	Dir     string          `type:"path" help:"Directory for all that is made."`
	Size    int             `default:"0" help:"Rows of a table, runs, batches."`
	Streams int             `default:"200" help:"Streams that are open."`
	Times   int             `default:"50" help:"Requests of each kind."`
	Script  string          `type:"path" help:"For cost: script to run."`
	Params  string          `type:"path" help:"For cost: its parameters."`
	Table   string          `default:"txns" help:"For cost: table to page through."`
	Python  string          `default:"python3" help:"For cost: interpreter."`
	Rounds  int             `default:"10" help:"For cost: runs alone and with readers."`
	Spin    time.Duration   `default:"35s" help:"For children: when the client of a query that spins has enough."`
	Figures string          `type:"path" help:"File for the figures."`
	Fleet   bool            `help:"For news and rows: of a cluster with one worker."`
	Pages   bool            `help:"For news, rows and runs: make what is measured, and serve it to who looks at the pages."`
	Cluster cluster.Options `embed:""`

	Address string `help:"For listen: the server."`
	Cookie  string `help:"For listen: a session."`
	Behind  int    `help:"For listen: the run behind this one."`
	Rows    string `help:"For listen: path of a table's rows to page through; none if empty."`

	in *cluster.Cluster // nil: a directory
}

// figures are what is measured: steps in seconds.
type figures struct {
	Steps  map[string]float64 `json:"steps"`
	Counts map[string]float64 `json:"counts"`
}

// cases by name.
var cases = map[string]func(context.Context, options, *figures) error{
	"news": news, "rows": rows, "runs": runs, "node": node, "cost": cost, "children": children,
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("thalweg-serve"), kong.Description("Measure a server."),
		kong.Vars{"cases": strings.Join(slices.Sorted(maps.Keys(cases)), ",")})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "thalweg-serve:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) (err error) {
	if o.Case == "listen" {
		return read(ctx, o)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	if o.Fleet {
		stop, err := o.fleet(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	out := &figures{Steps: map[string]float64{}, Counts: map[string]float64{}}
	if err := cases[o.Case](ctx, o, out); err != nil {
		return fmt.Errorf("%s: %w", o.Case, err)
	}
	if o.Pages { // whoever looks has the figures
		return nil
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	return os.WriteFile(o.Figures, append(text, '\n'), 0o644)
}

// state is the directory of the state.
func (o options) state() string { return filepath.Join(o.Dir, "state") }

// fleet makes a cluster with one worker, and returns what ends both.
func (o *options) fleet(ctx context.Context) (stop func() error, err error) {
	if o.in, err = o.Cluster.Open(ctx, o.Thalweg, o.Dir); err != nil {
		return nil, err
	}
	at, err := o.place("worker")
	if err != nil {
		return nil, errors.Join(err, o.in.Close(ctx))
	}
	worker := exec.CommandContext(ctx, o.Thalweg, append([]string{"worker"}, at...)...)
	worker.Stdout, worker.Stderr = os.Stderr, os.Stderr
	worker.Cancel = func() error { return worker.Process.Signal(syscall.SIGTERM) }
	worker.WaitDelay = stopWithin
	if err := worker.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a worker: %w", err), o.in.Close(ctx))
	}
	return func() error {
		err := worker.Process.Signal(syscall.SIGTERM)
		return errors.Join(err, worker.Wait(), o.in.Close(ctx))
	}, nil
}

// place returns the flags by which a process finds the state. In a cluster it has scratch space of its own, by its
// name.
func (o options) place(process string) ([]string, error) {
	if o.in == nil {
		return []string{"--state", o.state()}, nil
	}
	config, err := o.in.Config(process)
	return []string{"--cluster", config}, err
}
