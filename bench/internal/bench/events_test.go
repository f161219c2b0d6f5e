package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEventsKeepTheFinalOne(t *testing.T) {
	t.Parallel()
	e := &events{}
	for _, piece := range []string{
		`{"event":"run_sta`, "rted\",\"nodes\":[\"a\"]}\n\n",
		`{"event":"run_finished","status":"complete","elapsed_ms":12.5,`,
		"\"overhead_ms\":3,\"nodes\":[{\"node\":\"a\",\"computed_in\":\"b\"}]}\n",
	} {
		n, err := e.Write([]byte(piece))
		require.NoError(t, err)
		require.Len(t, piece, n)
	}
	require.NoError(t, e.close(measured{}))
	require.InDelta(t, 12.5, e.finished.ElapsedMS, 0)
	require.Empty(t, e.finished.Nodes, "it has no time of its own")
}

func TestEventsThatBreakTheContract(t *testing.T) {
	t.Parallel()
	m := measured{started: time.Unix(100, 0), wall: 10 * time.Second}
	for name, c := range map[string]struct{ text, want string }{
		"silence":    {"", "end without run_finished"},
		"unfinished": {"{\"event\":\"run_started\"}\n", "end without run_finished"},
		"not JSON":   {"panic: oops\n{\"event\":\"run_finished\",\"status\":\"complete\"}\n", "not JSON"},
		"early node": {`{"event":"run_finished","status":"complete","nodes":` +
			`[{"node":"a","started_ms":90000,"finished_ms":101000}]}` + "\n", "outside its process"},
		"late node": {`{"event":"run_finished","status":"complete","nodes":` +
			`[{"node":"a","started_ms":101000,"finished_ms":112000}]}` + "\n", "outside its process"},
		"no end": {`{"event":"run_finished","status":"complete","nodes":` +
			`[{"node":"a","started_ms":101000,"finished_ms":0}]}` + "\n", "outside its process"},
		"failed": {"{\"event\":\"run_finished\",\"status\":\"failed\"}\n", `"failed"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &events{}
			_, err := e.Write([]byte(c.text))
			require.NoError(t, err)
			require.ErrorContains(t, e.close(m), c.want)
		})
	}
}

func TestStepsCountOverlappingNodesOnce(t *testing.T) {
	t.Parallel()
	f := finished{Nodes: []node{
		{Type: typeFileTable, StartedMS: 0, FinishedMS: 100},
		{Type: typeFileTable, StartedMS: 50, FinishedMS: 150},
		{Type: typeLookup, StartedMS: 140, FinishedMS: 200},
		{Type: typeLookup, StartedMS: 300, FinishedMS: 310},
		{Type: "table_custom_tfm_table", StartedMS: 310, FinishedMS: 400, PythonBusyMS: 150},
		{Type: "table_file", StartedMS: 400, FinishedMS: 900},
	}}
	require.Equal(t, map[string]float64{"load_join": 310, "python": 90}, f.steps())
}

func TestPythonCPUShare(t *testing.T) {
	t.Parallel()
	// Python works from second 2 to 6 and uses both of two cores but for a tenth.
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	cpu := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	u := usage{moments: []moment{{at(0), 0}, {at(2), cpu(0.5)}, {at(6), cpu(7.7)}, {at(8), cpu(7.8)}}}
	f := &finished{Nodes: []node{{StartedMS: 2000, FinishedMS: 6000, PythonBusyMS: 1}}}
	share := pythonCPUShare(f, u, 2)
	require.NotNil(t, share)
	require.InDelta(t, 0.9, *share, 1e-9)

	f.Nodes[0].FinishedMS = 2500
	require.Nil(t, pythonCPUShare(f, u, 2), "half a second is too short to tell")
}
