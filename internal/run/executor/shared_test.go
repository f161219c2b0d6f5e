package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
	"thalweg/internal/test/queuetest/hub"
)

// process is one of several that share a queue: it opens a run when it gets a
// hint of it, or begins with it.
type process struct {
	exec  executor.Config
	coor  coordinator.Config
	queue queue.Queue
	fake  func(state.RunKey) job.Job // nil: it cannot work on the run
	feeds bool                       // it looks for work where hints do not arrive

	mu      sync.Mutex
	ctx     context.Context
	runs    map[state.RunKey]*coordinator.Coordinator
	driving sync.WaitGroup
	errs    []error
	hints   map[executor.Fate]int
	ended   chan state.Status
}

func newProcess(b bundle, name string, q queue.Queue, fake func(state.RunKey) job.Job) *process {
	p := &process{queue: q, fake: fake, runs: map[state.RunKey]*coordinator.Coordinator{},
		hints: map[executor.Fate]int{}, ended: make(chan state.Status, 16)}
	p.exec = executor.Config{Store: b.store, Queue: q, Runs: p, Owner: name, Slots: 2, Hinted: func(f executor.Fate) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hints[f]++
	}}
	p.coor = coordinator.Config{Store: b.store, Queue: q, Owner: name, Slots: 2}
	return p
}

// open works on a run from now on.
func (p *process) open(key state.RunKey) (*coordinator.Coordinator, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.runs[key]; r != nil {
		return r, nil
	}
	if p.fake == nil {
		return nil, executor.ErrElsewhere
	}
	cfg := p.coor
	cfg.Job = p.fake(key)
	r := coordinator.New(p.ctx, cfg, key)
	p.runs[key] = r
	p.driving.Go(func() {
		status, err := r.Run()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errs = append(p.errs, err)
		p.ended <- status
	})
	return r, nil
}

// Use implements executor.Runs.
func (p *process) Use(_ context.Context, key state.RunKey) (executor.Run, func(), error) {
	r, err := p.open(key)
	if err != nil {
		return nil, nil, err
	}
	return r, func() {}, nil
}

// start begins to work; what it gives ends that.
func (p *process) start(ctx context.Context, begin ...state.RunKey) (stop func() error) {
	p.ctx = ctx
	working, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var err error
	exec := executor.New(p.exec)
	all.Go(func() { err = exec.Work(working) })
	if p.feeds {
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
func (p *process) notice(ctx context.Context, exec *executor.Executor) {
	for ctx.Err() == nil {
		pause(ctx, 20*time.Millisecond)
		p.mu.Lock()
		for _, r := range p.runs {
			r.Hungry(exec.Hungry())
		}
		p.mu.Unlock()
	}
}

// useless counts the hints that did not lead to a claim.
func useless(all ...*process) (used, others int) {
	for _, p := range all {
		for f, n := range p.hints {
			if f == executor.Used {
				used += n
			} else {
				others += n
			}
		}
	}
	return used, others
}

// patient is a context for what has to end.
func patientContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), effort.Patience)
	t.Cleanup(cancel)
	return ctx
}

// In a run that nothing disturbs each hint leads to a claim, and each batch has
// one hint, whichever process has it.
func TestSharedQueueWithoutUselessDeliveries(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	ctx := patientContext(t)
	b, broker := newBundle(t), hub.New(hub.Faults{})
	fake := &fakeJob{batches: map[string]int{"a": 300, "b": 40, "c": 5}}
	fake.execute = func(ctx context.Context, c state.Claim) (job.Result, error) {
		pause(ctx, time.Duration(rand.IntN(3))*time.Millisecond)
		return job.Result{}, nil
	}
	var all []*process
	var stops []func() error
	for i := range 3 {
		p := newProcess(b, fmt.Sprint("process ", i), broker.Join(), func(state.RunKey) job.Job { return fake })
		all = append(all, p)
		begin := []state.RunKey{b.run}
		if i > 0 { // the others learn of it by its hints
			begin = nil
		}
		stops = append(stops, p.start(ctx, begin...))
	}
	require.Equal(t, state.Complete, <-all[0].ended)
	for _, stop := range stops {
		require.NoError(t, stop())
	}
	used, others := useless(all...)
	require.Equal(t, []int{345, 0}, []int{used, others})
	for _, p := range all {
		require.NotZero(t, p.hints[executor.Used], "each has a share")
	}
	require.Zero(t, broker.Left())
}

// pause lets a batch take its time.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// A process that cannot work on a run leaves its hints to others.
func TestHintsAreHandedOn(t *testing.T) {
	t.Parallel()
	ctx := patientContext(t)
	b, broker := newBundle(t), hub.New(hub.Faults{})
	fake := &fakeJob{batches: map[string]int{"a": 20, "b": 20, "c": 5}}
	unable := newProcess(b, "unable", broker.Join(), nil)
	stopUnable := unable.start(ctx)
	able := newProcess(b, "able", broker.Join(), func(state.RunKey) job.Job { return fake })
	able.exec.Slots = 1
	stop := able.start(ctx, b.run)
	require.Equal(t, state.Complete, <-able.ended)
	require.NoError(t, stop())
	require.NoError(t, stopUnable())
	require.Zero(t, unable.hints[executor.Used])
	require.Equal(t, 45, able.hints[executor.Used])
	require.Less(t, unable.hints[executor.Handed], 1_000, "it pauses between two of them")
}

// asking signals when the lead of a run was asked for.
type asking struct {
	state.Store
	asked chan struct{}
}

func (s asking) Acquire(ctx context.Context, run state.RunKey, role, owner string, now, until time.Time) (state.Role,
	error) {
	r, err := s.Store.Acquire(ctx, run, role, owner, now, until)
	s.asked <- struct{}{}
	return r, err
}

// Who leads a run and leaves it tells the others, who go on at once: here they would not
// look by themselves for an hour.
func TestALeaderThatLeavesTellsTheOthers(t *testing.T) {
	t.Parallel()
	ctx := patientContext(t)
	b, broker := newBundle(t), hub.New(hub.Faults{})
	begun, left := make(chan struct{}, 100), make(chan struct{})
	fake := &fakeJob{batches: map[string]int{"a": 20, "b": 20, "c": 5}}
	fake.execute = func(ctx context.Context, c state.Claim) (job.Result, error) {
		begun <- struct{}{}
		select {
		case <-left:
		case <-ctx.Done():
		}
		return job.Result{}, ctx.Err()
	}
	follower := newProcess(b, "follower", broker.Join(), func(state.RunKey) job.Job { return fake })
	follower.coor.Follow, follower.coor.Lease = time.Hour, time.Hour
	cfg := follower.coor
	asked, leads := make(chan struct{}, 100), make(chan struct{}, 100)
	follower.coor.Store = asking{b.store, asked}
	cfg.Store, cfg.Queue, cfg.Owner, cfg.Job = asking{b.store, leads}, broker.Join(), "leader", fake
	leader := coordinator.New(ctx, cfg, b.run)
	resigned := make(chan error)
	go func() {
		_, err := leader.Run()
		resigned <- err
	}()
	<-leads
	stop := follower.start(ctx)
	<-begun
	<-asked // and another leads: it is left alone for an hour
	leader.Leave(context.Canceled)
	require.NoError(t, <-resigned)
	close(left)
	select {
	case status := <-follower.ended:
		require.Equal(t, state.Complete, status)
	case <-ctx.Done():
		t.Fatal("nobody leads the run")
	}
	require.NoError(t, stop())
}

// Whatever happens to hints, the run ends, and nothing is done twice.
func TestSharedQueueInTrouble(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	for name, trouble := range map[string]func(h *hub.Hub, members []*hub.Member){
		"purged":   func(h *hub.Hub, _ []*hub.Member) { h.Purge() },
		"repeated": func(h *hub.Hub, _ []*hub.Member) { h.Repeat(10) },
		"down":     func(h *hub.Hub, _ []*hub.Member) { h.Down(true) },
		"restarted": func(h *hub.Hub, _ []*hub.Member) {
			h.Down(true)
			h.Purge()
			h.Down(false)
		},
		"leader cut off":   func(_ *hub.Hub, m []*hub.Member) { m[0].Cut(true) },
		"follower cut off": func(_ *hub.Hub, m []*hub.Member) { m[1].Cut(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := patientContext(t)
			b, broker := newBundle(t), hub.New(hub.Faults{})
			members := []*hub.Member{broker.Join(), broker.Join()}
			fake := &fakeJob{batches: map[string]int{"a": 60, "b": 20, "c": 5}}
			var once sync.Once
			fake.execute = func(ctx context.Context, _ state.Claim) (job.Result, error) {
				if fake.executed("a") == 20 {
					once.Do(func() { trouble(broker, members) })
				}
				pause(ctx, time.Millisecond)
				return job.Result{}, nil
			}
			var all []*process
			var stops []func() error
			for i, m := range members {
				p := newProcess(b, fmt.Sprint("process ", i), m, func(state.RunKey) job.Job { return fake })
				p.coor.Grace, p.coor.Follow = 200*time.Millisecond, 20*time.Millisecond
				all = append(all, p)
				stops = append(stops, p.start(ctx, b.run))
			}
			for _, p := range all {
				require.Equal(t, state.Complete, <-p.ended)
			}
			for _, stop := range stops {
				require.NoError(t, stop())
			}
			for _, batch := range slices.Concat(b.batches(t, "a"), b.batches(t, "b"), b.batches(t, "c")) {
				require.Equal(t, 1, batch.Attempt, "%v", batch.BatchKey)
			}
		})
	}
}

// TestRandomRunsOverAnUntidyQueue has processes that come and go drive random
// graphs over a queue that loses, doubles and shuffles, with a broker that goes
// away for a while. Each run ends complete, and each batch was committed once.
func TestRandomRunsOverAnUntidyQueue(t *testing.T) {
	t.Parallel()
	for seed := range effort.Of[uint64](2, 6, 1_000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			ctx := patientContext(t)
			rng := rand.New(rand.NewPCG(seed, 11))
			fake := newRandomJob(rng)
			fake.orders = ordersMax // none
			b := newBundle(t)
			key, err := b.store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"},
				Created: time.Now()}, fake.nodes)
			require.NoError(t, err)
			broker := hub.New(hub.Faults{Lose: rng.IntN(30), Double: rng.IntN(50), Shuffle: rng.IntN(30),
				Rand: rand.New(rand.NewPCG(seed, 12))})
			meddling, stop := context.WithCancel(ctx)
			var meddler sync.WaitGroup
			meddler.Go(func() { meddle(meddling, broker, rand.New(rand.NewPCG(seed, 13))) })
			var all sync.WaitGroup
			errs := make([]error, 3)
			for i := range errs {
				lives := []time.Duration{time.Duration(rng.IntN(300)) * time.Millisecond,
					time.Duration(rng.IntN(300)) * time.Millisecond}
				all.Go(func() { errs[i] = liveAndDie(ctx, b, broker, key, fake, fmt.Sprint("process ", i), lives) })
			}
			all.Wait()
			stop()
			meddler.Wait()
			require.NoError(t, errors.Join(errs...))
			requireCommittedOnce(ctx, t, b.store, key, fake)
		})
	}
}

// meddle takes the broker away, and what is in it, now and then.
func meddle(ctx context.Context, broker *hub.Hub, rng *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(rng.IntN(100))*time.Millisecond)
		switch rng.IntN(4) {
		case 0:
			broker.Down(true)
			pause(ctx, time.Duration(rng.IntN(100))*time.Millisecond)
			broker.Down(false)
		case 1:
			broker.Purge()
		case 2:
			broker.Repeat(1)
		}
	}
}

// liveAndDie is a process that ends after some time and begins again, and stays at last.
func liveAndDie(ctx context.Context, b bundle, broker *hub.Hub, key state.RunKey, fake job.Job, name string,
	lives []time.Duration) error {
	for life := 0; ; life++ {
		p := newProcess(b, fmt.Sprint(name, " ", life), broker.Join(), func(state.RunKey) job.Job { return fake })
		p.coor.Grace, p.coor.Follow, p.coor.Lease = 100*time.Millisecond, 10*time.Millisecond, time.Second
		p.exec.Tries, p.exec.Store, p.coor.Store = 1<<20, unhurried(b.store), unhurried(b.store)
		stop := p.start(ctx, key)
		var end <-chan time.Time
		if life < len(lives) {
			end = time.After(lives[life])
		}
		select {
		case status := <-p.ended:
			err := stop()
			if status != state.Complete {
				err = errors.Join(err, fmt.Errorf("the run is %s", status))
			}
			return errors.Join(err, ctx.Err())
		case <-end:
			if err := stop(); err != nil {
				return err
			}
		}
	}
}
