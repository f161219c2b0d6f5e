package budget

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// guest is one that does not stay, in the line already.
func guest(t *testing.T, dir string, total, most int64) *Ledger {
	t.Helper()
	g := Guest{LeastBytes: MemoryBytesMin, MostBytes: most}
	l, err := Join(dir, Member{Owner: "guest", Total: total, Guest: &g}, g.Whole())
	require.NoError(t, err)
	return l
}

// A worker that has all the memory makes room for a query as its batches end, and has all of it again afterwards. The
// query's own figure, though smaller, is nobody else's.
func TestAGuestBesideAWorker(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	worker := enter(t, dir, "worker", 4*gib, 0)
	_, first, err := worker.Room().Take(ctx, OneSlot)
	require.NoError(t, err)
	_, second, err := worker.Room().Take(ctx, OneSlot)
	require.NoError(t, err)
	query, other := guest(t, dir, gib, gib/2), guest(t, dir, gib, gib/2)
	review := func() {
		for range 3 {
			for _, l := range []*Ledger{query, worker, other} {
				require.NoError(t, l.review(ctx))
				require.LessOrEqual(t, held(t, dir), int64(4*gib))
			}
		}
	}
	review()
	require.Zero(t, query.entry.Held, "no batch is interrupted")
	first()
	review()
	require.EqualValues(t, gib/2, query.entry.Held)
	require.EqualValues(t, gib/2, other.entry.Held, "beside the first")
	require.EqualValues(t, 3*gib, worker.entry.Held)
	require.Equal(t, 1, worker.Room().Budget().Slots, "slots stay what they are")
	second()
	require.NoError(t, query.Leave())
	require.NoError(t, other.Leave())
	require.NoError(t, worker.review(ctx))
	require.EqualValues(t, 4*gib, worker.entry.Held)
	require.Equal(t, 2, worker.Room().Budget().Slots)
	require.NoError(t, worker.Leave())
}

// Whoever comes with a figure that is less than what a query has got does not wait for its end.
func TestAGuestOfALargerFigureDoesNotKeepARunOut(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	query := guest(t, dir, 8*gib, 3*gib)
	require.NoError(t, query.review(ctx))
	require.EqualValues(t, 3*gib, query.entry.Held)
	run := enter(t, dir, "run", gib, 0)
	require.EqualValues(t, gib/2, run.entry.Held)
	late := guest(t, dir, 8*gib, 3*gib)
	require.NoError(t, late.review(ctx))
	require.NoError(t, run.review(ctx))
	require.NoError(t, late.review(ctx))
	require.EqualValues(t, gib/4, late.entry.Held, "it is there in time to share the figure")
	require.EqualValues(t, gib/4, run.entry.Held)
	for _, l := range []*Ledger{query, run, late} {
		require.NoError(t, l.Leave())
	}
}

// Where there is memory for one only, queries and runs take turns, and none of them waits for ever.
func TestGuestsAndRunsTakeTurns(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), effort.Patience)
	defer stop()
	dir, whole := t.TempDir(), wholeOf(t, MemoryBytesMin, 1, 1)
	run := newLedger(dir, Member{Owner: "run", Total: MemoryBytesMin, Turn: time.Millisecond}, whole)
	require.NoError(t, run.review(ctx)) // it is there first: else a guest would have half of its own figure
	follows(t, run)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			m := Member{Owner: "guest", Total: gib, Guest: &Guest{LeastBytes: MemoryBytesMin, MostBytes: gib}}
			for range 3 {
				bytes, leave, err := Visit(ctx, dir, m, func(error) {})
				if err == nil {
					err = leave()
				}
				if err != nil || bytes != MemoryBytesMin {
					t.Errorf("a guest has %d bytes: %v", bytes, err)
					return
				}
			}
		})
	}
	for range 5 {
		_, release, err := run.Room().Take(ctx, OneSlot)
		require.NoError(t, err)
		require.LessOrEqual(t, held(t, dir), int64(MemoryBytesMin))
		release()
	}
	all.Wait()
}

// Beside a server's share a process has as many slots as alone. What a batch needs at most it has all the same.
func TestAGuestThatStays(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	g := Guest{LeastBytes: 192 << 20, MostBytes: gib, Slots: 2, Stays: true}
	server, err := Join(dir, Member{Owner: "server", Total: 16 * gib, Turn: time.Nanosecond, Guest: &g}, g.Whole())
	require.NoError(t, err)
	require.NoError(t, server.review(ctx))
	require.EqualValues(t, gib, server.entry.Held)
	worker := enter(t, dir, "worker", 8*gib, 2)
	alone := wholeOf(t, 8*gib, 2, 2)
	now := worker.Room().Budget()
	require.EqualValues(t, 7*gib, now.TotalBytes)
	require.Equal(t, 2, now.Slots)
	require.Equal(t, 2, now.Interpreters)
	require.Less(t, now.SlotEngineBytes, alone.SlotEngineBytes)
	require.Greater(t, now.SlotEngineBytes, alone.SlotEngineBytes/5*4)
	require.LessOrEqual(t, now.fixed(2)+2*int64(float64(now.SlotEngineBytes)/engineShare), int64(7*gib))
	_, busy, err := server.Room().Take(ctx, OneSlot)
	require.NoError(t, err)
	got := make(chan Grant)
	go func() {
		if grant, release, err := worker.Room().Take(ctx, Everything); err == nil {
			release()
			got <- grant
		}
	}()
	for !worker.room.demand().everything {
		require.NoError(t, ctx.Err())
	}
	review := func() {
		for range 4 {
			require.NoError(t, worker.review(ctx))
			require.NoError(t, server.review(ctx))
			require.LessOrEqual(t, held(t, dir), int64(8*gib))
		}
	}
	review()
	require.EqualValues(t, gib, server.entry.Held, "a request is not interrupted")
	busy()
	for grant := (Grant{}); grant.Slots == 0; {
		review()
		select {
		case grant = <-got:
			require.Equal(t, alone.SlotEngineBytes*int64(alone.Slots), grant.EngineBytes)
		default:
		}
	}
	review()
	require.Zero(t, server.entry.Held, "nobody asks it anything")
	require.EqualValues(t, 8*gib, worker.entry.Held)
	asked := make(chan Grant)
	go func() {
		if grant, release, err := server.Room().Take(ctx, OneSlot); err == nil {
			release()
			asked <- grant
		}
	}()
	for grant := (Grant{}); grant.Slots == 0; {
		review()
		select {
		case grant = <-asked:
			require.EqualValues(t, gib/2, grant.EngineBytes)
		default:
		}
	}
	require.EqualValues(t, 7*gib, worker.entry.Held)
	require.NoError(t, worker.Leave())
	// Where a run has less, so has the server.
	small := newLedger(dir, Member{Owner: "small", Total: gib, Turn: time.Nanosecond}, wholeOf(t, gib, 2, 0))
	for range 4 {
		require.NoError(t, small.review(ctx))
		require.NoError(t, server.review(ctx))
	}
	require.EqualValues(t, gib/4, server.entry.Held)
	require.EqualValues(t, gib/4*3, small.entry.Held)
	require.Equal(t, 1, server.Room().Budget().Slots)
	require.NoError(t, small.Leave())
	require.NoError(t, server.Leave())
}

// A guest that stays hears of a run that its requests keep waiting, and not of other guests.
func TestARunThatWaitsForAGuest(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	g, wanted := Guest{LeastBytes: 192 << 20, MostBytes: gib, Slots: 2, Stays: true}, 0
	server, err := Join(dir, Member{Owner: "server", Total: 4 * gib, Turn: time.Nanosecond, Guest: &g,
		Wanted: func() { wanted++ }}, g.Whole())
	require.NoError(t, err)
	require.NoError(t, server.review(ctx))
	_, busy, err := server.Room().Take(ctx, OneSlot)
	require.NoError(t, err)
	other := Guest{LeastBytes: 4 * gib, MostBytes: 4 * gib}
	query, err := Join(dir, Member{Owner: "query", Total: 4 * gib, Guest: &other}, other.Whole())
	require.NoError(t, err)
	require.NoError(t, query.review(ctx))
	require.NoError(t, server.review(ctx))
	require.True(t, server.Room().becoming())
	require.Zero(t, wanted)
	require.NoError(t, query.Leave())
	run := newLedger(dir, Member{Owner: "run", Total: gib}, wholeOf(t, gib, 2, 0))
	require.NoError(t, run.review(ctx))
	require.Zero(t, run.entry.Held)
	require.NoError(t, server.review(ctx))
	require.Equal(t, 1, wanted)
	busy()
	require.NoError(t, server.review(ctx))
	require.NoError(t, run.review(ctx))
	require.EqualValues(t, gib/4*3, run.entry.Held)
	require.NoError(t, server.review(ctx))
	require.Equal(t, 1, wanted)
	require.NoError(t, run.Leave())
	require.NoError(t, server.Leave())
}
