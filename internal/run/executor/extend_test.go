package executor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// slowExtend is a state that is away for a while: who waits for it waits until its own patience ends.
type slowExtend struct {
	state.Store
	back   time.Time
	leases []time.Time
}

func (s *slowExtend) Extend(ctx context.Context, _ state.Claim, lease time.Time) error {
	if time.Now().Before(s.back) {
		<-ctx.Done()
		return ctx.Err()
	}
	s.leases = append(s.leases, lease)
	return nil
}

// A state that was away for longer than a lease is told of one that is not over.
func TestExtendSaysANewMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 30 * time.Second
		store := &slowExtend{back: time.Now().Add(10 * time.Minute)}
		e := New(Config{Store: store, Lease: lease, Slots: 1, Owner: "w"})
		require.NoError(t, e.extend(t.Context(), state.Claim{}))
		require.Len(t, store.leases, 1)
		require.Greater(t, time.Until(store.leases[0]), lease/2)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		store.back = time.Now().Add(time.Hour)
		require.ErrorIs(t, e.extend(ctx, state.Claim{}), context.DeadlineExceeded)
	})
}
