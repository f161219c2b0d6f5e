package sizing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/forecast"
	"thalweg/internal/store/state"
)

func recordOf(run, files int64, nodes ...string) Record {
	r := Record{Run: state.RunKey{Workspace: "main", Run: run}, Elapsed: time.Minute, Workers: 1, Cores: 2}
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, forecast.Node{Name: n})
	}
	r.Nodes[0].Files = files
	return r
}

// A table of runs that have not done the same work says so.
func TestRunsOfOtherWorkAreNamed(t *testing.T) {
	t.Parallel()
	prices, err := PublishedPrices()
	require.NoError(t, err)
	r, err := TableOfRuns([]Record{recordOf(1, 1000, "a", "b"), recordOf(2, 1040, "b", "a"), recordOf(3, 2048, "a", "b"),
		recordOf(4, 1000, "a", "c")}, prices, false)
	require.NoError(t, err)
	require.Equal(t, []string{"Run 3 read files of 2.0 KiB, and run 1 of 1000 B: their times are not of the same work.",
		"Run 4 has other nodes than run 1: their times are not of the same work."}, r.Doubts)
}
