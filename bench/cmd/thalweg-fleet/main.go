// Command thalweg-fleet measures a run of a script by workers of one machine. State and parts are in Cassandra, with
// RabbitMQ where it is told of one, or in a directory. It makes a keyspace, starts workers, runs the script as a user
// does, and passes its events on. It writes the counts of services and workers where the benchmark looks for them,
// and removes what it has made.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"thalweg/bench/internal/cluster"
)

type options struct {
	Thalweg string          `required:"" type:"path" help:"Command under test."`
	Script  string          `required:"" type:"path" help:"Script to run."`
	Params  string          `required:"" type:"path" help:"Its parameters."`
	Python  string          `default:"python3" help:"Interpreter."`
	Dir     string          `required:"" type:"path" help:"Directory for configuration and scratch space."`
	Workers int             `default:"2" help:"Workers."`
	Cores   int             `default:"1" help:"Of each worker."`
	Memory  string          `default:"2GB" help:"Of each worker."`
	Plan    string          `help:"Memory for which the run is planned; default: the machine's."`
	Held    float64         `placeholder:"N" help:"Cores that each worker gets (control groups of version 1, as root); default: all."`
	Cluster cluster.Options `embed:""`
	Figures string          `required:"" type:"path" help:"File for the figures."`
}

const workspace = "bench"

func main() {
	var o options
	kong.Parse(&o, kong.Name("thalweg-fleet"), kong.Description("Measure a run of a fleet."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "thalweg-fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	with, err := o.Cluster.Open(ctx, o.Thalweg, o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.Close(ctx)) }()
	shared, err := with.Config("cluster")
	if err != nil {
		return err
	}
	var workers []*worker
	defer func() {
		for _, w := range workers {
			err = errors.Join(err, w.Stop())
		}
	}()
	for i := range o.Workers {
		w, err := o.start(ctx, i, with)
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	out := figures{Steps: map[string]float64{}, Counts: map[string]float64{"useless deliveries": 0}}
	for _, w := range workers {
		if err := w.Ready(ctx); err != nil {
			return err
		}
	}
	before, err := with.Statements(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, o.Thalweg, "run", o.Script, "--params", o.Params, "--workspace", workspace,
		"--cluster", shared, "--json", "--python", o.Python)
	if o.Plan != "" {
		cmd.Args = append(cmd.Args, "--memory", o.Plan)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run the script: %w", err)
	}
	out.Steps["run"] = time.Since(began).Seconds()
	after, err := with.Statements(ctx)
	if err != nil {
		return err
	}
	out.Counts["statements"] = after - before
	for _, w := range workers {
		if err := w.count(ctx, out.Counts); err != nil {
			return err
		}
		if err := w.peaks(out.Counts); err != nil {
			return err
		}
	}
	if err := out.look(ctx, shared, o.Workers*(o.Cores+1)); err != nil {
		return err
	}
	return out.write(o.Figures)
}

func (f *figures) write(path string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
