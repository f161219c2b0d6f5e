package runs

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/graph"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// A picture of a run says of each node what has become of it: all outcomes in one.
func TestPictureOfARun(t *testing.T) {
	t.Parallel()
	step := func(name string) *graph.Vertex {
		return &graph.Vertex{ID: "n:" + name, Kind: graph.Step, Title: name, Lines: []string{"table_table"}}
	}
	vertices := []*graph.Vertex{step("read"), step("prices"), step("inner"),
		{ID: "g:join", Kind: graph.Gate, Title: "approval join"}, step("join"),
		step("tag"), step("write"), step("later")}
	g := graph.Graph{Title: "orders.yaml", Vertices: vertices}
	for i := range vertices[1:] {
		g.Edges = append(g.Edges, graph.Edge{From: vertices[i], To: vertices[i+1]})
	}
	started := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	failure := &state.Failure{Node: "join",
		Message: "division by zero in `100 / r.qty`, which is a rather long expression of the script and goes on for " +
			"several lines more than a box has room for, as people write them, now and then, over a whole screen",
		Place: fault.Place{File: "table items", Record: 3}}
	d := history.RunDetail{
		Run: history.Run{Run: 7, Script: "jobs/orders.yaml", Status: "failed", Created: started, Finished: &started,
			Elapsed: 3210, Rows: 1204, Bytes: 9000, Failure: failure},
		Nodes: []history.Node{
			{Node: "read", Status: state.Succeeded, Started: &started, RowsIn: 1200, RowsOut: 1198,
				Elapsed: 1500, Batches: 2, Done: 2, Warnings: 2},
			{Node: "prices", Status: state.Succeeded, ReusedFrom: &state.NodeKey{RunKey: state.RunKey{Run: 5}}},
			{Node: "inner", Status: state.Succeeded, Started: &started, ComputedIn: "join"},
			{Node: gate.Prefix + "join", Type: gate.Kind, Status: state.Succeeded,
				Decision: &state.Decision{Approved: true,
					Mark: state.Mark{Actor: "ann"}}},
			{Node: "join", Status: state.Failed, Started: &started, RowsIn: 600, RowsOut: 6, Elapsed: 40,
				Batches: 3, Done: 1},
			{Node: "tag", Status: state.Running, Started: &started, RowsIn: 6, RowsOut: 6, Elapsed: 700, Batches: 3},
			{Node: "write", Status: state.Stopped},
		},
	}
	addRun(g, d)
	g.Heading = headingOf(d)
	var svg bytes.Buffer
	require.NoError(t, graph.WriteSVG(&svg, g))
	const golden = "testdata/picture.svg"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(golden, svg.Bytes(), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), svg.String())
}
