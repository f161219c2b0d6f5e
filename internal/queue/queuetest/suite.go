package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/queue"
	"thalweg/internal/state"
)

// Run holds a queue to the promises of package queue. open gives an empty
// queue that belongs to t, with room for at least 1,000 hints; the suite
// closes it.
func Run(t *testing.T, open func(t *testing.T) queue.Queue) {
	tests := []struct {
		name string
		test func(*testing.T, *bench)
	}{
		{"RoundTrip", testRoundTrip},
		{"EachAtLeastOnce", testAll},
		{"Concurrently", testConcurrently},
		{"PublishNothing", testNothing},
		{"PublishAgainAfterReceive", testAgain},
		{"PublishTwice", testTwice},
		{"ReceiveWaits", testWaits},
		{"ReceiveEndsWithContext", testContext},
		{"ContextEndsForOneOnly", testOneContext},
		{"EndedContext", testEnded},
		{"CloseEndsReceive", testCloseReceive},
		{"CloseTwice", testClose},
		{"DoneTwice", testDone},
		{"DoneAfterEndedContext", testDoneEnded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			q := open(t)
			defer func() { require.NoError(t, q.Close()) }()
			test.test(t, &bench{Queue: q, t: t, ctx: ctx})
		})
	}
}

// patience bounds what a backend may take; only a hang reaches it.
const patience = 10 * time.Minute

// bench is what every test needs.
type bench struct {
	queue.Queue
	t   *testing.T
	ctx context.Context
}

func hint(i int) queue.Hint {
	run := state.RunKey{Workspace: "w ' ü/" + fmt.Sprint(i%3), Run: int64(1 + i%2)}
	return queue.Hint{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: state.NodeKey{RunKey: run, Node: "node"}, Batch: i}, Class: "load"}}
}

func hints(n int) []queue.Hint {
	all := make([]queue.Hint, n)
	for i := range all {
		all[i] = hint(i)
	}
	return all
}

// receive takes one hint and says that it is done.
func (b *bench) receive() queue.Hint {
	b.t.Helper()
	d, err := b.Receive(b.ctx)
	require.NoError(b.t, err)
	require.NoError(b.t, d.Done(b.ctx))
	return d.Hint
}

// receiveAll takes hints until each of those wanted has come, and lets none
// come that nobody sent.
func (b *bench) receiveAll(want []queue.Hint) {
	b.t.Helper()
	missing := map[state.BatchKey]queue.Hint{}
	sent := map[state.BatchKey]bool{}
	for _, h := range want {
		missing[h.BatchKey] = h
		sent[h.BatchKey] = true
	}
	for len(missing) > 0 {
		got := b.receive()
		require.True(b.t, sent[got.BatchKey], "%v was never sent", got)
		if h, ok := missing[got.BatchKey]; ok {
			require.Equal(b.t, h, got)
		}
		delete(missing, got.BatchKey)
	}
}

func testRoundTrip(t *testing.T, b *bench) {
	want := queue.Hint{Offer: state.Offer{
		BatchKey: state.BatchKey{NodeKey: state.NodeKey{
			RunKey: state.RunKey{Workspace: `w"ork/spac'e ü漢`, Run: 1 << 40}, Node: "a.b c"}, Batch: 1 << 30},
		Epoch: 1 << 41, Attempt: 1 << 29, Class: "python",
	}}
	require.NoError(t, b.Publish(b.ctx, want))
	require.Equal(t, want, b.receive())
	bare := queue.Hint{}
	require.NoError(t, b.Publish(b.ctx, bare))
	require.Equal(t, bare, b.receive())
}

func testAll(t *testing.T, b *bench) {
	all := hints(1000)
	require.NoError(t, b.Publish(b.ctx, all[:1]...))
	require.NoError(t, b.Publish(b.ctx, all[1:]...))
	b.receiveAll(all)
}

// Several publish, several receive, at the same time: nothing is lost.
func testConcurrently(t *testing.T, b *bench) {
	const publishers, receivers, each = 4, 4, 200
	var mu sync.Mutex
	missing := map[state.BatchKey]bool{}
	for _, h := range hints(publishers * each) {
		missing[h.BatchKey] = true
	}
	receiving, enough := context.WithCancel(b.ctx)
	defer enough()
	errs := make(chan error)
	for p := range publishers {
		go func() {
			var err error
			for i := 0; i < each && err == nil; i++ {
				err = b.Publish(b.ctx, hint(p*each+i))
			}
			errs <- err
		}()
	}
	for range receivers {
		go func() {
			for {
				d, err := b.Receive(receiving)
				if err != nil {
					if errors.Is(err, context.Canceled) {
						err = nil
					}
					errs <- err
					return
				}
				if err := d.Done(b.ctx); err != nil {
					errs <- err
					return
				}
				mu.Lock()
				delete(missing, d.BatchKey)
				if len(missing) == 0 {
					enough()
				}
				mu.Unlock()
			}
		}()
	}
	for range publishers + receivers {
		require.NoError(t, <-errs)
	}
	require.Empty(t, missing)
}

func testNothing(t *testing.T, b *bench) {
	require.NoError(t, b.Publish(b.ctx))
	require.NoError(t, b.Publish(b.ctx, hint(1)))
	require.Equal(t, hint(1), b.receive())
}

// A batch that was given back is hinted at again, even if the first hint has
// not been settled yet.
func testAgain(t *testing.T, b *bench) {
	require.NoError(t, b.Publish(b.ctx, hint(1)))
	first, err := b.Receive(b.ctx)
	require.NoError(t, err)
	require.NoError(t, b.Publish(b.ctx, hint(1)))
	require.Equal(t, hint(1), b.receive())
	require.NoError(t, first.Done(b.ctx))
	require.NoError(t, b.Publish(b.ctx, hint(1)))
	require.Equal(t, hint(1), b.receive())
}

// A hint that is published again while it waits comes at least once.
func testTwice(t *testing.T, b *bench) {
	require.NoError(t, b.Publish(b.ctx, hint(1), hint(2), hint(1)))
	require.NoError(t, b.Publish(b.ctx, hint(2), hint(1), hint(3)))
	b.receiveAll(hints(4)[1:])
}

func testWaits(t *testing.T, b *bench) {
	got := make(chan queue.Hint)
	errs := make(chan error, 1)
	go func() {
		d, err := b.Receive(b.ctx)
		errs <- err
		got <- d.Hint
	}()
	select {
	case err := <-errs:
		t.Fatalf("received from an empty queue: %v", err)
	default:
	}
	require.NoError(t, b.Publish(b.ctx, hint(7)))
	require.NoError(t, <-errs)
	require.Equal(t, hint(7), <-got)
}

func testContext(t *testing.T, b *bench) {
	const receivers = 5
	waiting, cancel := context.WithCancel(b.ctx)
	errs := make(chan error)
	for range receivers {
		go func() {
			_, err := b.Receive(waiting)
			errs <- err
		}()
	}
	cancel()
	for range receivers {
		require.ErrorIs(t, <-errs, context.Canceled)
	}
	short, cancel := context.WithTimeout(b.ctx, time.Millisecond)
	defer cancel()
	_, err := b.Receive(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, b.Publish(b.ctx, hint(1))) // the queue itself is well
	require.Equal(t, hint(1), b.receive())
}

// A receiver that leaves takes no hint with it and wakes the next one.
func testOneContext(t *testing.T, b *bench) {
	for range 20 {
		leaving, cancel := context.WithCancel(b.ctx)
		left, got := make(chan error, 1), make(chan error, 1)
		go func() {
			d, err := b.Receive(leaving)
			if err == nil {
				err = errors.Join(d.Done(b.ctx), b.Publish(b.ctx, d.Hint)) // it was faster: it passes it on
			}
			left <- err
		}()
		go func() {
			d, err := b.Receive(b.ctx)
			if err == nil {
				err = d.Done(b.ctx)
			}
			got <- err
		}()
		go cancel()
		require.NoError(t, b.Publish(b.ctx, hint(1)))
		if err := <-left; err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.NoError(t, <-got)
	}
}

func testEnded(t *testing.T, b *bench) {
	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	require.ErrorIs(t, b.Publish(ended, hint(1)), context.Canceled)
	require.NoError(t, b.Publish(b.ctx, hint(2)))
	_, err := b.Receive(ended)
	require.ErrorIs(t, err, context.Canceled)
	b.receiveAll([]queue.Hint{hint(2)})
}

func testCloseReceive(t *testing.T, b *bench) {
	const receivers = 5
	errs := make(chan error)
	for range receivers {
		go func() {
			_, err := b.Receive(b.ctx)
			errs <- err
		}()
	}
	require.NoError(t, b.Close())
	for range receivers {
		require.ErrorIs(t, <-errs, queue.ErrClosed)
	}
	require.ErrorIs(t, b.Publish(b.ctx, hint(1)), queue.ErrClosed)
	_, err := b.Receive(b.ctx)
	require.ErrorIs(t, err, queue.ErrClosed)
}

func testClose(t *testing.T, b *bench) {
	require.NoError(t, b.Publish(b.ctx, hint(1)))
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
}

func testDone(t *testing.T, b *bench) {
	require.NoError(t, b.Publish(b.ctx, hints(3)...))
	d, err := b.Receive(b.ctx)
	require.NoError(t, err)
	errs := make(chan error)
	for range 4 {
		go func() { errs <- d.Done(b.ctx) }()
	}
	for range 4 {
		require.NoError(t, <-errs)
	}
	require.NoError(t, d.Done(b.ctx))
	rest := map[state.BatchKey]bool{}
	for len(rest) < 2 { // the others still come
		if h := b.receive(); h.BatchKey != d.BatchKey {
			rest[h.BatchKey] = true
		}
	}
}

// A worker that shuts down still settles what it has decided on, or leaves it
// to come again; neither harms the queue.
func testDoneEnded(t *testing.T, b *bench) {
	require.NoError(t, b.Publish(b.ctx, hint(1)))
	d, err := b.Receive(b.ctx)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	if err := d.Done(ended); err != nil {
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, d.Done(b.ctx))
	}
	require.NoError(t, b.Publish(b.ctx, hint(2)))
	b.receiveAll([]queue.Hint{hint(2)})
}
