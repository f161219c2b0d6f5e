package sandbox

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/budget"
)

// A child's wait for memory is no work of the batch that it executes.
func TestTheWaitOfAChildDoesNotCount(t *testing.T) {
	t.Parallel()
	var waits atomic.Pointer[func() func()]
	var said []string
	near, held := &peer{calls: map[string]handler{}}, newHolds()
	lendRoom(near, roomOf(func() { said = append(said, "taken") }), held, &waits)
	take := func() {
		_, err := near.calls["room.take"](t.Context(), []byte("0"))
		require.NoError(t, err)
	}
	take() // of a child that executes nothing
	begin := func() func() {
		said = append(said, "begun")
		return func() { said = append(said, "over") }
	}
	waits.Store(&begin)
	take()
	require.Equal(t, []string{"taken", "begun", "taken", "over"}, said)
	held.releaseAll()
}

// roomOf is a room that says when a share is taken.
type roomOf func()

func (r roomOf) Budget() budget.Budget { return budget.Budget{} }

func (r roomOf) Take(context.Context, budget.Share) (budget.Grant, func(), error) {
	r()
	return budget.Grant{}, func() {}, nil
}
