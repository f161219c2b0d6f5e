package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest/hostile"
)

// All warnings of a node are there, also where a tally keeps only the first.
func TestNodeStatsHasAllWarnings(t *testing.T) {
	t.Parallel()
	ctx, store, now := t.Context(), hostile.New().Open(), time.Now()
	key, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "main"}},
		[]state.NodeSpec{{Name: "few"}, {Name: "many"}})
	require.NoError(t, err)
	for node, batches := range map[string]int{"few": 3, "many": state.TallyWarningsMax + 5} {
		at := state.NodeKey{RunKey: key, Node: node}
		specs := make([]state.BatchSpec, batches)
		for i := range specs {
			specs[i].Batch = i
		}
		_, err := state.PlanNode(ctx, store, at, 0, state.Plan{Record: []byte("x"), Batches: specs}, "w", now)
		require.NoError(t, err)
		for i := range specs {
			c, err := store.Claim(ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: at, Batch: i}},
				Owner: "w", Now: now, Lease: now.Add(time.Hour)})
			require.NoError(t, err)
			require.NoError(t, store.Commit(ctx, c,
				state.Outcome{Stats: state.Stats{Engine: time.Second, Warnings: []string{fmt.Sprint("of batch ", i)}}},
				now))
		}
	}
	nodes, err := store.Nodes(ctx, key)
	require.NoError(t, err)
	stats := runner.NodeStats(ctx, store, nodes)
	for node, batches := range map[string]int{"few": 3, "many": state.TallyWarningsMax + 5} {
		require.Equal(t, time.Duration(batches)*time.Second, stats[node].Engine)
		require.Len(t, stats[node].Warnings, batches)
		require.Equal(t, fmt.Sprint("of batch ", batches-1), stats[node].Warnings[batches-1])
	}
}

// partlyScript reads whole numbers by a format that takes their beginning.
const partlyScript = `
nodes:
  read:
    type: file_table
    r:
      urls: [DIR/in_*.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {n: {col_type: int, csv: {col_hdr: "n", col_format: "%d"}}}
    w: {name: items, fields: {n: {expression: r.n, type: int}}}
`

// A warning that many batches have is given once, with how often it is so in all of them: also where a process has
// done some of them and another one the rest.
func TestWarningsThatBatchesRepeat(t *testing.T) {
	t.Parallel()
	const filesWritten = state.TallyWarningsMax + 10
	dir := t.TempDir()
	for i := range filesWritten {
		text := fmt.Sprintf("n\n%d\n\"%d,5\"\n%dx\n", i, i, i)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("in_%02d.csv", i)), []byte(text), 0o600))
	}
	script := filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(script, []byte(strings.ReplaceAll(partlyScript, "DIR", dir)), 0o600))
	opts := runner.Options{ScriptPath: script, Workspace: "main",
		Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 1,
			Tune: func(b *budget.Budget) { b.Slots, b.BatchBytes, b.SmallBytes = 1, 1, 1 }}}
	ctx, cancel := context.WithCancel(t.Context())
	var copies atomic.Int64
	traced := engine.WithTrace(ctx, func(_ *engine.Instance, statement string) {
		if strings.HasPrefix(statement, "COPY") && copies.Add(1) == filesWritten/2 {
			cancel()
		}
	})
	home := openHome(t, dir)
	_, _ = runner.Run(traced, home, opts)
	require.NoError(t, home.Close())
	require.Error(t, ctx.Err())

	home = openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	opts.Resume = true
	sum, err := runner.Run(t.Context(), home, opts)
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
	require.Equal(t, int64(1), sum.Key.Run)
	require.GreaterOrEqual(t, sum.Nodes[0].BatchesTotal, filesWritten)
	require.Equal(t, []string{fmt.Sprintf(
		`%s/in_00.csv:3: column n: the format "%%d" reads 0 of "0,5" and passes over the rest, as in Capillaries `+
			"(the first of %d values); write all of the text into the format, or give the column in the short form, "+
			"where it is an error", dir, 2*filesWritten)},
		sum.Stats["read"].Warnings)
	node, err := history.ShowNode(t.Context(), home.State, state.NodeKey{RunKey: sum.Key, Node: "read"}, time.Now())
	require.NoError(t, err)
	require.Equal(t, 1, node.Warnings)
	require.Len(t, node.Told, 1)
}
