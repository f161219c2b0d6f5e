package coordinator_test

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
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/queuetest/hub"
	"thalweg/internal/test/runtest"
)

// In a run that nothing disturbs each hint leads to a claim, and each batch has
// one hint, whichever process has it.
func TestSharedQueueWithoutUselessDeliveries(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	ctx := runtest.Patient(t)
	b, broker := runtest.New(t), hub.New(hub.Faults{})
	fake := &runtest.Job{Batches: map[string]int{"a": 300, "b": 40, "c": 5}}
	fake.Executes = func(ctx context.Context, c state.Claim) (job.Result, error) {
		runtest.Pause(ctx, time.Duration(rand.IntN(3))*time.Millisecond)
		return job.Result{}, nil
	}
	var all []*runtest.Process
	var stops []func() error
	for i := range 3 {
		p := runtest.NewProcess(b, fmt.Sprint("process ", i), broker.Join(), func(state.RunKey) job.Job { return fake })
		all = append(all, p)
		begin := []state.RunKey{b.Run}
		if i > 0 { // the others learn of it by its hints
			begin = nil
		}
		stops = append(stops, p.Start(ctx, begin...))
	}
	require.Equal(t, state.Complete, <-all[0].Ended)
	for _, stop := range stops {
		require.NoError(t, stop())
	}
	used, others := runtest.Useless(all...)
	require.Equal(t, []int{345, 0}, []int{used, others})
	for _, p := range all {
		require.NotZero(t, p.Hints[executor.Used], "each has a share")
	}
	require.Zero(t, broker.Left())
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
	ctx := runtest.Patient(t)
	b, broker := runtest.New(t), hub.New(hub.Faults{})
	begun, left := make(chan struct{}, 100), make(chan struct{})
	fake := &runtest.Job{Batches: map[string]int{"a": 20, "b": 20, "c": 5}}
	fake.Executes = func(ctx context.Context, c state.Claim) (job.Result, error) {
		begun <- struct{}{}
		select {
		case <-left:
		case <-ctx.Done():
		}
		return job.Result{}, ctx.Err()
	}
	follower := runtest.NewProcess(b, "follower", broker.Join(), func(state.RunKey) job.Job { return fake })
	follower.Coor.Follow, follower.Coor.Lease = time.Hour, time.Hour
	cfg := follower.Coor
	asked, leads := make(chan struct{}, 100), make(chan struct{}, 100)
	follower.Coor.Store = asking{b.Store, asked}
	cfg.Store, cfg.Queue, cfg.Owner, cfg.Job = asking{b.Store, leads}, broker.Join(), "leader", fake
	leader := coordinator.New(ctx, cfg, b.Run)
	resigned := make(chan error)
	go func() {
		_, err := leader.Run()
		resigned <- err
	}()
	<-leads
	stop := follower.Start(ctx)
	<-begun
	<-asked // and another leads: it is left alone for an hour
	leader.Leave(context.Canceled)
	require.NoError(t, <-resigned)
	close(left)
	select {
	case status := <-follower.Ended:
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
			ctx := runtest.Patient(t)
			b, broker := runtest.New(t), hub.New(hub.Faults{})
			members := []*hub.Member{broker.Join(), broker.Join()}
			fake := &runtest.Job{Batches: map[string]int{"a": 60, "b": 20, "c": 5}}
			var once sync.Once
			fake.Executes = func(ctx context.Context, _ state.Claim) (job.Result, error) {
				if fake.Executed("a") == 20 {
					once.Do(func() { trouble(broker, members) })
				}
				runtest.Pause(ctx, time.Millisecond)
				return job.Result{}, nil
			}
			var all []*runtest.Process
			var stops []func() error
			for i, m := range members {
				p := runtest.NewProcess(b, fmt.Sprint("process ", i), m, func(state.RunKey) job.Job { return fake })
				p.Coor.Grace, p.Coor.Follow = 200*time.Millisecond, 20*time.Millisecond
				all = append(all, p)
				stops = append(stops, p.Start(ctx, b.Run))
			}
			for _, p := range all {
				require.Equal(t, state.Complete, <-p.Ended)
			}
			for _, stop := range stops {
				require.NoError(t, stop())
			}
			for _, batch := range slices.Concat(b.Batches(t, "a"), b.Batches(t, "b"), b.Batches(t, "c")) {
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
			ctx := runtest.Patient(t)
			rng := rand.New(rand.NewPCG(seed, 11))
			fake := newRandomJob(rng)
			fake.orders = ordersMax // none
			b := runtest.New(t)
			key, err := b.Store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"},
				Created: time.Now()}, fake.nodes)
			require.NoError(t, err)
			broker := hub.New(hub.Faults{Lose: rng.IntN(30), Double: rng.IntN(50), Shuffle: rng.IntN(30),
				Rand: rand.New(rand.NewPCG(seed, 12))})
			meddling, stop := context.WithCancel(ctx)
			var meddler sync.WaitGroup
			meddler.Go(func() { meddle(meddling, broker, rand.New(rand.NewPCG(seed, 13))) })
			errs, lives := make([]error, 3), make([][]time.Duration, 3)
			for i := range lives { // all of them before the first begins: the job draws from rng too
				for range 2 {
					lives[i] = append(lives[i], time.Duration(rng.IntN(300))*time.Millisecond)
				}
			}
			var all sync.WaitGroup
			for i := range errs {
				all.Go(func() { errs[i] = liveAndDie(ctx, b, broker, key, fake, fmt.Sprint("process ", i), lives[i]) })
			}
			all.Wait()
			stop()
			meddler.Wait()
			require.NoError(t, errors.Join(errs...))
			requireCommittedOnce(ctx, t, b.Store, key, fake)
		})
	}
}

// meddle takes the broker away, and what is in it, now and then.
func meddle(ctx context.Context, broker *hub.Hub, rng *rand.Rand) {
	for ctx.Err() == nil {
		runtest.Pause(ctx, time.Duration(rng.IntN(100))*time.Millisecond)
		switch rng.IntN(4) {
		case 0:
			broker.Down(true)
			runtest.Pause(ctx, time.Duration(rng.IntN(100))*time.Millisecond)
			broker.Down(false)
		case 1:
			broker.Purge()
		case 2:
			broker.Repeat(1)
		}
	}
}

// liveAndDie is a process that ends after some time and begins again, and stays at last.
func liveAndDie(ctx context.Context, b runtest.Bundle, broker *hub.Hub, key state.RunKey, fake job.Job, name string,
	lives []time.Duration) error {
	for life := 0; ; life++ {
		p := runtest.NewProcess(b, fmt.Sprint(name, " ", life), broker.Join(),
			func(state.RunKey) job.Job { return fake })
		p.Coor.Grace, p.Coor.Follow, p.Coor.Lease = 100*time.Millisecond, 10*time.Millisecond, time.Second
		p.Exec.Tries, p.Exec.Store, p.Coor.Store = 1<<20, runtest.Unhurried(b.Store), runtest.Unhurried(b.Store)
		stop := p.Start(ctx, key)
		var end <-chan time.Time
		if life < len(lives) {
			end = time.After(lives[life])
		}
		select {
		case status := <-p.Ended:
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
