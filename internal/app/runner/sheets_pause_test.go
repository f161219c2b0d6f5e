package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/budget"
	"thalweg/internal/io/remote"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// While a run is paused no worker is there for it: the one that comes back adds to its sheet, beside the one that
// resumed the run.
func TestSheetsOfAPausedRun(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	dir := sleepyInputs(t, 0.15)
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	key, err := runner.Begin(t.Context(), home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Dir: dir,
		Workspace: "main", Process: runtime.Process{MemoryBytes: victimBytes, Interpreter: "python3",
			Tune: func(b *budget.Budget) { b.BatchBytes, b.SmallBytes = 1, 1 }}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	client := remote.New(remote.Config{})
	defer client.Close()
	left, served := make(chan state.RunKey, 9), make(chan error, 1)
	go func() {
		served <- worker.Serve(ctx, home, worker.WorkerOptions{Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 1,
			Interpreter: "python3", Remote: client}, Left: func(key state.RunKey) { left <- key }})
	}()
	sheets := func() []sheet.Sheet {
		all, err := sheet.Of(t.Context(), home.State, key)
		require.NoError(t, err)
		return all
	}
	require.Eventually(t, func() bool {
		nodes, err := home.State.Nodes(t.Context(), key)
		require.NoError(t, err)
		for _, n := range nodes {
			if n.Name == "slow" && n.BatchesDone > 0 {
				return true
			}
		}
		return false
	}, effort.Patience, 20*time.Millisecond)
	_, _, err = control.Pause(t.Context(), home, key, caller.OfProcess(caller.CLI).Mark("for now"))
	require.NoError(t, err)
	<-left
	away := time.Now()
	before := sheets()
	require.Len(t, before, 1)
	requireSheet(t, before[0])
	require.Positive(t, before[0].Batches)
	require.Eventually(t, func() bool { return time.Since(away) > 2*time.Second }, effort.Patience, 100*time.Millisecond)
	require.Equal(t, before, sheets(), "nobody is there")
	gap := time.Since(away)
	cmd := victimCmd(t, dir, "run", true)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	<-left
	stop()
	require.NoError(t, <-served)

	after := sheets()
	require.Len(t, after, 2)
	back, other := after[0], after[1]
	require.Equal(t, before[0].Worker, back.Worker)
	require.Equal(t, before[0].From, back.From)
	require.Greater(t, back.Presence, before[0].Presence)
	require.Less(t, back.Presence, (back.To.Sub(back.From)-gap).Seconds()+0.1)
	require.InEpsilon(t, back.Presence*float64(back.Slots), back.SlotTime().Seconds(), 0.005)
	requireSheet(t, other)
	requireTotals(t, home.State, key, after)
}

// The sheets of a run that failed stay beside those of who retries it.
func TestSheetsOfARunThatFailed(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	dir := sleepyInputs(t, 0)
	path := filepath.Join(dir, "slow.py")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	bad := strings.Replace(string(good), "import time\n", "import os\nimport time\n", 1)
	bad = strings.Replace(bad, "    return", "    if id == 60 and not os.path.exists("+`"`+filepath.Join(dir, "fine")+
		`"): raise ValueError("not yet")`+"\n    return", 1)
	require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
	text, err := victimCmd(t, dir, "run", false).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Contains(t, string(text), "failed\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fine"), nil, 0o600))
	text, err = victimCmd(t, dir, "run", true).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Contains(t, string(text), "complete\n")
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	key := state.RunKey{Workspace: "main", Run: 1}
	sheets, err := sheet.Of(t.Context(), home.State, key)
	require.NoError(t, err)
	require.Len(t, sheets, 2)
	for _, s := range sheets {
		requireSheet(t, s)
	}
	require.Positive(t, sheets[0].Lost)
	require.Positive(t, sheets[0].Time(sheet.Other))
	require.Zero(t, sheets[1].Lost)
	require.False(t, sheets[1].From.Before(sheets[0].To))
	requireTotals(t, home.State, key, sheets)
}

// requireTotals holds what `show` says to the sheets of a complete run, none of whose workers was killed.
func requireTotals(t *testing.T, store state.Store, key state.RunKey, sheets []sheet.Sheet) {
	t.Helper()
	shown, err := history.ShowRun(t.Context(), store, key, history.ListOptions{All: true, Now: time.Now()})
	require.NoError(t, err)
	var presence, slots, cpu float64
	var batches, done int64
	for _, s := range sheets {
		presence, slots, cpu = presence+s.Presence, slots+s.SlotTime().Seconds(), cpu+s.CPU+s.ChildrenCPU
		batches += s.Batches
	}
	for _, n := range shown.Nodes {
		done += int64(n.Batches)
	}
	require.Equal(t, done, batches)
	require.Equal(t, len(sheets), shown.Workers.Workers)
	require.InDeltaSlice(t, []float64{presence, slots, cpu}, []float64{shown.Workers.Presence, shown.Workers.SlotTime,
		shown.Workers.CPU}, 1e-3)
	shares := 0.0
	for _, seconds := range shown.Workers.Shares {
		shares += seconds
	}
	require.InDelta(t, shown.Workers.SlotTime, shares, 1e-3)
}
