package sandbox

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/budget"
)

// A child's wait for memory is no work of the batch that it executes; while it has some, it is.
func TestTheWaitOfAChildDoesNotCount(t *testing.T) {
	t.Parallel()
	var batch atomic.Pointer[batchHooks]
	var said []string
	near, held := &peer{calls: map[string]handler{}}, newHolds()
	lendRoom(near, roomOf(func() { said = append(said, "taken") }), held, &batch)
	take := func() {
		_, err := near.calls["room.take"](t.Context(), []byte("0"))
		require.NoError(t, err)
	}
	take() // of a child that executes nothing
	hook := func(name string) func() func() {
		return func() func() {
			said = append(said, name+" begun")
			return func() { said = append(said, name+" over") }
		}
	}
	batch.Store(&batchHooks{waits: hook("wait"), computes: hook("work")})
	take()
	require.Equal(t, []string{"taken", "wait begun", "taken", "work begun", "wait over"}, said)
	held.releaseAll()
	require.Equal(t, "work over", said[len(said)-1], "it computes while it has the memory")
}

// roomOf is a room that says when a share is taken.
type roomOf func()

func (r roomOf) Budget() budget.Budget { return budget.Budget{} }

func (r roomOf) Take(context.Context, budget.Share) (budget.Grant, func(), error) {
	r()
	return budget.Grant{}, func() {}, nil
}
