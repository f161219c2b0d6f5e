package gc_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// A workspace of many runs, one of which has many parts that all others have
// taken over. Time and allocations are printed.
func TestChaosCollectMuch(t *testing.T) {
	t.Parallel()
	batches, each, runs := effort.Of(5, 10, 100), effort.Of(200, 300, 1_000), effort.Of(20, 100, 10_000)
	b := newBench(t, batches)
	s := shelf{}
	for i := range batches {
		var out state.Outcome
		for seq := range each {
			key := b.key(i, 1, seq)
			s[key] = 1
			if seq%2 == 0 {
				out.Parts = append(out.Parts, state.Part{Key: key, Seq: seq, Bytes: 1, Bucket: -1})
			}
		}
		require.NoError(t, b.store.Commit(t.Context(), b.claim(i, 1), out, b.now))
	}
	for i := range runs {
		run, err := b.store.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: "main"}, Created: b.now},
			[]state.NodeSpec{{Name: "n"}, {Name: "m", Ordinal: 1}})
		require.NoError(t, err)
		from := state.NodeKey{RunKey: b.node.RunKey, Node: "n"}
		_, err = state.PlanNode(t.Context(), b.store, state.NodeKey{RunKey: run, Node: "n"}, 0,
			state.Plan{Record: []byte(`{"version":1,"layout":{}}`), ReusedFrom: &from}, "a", b.now)
		require.NoError(t, err)
		if i%2 == 0 {
			require.NoError(t, state.Direct(t.Context(), b.store, run, state.Command{Kind: state.CommandStop,
				Token: fmt.Sprint(i), Mark: state.Mark{Actor: "a", Time: b.now}}))
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	said := b.collect(b.store, s, true)
	runtime.ReadMemStats(&after)
	t.Logf("%d runs, %d parts: %s, %d MB allocated in all", runs, batches*each,
		time.Since(begun).Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20)
	require.Equal(t, int64(batches*each/2), said.Held.Count,
		"what is withdrawn stays: runs that are not over read the node")
	require.Equal(t, said, b.collect(b.store, s, false))
	require.Len(t, s, batches*each)
}
