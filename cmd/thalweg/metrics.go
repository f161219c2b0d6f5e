package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/metrics"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue"
)

// metricsFlag says where a worker shows what it measures.
type metricsFlag struct {
	Metrics string `help:"Serve metrics, health and readiness there: /metrics, /metrics.json, /healthz, /readyz. Without HOST on loopback only." placeholder:"HOST:PORT"`
}

// observers measure what is asked of a cluster's services.
func observers(m *metrics.Metrics) instance.Observers {
	return instance.Observers{Cassandra: m.Requests("cassandra"), S3: m.Requests("s3"), RabbitMQ: m.Requests("rabbitmq"),
		Cache: m.Copies(), Parts: m.Backend}
}

// watched is a worker that may be asked for metrics, health and readiness.
type watched struct {
	m      *metrics.Metrics
	ready  *readiness
	server *metrics.Server // nil: nobody asks
}

// watch serves what is measured of a worker at an address, which the place of a cluster's configuration
// or, without one, the command line names. It begins before the state is there.
func (c *workerCmd) watch(ctx context.Context, a *app, m *metrics.Metrics, at fault.Place) (*watched, error) {
	w := &watched{m: m, ready: &readiness{drain: a.drain, away: c.away}}
	if c.Metrics == "" {
		return w, nil
	}
	server, err := m.Listen(ctx, c.Metrics, w.ready.check, c.away.logger)
	if err != nil {
		f := *fault.Of(err)
		if f.Place = at; f.Kind == fault.Script {
			return nil, &f
		}
		f.Hint = "each worker of a machine has a port of its own: give this one another with --metrics HOST:PORT, or " +
			"--metrics :0 for any that is free"
		if f.Place.Line > 0 {
			f.Message += ", as worker.metrics says"
			f.Hint += "; worker: {metrics: \":0\"} lets all workers choose one"
		}
		return nil, &f
	}
	w.server = server
	fmt.Fprintf(a.stderr, "metrics: http://%s/metrics\n", server.Address())
	return w, nil
}

// close ends what watch began.
func (w *watched) close() error {
	if w.server == nil {
		return nil
	}
	return w.server.Close()
}

// measure begins to measure the work of a worker, before its first batch.
func (w *watched) measure(home *instance.Instance, opts *worker.WorkerOptions) {
	if w.server == nil {
		return
	}
	m := w.m
	home.State = m.State(home.State)
	if home.Parts.Properties().Local {
		home.Parts = m.Parts(home.Parts)
	}
	observe := opts.Observe
	opts.Observe = func(e job.Event) {
		m.Observe(e)
		observe(e)
	}
	opts.Hinted, opts.SlotEnded, opts.Decided = m.Hinted, m.SlotEnded, m.Decided
	w.ready.home = home
	opts.Introspect = func(i worker.Introspection) {
		m.Watch(metrics.Sources{Waiting: i.Queue.Waiting, Budget: i.Budget, AtOnce: i.AtOnce})
		w.ready.inside.Store(&i)
	}
}

// readiness says whether a worker could take work now.
type readiness struct {
	away   *outage
	drain  <-chan struct{}
	home   *instance.Instance                   // when inside is there
	inside atomic.Pointer[worker.Introspection] // nil: it does not work yet
}

func (r *readiness) check(ctx context.Context) (notices []string, err error) {
	select {
	case <-r.drain:
		return nil, errors.New("it was asked to end, and begins no more batches")
	default:
	}
	in := r.inside.Load()
	if why := r.away.why.Load(); in == nil && why != nil {
		return nil, fmt.Errorf("it waits for the services of the cluster: %s", *why)
	}
	if in == nil {
		return nil, errors.New("it does not work yet")
	}
	cannot, notices := in.Able()
	if len(cannot) > 0 {
		return notices, errors.New(strings.Join(cannot, "; "))
	}
	if _, err := r.home.State.Workspaces(ctx); err != nil {
		return notices, fmt.Errorf("the state: %w", err)
	}
	if _, err := in.Queue.Waiting(ctx, queue.Normal); err != nil {
		return notices, fmt.Errorf("the queue: %w", err)
	}
	return notices, nil
}
