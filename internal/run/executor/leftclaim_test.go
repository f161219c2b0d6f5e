package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/runtest"
)

// claimsLate claims a batch although the run is left while it does.
type claimsLate struct {
	state.Store
	leave func()
}

func (s claimsLate) Claim(ctx context.Context, b state.ClaimRequest) (state.Claim, error) {
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
	b := runtest.New(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	_, _ = b.Work(ctx, t, &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}, func(c *runtest.Worker) {
		c.Exec.Store = claimsLate{Store: b.Store, leave: leave}
		c.Exec.Slots = 1
	})
	for _, batch := range b.Batches(t, "a") {
		require.NotEqual(t, state.Claimed, batch.Status)
	}
	require.NotEmpty(t, b.Batches(t, "a"))
}
