package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"thalweg/bench/generate"
	"thalweg/bench/internal/bench"
	"thalweg/internal/app/view"
)

type sizeCmd struct {
	Accounts    int    `required:"" help:"Accounts, of which runs have 0.1, 0.5, 2 and 5 times as many."`
	Inputs      string `required:"" type:"path" help:"Folder of generated inputs."`
	NumpyScript string `required:"" type:"path" help:"The other script."`
	Numpy       string `required:"" help:"Its interpreter."`
}

// example is a script that is run.
type example struct{ name, script, python string }

// Run implements kong's command.
func (c *sizeCmd) Run(ctx context.Context, o *options) error {
	params := map[float64]string{}
	for _, times := range []float64{0.1, 0.5, 2, 5} {
		accounts := max(int(math.Round(times*float64(c.Accounts))), 1)
		made := generate.Options{Accounts: accounts, Dir: filepath.Join(c.Inputs, fmt.Sprintf("portfolio-%d", accounts)),
			Seed: 1}
		sum, ok, err := generate.Existing(made)
		if err == nil && !ok {
			sum, err = generate.Portfolio(ctx, made)
		}
		if err == nil {
			err = bench.Warm(made.Dir)
		}
		if err != nil {
			return err
		}
		params[times] = sum.Params
	}
	var all []bench.Forecast
	for repeat := range o.Repeats {
		for _, e := range []example{{"portfolio", o.Script, o.Python}, {"numpy", c.NumpyScript, c.Numpy}} {
			some, err := c.foretell(ctx, o, e, repeat+1, params)
			if err != nil {
				return err
			}
			all = append(all, some...)
		}
	}
	return o.write(all)
}

// foretell lets runs of fewer accounts foretell those of more, in a state directory of their own.
func (c *sizeCmd) foretell(ctx context.Context, o *options, e example, repeat int, params map[float64]string) (
	all []bench.Forecast, err error) {
	dir := filepath.Join(o.Dir, fmt.Sprintf("%s-%d", e.name, repeat))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	flags := func(times float64) []string {
		return []string{"--params", params[times], "--param", "dir_out=" + filepath.Join(dir, "out"),
			"--state", filepath.Join(dir, "state"), "--python", e.python}
	}
	name := func(times float64) string { return fmt.Sprintf("%s, %g × %d accounts", e.name, times, c.Accounts) }
	for _, times := range []float64{0.1, 0.5} {
		_, f, err := o.run(ctx, name(times), repeat, e.script, flags(times)...)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	larger := []float64{2, 5}
	expected := map[float64]view.Forecast{}
	for _, times := range larger {
		if expected[times], err = o.dryRun(ctx, e.script, flags(times)...); err != nil {
			return nil, fmt.Errorf("%s: %w", name(times), err)
		}
	}
	for _, times := range larger {
		_, f, err := o.run(ctx, name(times), repeat, e.script, flags(times)...)
		if err != nil {
			return nil, err
		}
		x, s := expected[times], func(ms int64) float64 { return float64(ms) / 1000 }
		f.Low, f.Middle, f.High, f.Of = s(x.Elapsed.Low), s(x.Elapsed.Middle), s(x.Elapsed.High), x.Of
		all = append(all, f)
	}
	return all, nil
}

// dryRun returns what the product expects of a run that has not begun.
func (o *options) dryRun(ctx context.Context, script string, flags ...string) (f view.Forecast, err error) {
	out, err := o.thalweg(ctx, append([]string{"run", script, "--workspace", workspace, "--fresh", "--dry-run", "--json"},
		flags...)...)
	if err != nil {
		return f, err
	}
	var planned view.RunPlanned
	if err := event(out, "run_planned", &planned); err != nil {
		return f, err
	}
	if planned.Forecast == nil || planned.Forecast.Elapsed == nil {
		return f, errors.New("nothing is expected of it")
	}
	return *planned.Forecast, nil
}
