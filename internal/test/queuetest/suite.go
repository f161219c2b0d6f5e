package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
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
		{"Kept", testKept},
		{"Back", testBack},
		{"BackAndDone", testBackDone},
		{"Waiting", testWaiting},
		{"Priorities", testPriorities},
		{"NoneStarves", testStarving},
		{"Signals", testSignals},
		{"SignalsEnd", testSignalsEnd},
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

// bench holds the queue and context of a test.
type bench struct {
	queue.Queue
	t   *testing.T
	ctx context.Context
}

func hint(i int) queue.Hint {
	run := state.RunKey{Workspace: "w ' ü/" + fmt.Sprint(i%3), Run: int64(1 + i%2)}
	return queue.Hint{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: state.NodeKey{RunKey: run, Node: "node"},
		Batch: i}, Class: "load"}}
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
	for _, p := range queue.Levels() {
		want.Priority = p
		require.NoError(t, b.Publish(b.ctx, want))
		require.Equal(t, want, b.receive())
	}
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
	receiving, stop := context.WithCancel(b.ctx)
	defer stop()
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
					stop()
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

// What is kept is received here.
func testKept(_ *testing.T, b *bench) {
	b.must(b.Keep(b.ctx))
	b.must(b.Keep(b.ctx, hints(3)...))
	b.receiveAll(hints(3))
	b.must(b.Publish(b.ctx, hint(4)))
	b.must(b.Keep(b.ctx, hint(5)))
	b.receiveAll([]queue.Hint{hint(4), hint(5)})
}

func (b *bench) must(err error) {
	b.t.Helper()
	require.NoError(b.t, err)
}

// A hint that is given back comes again, behind all others.
func testBack(t *testing.T, b *bench) {
	b.must(b.Publish(b.ctx, hint(1), hint(2)))
	d, err := b.Receive(b.ctx)
	require.NoError(t, err)
	b.must(d.Back(b.ctx))
	b.receiveAll([]queue.Hint{hint(1), hint(2)})
}

// What comes second has no effect.
func testBackDone(t *testing.T, b *bench) {
	b.must(b.Publish(b.ctx, hint(1)))
	d, err := b.Receive(b.ctx)
	require.NoError(t, err)
	b.must(d.Done(b.ctx))
	b.must(d.Back(b.ctx))
	b.must(b.Publish(b.ctx, hint(2)))
	require.Equal(t, hint(2), b.receive())
	n, err := b.Waiting(b.ctx, queue.Normal)
	require.NoError(t, err)
	require.Zero(t, n)
}

func testWaiting(t *testing.T, b *bench) {
	count := func(p queue.Priority) int {
		n, err := b.Waiting(b.ctx, p)
		require.NoError(t, err)
		return n
	}
	require.Zero(t, count(queue.Normal))
	high := hint(9)
	high.Priority = queue.High
	b.must(b.Publish(b.ctx, append(hints(3), high)...))
	require.Equal(t, []int{1, 3, 0}, []int{count(queue.High), count(queue.Normal), count(queue.Low)})
	b.receiveAll(append(hints(3), high))
	require.Equal(t, []int{0, 0, 0}, []int{count(queue.High), count(queue.Normal), count(queue.Low)})
}

// leveled are n hints of a priority.
func leveled(p queue.Priority, from, n int) []queue.Hint {
	out := make([]queue.Hint, n)
	for i := range out {
		out[i] = hint(from + i)
		out[i].Priority = p
	}
	return out
}

// The urgent ones come earlier, on the whole.
func testPriorities(t *testing.T, b *bench) {
	const each = 20
	b.must(b.Publish(b.ctx, leveled(queue.Low, 0, each)...))
	b.must(b.Publish(b.ctx, leveled(queue.Normal, 100, each)...))
	b.must(b.Publish(b.ctx, leveled(queue.High, 200, each)...))
	at := map[queue.Priority]int{}
	for i := range 3 * each {
		at[b.receive().Priority] += i
	}
	require.Less(t, at[queue.High], at[queue.Normal])
	require.Less(t, at[queue.Normal], at[queue.Low])
}

// The others go on while there are always urgent ones.
func testStarving(_ *testing.T, b *bench) {
	b.must(b.Publish(b.ctx, leveled(queue.Low, 0, 1)...))
	b.must(b.Publish(b.ctx, leveled(queue.Normal, 1, 1)...))
	b.must(b.Publish(b.ctx, leveled(queue.High, 2, 2)...))
	left := map[queue.Priority]bool{queue.Low: true, queue.Normal: true}
	for i := 4; len(left) > 0; i++ {
		delete(left, b.receive().Priority)
		b.must(b.Publish(b.ctx, leveled(queue.High, i, 1)...))
	}
}

func signal(i int, k queue.SignalKind) queue.Signal {
	return queue.Signal{RunKey: hint(i).RunKey, Kind: k}
}

// Each signal comes; those that are the same are one while they wait.
func testSignals(t *testing.T, b *bench) {
	want := []queue.Signal{signal(0, queue.Moved), signal(0, queue.Ordered), signal(1, queue.Moved)}
	for range 3 {
		for _, s := range want {
			b.must(b.Signal(b.ctx, s))
		}
	}
	var got []queue.Signal
	for range want {
		s, err := b.Signalled(b.ctx)
		require.NoError(t, err)
		got = append(got, s)
	}
	require.ElementsMatch(t, want, got)
	none, cancel := context.WithTimeout(b.ctx, time.Millisecond)
	defer cancel()
	_, err := b.Signalled(none)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	came := make(chan error)
	go func() {
		s, err := b.Signalled(b.ctx)
		if err == nil && s != want[0] {
			err = fmt.Errorf("signal %v", s)
		}
		came <- err
	}()
	b.must(b.Signal(b.ctx, want[0]))
	require.NoError(t, <-came)
}

func testSignalsEnd(t *testing.T, b *bench) {
	ended := make(chan error)
	go func() {
		_, err := b.Signalled(b.ctx)
		ended <- err
	}()
	b.must(b.Close())
	require.ErrorIs(t, <-ended, queue.ErrClosed)
	require.ErrorIs(t, b.Signal(b.ctx, signal(1, queue.Moved)), queue.ErrClosed)
	require.ErrorIs(t, b.Keep(b.ctx, hint(1)), queue.ErrClosed)
}
