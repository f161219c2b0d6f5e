package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/metrics"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue"
)

// Metrics measures the work of a worker, and answers those who ask for metrics,
// health and readiness. It begins before the state is there.
type Metrics struct {
	m      *metrics.Metrics
	ready  readiness
	server *metrics.Server // nil: nobody asks there
	asked  bool            // by way of Handler
}

// NewMetrics returns metrics of a program of this version. The worker is not
// ready once drain is closed, or while away waits.
func NewMetrics(version string, drain <-chan struct{}, away *instance.Outage) *Metrics {
	return &Metrics{m: metrics.New(version), ready: readiness{drain: drain, away: away}}
}

// Observers measure what is asked of a cluster's services.
func (w *Metrics) Observers() instance.Observers {
	m := w.m
	return instance.Observers{Cassandra: m.Requests("cassandra"), S3: m.Requests("s3"),
		RabbitMQ: m.Requests("rabbitmq"), Cache: m.Copies(), Parts: m.Backend}
}

// Listen begins to answer at HOST:PORT, and returns the address at which it does.
func (w *Metrics) Listen(ctx context.Context, at string, logger *slog.Logger) (string, error) {
	server, err := w.m.Listen(ctx, at, w.ready.check, logger)
	if err != nil {
		return "", err
	}
	w.server = server
	return server.Address(), nil
}

// Handler answers with the metrics in the format of Prometheus. It is asked for before Measure.
func (w *Metrics) Handler() http.Handler {
	w.asked = true
	return w.m.Handler()
}

// Close ends the answers.
func (w *Metrics) Close() error {
	if w.server == nil {
		return nil
	}
	return w.server.Close()
}

// Measure begins to measure the work of a worker, before its first batch. Where nobody asks it does nothing.
func (w *Metrics) Measure(home *instance.Instance, opts *WorkerOptions) {
	if w.server == nil && !w.asked {
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
		if observe != nil {
			observe(e)
		}
	}
	opts.Hinted, opts.SlotEnded, opts.Decided = m.Hinted, m.SlotEnded, m.Decided
	w.ready.home = home
	opts.Introspect = func(i Introspection) {
		m.Watch(metrics.Sources{Waiting: i.Queue.Waiting, Budget: i.Budget, AtOnce: i.AtOnce})
		w.ready.inside.Store(&i)
	}
}

// readiness says whether a worker could take work now.
type readiness struct {
	away   *instance.Outage
	drain  <-chan struct{}
	home   *instance.Instance            // when inside is there
	inside atomic.Pointer[Introspection] // nil: it does not work yet
}

func (r *readiness) check(ctx context.Context) (notices []string, err error) {
	select {
	case <-r.drain:
		return nil, errors.New("it was asked to end, and begins no more batches")
	default:
	}
	in := r.inside.Load()
	if why := r.away.Why(); in == nil && why != "" {
		return nil, fmt.Errorf("it waits for the services of the cluster: %s", why)
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
