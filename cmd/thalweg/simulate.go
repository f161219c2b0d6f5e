package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/base/fault"
)

type simulateCmd struct {
	Workers []int    `help:"Numbers of workers." default:"1,2,4,8,16,32,64,128,256" placeholder:"N,…"`
	Of      *runRef  `name:"run" help:"Simulate this complete run: its number, or last." placeholder:"RUN"`
	Scale   float64  `help:"Its files are so many times as large." default:"1" placeholder:"X"`
	Slots   int      `help:"Batches that a worker executes at once." default:"2" placeholder:"N"`
	Batches int      `help:"Batches of the run, about." default:"10000" placeholder:"N"`
	Seed    uint64   `help:"What chance follows from: the same seed gives the same trace." default:"1" placeholder:"N"`
	Costs   string   `help:"Read measured costs from FILE instead of the portfolio's." placeholder:"FILE" type:"path"`
	Print   bool     `help:"Print the costs, and simulate nothing." name:"print-costs"`
	Broker  bool     `help:"Hints go by a broker, and state is not polled for them." negatable:"" default:"true"`
	Deaths  float64  `help:"How often a worker dies in an hour." default:"0" placeholder:"X"`
	Slow    float64  `help:"State and parts take so many times as long." name:"slow-store" default:"1" placeholder:"X"`
	Hot     float64  `help:"One batch takes so many times as long." default:"1" placeholder:"X"`
	Compare []string `help:"Show real runs beside it: complete runs by number, or times from FILE." placeholder:"RUN,…"`
	Machine string   `help:"As fast as the host whose core_speed is in FILE: JSON, see docs/simulate.md." placeholder:"FILE" type:"path"`
	Trace   string   `help:"Write what happens in the last fleet to FILE." placeholder:"FILE" type:"path"`
	Out     string   `help:"Write the curve to FILE: .svg, .csv or .json." short:"o" placeholder:"FILE" type:"path"`
	overwriteFlag
	JSON bool `name:"json" help:"Print a JSON array."`
	stateFlags

	rests []string                           // what the costs of a run rest on
	of    func(workers, slots int) app.Costs // a run's, for a fleet; nil: costs are no run's
}

// Run implements kong's command.
func (c *simulateCmd) Run(ctx context.Context, a *console) error {
	costs, err := c.costs(ctx, a)
	if err != nil {
		return err
	}
	if c.Print {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(costs)
	}
	if refs := c.runs(); len(refs) > 0 {
		return c.compare(ctx, a, costs, refs)
	}
	write, err := c.curve()
	if err != nil {
		return err
	}
	to := outFile{path: c.Out, overwrite: c.Overwrite, mine: madeSVG}
	if err := to.check(); err != nil {
		return err
	}
	measured, err := c.measured()
	if err != nil {
		return err
	}
	results, err := c.simulate(ctx, costs)
	if err != nil {
		return err
	}
	if write != nil {
		if err := to.write(a, func(w io.Writer) error { return write(w, results) }); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(a.stdout, results)
	}
	c.print(a, results, measured)
	a.printTexts("what that rests on", c.rests)
	return nil
}

func (c *simulateCmd) costs(ctx context.Context, a *console) (app.Costs, error) {
	costs := app.PortfolioCosts()
	switch {
	case c.Of != nil:
		return c.ofRun(ctx, a)
	case a.typed["scale"], a.typed["machine"]:
		return costs, fault.New(fault.Script, "--scale and --machine go with --run")
	case c.Costs != "":
		text, err := readSmall(c.Costs)
		if err != nil {
			return costs, err
		}
		if costs, err = app.ReadCosts(c.Costs, text); err != nil {
			return costs, err
		}
	}
	if !c.Broker {
		costs = app.WithoutBroker(costs)
	}
	return costs, nil
}

// ofRun returns the costs of a run. The batches are as many as it would have, unless a number is given.
func (c *simulateCmd) ofRun(ctx context.Context, a *console) (app.Costs, error) {
	if c.Costs != "" {
		return app.Costs{}, fault.New(fault.Script, "--run does not go with --costs")
	}
	if !(c.Scale > 0 && c.Scale <= scaleMax) {
		return app.Costs{}, fault.New(fault.Script, "--scale %g: it is above 0 and at most %d", c.Scale, scaleMax)
	}
	if !a.typed["batches"] {
		c.Batches = 0
	}
	speed := 1.0
	if c.Machine != "" {
		text, err := readSmall(c.Machine)
		if err != nil {
			return app.Costs{}, err
		}
		host, err := app.ReadSpeed(c.Machine, text)
		if err != nil {
			return app.Costs{}, err
		}
		speed = host.CoreSpeed
	}
	home, run, err := c.Of.open(ctx, a, c.stateFlags)
	if err != nil {
		return app.Costs{}, err
	}
	defer home.Close()
	replayed, err := home.Replay(ctx, run.RunKey, c.Scale, speed)
	c.rests, c.of = replayed.Rests, replayed.For
	return replayed.Costs, err
}

// curve returns the function that writes the curve in the format of the file that is asked for.
func (c *simulateCmd) curve() (func(io.Writer, []app.Simulated) error, error) {
	switch filepath.Ext(c.Out) {
	case ".svg", ".csv":
		return func(w io.Writer, r []app.Simulated) error { return app.WriteCurve(w, filepath.Ext(c.Out)[1:], r) }, nil
	case ".json":
		return func(w io.Writer, r []app.Simulated) error { return printJSON(w, r) }, nil
	}
	if c.Out == "" {
		return nil, nil
	}
	return nil, fault.New(fault.Script, "%s: the curve is written as .svg, .csv or .json", c.Out)
}

// simulate runs the fleets one behind the other.
func (c *simulateCmd) simulate(ctx context.Context, costs app.Costs) ([]app.Simulated, error) {
	var results []app.Simulated
	for i, workers := range c.Workers {
		config := app.SimulatedFleet{Costs: costs, Workers: workers, Slots: c.Slots, Batches: c.Batches, Seed: c.Seed,
			Deaths: c.Deaths, Slow: c.Slow, Hot: c.Hot}
		if c.of != nil {
			config.Costs = c.of(workers, c.Slots)
		}
		r, err := c.one(ctx, config, i == len(c.Workers)-1)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// one simulates one fleet; the last one is traced where that is asked for.
func (c *simulateCmd) one(ctx context.Context, config app.SimulatedFleet, last bool) (r app.Simulated, err error) {
	if c.Trace == "" || !last {
		return app.Simulate(ctx, config)
	}
	if err := (outFile{path: c.Trace, overwrite: c.Overwrite}).check(); err != nil {
		return r, err
	}
	f, err := os.Create(c.Trace)
	if err != nil {
		return r, &fault.Error{Kind: fault.Environment, Message: "create " + c.Trace, Err: err}
	}
	w := bufio.NewWriter(f)
	defer func() {
		for _, end := range []func() error{w.Flush, f.Close} {
			if eerr := end(); err == nil && eerr != nil {
				err = fmt.Errorf("write %s: %w", c.Trace, eerr)
			}
		}
	}()
	config.Trace = w
	return app.Simulate(ctx, config)
}

func (c *simulateCmd) print(a *console, results []app.Simulated, measured app.MeasuredRuns) {
	head := []any{"workers", "slots", "batches", "elapsed", "efficiency", "writes lost", "claims refused",
		"what limits it most"}
	if len(measured.Runs) > 0 {
		head = append(head, "measured", "difference")
	}
	t := a.newTable(head...)
	rightAligned(t, 1, 2, 3, 4, 5, 6, 7, 9, 10)
	for _, r := range results {
		row := []any{r.Workers, r.Slots, count(int64(r.Batches)), span(seconds(r.Elapsed)),
			fmt.Sprintf("%.1f %%", 100*r.Efficiency),
			count(int64(r.Lost)), count(int64(r.Refused)), r.Limit}
		if real, ok := measured.Of(r.Workers); ok {
			row = append(row, span(seconds(real.Elapsed)), fmt.Sprintf("%+.1f %%", 100*(r.Elapsed/real.Elapsed-1)))
		}
		t.AppendRow(row)
	}
	t.Render()
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// scaleMax limits how many times as large files can be simulated.
const scaleMax = 10_000

// smallMax bounds files of costs, prices, and of what was measured: larger ones are refused, not cut.
const smallMax = 1 << 20

func readSmall(path string) ([]byte, error) { return readUpTo(path, smallMax) }

// readUpTo reads a file of at most so many bytes.
func readUpTo(path string, bytesMost int64) ([]byte, error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault.Error{Kind: fault.Script, Message: "open " + path, Err: err,
			Hint: "check the name, and the directory the command runs in"}
	case err != nil:
		return nil, &fault.Error{Kind: fault.Environment, Message: "open " + path, Err: err}
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, bytesMost+1))
	if st, _ := f.Stat(); st != nil && st.IsDir() {
		return nil, fault.New(fault.Script, "%s is a directory", path)
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "read " + path, Err: err}
	}
	if int64(len(text)) > bytesMost {
		return nil, fault.New(fault.Script, "%s is larger than %d MiB", path, bytesMost>>20)
	}
	return text, nil
}
