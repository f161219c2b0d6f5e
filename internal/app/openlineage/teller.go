package openlineage

import (
	"context"
	"log/slog"
	"sync"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/address"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// Off keeps a process from telling anything.
const Off = "off"

// Teller tells OpenLineage events of runs, if anybody wants that.
type Teller struct {
	outlet    *lineage.Publisher // nil: nobody does
	hide      func(string) string
	namespace string
	logger    *slog.Logger

	mu    sync.Mutex
	known map[state.NodeKey]bool // nodes that have begun
}

// Open opens where to says that events go, or the environment.
func Open(ctx context.Context, home *instance.Instance, p runtime.Process, to string) (*Teller, error) {
	o := &Teller{hide: p.Known.Text, namespace: p.Getenv("OPENLINEAGE_NAMESPACE"), logger: p.Logger,
		known: map[state.NodeKey]bool{}}
	if to == "" {
		to = p.Getenv("OPENLINEAGE_URL")
		if off := p.Getenv("OPENLINEAGE_DISABLED"); off == "true" || off == "1" || off == "True" {
			return o, nil
		}
	}
	if to == "" || to == Off {
		return o, nil
	}
	key := p.Getenv("OPENLINEAGE_API_KEY")
	p.Known.Add(key, "{env.OPENLINEAGE_API_KEY}")
	p.Known.Learn(to)
	dest, err := lineage.Open(address.SeenFrom(p.Dir, to), p.Getenv("OPENLINEAGE_ENDPOINT"), key)
	if err != nil {
		return nil, err
	}
	o.outlet = lineage.NewPublisher(ctx, lineage.PublisherConfig{To: dest, Store: home.State,
		Box:   registry.LineageBox(home),
		Owner: job.Owner(), Gone: job.Gone, Logger: p.Logger,
		How: func(ctx context.Context, key state.RunKey) (how lineage.Telling, err error) {
			how = o.telling()
			how.Script, how.Dir, err = inspect.ScriptOf(ctx, home, key, p)
			return how, err
		}})
	return o, nil
}

func (o *Teller) telling() lineage.Telling {
	return lineage.Telling{Namespace: o.namespace, Hide: o.hide}
}

// Wrap follows the runs of some options beside those who watch them already.
func (o *Teller) Wrap(ctx context.Context, opts *runner.Options) {
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

// WrapWorker does so for all runs that a worker or scheduler works on.
func (o *Teller) WrapWorker(ctx context.Context, opts *worker.WorkerOptions) {
	if o.outlet == nil {
		return
	}
	joined, observe := opts.Joined, opts.Observe
	opts.Joined = func(s runner.Started) {
		o.follow(ctx, s)
		if joined != nil {
			joined(s)
		}
	}
	opts.Observe = func(e job.Event) {
		o.observe(e)
		if observe != nil {
			observe(e)
		}
	}
	opts.Left = o.outlet.Leave
}

func (o *Teller) follow(ctx context.Context, s runner.Started) {
	how := o.telling()
	how.Script, how.Dir = s.Script, s.Dir
	o.outlet.Follow(ctx, s.Key, how)
}

func (o *Teller) observe(e job.Event) {
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

// Close tells what is left, for a while.
func (o *Teller) Close() {
	if o.outlet == nil {
		return
	}
	if err := o.outlet.Close(); err != nil {
		o.logger.Warn("where OpenLineage events go could not be closed", "error", err)
	}
}
