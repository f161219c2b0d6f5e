package runtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/coordinator"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// Process is one of several that share a queue: it opens a run when it gets a
// hint of it, or begins with it.
type Process struct {
	Exec  executor.Config
	Coor  coordinator.Config
	Feeds bool                  // it looks for work where hints do not arrive
	Hints map[executor.Fate]int // what became of hints, once it has stopped
	Ended chan state.Status     // of each run that it has left

	queue   queue.Queue
	fake    func(state.RunKey) job.Job
	mu      sync.Mutex
	ctx     context.Context
	runs    map[state.RunKey]*coordinator.Coordinator
	driving sync.WaitGroup
	errs    []error
}

// NewProcess makes a process of a name and a queue, which it closes when it stops. fake gives the job of a run;
// nil: it cannot work on any.
func NewProcess(b Bundle, name string, q queue.Queue, fake func(state.RunKey) job.Job) *Process {
	p := &Process{queue: q, fake: fake, runs: map[state.RunKey]*coordinator.Coordinator{},
		Hints: map[executor.Fate]int{}, Ended: make(chan state.Status, 16)}
	p.Exec = executor.Config{Store: b.Store, Queue: q, Runs: p, Owner: name, Slots: 2, Hinted: func(f executor.Fate) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.Hints[f]++
	}}
	p.Coor = coordinator.Config{Store: b.Store, Queue: q, Owner: name, Slots: 2}
	return p
}

// open works on a run from now on.
func (p *Process) open(key state.RunKey) (*coordinator.Coordinator, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.runs[key]; r != nil {
		return r, nil
	}
	if p.fake == nil {
		return nil, executor.ErrElsewhere
	}
	cfg := p.Coor
	cfg.Job = p.fake(key)
	r := coordinator.New(p.ctx, cfg, key)
	p.runs[key] = r
	p.driving.Go(func() {
		status, err := r.Run()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errs = append(p.errs, err)
		p.Ended <- status
	})
	return r, nil
}

// Use implements executor.Runs.
func (p *Process) Use(_ context.Context, key state.RunKey) (executor.Run, func(), error) {
	r, err := p.open(key)
	if err != nil {
		return nil, nil, err
	}
	return r, func() {}, nil
}

// Start begins to work, with the runs that are named; what it gives ends that, and says what went wrong.
func (p *Process) Start(ctx context.Context, begin ...state.RunKey) (stop func() error) {
	p.ctx = ctx
	working, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var err error
	exec := executor.New(p.Exec)
	all.Go(func() { err = exec.Work(working) })
	if p.Feeds {
		all.Go(func() { p.notice(working, exec) })
	}
	all.Go(func() {
		for {
			s, err := p.queue.Signalled(working)
			if err != nil {
				return
			}
			p.mu.Lock()
			r := p.runs[s.RunKey]
			p.mu.Unlock()
			if r != nil {
				r.Signalled(s.Kind)
			}
		}
	})
	for _, key := range begin {
		if _, err := p.open(key); err != nil {
			p.errs = append(p.errs, err)
		}
	}
	return func() error {
		p.mu.Lock()
		for _, r := range p.runs {
			r.Leave(context.Canceled)
		}
		p.mu.Unlock()
		p.driving.Wait()
		cancel()
		all.Wait()
		return errors.Join(append(p.errs, err, p.queue.Close())...)
	}
}

// notice tells the runs for how long the process has waited.
func (p *Process) notice(ctx context.Context, exec *executor.Executor) {
	for ctx.Err() == nil {
		Pause(ctx, 20*time.Millisecond)
		p.mu.Lock()
		for _, r := range p.runs {
			r.Hungry(exec.Hungry())
		}
		p.mu.Unlock()
	}
}

// Useless counts the hints that did not lead to a claim.
func Useless(all ...*Process) (used, others int) {
	for _, p := range all {
		for f, n := range p.Hints {
			if f == executor.Used {
				used += n
			} else {
				others += n
			}
		}
	}
	return used, others
}

// Patient is a context for what has to end.
func Patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), effort.Patience)
	t.Cleanup(cancel)
	return ctx
}

// Wait waits for what has to come.
func Wait(t testing.TB, until func() bool) {
	t.Helper()
	require.Eventually(t, until, effort.Patience, time.Millisecond)
}

// Pause lets a batch take its time.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
