package executor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/runtest"
)

// stages tells what the batches of a job are at, and lets others wait for it.
type stages struct {
	mu   sync.Mutex
	at   map[string]chan struct{}
	slot chan struct{} // who computes
}

func newStages() *stages {
	return &stages{at: map[string]chan struct{}{}, slot: make(chan struct{}, 1)}
}

func (s *stages) moment(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[name] == nil {
		s.at[name] = make(chan struct{})
	}
	return s.at[name]
}

func (s *stages) reach(name string) {
	m := s.moment(name)
	select {
	case <-m:
	default:
		close(m)
	}
}

func (s *stages) await(ctx context.Context, name string) error {
	select {
	case <-s.moment(name):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("nobody came to %s: %w", name, ctx.Err())
	}
}

// compute runs do, one batch at a time.
func (s *stages) compute(ctx context.Context, do func() error) error {
	select {
	case s.slot <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.slot }()
	return do()
}

// With one slot and one batch ahead, what the second batch reads is fetched while
// the first one computes, and what the first one has written is stored while the
// second one computes.
func TestMovingWhileComputing(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), effort.Patience)
	defer stop()
	b := runtest.New(t)
	s := newStages()
	var order sync.Mutex
	number := 0
	fake := &runtest.Job{Batches: map[string]int{"a": 4},
		Executes: func(ctx context.Context, _ state.Claim) (job.Result, error) {
			order.Lock()
			mine := number
			number++
			order.Unlock()
			s.reach(fmt.Sprint("fetched ", mine))
			err := s.compute(ctx, func() error {
				s.reach(fmt.Sprint("computing ", mine))
				if mine+1 < 4 {
					return s.await(ctx, fmt.Sprint("fetched ", mine+1))
				}
				return nil
			})
			if err == nil && mine+1 < 4 {
				err = s.await(ctx, fmt.Sprint("computing ", mine+1)) // it is stored meanwhile
			}
			return job.Result{}, err
		}}
	status, err := b.Work(ctx, t, fake, func(c *runtest.Worker) { c.Exec.Slots, c.Exec.Ahead, c.Coor.Slots = 1, 1, 2 })
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	require.Len(t, b.Attempts(t, "a"), 4)
}
