// Command thalweg-bench measures whole pipelines and holds them to their bars.
// See docs/benchmarks.md.
//
// It exits with 0 when every judged check passed, 1 when one missed, 2 when
// the measurement itself failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"thalweg/bench/internal/bench"
	"thalweg/internal/fault"
)

const (
	exitMissed = 1
	exitFailed = 2
)

type options struct {
	Cases       []string `name:"case" enum:"portfolio,memory,scaling,ark,numpy,tagging,lookup,sorting,validate" default:"portfolio,memory,scaling,ark,numpy,tagging,lookup,sorting,validate" help:"Cases to measure."`
	Accounts    int      `default:"1000" help:"Accounts of the generated portfolio, and thousandths of the other cases' rows. Bars are judged at 1000 only."`
	Repeats     int      `default:"0" help:"Runs of each side; 0 means 3 for small inputs and 2 for large ones."`
	Thalweg     string   `default:"bin/thalweg" type:"path" help:"Command under test."`
	Script      string   `default:"examples/portfolio/script.yaml" type:"path" help:"Script for Parquet input."`
	ArkScript   string   `default:"examples/portfolio/script_csv.yaml" type:"path" help:"Script for CSV input."`
	NumpyScript string   `default:"examples/portfolio_numpy/script.yaml" type:"path" help:"Script of the same work with numpy."`
	Peer        string   `default:"bench/peers/portfolio_duckdb.py" type:"path" help:"The peer."`
	PeerPlan    string   `enum:"fused,staged" default:"fused" help:"How the peer loads and joins: in one statement, or in two steps."`
	Steps       string   `default:"bench/steps" type:"path" help:"Inputs, scripts and peers of the cases of one step."`
	StepsPeer   string   `default:"bench/peers/sql.py" type:"path" help:"What runs their SQL files."`
	Python      string   `default:"python3" help:"Interpreter for both sides."`
	Venv        string   `default:"bench/.venv" type:"path" help:"Where the peer's packages go if the interpreter has not got them."`
	RealData    string   `env:"THALWEG_REAL_DATA" type:"path" help:"Folder with portfolio/, the real data; without it the case ark is left out."`
	Work        string   `default:"bench/data" type:"path" help:"Generated inputs and files of runs."`
	Results     string   `default:"bench/results" type:"path" help:"Where reports go."`
	NoWrite     bool     `help:"Print tables only."`
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("thalweg-bench"), kong.Description("Measure whole pipelines against a hand-written peer."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	missed, err := run(ctx, o, os.Stdout)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, describe(err))
		os.Exit(exitFailed)
	case missed:
		os.Exit(exitMissed)
	}
}

// run measures and reports whether any bar was missed.
func run(ctx context.Context, o options, out io.Writer) (missed bool, err error) {
	peerPython, err := bench.PeerPython(ctx, o.Python, o.Venv)
	if err != nil {
		return false, err
	}
	numpyPython := ""
	if slices.Contains(o.Cases, "numpy") {
		if numpyPython, err = bench.NumpyPython(ctx, o.Python, o.Venv); err != nil {
			return false, err
		}
	}
	config := bench.Config{
		NumpyScript: o.NumpyScript, NumpyPython: numpyPython,
		Thalweg: o.Thalweg, Script: o.Script, ArkScript: o.ArkScript,
		Peer: o.Peer, PeerPlan: o.PeerPlan, Python: o.Python, PeerPython: peerPython,
		StepsDir: o.Steps, StepsPeer: o.StepsPeer, RealDataDir: o.RealData, WorkDir: o.Work, Accounts: o.Accounts, Repeats: o.Repeats,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	err = bench.Measure(ctx, config, o.Cases, func(r bench.Report) error {
		missed = missed || r.Missed()
		return show(r, o, out)
	})
	return missed, err
}

// show prints a report and writes it to the directory of results.
func show(r bench.Report, o options, out io.Writer) error {
	text := fmt.Sprintf("\n%s: %s\n", r.Case, r.What)
	switch {
	case r.Skipped != "":
		text += "skipped: " + r.Skipped + "\n"
	default:
		text += r.Table() + "\n" + r.RunTable() + "\n"
	}
	if r.Disturbed() {
		text += "other processes used the machine: do not quote these figures\n"
	}
	if !o.NoWrite && r.Skipped == "" {
		path, _, err := r.Write(o.Results)
		if err != nil {
			return err
		}
		text += "written to " + path + "\n"
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("printing a report: %w", err)
	}
	return nil
}

// describe renders a failure with its hint and evidence.
func describe(err error) string {
	text := "thalweg-bench: " + err.Error()
	var f *fault.Error
	if errors.As(err, &f) {
		if f.Detail != "" {
			text += "\n" + f.Detail
		}
		if f.Hint != "" {
			text += "\n" + f.Hint
		}
	}
	return text
}
