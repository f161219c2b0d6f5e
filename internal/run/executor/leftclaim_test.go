package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// claimsLate claims a batch although the run is left while it does.
type claimsLate struct {
	state.Store
	leave func()
}

func (s claimsLate) Claim(ctx context.Context, b state.Bid) (state.Claim, error) {
	s.leave()
	claim, err := s.Store.Claim(context.WithoutCancel(ctx), b)
	if ctx.Err() != nil { // whoever asked does not hear of it
		return state.Claim{}, ctx.Err()
	}
	return claim, err
}

// A claim that holds although the run was left meanwhile is given back: nobody waits for its lease.
func TestAClaimOfARunThatIsLeftIsGivenBack(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	b := newBundle(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	_, _ = b.work(ctx, t, &fakeJob{batches: map[string]int{"a": 1, "b": 1, "c": 1}}, func(c *crew) {
		c.exec.Store = claimsLate{Store: b.store, leave: leave}
		c.exec.Slots = 1
	})
	for _, batch := range b.batches(t, "a") {
		require.NotEqual(t, state.Claimed, batch.Status)
	}
	require.NotEmpty(t, b.batches(t, "a"))
}
