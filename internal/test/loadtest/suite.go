package loadtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/load"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/remotetest"
)

// Facts are of a target.
type Facts struct {
	// Open opens one of its own, with nothing in it. The suite closes it.
	Open func(t *testing.T) load.Target
	// Spoil changes the value that was written under a key, behind the target's back; nil: it cannot be done.
	Spoil func(t *testing.T, of load.Target, key uint64)
	// Nodes are those that say what they do; 0: none do.
	Nodes int
	// Wired says that the bytes of connections are counted.
	Wired bool
	// Behind opens one whose servers are reached through a proxy only; nil: it has no servers. An answer is awaited
	// for so long; zero: for as long as usual.
	Behind func(t *testing.T, patience time.Duration) (load.Target, *remotetest.Proxy)
	// Stubborn says that operations are repeated for longer than a test waits while servers do not answer.
	Stubborn bool
}

// unanswered is longer than any answer takes, and shorter than the patience of clients.
const unanswered = time.Minute

// Run holds a target to what it promises.
func Run(t *testing.T, f Facts) {
	for _, test := range []struct {
		name string
		test func(*testing.T, Facts)
	}{
		{"WhatIsWrittenIsRead", testRoundTrip},
		{"WhatIsMissingIsAnErrorInItsPlace", testMissing},
		{"ErrorsOfBeforeDoNotStay", testStale},
		{"WrittenAgain", testAgain},
		{"WrongValues", testWrong},
		{"ClientsAtOnce", testAtOnce},
		{"Cancellation", testCancellation},
		{"ServersSayWhatTheyDo", testObserved},
		{"BytesAreCounted", testMoved},
		{"ConnectionsThatEnd", testCut},
		{"ServersThatHang", testHung},
	} {
		t.Run(test.name, func(t *testing.T) { test.test(t, f) })
	}
}

// open opens a target and a client of it.
func open(t *testing.T, f Facts) (load.Target, load.Client) {
	target := f.Open(t)
	t.Cleanup(func() { require.NoError(t, target.Close()) })
	return target, client(t, target, 0)
}

func client(t *testing.T, target load.Target, number int) load.Client {
	c, err := target.Client(t.Context(), number)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// run carries out operations; each has had an error before, which must not stay.
func run(ctx context.Context, c load.Client, ops ...load.Op) []error {
	errs := make([]error, len(ops))
	for i := range errs {
		errs[i] = errors.New("nothing was done")
	}
	c.Do(ctx, ops, errs)
	return errs
}

func keys(kind load.Kind, from, to uint64) (ops []load.Op) {
	for key := from; key < to; key++ {
		ops = append(ops, load.Op{Kind: kind, Key: key})
	}
	return ops
}

func allGood(t *testing.T, errs []error) {
	t.Helper()
	for i, err := range errs {
		require.NoError(t, err, "operation %d", i)
	}
}

// Keys of every size of number, alone and together.
func testRoundTrip(t *testing.T, f Facts) {
	_, c := open(t, f)
	for _, key := range []uint64{0, 1, 255, 1 << 20, 1 << 40, 1<<63 + 7, 1<<64 - 1} {
		allGood(t, run(t.Context(), c, load.Op{Kind: load.Write, Key: key}))
		allGood(t, run(t.Context(), c, load.Op{Kind: load.Read, Key: key}))
	}
	for _, n := range []uint64{2, 33} {
		allGood(t, run(t.Context(), c, keys(load.Write, 100*n, 101*n)...))
		allGood(t, run(t.Context(), c, keys(load.Read, 100*n, 101*n)...))
	}
	require.Empty(t, run(t.Context(), c))
}

func testMissing(t *testing.T, f Facts) {
	_, c := open(t, f)
	require.ErrorIs(t, run(t.Context(), c, load.Op{Kind: load.Read, Key: 5})[0], load.ErrMissing)
	allGood(t, run(t.Context(), c, keys(load.Write, 0, 3)...))
	errs := run(t.Context(), c, append(keys(load.Read, 0, 5), load.Op{Kind: load.Read, Key: 2})...)
	allGood(t, errs[:3])
	require.ErrorIs(t, errs[3], load.ErrMissing)
	require.ErrorIs(t, errs[4], load.ErrMissing)
	require.NoError(t, errs[5], "an operation behind one that failed")
}

func testStale(t *testing.T, f Facts) {
	_, c := open(t, f)
	errs := []error{nil, nil}
	c.Do(t.Context(), keys(load.Read, 0, 2), errs)
	require.Error(t, errs[0])
	require.Error(t, errs[1])
	c.Do(t.Context(), keys(load.Write, 0, 2), errs)
	allGood(t, errs)
}

func testAgain(t *testing.T, f Facts) {
	_, c := open(t, f)
	for range 3 {
		allGood(t, run(t.Context(), c, keys(load.Write, 0, 4)...))
		allGood(t, run(t.Context(), c, keys(load.Read, 0, 4)...))
	}
}

func testWrong(t *testing.T, f Facts) {
	if f.Spoil == nil {
		t.Skip("its values cannot be changed behind its back")
	}
	target, c := open(t, f)
	allGood(t, run(t.Context(), c, keys(load.Write, 0, 3)...))
	f.Spoil(t, target, 1)
	errs := run(t.Context(), c, keys(load.Read, 0, 3)...)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], load.ErrWrong)
	require.NoError(t, errs[2], "an operation behind one that failed")
}

func testAtOnce(t *testing.T, f Facts) {
	target, _ := open(t, f)
	var all sync.WaitGroup
	results := make([][]error, 6)
	for n := range results {
		c := client(t, target, n+1)
		all.Go(func() {
			for key := range uint64(5) { // some keys are everybody's
				ops := []load.Op{{Kind: load.Write, Key: key}, {Kind: load.Write, Key: uint64(n+1)*100 + key}}
				results[n] = append(results[n], run(t.Context(), c, ops...)...)
				for i := range ops {
					ops[i].Kind = load.Read
				}
				results[n] = append(results[n], run(t.Context(), c, ops...)...)
			}
		})
	}
	all.Wait()
	for _, errs := range results {
		allGood(t, errs)
	}
}

// A client whose operations were given up is used again.
func testCancellation(t *testing.T, f Facts) {
	target, c := open(t, f)
	allGood(t, run(t.Context(), c, keys(load.Write, 0, 3)...))
	ctx, cancel := context.WithCancel(t.Context())
	allGood(t, run(ctx, c, keys(load.Read, 0, 3)...))
	idle, err := target.Client(t.Context(), 1)
	require.NoError(t, err)
	allGood(t, run(ctx, idle, keys(load.Read, 0, 3)...))
	cancel()
	began := time.Now()
	for _, err := range run(ctx, c, keys(load.Read, 0, 3)...) {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Less(t, time.Since(began), unanswered)
	allGood(t, run(t.Context(), c, keys(load.Read, 0, 3)...))
	require.NoError(t, idle.Close(), "as a load closes its clients, whose context has ended")
}

func testObserved(t *testing.T, f Facts) {
	target, c := open(t, f)
	o := target.(load.Observer)
	before, err := o.Observe(t.Context())
	require.NoError(t, err)
	require.Len(t, before, f.Nodes)
	allGood(t, run(t.Context(), c, keys(load.Write, 0, 40)...))
	allGood(t, run(t.Context(), c, keys(load.Read, 0, 40)...))
	after, err := o.Observe(t.Context())
	require.NoError(t, err)
	require.Len(t, after, f.Nodes)
	for i, r := range after {
		require.NotEmpty(t, r.Node)
		require.Equal(t, before[i].Node, r.Node)
		require.Contains(t, r.Gauges, load.Compactions)
		for name, v := range before[i].Counters {
			require.GreaterOrEqual(t, r.Counters[name], v, name)
		}
	}
	if f.Nodes == 1 {
		require.GreaterOrEqual(t, after[0].Counters[load.Operations]-before[0].Counters[load.Operations], 80.0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f.Nodes > 0 {
		_, err = o.Observe(ctx)
		require.Error(t, err)
	}
	_, err = o.Observe(t.Context())
	require.NoError(t, err, "it is asked again")
}

// What failed moves no payload.
func testMoved(t *testing.T, f Facts) {
	target, c := open(t, f)
	m := target.(load.Meter)
	before := m.Moved()
	allGood(t, run(t.Context(), c, keys(load.Write, 0, 10)...))
	written := m.Moved()
	allGood(t, run(t.Context(), c, keys(load.Read, 0, 10)...))
	read := m.Moved()
	require.Equal(t, written.Payload-before.Payload, read.Payload-written.Payload)
	require.Error(t, run(t.Context(), c, load.Op{Kind: load.Read, Key: 77})[0])
	require.Equal(t, read.Payload, m.Moved().Payload)
	if !f.Wired {
		require.Zero(t, read.Sent+read.Received)
		return
	}
	require.Positive(t, written.Payload-before.Payload)
	require.Greater(t, written.Sent-before.Sent, written.Payload-before.Payload)
	require.Greater(t, read.Received-written.Received+read.Sent-written.Sent, read.Payload-written.Payload)
}

// behind is open for a target whose servers are behind a proxy, with three keys in it.
func behind(t *testing.T, f Facts, patience time.Duration) (load.Target, load.Client, *remotetest.Proxy) {
	if f.Behind == nil {
		t.Skip("it has no servers")
	}
	target, proxy := f.Behind(t, patience)
	t.Cleanup(func() { require.NoError(t, target.Close()) })
	c := client(t, target, 0)
	allGood(t, run(t.Context(), c, keys(load.Write, 0, 3)...))
	return target, c, proxy
}

// requireRecovers waits until operations succeed again, and servers say what they do. No answer is mistaken for that of
// another operation meanwhile.
func requireRecovers(t *testing.T, target load.Target, c load.Client) {
	t.Helper()
	require.Eventually(t, func() bool {
		errs := run(t.Context(), c, keys(load.Read, 0, 3)...)
		for _, err := range errs {
			require.NotErrorIs(t, err, load.ErrWrong)
			require.NotErrorIs(t, err, load.ErrMissing)
		}
		_, err := target.(load.Observer).Observe(t.Context())
		return errors.Join(append(errs, err)...) == nil
	}, effort.Patience, 10*time.Millisecond)
}

func testCut(t *testing.T, f Facts) {
	target, c, proxy := behind(t, f, 0)
	for range 3 {
		before := proxy.Connections()
		proxy.Cut()
		requireRecovers(t, target, c)
		require.Greater(t, proxy.Connections(), before)
	}
}

// A server that does not answer costs an operation the patience of the client, and one that is given up nothing.
func testHung(t *testing.T, f Facts) {
	t.Run("GivenUp", func(t *testing.T) {
		target, c, proxy := behind(t, f, 10*unanswered)
		release := proxy.Hold(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		for _, err := range run(ctx, c, keys(load.Read, 0, 3)...) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		_, err := target.(load.Observer).Observe(ctx)
		require.Equal(t, f.Nodes > 0, err != nil)
		require.Less(t, time.Since(began), unanswered)
		release()
		requireRecovers(t, target, c)
	})
	if f.Stubborn {
		return
	}
	t.Run("Waited", func(t *testing.T) {
		target, c, proxy := behind(t, f, time.Second)
		release := proxy.Hold(t)
		began := time.Now()
		for _, err := range run(t.Context(), c, keys(load.Read, 0, 3)...) {
			require.Error(t, err)
			require.NotErrorIs(t, err, load.ErrMissing)
		}
		require.Less(t, time.Since(began), unanswered)
		release()
		requireRecovers(t, target, c)
	})
}
