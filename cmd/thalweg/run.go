package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

type runCmd struct {
	scriptFlags
	engineFlags
	Start []string `help:"Nodes to start with; default: all that read files and are not manual." placeholder:"NODE,…"`
	selectFlags
	Ephemeral bool   `help:"Store no table that can be computed inside the one node that reads it."`
	Fresh     bool   `help:"Run all nodes, also those that an earlier run has done the same way."`
	Resume    bool   `help:"Continue the script's last run at its first uncommitted batch."`
	RunNumber int64  `name:"run" help:"With --resume: the run to continue; default: the last." placeholder:"N"`
	Wait      bool   `help:"Stay while the run waits for people, or in a cluster for a worker that can take it."`
	Note      string `help:"A description to keep with the run."`
	Deadline  string `help:"When the run is to be over: 2h, '06:30 Europe/Berlin', a moment." placeholder:"WHEN"`
	limitFlags
	Matrix   []string `help:"Run it for each value: month=2026-01..2026-12." placeholder:"NAME=VALUES" sep:"none"`
	AtOnce   int      `name:"matrix-concurrency" help:"Cells of --matrix at work at once." default:"1" placeholder:"N"`
	FailFast bool     `help:"With --matrix: begin no cell behind one that failed."`
	Priority string   `help:"How urgent it is beside other runs: ${enum}." enum:"high,normal,low" default:"normal"`
	Detach   bool     `help:"With --cluster: submit the run and do not follow it."`
	hookFlags
	openLineageFlag
	JSON    bool `name:"json" help:"Print events as JSON lines."`
	Verbose bool `short:"v" help:"Log what the machinery does, to standard error."`
	stateFlags
}

// Help implements kong.HelpProvider.
func (c *runCmd) Help() string {
	return "Nodes are taken over from an earlier run whose inputs, code and parameters are the same. Tables that the run " +
		"does not write are read from the runs that --from gives by number, of this or another script, or else those " +
		"that the dependency policies choose. With several --matrix there is a cell for each combination; the same " +
		"command goes on with what is missing or failed."
}

func (c *runCmd) Run(ctx context.Context, a *console) error {
	if err := c.check(a); err != nil {
		return err
	}
	place, err := openWorkplace(ctx, a, c.placeFlags, c.engineFlags, c.remoteFlags, c.Verbose)
	if err != nil {
		return err
	}
	defer place.close()
	var hooks []app.Hook
	if a.server == "" { // which has its own
		if hooks, err = c.loadHooks(ctx, a, place); err != nil {
			return err
		}
	}
	place.openLineage = c.OpenLineage
	sel, from, err := c.selection(c.Start, c.Resume)
	if err != nil {
		return err
	}
	priority, _ := app.ParsePriority(c.Priority) // the flag takes no others
	opts := app.RunOptions{Deadline: c.Deadline, Hooks: hooks, Priority: priority,
		ScriptPath: c.Script, ParamsPath: c.Params, Params: c.Param, Lenient: c.Lenient, Workspace: c.Workspace,
		Start: c.Start, From: from, Select: sel, Description: c.Note,
		Ephemeral: c.Ephemeral, Reuse: !c.Fresh, Resume: c.Resume, ResumeRun: c.RunNumber, Wait: c.Wait, Most: c.ask()}
	if c.Resume {
		opts.Most = c.again(a)
	}
	if a.server != "" {
		if opts, err = throughOptions(opts); err != nil {
			return err
		}
	}
	if c.DryRun && len(c.Matrix) > 0 {
		return &fault.Error{Kind: fault.Script, Message: "--dry-run does not go with --matrix",
			Hint: "look at one cell: give the parameter one value, with --param"}
	}
	if len(c.Matrix) == 0 && (!sel.Empty() || c.DryRun) {
		if err := c.printPlan(ctx, a, place, opts); err != nil || c.DryRun {
			return a.ofServer(opts, err)
		}
	}
	if err := c.confirmOutputs(ctx, a, place, opts); err != nil {
		return err
	}
	if place.detach = c.Detach; c.Detach {
		if err := needCluster("--detach", cmp.Or(c.Cluster, a.server)); err != nil {
			return err
		}
	}
	if len(c.Matrix) > 0 && c.Detach {
		return &fault.Error{Kind: fault.Script, Message: "--matrix begins its cells one by one: it has to stay",
			Hint: "leave --detach out; when it is interrupted, the same command goes on"}
	}
	if len(c.Matrix) > 0 {
		return c.sweep(ctx, a, place, opts)
	}
	return a.ofServer(opts, place.work(ctx, a, c.JSON, opts))
}

// check refuses flags that would mean nothing without others.
func (c *runCmd) check(a *console) error {
	switch {
	case a.typed["run"] && !c.Resume && len(c.Matrix) == 0:
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("--run %d names a run to go on with, and --resume is not given", c.RunNumber),
			Hint:    "add --resume to go on with that run; leave --run out for a new one"}
	case c.FailFast && len(c.Matrix) == 0, a.typed["matrix-concurrency"] && len(c.Matrix) == 0:
		return &fault.Error{Kind: fault.Script,
			Message: "--fail-fast and --matrix-concurrency are about the cells of --matrix, which is not given",
			Hint:    "leave them out, or give --matrix NAME=VALUES"}
	}
	return nil
}

// work begins a run here, or goes on with one, and shows it.
func (w *workplace) work(ctx context.Context, a *console, asJSON bool, opts app.RunOptions) error {
	if w.home.Cluster() != nil || a.server != "" {
		return w.submit(ctx, a, asJSON, opts)
	}
	shown := newRunView(a, asJSON)
	defer shown.close()
	opts = w.equip(a, opts)
	opts.Observe, opts.Started = shown.observe, shown.begin
	opts.Waits = func(sum app.Summary) {
		shown.pause()
		printWaits(a, sum)
		fmt.Fprintf(a.stderr, "run %d waits, and holds nothing; it goes on here when it is decided\n", sum.Key.Run)
	}
	told, err := w.home.Tell(ctx, w.openLineage)
	if err != nil {
		return err
	}
	told.Wrap(ctx, &opts)
	sum, err := w.home.Run(ctx, a.caller(), opts)
	shown.close()
	told.Close()
	if sum.Key.Run == 0 {
		if err != nil && asJSON {
			if perr := printJSON(a.stdout, neverBegan(ctx, opts.Workspace, err)); perr != nil {
				return perr
			}
		}
		return err
	}
	return finishRun(a, sum, err, asJSON)
}

// equip adds to what a run is told who watches it here.
func (w *workplace) equip(a *console, opts app.RunOptions) app.RunOptions {
	opts.Process.Waiting = a.waiting
	opts.Exclusive, opts.Shared = a.protected(), a.shared
	return opts
}

// shared tells of an output that another run, which is under way, writes, too.
func (a *console) shared(key view.RunKey, o app.Shared) {
	if a.json {
		// nobody is left to tell when this fails
		_ = printJSON(a.stdout, view.OutputShared{Event: "output_shared", Workspace: key.Workspace,
			Run: key.Run, Node: o.Node, Output: o.Output, Other: o.Run, By: o.By})
		return
	}
	fmt.Fprintf(a.stderr, "%s run %d is under way and writes %s, too, in node %s: what is written last stays; "+
		"`%s` ends it\n", a.mark("warning:", yellow), o.Run, plain(o.Output), o.By,
		a.command(view.RunKey{Workspace: key.Workspace, Run: o.Run}.Do("stop")))
}

// neverBegan is the event of a run that failed, or was interrupted, before it was one.
func neverBegan(ctx context.Context, workspace string, err error) view.RunFinished {
	out := view.RunFinished{Event: "run_finished", Status: view.StoppedRun, Workspace: workspace,
		Nodes: []view.FinishedNode{}}
	if ctx.Err() == nil {
		failure := view.FailureOf(err)
		out.Status, out.Failure = view.FailedRun, &failure
	}
	return out
}

// finishRun prints how a run ended and gives the command's result.
func finishRun(a *console, sum app.Summary, err error, asJSON bool) error {
	sum.Nodes = app.Settled(sum)
	if asJSON {
		if err := printJSON(a.stdout, app.Finished(sum)); err != nil {
			return err
		}
	} else {
		printSummary(a, sum)
	}
	if err != nil {
		return err
	}
	switch sum.Status {
	case view.Complete:
		return nil
	case view.Waiting:
		printWaits(a, sum)
		then := fmt.Sprintf("`%s` goes on with it", a.command(sum.Key.Do("resume")))
		if a.cluster {
			then = fmt.Sprintf("a worker goes on with it; `%s` follows it",
				a.command(sum.Key.Do("attach")))
		}
		fmt.Fprintf(a.stderr, "run %d waits, and holds nothing; when it is decided, %s\n", sum.Key.Run, then)
		return errReported{exitWaiting}
	case view.Running:
		fmt.Fprintf(a.stderr, "run %d goes on in other processes; `%s` follows it\n", sum.Key.Run,
			a.command(sum.Key.Do("attach")))
		return errReported{exitInterrupted}
	case view.PausedRun:
		fmt.Fprintf(a.stderr, "run %d is paused, and nothing of it is under way; `%s` lets it go on\n", sum.Key.Run,
			a.command(sum.Key.Do("resume")))
		return errReported{exitWaiting}
	case view.StoppedRun:
		fmt.Fprintf(a.stderr, "run %d was stopped; continue with --resume, or `%s`\n", sum.Key.Run,
			a.command(sum.Key.Do("resume")))
		return errReported{exitStopped}
	}
	if f := sum.Failure; f != nil {
		if a.json {
			a.printTwin(view.FailedFrom(*f, exitCode(f.Kind), nextStep(f, sum.Key)))
			return errReported{exitCode(f.Kind)}
		}
		a.printFailure(f.Text(), f.Place, f.Hint, f.Detail)
		if view.IsGate(f.Node) {
			fmt.Fprintf(a.stderr, "run %d failed at gate %s\n", sum.Key.Run, view.GateName(f.Node))
			return errReported{exitCode(f.Kind)}
		}
		fmt.Fprintf(a.stderr, "run %d failed; %s\n", sum.Key.Run, nextStep(f, sum.Key))
		return errReported{exitCode(f.Kind)}
	}
	return errReported{exitOurs}
}

// printWaits says what a run waits for, and how to decide.
func printWaits(a *console, sum app.Summary) {
	for _, g := range sum.Asked {
		a.printAsked(a.stderr, sum.Key.Workspace, g, time.Now())
	}
}

// nextStep says how to go on after a failed run. A run goes on with the script and the inputs that
// it was planned for: for corrected ones retry begins a new run.
func nextStep(f *view.Failure, key view.RunKey) string {
	_, goOn := view.Run{RunKey: key, Failure: f}.AfterFailure()
	command := goOn.String()
	if goOn.Verb == view.ResumeVerb {
		return "what it committed is kept: when the cause is gone, continue with --resume, or " + command
	}
	return "nothing was written under a final name by the failed batch: correct the cause, then " + command +
		" does what is missing, in a new run if the script or its inputs have changed"
}

// parseSize reads a memory size such as 512MB, 4GB, 1.5GiB. Decimal and
// binary units are both taken as binary, as people mean them here.
func parseSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	m := sizeText.FindStringSubmatch(s)
	if m == nil {
		return 0, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q is not a size", s),
			Hint: "write a number and MB, GB or TB, e.g. 2GB"}
	}
	n, err := strconv.ParseFloat(m[1], 64)
	n *= float64(int64(1) << map[string]int{"M": 20, "G": 30, "T": 40}[strings.ToUpper(m[2])])
	if err != nil || n < 1 || n > sizeBytesMax {
		return 0, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q is not a size from 1 byte to %s", s,
			size(sizeBytesMax)), Hint: "write a number and MB, GB or TB, e.g. 2GB"}
	}
	return int64(n), nil
}

// sizeBytesMax is the largest size that a flag takes: more than any machine has, and little enough to
// be added up and multiplied.
const sizeBytesMax = 1 << 50

var sizeText = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([mMgGtT])(?:[iI]?[bB])?$`)
