package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/benches"
	"thalweg/internal/app/sizing"
	"thalweg/internal/base/fault"
)

type benchPipelineCmd struct {
	Sweep   bool              `help:"Measure fixed numbers, too: one knob at a time, the others as the worker chose."`
	Batches []int             `help:"Batches at once; default: 1, 2, 4 … twice the cores." placeholder:"N,…"`
	Threads []int             `help:"Threads a batch; default: 1, 2, 4 … the cores." placeholder:"N,…"`
	Writers []int             `help:"Requests at once that write parts; default: 1, 2, 4 … 32." placeholder:"N,…"`
	Rounds  int               `help:"How often each is measured: every second time in reverse order." default:"4" placeholder:"N"`
	Settle  time.Duration     `help:"Longest that the worker may take to choose." default:"10m" placeholder:"TIME"`
	Rows    int64             `help:"Rows of each input that is generated." default:"2000000" placeholder:"N"`
	Seed    uint64            `help:"What those rows follow from." default:"1" placeholder:"N"`
	Script  string            `help:"Measure this script instead." placeholder:"FILE"`
	Params  string            `help:"File with the script's parameters." placeholder:"FILE"`
	Param   map[string]string `help:"One parameter; may be repeated." placeholder:"NAME=VALUE" mapsep:"none"`
	Writes  bool              `help:"Run nodes of the script that write, too: they write where it says."`
	In      string            `help:"Where the bench has a directory of its own, which it removes." default:"." type:"path" placeholder:"DIR"`
	Cluster string            `help:"Use the state and the parts of this cluster, which has no workers then." type:"path" placeholder:"FILE"`
	JSON    bool              `name:"json" help:"Print a JSON object."`
	SVG     bool              `name:"svg" help:"Draw the sweep: a panel for each knob."`
	Out     string            `help:"Write the drawing to FILE instead of standard output." short:"o" placeholder:"FILE" type:"path"`
	Verbose bool              `short:"v" help:"Log what the machinery does, to standard error."`
	overwriteFlag
	engineFlags
	remoteFlags
}

// Help implements kong.HelpProvider.
func (c *benchPipelineCmd) Help() string {
	return "A worker of its own first chooses how much it does at once, as any worker does. That is measured then, and " +
		"with --sweep fixed numbers beside it, by class of node: load, join, python, write."
}

// benchRowsMost and benchRoundsMost bound what a bench is asked for.
const (
	benchRowsMost   = 1_000_000_000
	benchRoundsMost = 100
	writersMost     = 32
)

// check looks at which flags go together.
func (c *benchPipelineCmd) check(a *console) error {
	refuse := func(format string, args ...any) error { return fault.New(fault.Script, format, args...) }
	for _, name := range []string{"batches", "threads", "writers", "svg"} {
		if a.typed[name] && !c.Sweep {
			return refuse("--%s is about fixed numbers: add --sweep", name)
		}
	}
	for _, name := range []string{"params", "param", "writes"} {
		if a.typed[name] && c.Script == "" {
			return refuse("--%s is about a script: name it with --script", name)
		}
	}
	for _, name := range []string{"rows", "seed"} {
		if a.typed[name] && c.Script != "" {
			return refuse("--%s is about generated inputs: it does not go with --script", name)
		}
	}
	for name, numbers := range map[string][]int{"batches": c.Batches, "threads": c.Threads, "writers": c.Writers} {
		for _, n := range numbers {
			if n < 1 || n > benches.Most {
				return refuse("--%s %d: numbers are 1 to %d", name, n, benches.Most)
			}
		}
	}
	switch {
	case c.Rows < 1 || c.Rows > benchRowsMost:
		return refuse("--rows %d: there are 1 to %d", c.Rows, benchRowsMost)
	case c.Rounds < 1 || c.Rounds > benchRoundsMost:
		return refuse("--rounds %d: there are 1 to %d", c.Rounds, benchRoundsMost)
	case c.SVG && c.JSON:
		return refuse("--svg and --json are two forms: leave one of them out")
	case !c.SVG && c.Out != "":
		return refuse("--out is where a drawing goes: add --svg")
	}
	return c.engineFlags.check()
}

// Run implements kong's command.
func (c *benchPipelineCmd) Run(ctx context.Context, a *console) error {
	if err := c.check(a); err != nil {
		return err
	}
	to := outFile{path: c.Out, overwrite: c.Overwrite, mine: madeSVG}
	if err := to.check(); err != nil {
		return err
	}
	opts, err := c.options(a)
	if err != nil {
		return err
	}
	r, err := benches.Pipeline(ctx, opts)
	switch {
	case err != nil:
		return err
	case c.SVG:
		return to.write(a, r.WriteSVG)
	case c.JSON:
		return printJSON(a.stdout, r)
	}
	a.showSweep(r)
	return nil
}

func (c *benchPipelineCmd) options(a *console) (o benches.PipelineOptions, err error) {
	memory, err := parseSize(c.Memory)
	if err != nil {
		return o, err
	}
	var cfg *app.Config
	if c.Cluster != "" {
		if cfg, err = app.LoadCluster(c.Cluster, a.process()); err != nil {
			return o, err
		}
		o.Isolate = app.Isolation(ownExecutable, c.remoteFlags) // as its workers do
		c.Cores = cmp.Or(c.Cores, cfg.Worker.Cores)
	}
	logger := newLogger(a, c.Verbose)
	if err := c.findPython(cfg, logger); err != nil {
		return o, err
	}
	client, err := c.client(logger)
	if err != nil {
		return o, err
	}
	o.Cluster, o.Dir, o.Script, o.ParamsPath, o.Params, o.Writes = cfg, c.In, c.Script, c.Params, c.Param, c.Writes
	o.Rows, o.Seed, o.Rounds, o.Settle = c.Rows, c.Seed, c.Rounds, c.Settle
	o.Progress = func(text string) { fmt.Fprintln(a.stderr, text) }
	o.Process = a.process(func(p *app.Process) {
		p.Remote, p.Logger, p.MemoryBytes, p.Cores, p.Interpreter = client, logger, memory, c.Cores, c.Python
		p.RowTimeout, p.GroupTimeout, p.AttemptTimeout, p.Tries = c.RowTimeout, c.GroupTimeout, c.AttemptTimeout, c.Tries
	})
	o.Caller = a.caller()
	if c.Sweep {
		o.Numbers = c.numbers()
	}
	return o, nil
}

// numbers are those that are tried, by knob.
func (c *benchPipelineCmd) numbers() map[string][]int {
	cores := cmp.Or(c.Cores, runtime.GOMAXPROCS(0))
	or := func(said []int, most int) []int {
		if len(said) > 0 {
			return said
		}
		return doublings(most)
	}
	return map[string][]int{benches.Batches: or(c.Batches, min(2*cores, benches.Most)),
		benches.Threads: or(c.Threads, min(cores, benches.Most)), benches.Writers: or(c.Writers, writersMost)}
}

// doublings are 1, 2, 4 … and the most.
func doublings(most int) (out []int) {
	for n := 1; n < most; n *= 2 {
		out = append(out, n)
	}
	return append(out, most)
}

func (a *console) showSweep(r benches.Sweep) {
	fmt.Fprintln(a.stdout, a.paint(plain(r.Title()), bold))
	var tables []sizing.Table
	for _, t := range r.Tables() {
		tables = append(tables, sizing.Table(t))
	}
	a.printTables(tables)
	a.printTexts("notes", r.Notes)
}
