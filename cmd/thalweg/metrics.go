package main

import (
	"context"
	"fmt"

	"thalweg/internal/local"
	"thalweg/internal/metrics"
	"thalweg/internal/worker"
)

// metricsFlag says where a worker shows what it measures.
type metricsFlag struct {
	Metrics string `help:"Serve metrics, health and readiness there: /metrics, /metrics.json, /healthz, /readyz. Without HOST on loopback only." placeholder:"HOST:PORT"`
}

// measure begins to measure a worker, before its first batch, and gives what ends it.
func (w *workplace) measure(ctx context.Context, a *app, address string, opts *local.WorkerOptions) (end func() error, err error) {
	if address == "" {
		return func() error { return nil }, nil
	}
	m := metrics.New(version)
	home := w.home
	ready := func(ctx context.Context) error {
		_, err := home.State.Workspaces(ctx)
		return err
	}
	server, err := m.Listen(ctx, address, ready, w.logger)
	if err != nil {
		return nil, err
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
	opts.Inside = func(i local.Inside) { m.Watch(metrics.Sources{Waiting: i.Queue.Waiting, Budget: i.Budget}) }
	fmt.Fprintf(a.stderr, "metrics: http://%s/metrics\n", server.Address())
	return server.Close, nil
}
