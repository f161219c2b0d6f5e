package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"thalweg/internal/app/runner"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/sweep"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/store/state"
)

// joinWithin is the time in which a worker that nothing keeps from it takes a run.
const joinWithin = 2 * time.Minute

// session is a worker that works on the runs of a bench.
type session struct {
	*bench
	cancel context.CancelFunc
	served chan error
	left   chan state.RunKey
	joined atomic.Bool
	looks  atomic.Pointer[worker.Introspection]
}

// serve starts a worker.
func (b *bench) serve(ctx context.Context, fixed concurrency.Fixed) *session {
	s := &session{bench: b, served: make(chan error, 1), left: make(chan state.RunKey, 1)}
	ctx, s.cancel = context.WithCancel(ctx)
	opts := worker.WorkerOptions{Process: b.opts.Process, Isolate: b.opts.Isolate, Concurrency: fixed, Most: 1,
		Wants:      func(r state.Run) bool { return r.Workspace == Workspace },
		Joined:     func(runner.Started) { s.joined.Store(true) },
		Introspect: func(i worker.Introspection) { s.looks.Store(&i) },
		Left: func(key state.RunKey) {
			select {
			case s.left <- key:
			case <-ctx.Done():
			}
		}}
	opts.Tune = b.tune
	go func() { s.served <- worker.Serve(ctx, b.home, opts) }()
	return s
}

// stop ends the worker.
func (s *session) stop() error {
	s.cancel()
	return <-s.served
}

// atOnce is how much the worker does at once.
func (s *session) atOnce() []concurrency.Setting { return s.looks.Load().AtOnce() }

// run has the worker work on a new run, and says what it did. The run is removed then.
func (s *session) run(ctx context.Context, of loaded) (map[string]sweep.Work, error) {
	opts := of.begin
	opts.Process = s.opts.Process
	opts.Tune = s.tune
	s.joined.Store(false)
	key, err := runner.Begin(ctx, s.home, opts)
	if err != nil {
		return nil, err
	}
	s.at = key
	if err := s.await(ctx, key); err != nil {
		return nil, err
	}
	work, err := s.workOf(ctx, of.Script, key)
	if err != nil {
		return nil, err
	}
	return work, s.remove(ctx, key)
}

// await waits until a run is over.
func (s *session) await(ctx context.Context, key state.RunKey) error {
	late := time.NewTimer(joinWithin)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-s.served:
			s.served <- err // for stop
			return errors.Join(errors.New("the worker of the bench has ended"), err)
		case <-late.C:
			if !s.joined.Load() {
				return &fault.Error{Kind: fault.Environment,
					Message: fmt.Sprintf("the worker of the bench did not take the run within %s", joinWithin),
					Hint:    "{{set verbose}} shows why"}
			}
		case <-s.left:
			over, err := s.over(ctx, key)
			if err != nil || over {
				return err
			}
		}
	}
}

// over reports whether a run that the worker has left is complete; all else that does not go on is an error.
func (s *session) over(ctx context.Context, key state.RunKey) (bool, error) {
	run, err := s.home.State.Run(ctx, key)
	if err != nil {
		return false, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	nodes, err := s.home.State.Nodes(ctx, key)
	switch f := run.Failure; {
	case err != nil:
		return false, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	case run.Status == state.Complete:
		return true, nil
	case f != nil:
		return false, &fault.Error{Kind: f.Kind, Place: f.Place, Hint: f.Hint, Detail: f.Detail,
			Message: fmt.Sprintf("a run of the bench failed in node %s: %s", f.Node, f.Message)}
	case run.Status.Terminal() || state.Waits(nodes):
		return false, fmt.Errorf("a run of the bench is %s", run.Status)
	}
	return false, nil
}

// workOf adds up what the nodes of each class did, over the time in which one of them was at work.
func (s *session) workOf(ctx context.Context, from *script.Script, key state.RunKey) (map[string]sweep.Work, error) {
	nodes, err := s.home.State.Nodes(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	slices.SortFunc(nodes, func(a, b state.Node) int { return a.Started.Compare(b.Started) })
	work, until := map[string]sweep.Work{}, map[string]time.Time{}
	for _, n := range nodes {
		of := from.Node(n.Name)
		if of == nil || n.Started.IsZero() || !n.Finished.After(n.Started) {
			continue
		}
		class := concurrency.ClassOf(string(of.Type))
		w, from := work[class], n.Started
		if until[class].After(from) {
			from = until[class]
		}
		w.Rows, w.Bytes, w.Took = w.Rows+n.RowsIn, w.Bytes+n.BytesIn+n.BytesOut, w.Took+max(n.Finished.Sub(from), 0)
		w.Batches = max(w.Batches, n.BatchesTotal)
		if n.Finished.After(until[class]) {
			until[class] = n.Finished
		}
		work[class] = w
	}
	return work, nil
}
