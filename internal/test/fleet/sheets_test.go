package fleet

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/history"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// The sheets of a fleet add up, whatever happens to its workers: one is killed, one stands still for longer than its
// leases last, and one has no trouble.
func TestSheetsOfAFleet(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(*testing.T) services{"directory": directory, "cassandra": inCassandra} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sheetsOver(t, over(t))
		})
	}
}

func sheetsOver(t *testing.T, with services) {
	t.Helper()
	f := newFleet(t, with, 3, nil)
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	tr, err := f.newTrial(ctx, sample{seed: 3, rows: 3000, pace: 15 * time.Millisecond})
	require.NoError(t, err)
	fl, err := f.submit(ctx, tr)
	require.NoError(t, err)
	workers := f.workers
	awaitSheets(ctx, t, f, fl.key, func(of map[*member]sheet.Sheet) bool {
		return len(of) == 3 && of[workers[0]].Time(sheet.Other) > 0
	})
	require.True(t, f.signal(workers[0], syscall.SIGKILL))
	killed := time.Now()
	require.True(t, f.signal(workers[1], syscall.SIGSTOP))
	pause(ctx, 2*leaseTime)
	require.True(t, f.signal(workers[1], syscall.SIGCONT))
	require.NoError(t, f.await(ctx, fl))
	for _, m := range workers[1:] { // whose sheets are complete then
		require.True(t, f.signal(m, syscall.SIGTERM))
		<-m.done
	}
	of := awaitSheets(ctx, t, f, fl.key, func(of map[*member]sheet.Sheet) bool { return len(of) == 3 })
	sum := sheet.Sheet{}
	shares := 0.0
	for i, m := range workers {
		s := of[m]
		require.InEpsilon(t, s.Presence*float64(s.Slots), s.SlotTime().Seconds(), 0.005, "%+v", s)
		// who stands still while it asks for the state's time is off until it asks again
		require.InDelta(t, s.To.Sub(s.From).Seconds(), s.Presence, (2 * leaseTime).Seconds(), "worker %d", i)
		require.GreaterOrEqual(t, s.To.Sub(s.From).Seconds(), s.Presence-1e-3, "worker %d", i)
		require.Positive(t, s.CPU)
		require.Positive(t, s.Calls)
		sum.Presence, sum.CPU, sum.Lost = sum.Presence+s.Presence, sum.CPU+s.CPU+s.ChildrenCPU, sum.Lost+s.Lost
		sum.Batches, shares = sum.Batches+s.Batches, shares+s.SlotTime().Seconds()
	}
	require.WithinDuration(t, killed, of[workers[0]].To, 20*time.Second)
	require.Positive(t, of[workers[0]].Time(sheet.Other))
	require.GreaterOrEqual(t, of[workers[1]].Presence, (2 * leaseTime).Seconds())

	shown, err := history.ShowRun(ctx, f.state, fl.key, history.ListOptions{All: true, Now: time.Now()})
	require.NoError(t, err)
	total := shown.Workers
	require.Equal(t, []int64{3, sum.Lost}, []int64{int64(total.Workers), total.Lost})
	require.InDeltaSlice(t, []float64{sum.Presence, shares, sum.CPU}, []float64{total.Presence, total.SlotTime,
		total.CPU}, 1e-3)
	batches := int64(0)
	for _, n := range shown.Nodes {
		batches += int64(n.Batches)
	}
	require.LessOrEqual(t, sum.Batches, batches, "those of the dead since its sheet was renewed are missing")
	require.Positive(t, sum.Batches)
}

// awaitSheets waits until the sheets of a run are as wanted.
func awaitSheets(ctx context.Context, t *testing.T, f *workerFleet, key state.RunKey,
	wanted func(map[*member]sheet.Sheet) bool) map[*member]sheet.Sheet {
	t.Helper()
	for {
		all, err := sheet.Of(ctx, f.state, key)
		require.NoError(t, err)
		of := map[*member]sheet.Sheet{}
		for _, m := range f.workers {
			for _, s := range all {
				if strings.Contains(s.Worker, fmt.Sprintf("/%d/", m.cmd.Process.Pid)) {
					of[m] = s
				}
			}
		}
		if wanted(of) {
			return of
		}
		require.NoError(t, ctx.Err(), "%+v", all)
		pause(ctx, pollEvery)
	}
}
