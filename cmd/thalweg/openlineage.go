package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/worker"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// openLineageOff keeps a command from telling anything.
const openLineageOff = "off"

// openLineageFlag says where OpenLineage events go.
type openLineageFlag struct {
	OpenLineage string `name:"openlineage" help:"File or address that OpenLineage events go to; off: nowhere; default: $OPENLINEAGE_URL." placeholder:"DEST"`
}

// openLineage tells OpenLineage events of runs, if anybody wants that.
type openLineage struct {
	outlet *lineage.Publisher // nil: nobody does
	hide   func(string) string
	logger *slog.Logger

	mu    sync.Mutex
	known map[state.NodeKey]bool // nodes that have begun
}

// openLineageOf opens where the flag or the environment say that events go.
func (w *workplace) openLineageOf(ctx context.Context, a *app, flag string) (*openLineage, error) {
	o := &openLineage{hide: a.known.Text, logger: w.logger, known: map[state.NodeKey]bool{}}
	if flag == "" {
		flag = os.Getenv("OPENLINEAGE_URL")
		if off := os.Getenv("OPENLINEAGE_DISABLED"); off == "true" || off == "1" || off == "True" {
			return o, nil
		}
	}
	if flag == "" || flag == openLineageOff {
		return o, nil
	}
	key := os.Getenv("OPENLINEAGE_API_KEY")
	a.known.Add(key, "{env.OPENLINEAGE_API_KEY}")
	a.known.Learn(flag)
	to, err := lineage.Open(flag, os.Getenv("OPENLINEAGE_ENDPOINT"), key)
	if err != nil {
		return nil, err
	}
	o.outlet = lineage.NewPublisher(ctx, lineage.PublisherConfig{To: to, Store: w.home.State,
		Box:   registry.LineageBox(w.home),
		Owner: job.Owner(), Gone: job.Gone, Logger: w.logger,
		How: func(ctx context.Context, key state.RunKey) (how lineage.Telling, err error) {
			how = o.telling()
			how.Script, how.Dir, err = inspect.ScriptOf(ctx, w.home, key, w.client, a.known)
			return how, err
		}})
	return o, nil
}

func (o *openLineage) telling() lineage.Telling {
	return lineage.Telling{Namespace: os.Getenv("OPENLINEAGE_NAMESPACE"), Hide: o.hide}
}

// wrap follows the runs of some options beside those who watch them already.
func (o *openLineage) wrap(ctx context.Context, opts *runner.Options) {
	if o.outlet == nil {
		return
	}
	started, observe := opts.Started, opts.Observe
	opts.Started = func(s runner.Started) {
		o.follow(ctx, s)
		if started != nil {
			started(s)
		}
	}
	opts.Observe = func(e job.Event) {
		o.observe(e)
		if observe != nil {
			observe(e)
		}
	}
}

// wrapWorker does so for all runs that a worker or scheduler works on.
func (o *openLineage) wrapWorker(ctx context.Context, opts *worker.WorkerOptions) {
	if o.outlet == nil {
		return
	}
	joined, observe := opts.Joined, opts.Observe
	opts.Joined = func(s runner.Started) {
		o.follow(ctx, s)
		joined(s)
	}
	opts.Observe = func(e job.Event) {
		o.observe(e)
		observe(e)
	}
	opts.Left = o.outlet.Leave
}

func (o *openLineage) follow(ctx context.Context, s runner.Started) {
	how := o.telling()
	how.Script, how.Dir = s.Script, s.Dir
	o.outlet.Follow(ctx, s.Key, how)
}

func (o *openLineage) observe(e job.Event) {
	key := state.NodeKey{RunKey: e.Run, Node: e.Node}
	o.mu.Lock()
	begun := o.known[key]
	tells := e.Kind == job.BatchStarted && !begun || e.Kind == job.NodeFinished || e.Kind == job.BatchFailed
	if tells && !begun {
		o.known[key] = true
	}
	o.mu.Unlock()
	switch {
	case e.Kind == job.RunFinished:
		o.outlet.Leave(e.Run)
	case tells:
		o.outlet.Changed(e.Run, e.Node)
	}
}

// close tells what is left, for a while.
func (o *openLineage) close() {
	if o.outlet == nil {
		return
	}
	if err := o.outlet.Close(); err != nil {
		o.logger.Warn("where OpenLineage events go could not be closed", "error", err)
	}
}

// printEvents prints the OpenLineage events of a run.
func (c *lineageCmd) printEvents(ctx context.Context, a *app) error {
	home, run, err := c.runFlag.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	client, err := c.client(newLogger(a, false))
	if err != nil {
		return err
	}
	defer client.Close()
	how := lineage.Telling{Namespace: os.Getenv("OPENLINEAGE_NAMESPACE"), Hide: a.known.Text}
	how.Script, how.Dir, err = inspect.ScriptOf(ctx, home, run.RunKey, client, a.known)
	if err != nil { // what state says itself can be told
		newLogger(a, false).Warn("the script of the run cannot be had: events have no columns", "error", err)
	}
	events, err := lineage.Events(ctx, home.State, state.RunKey{Workspace: c.Workspace, Run: run.Run}, how)
	if err != nil {
		return err
	}
	for _, e := range events {
		line, err := e.Line()
		if err == nil {
			_, err = a.stdout.Write(line)
		}
		if err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	return nil
}
