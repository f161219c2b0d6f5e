package executor_test

import (
	"context"
	"errors"
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
)

func TestShutdownGivesBatchesBackWithoutUsingUpAnAttempt(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	ctx, cancel := context.WithCancel(context.Background())
	fake := &runtest.Job{Batches: map[string]int{"a": 2, "b": 1, "c": 1}}
	fake.Executes = func(ctx context.Context, c state.Claim) (job.Result, error) {
		cancel()
		<-ctx.Done()
		return job.Result{}, &fault.Error{Kind: fault.Canceled, Message: "interrupted"}
	}
	status, err := b.Work(ctx, t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Stopped, status)
	batches := b.Batches(t, "a")
	for _, batch := range batches {
		require.Equal(t, state.Pending, batch.Status)
	}
	attempts := b.Attempts(t, "a")
	for _, a := range attempts {
		require.Equal(t, state.Released, a.Status)
	}
}

func TestAttemptsHaveTheirSlot(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	fake := &runtest.Job{Batches: map[string]int{"a": 2, "b": 1, "c": 1}}
	var both sync.WaitGroup
	both.Add(2)
	fake.Executes = func(_ context.Context, c state.Claim) (job.Result, error) {
		if c.Node == "a" { // both at once, so each is in another slot
			both.Done()
			both.Wait()
		}
		return job.Result{}, nil
	}
	status, err := b.Work(t.Context(), t, fake, func(c *runtest.Worker) { c.Exec.Slots = 2 })
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	var slots []int
	for _, a := range b.Attempts(t, "a") {
		slots = append(slots, a.Stats.Slot)
	}
	require.ElementsMatch(t, []int{1, 2}, slots)
}

// beating is a store with a clock in which time passes with heartbeats only:
// with each that the store has accepted, nearly a lease.
type beating struct {
	state.Store
	lease time.Duration

	mu    sync.Mutex
	at    time.Time
	beats chan time.Time
}

func (s *beating) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *beating) Extend(ctx context.Context, c state.Claim, until time.Time) error {
	if err := s.Store.Extend(ctx, c, until); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.Add(s.lease * 9 / 10)
	s.beats <- s.at
	return nil
}

func TestAnExecutionThatDoesNotEndIsLeftBehind(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	deaf, dropped, published := make(chan struct{}), make(chan struct{}), false
	fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	fake.Executes = func(_ context.Context, c state.Claim) (job.Result, error) {
		cancel()
		<-deaf
		return job.Result{Publish: func(context.Context) error { published = true; return nil },
			Discard: func() { close(dropped) }}, nil
	}
	// The worker's end is awaited here, not the execution's.
	status, err := b.Work(ctx, t, fake, func(c *runtest.Worker) { c.Exec.Grace, c.Exec.Slots = time.Millisecond, 1 })
	require.NoError(t, err)
	require.Equal(t, state.Stopped, status)
	batches := b.Batches(t, "a")
	require.Equal(t, state.Pending, batches[0].Status)
	attempts := b.Attempts(t, "a")
	require.Equal(t, state.Released, attempts[0].Status, "no attempt is used up")
	// What comes back at last finds its claim gone.
	close(deaf)
	<-dropped
	batches = b.Batches(t, "a")
	require.Equal(t, state.Pending, batches[0].Status)
	require.False(t, published)
}

// A run that has failed does not wait for a batch in another slot for longer
// than one that was interrupted.
func TestAFailedRunLeavesBehindWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	inFlight, deaf, dropped, published := make(chan struct{}), make(chan struct{}), make(chan struct{}), false
	fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	fake.Executes = func(_ context.Context, c state.Claim) (job.Result, error) {
		if c.Node == "a" {
			close(inFlight)
			<-deaf
			return job.Result{Publish: func(context.Context) error { published = true; return nil },
				Discard: func() { close(dropped) }}, nil
		}
		<-inFlight
		return job.Result{}, &fault.Error{Kind: fault.UserData, Message: "bad row"}
	}
	// The run's end is awaited here, not the execution's.
	status, err := b.Work(context.Background(), t, fake, func(c *runtest.Worker) { c.Exec.Grace = time.Millisecond })
	require.NoError(t, err)
	require.Equal(t, state.Failed, status)
	run, err := b.Store.Run(context.Background(), b.Run)
	require.NoError(t, err)
	require.Equal(t, "bad row", run.Failure.Message)
	// A resumed run may begin before it comes back: it finds its claim gone.
	b.Order(t, state.CommandReopen)
	close(deaf)
	<-dropped
	require.False(t, published)
	batches := b.Batches(t, "a")
	require.Equal(t, state.Pending, batches[0].Status)
	status, err = b.Work(context.Background(), t, &runtest.Job{Batches: fake.Batches}, nil)
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}

func TestHeartbeatKeepsALongBatch(t *testing.T) {
	t.Parallel()
	const lease = 150 * time.Millisecond
	b := runtest.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), effort.Patience)
	defer cancel()
	store := &beating{Store: b.Store, lease: lease, at: time.Now(), beats: make(chan time.Time, 1<<16)}
	fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	fake.Executes = func(ctx context.Context, c state.Claim) (job.Result, error) {
		if c.Node != "a" {
			return job.Result{}, nil
		}
		// Until three leases have passed: without heartbeats somebody would
		// have taken the batch over.
		claimed := store.now()
		for {
			select {
			case <-ctx.Done():
				return job.Result{}, ctx.Err()
			case now := <-store.beats:
				if now.After(claimed.Add(3 * lease)) {
					return job.Result{}, nil
				}
			}
		}
	}
	status, err := b.Work(ctx, t, fake, func(c *runtest.Worker) {
		c.Exec.Lease, c.Exec.Store, c.Exec.Now = lease, store, store.now
		c.Coor.Store, c.Coor.Now = store, store.now
	})
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	require.Equal(t, 1, fake.Executed("a"))
}

func TestLostLeaseNeverPublishes(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	ctx := context.Background()
	published := false
	fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	fake.Executes = func(_ context.Context, c state.Claim) (job.Result, error) {
		if c.Node != "a" || c.Attempt > 1 {
			return job.Result{}, nil
		}
		// Another worker takes the batch over behind this one's back.
		later := time.Now().Add(time.Hour)
		offer := state.Offer{BatchKey: c.BatchKey, Epoch: c.Epoch, Attempt: c.Attempt}
		if _, err := b.Store.Claim(ctx, state.ClaimRequest{Offer: offer, Owner: "thief", Token: "t", Now: later,
			Lease: later.Add(time.Hour)}); err != nil {
			return job.Result{}, err
		}
		return job.Result{Publish: func(context.Context) error { published = true; return nil }}, nil
	}
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	status, err := b.Work(stop, t, fake, func(c *runtest.Worker) {
		c.Coor.Observe = func(e job.Event) {
			if e.Kind == job.NodeFinished && e.Node == "b" {
				cancel() // the thief never finishes
			}
		}
	})
	require.NoError(t, err)
	require.Equal(t, state.Stopped, status)
	require.False(t, published)
}

// lostAnswer is a store whose first commits take effect and then fail.
type lostAnswer struct {
	state.Store
	mu   sync.Mutex
	left int
}

func (s *lostAnswer) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	if err := s.Store.Commit(ctx, c, out, now); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left > 0 {
		s.left--
		return errors.New("the connection broke")
	}
	return nil
}

func TestLostAnswerOfACommitDiscardsNothing(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]int{"repeated": 3, "given up": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := runtest.New(t)
			var discarded atomic.Bool
			fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
			fake.Executes = func(_ context.Context, c state.Claim) (job.Result, error) {
				part := state.Part{Key: c.Node + ".parquet", Batch: c.Batch, Rows: 1}
				return job.Result{Outcome: state.Outcome{Parts: []state.Part{part}},
						Discard: func() { discarded.Store(true) }},
					nil
			}
			status, err := b.Work(context.Background(), t, fake, func(c *runtest.Worker) {
				c.Exec.Store = runtest.Unhurried(&lostAnswer{Store: b.Store, left: answers})
				c.Exec.Slots = 1
			})
			require.False(t, discarded.Load(), "the manifest lists the parts")
			require.NoError(t, err)
			require.Equal(t, state.Complete, status)
		})
	}
}

func TestWhatAFailureLeavesIsPublishedWithIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err       error
		published bool
	}{
		"a failure":       {fault.New(fault.UserData, "bad row"), true},
		"an interruption": {&fault.Error{Kind: fault.Canceled, Message: "interrupted"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := runtest.New(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var discarded atomic.Bool
			fake := &runtest.Job{Batches: map[string]int{"a": 1}}
			fake.Executes = func(_ context.Context, c state.Claim) (job.Result, error) {
				cancelIf(cancel, !tc.published)
				return job.Result{
					Outcome: state.Outcome{Parts: []state.Part{{Key: "rows", Side: state.SideFailed}},
						Checks: []state.CheckResult{{Name: "c"}}},
					Discard: func() { discarded.Store(true) },
				}, tc.err
			}
			_, err := b.Work(ctx, t, fake, nil)
			require.NoError(t, err)
			parts, err := state.SideParts(context.Background(), b.Store, state.NodeKey{RunKey: b.Run, Node: "a"})
			require.NoError(t, err)
			checks, err := state.OfNodes(context.Background(), b.Store, b.Run, b.Store.Checks)
			require.NoError(t, err)
			require.Equal(t, tc.published, len(parts) == 1)
			require.Equal(t, tc.published, len(checks) == 1)
			require.Equal(t, !tc.published, discarded.Load())
		})
	}
}

func cancelIf(cancel context.CancelFunc, yes bool) {
	if yes {
		cancel()
	}
}

// A result that could not be published leaves nothing, not even beside it.
func TestFailedPublishLeavesNothing(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	discarded := false
	fake := &runtest.Job{Batches: map[string]int{"a": 1}}
	fake.Executes = func(context.Context, state.Claim) (job.Result, error) {
		return job.Result{
			Outcome: state.Outcome{Parts: []state.Part{{Key: "table"}, {Key: "rows", Side: state.SideFailed, Seq: 1}}},
			Publish: func(context.Context) error { return fault.New(fault.Environment, "no rename") },
			Discard: func() { discarded = true },
		}, nil
	}
	status, err := b.Work(context.Background(), t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Failed, status)
	require.True(t, discarded)
	parts, err := state.SideParts(context.Background(), b.Store, state.NodeKey{RunKey: b.Run, Node: "a"})
	require.NoError(t, err)
	require.Empty(t, parts)
}

// What is published is announced before, and no longer once it is committed;
// what is dropped stays announced until somebody has seen to it.
func TestWhatIsPublishedIsAnnouncedBefore(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	key := state.NodeKey{RunKey: b.Run, Node: "a"}
	announced := func() []state.Publication {
		all, err := state.All(context.Background(), b.Store.Publications, key)
		require.NoError(t, err)
		return all
	}
	var seen []state.Publication
	fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	fake.Executes = func(_ context.Context, c state.Claim) (job.Result, error) {
		if c.Node != "a" {
			return job.Result{}, nil
		}
		return job.Result{Publications: []state.Publication{{Address: "/out/a.csv", Temp: ".a.tmp"}},
			Publish: func(context.Context) error {
				if seen = announced(); c.Attempt == 1 {
					return &fault.Error{Kind: fault.Environment, Retryable: true, Message: "no rename"}
				}
				return nil
			}}, nil
	}
	status, err := b.Work(context.Background(), t, fake, runtest.Hurried(time.Minute))
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	require.Len(t, seen, 2)
	left := announced()
	require.Len(t, left, 1)
	require.Equal(t, 1, left[0].Attempt, "the one that did not commit")
	require.Equal(t, ".a.tmp", left[0].Temp)
}
