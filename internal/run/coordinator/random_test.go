package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/runtest"
	"thalweg/internal/test/statetest/hostile"
)

// mortal is a store as a process sees it that dies at its n-th call: from then
// on nothing that it says is heard.
type mortal struct {
	state.Store
	left   atomic.Int64
	die    context.CancelFunc
	meddle func(context.Context) error // what somebody else may do before a call that is on a condition
}

var errDead = fmt.Errorf("the process is dead: %w", context.Canceled)

func (m *mortal) lives() error {
	if m.left.Add(-1) < 0 {
		m.die()
		return errDead
	}
	return nil
}

func (m *mortal) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	return alive(m, func() (state.Run, error) { return m.Store.Run(ctx, key) })
}

func (m *mortal) Claim(ctx context.Context, b state.ClaimRequest) (state.Claim, error) {
	return alive(m, func() (state.Claim, error) { return m.Store.Claim(ctx, b) })
}

func (m *mortal) AdoptPlan(ctx context.Context, key state.NodeKey, f state.Adoption) (string, error) {
	return alive(m, func() (string, error) {
		if err := m.meddle(ctx); err != nil {
			return "", err
		}
		return m.Store.AdoptPlan(ctx, key, f)
	})
}

func (m *mortal) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	return errors.Join(m.lives(), m.after(func() error { return m.Store.Commit(ctx, c, out, now) }))
}

func (m *mortal) MoveNode(ctx context.Context, key state.NodeKey, move state.Move) error {
	return m.after(func() error {
		if err := m.meddle(ctx); err != nil {
			return err
		}
		return m.Store.MoveNode(ctx, key, move)
	})
}

func (m *mortal) CompleteRun(ctx context.Context, key state.RunKey, epoch int64, actor string, now time.Time) error {
	return m.after(func() error {
		if err := m.meddle(ctx); err != nil {
			return err
		}
		return m.Store.CompleteRun(ctx, key, epoch, actor, now)
	})
}

func (m *mortal) Retry(ctx context.Context, c state.Claim, f state.Failure, stats state.Stats, notBefore,
	now time.Time) error {
	return m.after(func() error { return m.Store.Retry(ctx, c, f, stats, notBefore, now) })
}

func (m *mortal) Fail(ctx context.Context, c state.Claim, f state.Failure, out state.Outcome, now time.Time) error {
	return m.after(func() error { return m.Store.Fail(ctx, c, f, out, now) })
}

func (m *mortal) Release(ctx context.Context, c state.Claim, now time.Time) error {
	return m.after(func() error { return m.Store.Release(ctx, c, now) })
}

func (m *mortal) Resign(ctx context.Context, key state.RunKey, role, owner string) error {
	return m.after(func() error { return m.Store.Resign(ctx, key, role, owner) })
}

// after does a call of a process that lives.
func (m *mortal) after(call func() error) error {
	if err := m.lives(); err != nil {
		return err
	}
	return call()
}

func alive[T any](m *mortal, call func() (T, error)) (out T, err error) {
	if err := m.lives(); err != nil {
		return out, err
	}
	return call()
}

// randomJob is a random graph of nodes, of batches in phases.
type randomJob struct {
	nodes  []state.NodeSpec
	phases map[string][]int // of each batch
	rng    *rand.Rand
	mu     sync.Mutex
	failed map[string]int
	odd    int // a planner that disagrees with others: it must not matter
	orders int // given so far
	order  func(ctx context.Context, kind state.CommandKind) error
}

// ordersMax are given to a random run.
const ordersMax = 4

// meddle stops the run or pauses it, and lets it go on, now and then: what a
// process has read of it is of an earlier epoch then. Who does is not of the process, and goes on when it dies.
func (j *randomJob) meddle(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.orders >= ordersMax || j.rng.IntN(3) != 0 {
		return nil
	}
	j.orders++
	if j.rng.IntN(2) == 0 {
		return errors.Join(j.order(ctx, state.CommandPause), j.order(ctx, state.CommandUnpause))
	}
	return errors.Join(j.order(ctx, state.CommandStop), j.order(ctx, state.CommandReopen))
}

func newRandomJob(rng *rand.Rand) *randomJob {
	j := &randomJob{rng: rng, phases: map[string][]int{}, failed: map[string]int{}}
	for i := range 1 + rng.IntN(6) {
		n := state.NodeSpec{Name: fmt.Sprint("n", i), Ordinal: i}
		for in := range i {
			if rng.IntN(3) == 0 {
				n.Inputs = append(n.Inputs, fmt.Sprint("n", in))
			}
		}
		j.nodes = append(j.nodes, n)
		for range rng.IntN(9) {
			j.phases[n.Name] = append(j.phases[n.Name], rng.IntN(3))
		}
	}
	return j
}

func (j *randomJob) Plan(_ context.Context, n state.Node) (state.Plan, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.rng.IntN(8) == 0 && j.failed[n.Name] < 3 { // fewer than make it give up
		j.failed[n.Name]++
		return state.Plan{}, &fault.Error{Kind: fault.Environment, Retryable: true, Message: "not now"}
	}
	p := runtest.Plan(len(j.phases[n.Name]))
	for i := range p.Batches {
		p.Batches[i].Phase = j.phases[n.Name][i]
	}
	j.odd++
	p.Record = []byte(fmt.Sprint("as seen by planner ", j.odd))
	return p, nil
}

func (j *randomJob) Settle(context.Context, state.Node) error { return nil }

func (j *randomJob) Execute(_ context.Context, c state.Claim) (job.Result, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch j.rng.IntN(8) {
	case 0:
		return job.Result{}, &fault.Error{Kind: fault.Environment, Retryable: true, Message: "not now"}
	case 1:
		return job.Result{}, &fault.Error{Kind: fault.Canceled, Message: "not here"}
	}
	part := state.Part{Key: fmt.Sprintf("%s/%d/%d", c.Node, c.Batch, c.Attempt), Batch: c.Batch}
	return job.Result{Outcome: state.Outcome{Parts: []state.Part{part}},
		Publish: func(context.Context) error { return nil }}, nil
}

// TestRandomRunsOnAHostileStore has several coordinators and executors at once
// drive random graphs over a store whose partitions do not see each other and
// whose calls are lost, doubled, late or not answered, while processes die and
// others come, and somebody stops and reopens the run, or pauses it for a moment. Each run ends complete, and each
// batch was committed once.
func TestRandomRunsOnAHostileStore(t *testing.T) {
	t.Parallel()
	for seed := range effort.Of[uint64](4, 12, 2_000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), effort.Patience)
			defer cancel()
			rng := rand.New(rand.NewPCG(seed, 5))
			fake := newRandomJob(rng)
			truth := hostile.New().Open()
			key, err := truth.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"},
				Created: time.Now()}, fake.nodes)
			require.NoError(t, err)
			fake.order = func(ctx context.Context, kind state.CommandKind) error {
				err := state.Direct(ctx, truth, key, state.Command{Kind: kind, Token: fmt.Sprint(kind, " ", fake.orders),
					Mark: state.Mark{Actor: "somebody", Time: time.Now()}})
				if errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrIllegalMove) {
					return nil // the run is over, or another order came first
				}
				return err
			}
			store := hostile.Wrap(truth, hostile.Everything(seed))
			clock := runtest.NewClock(time.Now(), time.Minute)
			lives := make([]int64, 12) // how many calls each process lives
			for i := range lives {
				lives[i] = 20 + rng.Int64N(200)
			}
			var all sync.WaitGroup
			errs := make([]error, 3)
			for p := range errs {
				all.Go(func() {
					for life := p; ; life += len(errs) {
						calls := int64(1 << 40)
						if life < len(lives) {
							calls = lives[life]
						}
						over, err := oneLife(ctx, store, clock, fmt.Sprint("process ", life), key, fake, calls)
						if over || ctx.Err() != nil {
							errs[p] = errors.Join(err, ctx.Err())
							return
						}
					}
				})
			}
			all.Wait()
			run, err := truth.Run(context.WithoutCancel(ctx), key)
			require.NoError(t, err)
			require.NoError(t, errors.Join(errs...), "the run is %s, its order %+v", run.Status, run.Command)
			requireCommittedOnce(ctx, t, truth, key, fake)
		})
	}
}

// oneLife is a process that dies at a call, or works until the run is over.
func oneLife(ctx context.Context, store state.Store, clock *runtest.Clock, owner string, key state.RunKey,
	fake *randomJob, calls int64) (over bool, err error) {
	ctx, die := context.WithCancel(ctx)
	defer die()
	m := &mortal{Store: store, die: die, meddle: fake.meddle}
	m.left.Store(calls)
	s := runtest.Unhurried(m)
	c := &runtest.Worker{}
	c.Exec.Store, c.Exec.Owner, c.Exec.Slots, c.Exec.Tries, c.Exec.Now, c.Exec.Lease = s, owner, 2, 1<<20, clock.Now,
		24*time.Hour
	c.Coor.Store, c.Coor.Owner, c.Coor.Slots, c.Coor.Now, c.Coor.Lease, c.Coor.Follow = s, owner, 2, clock.Now,
		12*time.Hour, time.Millisecond
	c.Exec.Grace, c.Exec.Ahead = time.Minute, int(max(calls, 0)%3)
	out, err := c.Work(ctx, map[state.RunKey]job.Job{key: fake})
	// somebody will let it go on
	if m.left.Load() < 0 || err == nil && (out[key] == state.Stopped || out[key] == state.Paused) {
		return false, nil
	}
	if out[key] != state.Complete {
		return true, errors.Join(err, fmt.Errorf("%s: the run is %s", owner, out[key]))
	}
	return true, err
}

func requireCommittedOnce(ctx context.Context, t *testing.T, store state.Store, key state.RunKey, fake *randomJob) {
	t.Helper()
	run, err := store.Run(ctx, key)
	require.NoError(t, err)
	require.Equal(t, state.Complete, run.Status)
	nodes, err := store.Nodes(ctx, key)
	require.NoError(t, err)
	for _, n := range nodes {
		require.Equal(t, state.Succeeded, n.Status, n.Name)
		want := len(fake.phases[n.Name])
		require.Equal(t, []int{want, want, 0}, []int{n.BatchesTotal, n.BatchesDone, n.BatchesFailed}, n.Name)
		parts, err := state.Manifest(ctx, store, n.NodeKey)
		require.NoError(t, err)
		require.Len(t, parts, want)
		attempts, err := state.All(ctx, store.Attempts, n.NodeKey)
		require.NoError(t, err)
		committed := map[int]string{}
		for _, a := range attempts {
			if a.Status == state.Succeeded {
				require.Empty(t, committed[a.Batch], "batch %d of %s", a.Batch, n.Name)
				committed[a.Batch] = fmt.Sprintf("%s/%d/%d", n.Name, a.Batch, a.Attempt)
			}
		}
		for _, p := range parts {
			require.Equal(t, committed[p.Batch], p.Key, "the manifest shows the attempt that was committed")
		}
	}
}
