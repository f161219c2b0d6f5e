package parts_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/parts"
)

// Never more than so many have a turn, also while that changes, and none is lost
// by those who give up.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := parts.NewResizableSemaphore(2)
		var at atomic.Int32
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() {
				ctx, stop := context.WithTimeout(t.Context(), time.Duration(5+i%7*20)*time.Millisecond)
				defer stop()
				if turns.Acquire(ctx) != nil {
					return
				}
				if n := at.Add(1); n > 5 {
					t.Errorf("%d at once", n)
				}
				<-time.After(10 * time.Millisecond)
				at.Add(-1)
				turns.Release()
			})
		}
		synctest.Wait()
		require.EqualValues(t, 2, at.Load())
		turns.Let(5)
		synctest.Wait()
		require.EqualValues(t, 5, at.Load())
		turns.Let(1)
		group.Wait()
		for range 3 {
			require.NoError(t, turns.Acquire(t.Context()))
			turns.Release()
		}
		require.Equal(t, 1, turns.Most())
	})
}
