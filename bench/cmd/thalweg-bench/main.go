// Command thalweg-bench measures whole pipelines and holds them to their bars.
// See docs/benchmarks.md.
//
// It exits with 0 when every judged check passed, 1 when one missed, 2 when
// the measurement itself failed.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"thalweg/bench/internal/bench"
	"thalweg/internal/base/fault"
)

const (
	exitMissed = 1
	exitFailed = 2
)

type options struct {
	Cases        []string `name:"case" help:"Cases to measure: ${cases}. Default: all."`
	Scale        float64  `default:"1" help:"Share of each case's accounts or rows. Bars are judged at 1 only."`
	Size         int64    `placeholder:"N" help:"So many accounts or rows instead."`
	Runs         int      `placeholder:"N" help:"Runs of each side; default: as the case says."`
	Thalweg      string   `default:"bin/thalweg" type:"path" help:"Command under test."`
	Root         string   `default:"." type:"path" help:"The repository: examples, bench/peers, bench/steps."`
	Python       string   `default:"python3" help:"Interpreter for Thalweg, and to make environments with."`
	Environments string   `env:"THALWEG_BENCH_ENVIRONMENTS" placeholder:"DIR" type:"path" help:"Folder of the peers' packages; default: in the user's cache."`
	RealData     string   `env:"THALWEG_REAL_DATA" type:"path" help:"Folder with portfolio/, the real data; without it the case ark is left out."`
	Work         string   `default:"bench/data" type:"path" help:"Generated inputs and files of runs."`
	Results      string   `default:"bench/results" type:"path" help:"Where reports go."`
	NoWrite      bool     `help:"Print tables only."`
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("thalweg-bench"),
		kong.Description("Measure whole pipelines against others of their kind."),
		kong.Vars{"cases": strings.Join(names(bench.Cases()), ", ")})
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

func names(cases []bench.Case) (all []string) {
	for _, c := range cases {
		all = append(all, c.Name)
	}
	return all
}

// chosen are the cases asked for, in the order of their names.
func chosen(wanted []string) ([]bench.Case, error) {
	all := bench.Cases()
	if len(wanted) == 0 {
		return all, nil
	}
	var cases []bench.Case
	for _, name := range wanted {
		i := slices.Index(names(all), name)
		if i < 0 {
			return nil, fault.New(fault.Script, "there is no case %q; there are %s", name,
				strings.Join(names(all), ", "))
		}
		cases = append(cases, all[i])
	}
	return cases, nil
}

// run measures and reports whether any bar was missed.
func run(ctx context.Context, o options, out io.Writer) (missed bool, err error) {
	cases, err := chosen(o.Cases)
	if err != nil {
		return false, err
	}
	if o.Environments == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return false, &fault.Error{Kind: fault.Environment, Message: "looking for a place for packages", Err: err,
				Hint: "give --environments"}
		}
		o.Environments = filepath.Join(cache, "thalweg-bench")
	}
	config := bench.Config{
		Thalweg: o.Thalweg, Root: o.Root, Python: o.Python, Environments: o.Environments, RealDataDir: o.RealData,
		WorkDir: o.Work,
		Scale:   o.Scale, Size: o.Size, Runs: o.Runs, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	err = bench.Measure(ctx, config, cases, func(r bench.Report) error {
		missed = missed || r.Missed()
		return show(r, o, out)
	})
	return missed, err
}

// show prints a report and writes it to the directory of results.
func show(r bench.Report, o options, out io.Writer) error {
	text := fmt.Sprintf("\n%s: %s\n", r.Case, r.What)
	for _, side := range r.LeftOut {
		text += "left out: " + side + "\n"
	}
	if len(r.Checks) > 0 {
		text += r.Text()
	}
	if r.Disturbed() {
		text += "other processes used the machine: do not quote these figures\n"
	}
	if !o.NoWrite && len(r.Checks) > 0 {
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
	text, f := "thalweg-bench: "+err.Error(), fault.Of(err)
	for _, more := range []string{f.Detail, f.Hint} {
		if more != "" {
			text += "\n" + more
		}
	}
	return text
}
