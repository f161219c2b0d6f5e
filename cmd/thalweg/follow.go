package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// attachCmd follows a run that others work on.
type attachCmd struct {
	Ref  runRef `arg:"" name:"run" optional:"" help:"Run: its number, or last; default: the latest that is not over."`
	Wait bool   `help:"Stay while the run waits for people, or is paused."`
	JSON bool   `name:"json" help:"Print events as JSON lines."`
	stateFlags
}

// Run implements kong's command.
func (c *attachCmd) Run(ctx context.Context, a *console) error {
	find := c.Ref.find
	if c.Ref == "" {
		find = a.findOpen
	}
	home, run, err := openRun(ctx, a, c.stateFlags, find, func(p *app.Process) { p.Logger = newLogger(a, false) })
	if err != nil {
		return err
	}
	defer home.Close()
	return a.follow(ctx, home, run.RunKey, followed{resumed: true, asJSON: c.JSON, wait: c.Wait})
}

// followed says how a run is followed.
type followed struct {
	resumed bool // it had begun before
	asJSON  bool
	wait    bool // also while it waits for people
	queued  bool // it was left to workers, who may not have come yet
	started app.Started
}

// follow shows a run that others work on until it is over, and ends as run does.
func (a *console) follow(ctx context.Context, home *app.App, key view.RunKey, f followed) error {
	nodes, err := home.Operations.AwaitNames(ctx, key)
	if err != nil {
		return err
	}
	shown := newRunView(a, f.asJSON)
	defer shown.close()
	f.started.Key, f.started.Nodes, f.started.Resumed, f.started.Remote = key, nodes, f.resumed, true
	shown.begin(f.started)
	err = home.Operations.FollowWork(ctx, key, app.FollowOptions{Stay: f.wait, Every: followPause, Waiting: true,
		Queued: f.queued, Alone: a.nobodyTakes(key)}, shown.follow)
	shown.close()
	if ctx.Err() != nil {
		if a.unread() { // who closed standard output has seen enough
			return errReported{exitOK}
		}
		fmt.Fprintf(a.stderr, "run %d is not followed any more, and goes on if it is not over; `%s` comes back to it\n",
			key.Run, a.command(key.Do("attach")))
		return errReported{exitInterrupted}
	}
	if err != nil {
		return err
	}
	sum, err := home.Operations.Summary(ctx, key)
	if err == nil && sum.Status == view.Running && home.Cluster() == nil {
		fmt.Fprintf(a.stderr, "nobody works on run %d; `%s` lets it go on\n", key.Run,
			a.command(key.Do("resume")))
		return errReported{exitStopped}
	}
	return finishRun(a, sum, err, f.asJSON)
}

// followPause is the time between two looks at a run that is followed.
const followPause = 200 * time.Millisecond

// follow shows an event of a run that is followed, and of a gate that waits what it asks and how to decide.
func (v *runView) follow(e view.Event) error {
	v.observe(e)
	if e.Kind == view.NodeWaiting && e.Gate != nil {
		v.say(func(w io.Writer) {
			v.app.printAsked(w, e.Run.Workspace, view.GateAsked{Run: e.Run.Run, Node: e.Node,
				Record: *e.Gate}, time.Now())
			fmt.Fprintf(w, "run %d waits; it is followed until it is over, and goes on when it is decided\n", e.Run.Run)
		})
	}
	return nil
}

// nobodyTakes says why no worker takes a run.
func (a *console) nobodyTakes(key view.RunKey) func(why, hint string) {
	return func(why, hint string) {
		fmt.Fprintf(a.stderr, "run %d waits: %s\n  hint: %s\n", key.Run, a.known.Text(why), hint)
	}
}

// submit begins a run of a cluster or a server, or lets one go on, and follows it.
func (w *workplace) submit(ctx context.Context, a *console, asJSON bool, opts app.RunOptions) error {
	opts = w.equip(a, opts)
	key, warnings, err := w.home.Operations.Submit(ctx, a.caller(), opts)
	if err != nil {
		if asJSON {
			if perr := printJSON(a.stdout, neverBegan(ctx, opts.Workspace, err)); perr != nil {
				return errors.Join(err, perr)
			}
		}
		return err
	}
	if !opts.Resume && !opts.Wait && a.server == "" {
		if err := a.awaitTaken(ctx, w.home, key); err != nil {
			if asJSON {
				err = errors.Join(err, printJSON(a.stdout, neverBegan(ctx, opts.Workspace, err)))
			}
			return err
		}
	}
	if w.detach {
		a.printDiagnostics(warnings)
		if asJSON {
			return printJSON(a.stdout, view.RunSubmitted{Event: "run_submitted",
				Workspace: key.Workspace, Run: key.Run})
		}
		fmt.Fprintf(a.stdout, "run %d submitted in workspace %s; `%s` follows it\n", key.Run, key.Workspace,
			a.command(key.Do("attach")))
		return nil
	}
	return a.follow(ctx, w.home, key, followed{resumed: opts.Resume, asJSON: asJSON, wait: opts.Wait, queued: true,
		started: app.Started{Warnings: warnings}})
}

// awaitTaken waits until the workers have looked at a new run. Where none of them
// can work on it, it is stopped before anything of it is done.
func (a *console) awaitTaken(ctx context.Context, home *app.App, key view.RunKey) error {
	cannot, err := home.AwaitTaken(ctx, a.caller(), key)
	var unseen *app.NotSeenError
	if errors.As(err, &unseen) {
		fmt.Fprintf(a.stderr, "it could not be seen whether a worker takes run %d: %v\n", key.Run, err)
		return nil
	}
	for _, text := range cannot {
		fmt.Fprintf(a.stderr, "cannot work on run %d: %s\n", key.Run, text)
	}
	return err
}
