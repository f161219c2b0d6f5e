package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/fault"
	"thalweg/internal/local"
	"thalweg/internal/state"
	"thalweg/internal/worker"
)

type runCmd struct {
	scriptFlags
	engineFlags
	Start     []string `help:"Nodes to start with; default: those that read files and are not manual." placeholder:"NODE,…"`
	From      []int64  `help:"Runs, of this or another script, to read the tables from that this run does not write; default: what the dependency policies say of earlier runs of this script." placeholder:"N,…"`
	Ephemeral bool     `help:"Store no table that can be computed inside the one node that reads it."`
	Resume    bool     `help:"Continue the script's last run at its first uncommitted batch."`
	RunNumber int64    `name:"run" help:"With --resume: the run to continue; default: the last." placeholder:"N"`
	Note      string   `help:"A description to keep with the run."`
	JSON      bool     `name:"json" help:"Print events as JSON lines."`
	Verbose   bool     `short:"v" help:"Log what the machinery does, to standard error."`
	stateFlags
}

func (c *runCmd) Run(ctx context.Context, a *app) error {
	place, err := openWorkplace(ctx, a, c.State, c.engineFlags, c.remoteFlags, c.Verbose)
	if err != nil {
		return err
	}
	defer place.close()
	view := newRunView(a, c.JSON)
	defer view.close()
	sum, err := local.Run(ctx, place.home, local.Options{
		ScriptPath: c.Script, ParamsPath: c.Params, Program: version, Params: c.Param, Lenient: c.Lenient, Workspace: c.Workspace, Start: c.Start, From: c.From, Description: c.Note, Ephemeral: c.Ephemeral, Resume: c.Resume, ResumeRun: c.RunNumber,
		MemoryBytes: place.memoryBytes, Cores: c.Cores, Interpreter: c.Python, Keeper: ownExecutable, Known: a.known, RowTimeout: c.RowTimeout, GroupTimeout: c.GroupTimeout,
		Remote: place.client, Logger: place.logger, Observe: view.observe, Started: view.begin, Waiting: a.waiting,
	})
	view.close()
	if sum.Key.Run == 0 {
		if err != nil && c.JSON {
			if perr := printJSON(a.stdout, neverBegan(ctx, c.Workspace, err)); perr != nil {
				return perr
			}
		}
		return err
	}
	return c.finish(a, sum, err)
}

// neverBegan is the event of a run that failed, or was interrupted, before it was one.
func neverBegan(ctx context.Context, workspace string, err error) finished {
	out := finished{Event: "run_finished", Status: state.Stopped, Workspace: workspace, Nodes: []finishedNode{}}
	if ctx.Err() == nil {
		failure := worker.FailureOf(err, state.BatchKey{Batch: -1})
		out.Status, out.Failure = state.Failed, &failure
	}
	return out
}

// finish prints how the run ended and gives the command's result.
func (c *runCmd) finish(a *app, sum local.Summary, err error) error {
	sum.Nodes = settled(sum.Status, time.Now(), sum.Nodes)
	if c.JSON {
		if err := printJSON(a.stdout, finishedEvent(sum)); err != nil {
			return err
		}
	} else {
		printSummary(a, sum)
	}
	if err != nil {
		return err
	}
	switch sum.Status {
	case state.Complete:
		return nil
	case state.Running:
		fmt.Fprintf(a.stderr, "run %d goes on in other processes; follow it with --resume\n", sum.Key.Run)
		return errReported{exitInterrupted}
	case state.Stopped:
		fmt.Fprintf(a.stderr, "run %d was stopped; continue with --resume\n", sum.Key.Run)
		return errReported{exitInterrupted}
	}
	if f := sum.Failure; f != nil {
		a.printFailure(f.Text(), f.Place, f.Hint, f.Detail)
		fmt.Fprintf(a.stderr, "run %d failed; %s\n", sum.Key.Run, nextStep(f.Kind))
		return errReported{exitCode(f.Kind)}
	}
	return errReported{exitOurs}
}

// nextStep is what to do about a failed run. A run goes on with the script and
// the inputs that it was planned for: corrected ones need a new run.
func nextStep(k fault.Kind) string {
	if k == fault.Environment || k == fault.Bug {
		return "what it committed is kept: when the cause is gone, continue with --resume"
	}
	return "nothing was written under a final name by the failed batch: correct the cause and run again (--resume continues only with unchanged script and input files)"
}

// parseSize reads a memory size such as 512MB, 4GB, 1.5GiB. Decimal and
// binary units are both taken as binary, as people mean them here.
func parseSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	var n float64
	var unit string
	bad := &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q is not a size", s), Hint: "write a number and MB, GB or TB, e.g. 2GB"}
	if _, err := fmt.Sscanf(s, "%f%s", &n, &unit); err != nil || n <= 0 {
		return 0, bad
	}
	switch strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(unit), "b"), "i")) {
	case "M":
		return int64(n * (1 << 20)), nil
	case "G":
		return int64(n * (1 << 30)), nil
	case "T":
		return int64(n * (1 << 40)), nil
	}
	return 0, bad
}
