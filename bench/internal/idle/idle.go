// Package idle drives runs whose batches do nothing, with real coordinators and executors: what is left is what the
// state of a run costs.
package idle

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

// work is a job whose batches do nothing but leave a part.
type work int

// Plan implements job.Job.
func (n work) Plan(context.Context, state.Node) (state.Plan, error) {
	p := state.Plan{Record: []byte("{}"), Batches: make([]state.BatchSpec, n)}
	for i := range p.Batches {
		p.Batches[i] = state.BatchSpec{Batch: i, Class: "load",
			Work: fmt.Appendf(nil, `{"file":"in.csv","from":%d,"to":%d}`, i, i+1)}
	}
	return p, nil
}

// Settle implements job.Job.
func (work) Settle(context.Context, state.Node) error { return nil }

// Execute implements job.Job.
func (work) Execute(_ context.Context, c state.Claim) (job.Result, error) {
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

// Drive begins a run with a node of so many batches and works on it, one at a time, to its end.
func Drive(ctx context.Context, store state.Store, begin state.Run, node state.NodeSpec, batches int) (err error) {
	key, err := store.CreateRun(ctx, begin, []state.NodeSpec{node})
	if err != nil {
		return err
	}
	queue, owner := inproc.New(0), job.Owner()
	run := &one{coordinator.New(ctx, coordinator.Config{Store: store, Queue: queue, Job: work(batches), Owner: owner,
		Slots: 1}, key)}
	exec := executor.New(executor.Config{Store: store, Queue: queue, Runs: run, Owner: owner, Slots: 1})
	working, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	var workErr error
	ended.Go(func() { workErr = exec.Work(working) })
	status, err := run.Run()
	stop()
	ended.Wait()
	if err == nil {
		err = workErr
	}
	if closeErr := queue.Close(); err == nil {
		err = closeErr
	}
	if err == nil && status != state.Complete {
		err = fmt.Errorf("the run is %s", status)
	}
	return err
}
