package inproc

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
	"thalweg/internal/test/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(*testing.T) queue.Queue { return New(0) })
}

func hint(i int) queue.Hint {
	return queue.Hint{Offer: state.Offer{BatchKey: state.BatchKey{Batch: i}, Class: "load"}}
}

func receive(t *testing.T, q *Queue) int {
	t.Helper()
	d, err := q.Receive(context.Background())
	require.NoError(t, err)
	return d.Batch
}

func TestMerge(t *testing.T) {
	t.Parallel()
	q := New(2)
	ctx := context.Background()
	require.NoError(t, q.Publish(ctx, hint(1), hint(2)))
	for range 100 { // full, but none of these needs room
		require.NoError(t, q.Publish(ctx, hint(1), hint(2), hint(1)))
	}
	require.Equal(t, 1, receive(t, q))
	require.NoError(t, q.Publish(ctx, hint(1))) // no longer waiting: a new hint, at the end
	require.Equal(t, 2, receive(t, q))
	require.Equal(t, 1, receive(t, q))
	require.Zero(t, q.n)
	require.Empty(t, q.known)
}

// At the limit a publisher waits for room, for the end of its context, or for
// Close, whichever comes first.
func TestLimit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		free func(t *testing.T, q *Queue, cancel func())
		want error
	}{
		{"room", func(t *testing.T, q *Queue, _ func()) { require.Equal(t, 1, receive(t, q)) }, nil},
		{"merged meanwhile", func(t *testing.T, q *Queue, _ func()) {
			receive(t, q)
			require.NoError(t, q.Publish(context.Background(), hint(3)))
		}, nil},
		{"context", func(_ *testing.T, _ *Queue, cancel func()) { cancel() }, context.Canceled},
		{"close", func(t *testing.T, q *Queue, _ func()) { require.NoError(t, q.Close()) }, queue.ErrClosed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := New(2)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				require.NoError(t, q.Publish(ctx, hint(1), hint(2)))
				result := make(chan error, 1)
				go func() { result <- q.Publish(ctx, hint(3)) }()
				synctest.Wait()
				require.Empty(t, result, "it waits")
				test.free(t, q, cancel)
				synctest.Wait()
				require.Len(t, result, 1, "it waits no longer")
				require.ErrorIs(t, <-result, test.want)
				require.LessOrEqual(t, q.n, 2)
			})
		})
	}
}

// A publisher that leaves while room comes hands the room to the next one.
func TestNoLostWakeup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(1)
		leaving, cancel := context.WithCancel(context.Background())
		require.NoError(t, q.Publish(leaving, hint(0)))
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- q.Publish(leaving, hint(1)) }()
		synctest.Wait()
		go func() { second <- q.Publish(context.Background(), hint(2)) }()
		synctest.Wait()
		q.mu.Lock() // both happen before anybody wakes
		q.pop()     // signals for the first
		cancel()
		q.mu.Unlock()
		synctest.Wait()
		require.ErrorIs(t, <-first, context.Canceled)
		require.Len(t, second, 1)
		require.NoError(t, <-second)
	})
}

// A publisher that is woken for room and finds its hint there already passes
// the room on.
func TestMergedPassesRoomOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(2)
		ctx := context.Background()
		require.NoError(t, q.Publish(ctx, hint(8), hint(9)))
		results := make(chan error, 3)
		for _, n := range []int{1, 1, 2} {
			go func() { results <- q.Publish(ctx, hint(n)) }()
			synctest.Wait() // they wait in this order
		}
		receive(t, q) // room for the first 1
		synctest.Wait()
		receive(t, q) // the second 1 is woken and needs none
		synctest.Wait()
		require.Len(t, results, 3)
		require.Equal(t, 1, receive(t, q))
		require.Equal(t, 2, receive(t, q))
	})
}

func TestReceiversWaitAndLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(0)
		ctx, cancel := context.WithCancel(context.Background())
		results := make(chan error, 10)
		for range 3 {
			go func() {
				_, err := q.Receive(ctx)
				results <- err
			}()
		}
		synctest.Wait()
		require.NoError(t, q.Publish(ctx, hint(1)))
		synctest.Wait()
		require.Len(t, results, 1)
		require.NoError(t, <-results)
		cancel()
		synctest.Wait()
		require.Len(t, results, 2)
		require.ErrorIs(t, <-results, context.Canceled)
	})
}

// Against a list and a set: the order, the merging, the number.
func TestRandomOperations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		q := New(50)
		var want []int
		rt.Repeat(map[string]func(*rapid.T){
			"": func(rt *rapid.T) {
				if q.n != len(want) || len(q.known) != len(want) {
					rt.Fatalf("%d waiting, %d known, want %d", q.n, len(q.known), len(want))
				}
			},
			"publish": func(rt *rapid.T) {
				n := rapid.IntRange(0, 49).Draw(rt, "batch")
				if err := q.Publish(ctx, hint(n)); err != nil {
					rt.Fatal(err)
				}
				for _, w := range want {
					if w == n {
						return
					}
				}
				want = append(want, n)
			},
			"receive": func(rt *rapid.T) {
				if len(want) == 0 {
					rt.Skip("empty")
				}
				d, err := q.Receive(ctx)
				if err != nil || d.Batch != want[0] {
					rt.Fatalf("got %v, %v; want %d", d.Hint, err, want[0])
				}
				want = want[1:]
			},
		})
	})
}

func BenchmarkPublishReceive(b *testing.B) {
	q, ctx := New(0), context.Background()
	for i := range b.N {
		_ = q.Publish(ctx, hint(i))
		_, _ = q.Receive(ctx)
	}
}
