package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"thalweg/internal/run/coordinator"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue/inproc"
	"thalweg/internal/store/state"
)

// meter is a store that notes what its calls take while a run is driven.
type meter struct {
	state.Store
	mu      sync.Mutex
	claim   time.Duration   // of the batch that was claimed last
	batches []time.Duration // claim and commit of each, in order
	reading time.Duration   // of all that a coordinator reads and renews
}

// Claim implements state.Store.
func (m *meter) Claim(ctx context.Context, b state.Bid) (state.Claim, error) {
	began := time.Now()
	c, err := m.Store.Claim(ctx, b)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claim = time.Since(began)
	return c, err
}

// Commit implements state.Store.
func (m *meter) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	began := time.Now()
	err := m.Store.Commit(ctx, c, out, now)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches = append(m.batches, m.claim+time.Since(began))
	return err
}

// reads times what a coordinator asks for.
func (m *meter) reads(began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reading += time.Since(began)
}

// Run implements state.Store.
func (m *meter) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	defer m.reads(time.Now())
	return m.Store.Run(ctx, key)
}

// Nodes implements state.Store.
func (m *meter) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	defer m.reads(time.Now())
	return m.Store.Nodes(ctx, key)
}

// Offers implements state.Store.
func (m *meter) Offers(ctx context.Context, key state.NodeKey, now time.Time, page state.Page) ([]state.Offer,
	int64, error) {
	defer m.reads(time.Now())
	return m.Store.Offers(ctx, key, now, page)
}

// Unsettled implements state.Store.
func (m *meter) Unsettled(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	defer m.reads(time.Now())
	return m.Store.Unsettled(ctx, key, page)
}

// idle is a job whose batches do nothing but leave a part.
type idle int

// Plan implements job.Job.
func (n idle) Plan(context.Context, state.Node) (state.Plan, error) {
	p := state.Plan{Record: []byte("{}"), Batches: make([]state.BatchSpec, n)}
	for i := range p.Batches {
		p.Batches[i] = state.BatchSpec{Batch: i, Class: "load",
			Work: fmt.Appendf(nil, `{"file":"in.csv","from":%d,"to":%d}`, i, i+1)}
	}
	return p, nil
}

// Settle implements job.Job.
func (idle) Settle(context.Context, state.Node) error { return nil }

// Execute implements job.Job.
func (idle) Execute(_ context.Context, c state.Claim) (job.Result, error) {
	part := state.Part{Key: fmt.Sprintf("main/00001/00-n/b%05d-a1-0000.parquet", c.Batch), Bucket: -1, Rows: 10,
		Bytes: 1000, RawBytes: 2000,
		Schema: "id:int,status:string", Checksum: "crc32c:00000000"}
	return job.Result{Outcome: state.Outcome{Parts: []state.Part{part}, Stats: state.Stats{RowsIn: 10, RowsOut: 10,
		Engine: time.Millisecond}}}, nil
}

// one is the only run of an executor.
type one struct{ *coordinator.Coordinator }

// Use implements executor.Runs.
func (o *one) Use(context.Context, state.RunKey) (executor.Run, func(), error) {
	return o.Coordinator, func() {}, nil
}

// drive begins a run of so many batches and works on it, one at a time, to its end.
func (m *meter) drive(ctx context.Context, batches int) (err error) {
	key, err := m.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: batchesWorkspace}},
		[]state.NodeSpec{{Name: batchesNode, Table: "n"}})
	if err != nil {
		return err
	}
	queue, owner := inproc.New(0), job.Owner()
	run := &one{coordinator.New(ctx, coordinator.Config{Store: m, Queue: queue, Job: idle(batches), Owner: owner,
		Slots: 1}, key)}
	exec := executor.New(executor.Config{Store: m, Queue: queue, Runs: run, Owner: owner, Slots: 1})
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- exec.Work(working) }()
	status, err := run.Run()
	stop()
	if workErr := <-ended; err == nil {
		err = workErr
	}
	if closeErr := queue.Close(); err == nil {
		err = closeErr
	}
	if err == nil && (status != state.Complete || len(m.batches) != batches) {
		err = fmt.Errorf("the run is %s, with %d of %d batches", status, len(m.batches), batches)
	}
	return err
}
