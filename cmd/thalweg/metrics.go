package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"thalweg/internal/fault"
	"thalweg/internal/local"
	"thalweg/internal/metrics"
	"thalweg/internal/queue"
	"thalweg/internal/worker"
)

// metricsFlag says where a worker shows what it measures.
type metricsFlag struct {
	Metrics string `help:"Serve metrics, health and readiness there: /metrics, /metrics.json, /healthz, /readyz. Without HOST on loopback only." placeholder:"HOST:PORT"`
}

// observers measure what is asked of a cluster's services.
func observers(m *metrics.Metrics) local.Observers {
	return local.Observers{Cassandra: m.Requests("cassandra"), S3: m.Requests("s3"), RabbitMQ: m.Requests("rabbitmq"), Cache: m.Copies(), Parts: m.Backend}
}

// measure begins to measure a worker, before its first batch, and gives what ends it.
func (w *workplace) measure(ctx context.Context, a *app, m *metrics.Metrics, address string, opts *local.WorkerOptions) (end func() error, err error) {
	if address == "" {
		return func() error { return nil }, nil
	}
	home := w.home
	ready := &readiness{home: home, drain: opts.Drain}
	server, err := m.Listen(ctx, address, ready.check, w.logger)
	if err != nil {
		f := *fault.Of(err)
		if f.Place = w.metricsAt; f.Kind == fault.Script {
			return nil, &f
		}
		f.Hint = "each worker of a machine has a port of its own: give this one another with --metrics HOST:PORT, or --metrics :0 for any that is free"
		if f.Place.Line > 0 {
			f.Message += ", as worker.metrics says"
			f.Hint += "; worker: {metrics: \":0\"} lets all workers choose one"
		}
		return nil, &f
	}
	home.State = m.State(home.State)
	if home.Parts.Properties().Local {
		home.Parts = m.Parts(home.Parts)
	}
	observe := opts.Observe
	opts.Observe = func(e worker.Event) {
		m.Observe(e)
		observe(e)
	}
	opts.Hinted, opts.SlotEnded, opts.Decided = m.Hinted, m.SlotEnded, m.Decided
	opts.Inside = func(i local.Inside) {
		m.Watch(metrics.Sources{Waiting: i.Queue.Waiting, Budget: i.Budget, AtOnce: i.AtOnce})
		ready.inside.Store(&i)
	}
	fmt.Fprintf(a.stderr, "metrics: http://%s/metrics\n", server.Address())
	return server.Close, nil
}

// readiness says whether a worker could take work now.
type readiness struct {
	home   *local.Home
	drain  <-chan struct{}
	inside atomic.Pointer[local.Inside] // nil: it does not work yet
}

func (r *readiness) check(ctx context.Context) (notices []string, err error) {
	select {
	case <-r.drain:
		return nil, errors.New("it was asked to end, and begins no more batches")
	default:
	}
	in := r.inside.Load()
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
