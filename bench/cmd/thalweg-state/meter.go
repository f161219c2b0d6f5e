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

// newMeter returns a meter of a store.
func newMeter(of state.Store) *meter {
	m := &meter{}
	m.Store = state.Around(of, m.call)
	return m
}

// call notes what a call takes.
func (m *meter) call(ctx context.Context, op state.Op, call func(context.Context) error) error {
	began := time.Now()
	err := call(ctx)
	took := time.Since(began)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch op.Method {
	case state.OpClaim:
		m.claim = took
	case state.OpCommit:
		m.batches = append(m.batches, m.claim+took)
	case state.OpRun, state.OpNodes, state.OpOffers, state.OpUnsettled:
		m.reading += took
	}
	return err
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
