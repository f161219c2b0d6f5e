package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBarsJudge(t *testing.T) {
	t.Parallel()
	runs := []Run{{Side: "a", WallMS: 3000, PeakRSS: 1e9}, {Side: "a", WallMS: 5000, PeakRSS: 2e9},
		{Side: "b", WallMS: 2000}, {Side: "none"}}
	share := 0.95
	runs[0].PythonCPUShare = &share
	runs[0].Result = &finished{Nodes: []node{{Node: "x", StartedMS: 100, FinishedMS: 700, EngineMS: 300}}}
	for name, one := range map[string]struct {
		check check
		value float64
		want  Status
	}{
		"ratio at the bar":    {check{figure: "wall", side: "a", over: "b", bar: atMost(2)}, 2, Pass},
		"ratio above it":      {check{figure: "wall", side: "a", over: "b", bar: atMost(1.9)}, 2, Miss},
		"no bar":              {check{figure: "wall", side: "a", over: "b"}, 2, NotJudged},
		"own figure":          {check{figure: "wall", side: "a", bar: noMore(4, "s")}, 4, Pass},
		"memory is the worst": {check{figure: "peak", side: "a", bar: noMore(1.5, "GB")}, 2, Miss},
		"at least": {check{figure: "python_cpu", side: "a", bar: bar{limit: 95, unit: "%", atLeast: true}}, 95,
			Pass},
		"ratio of at least": {check{figure: "wall", side: "a", over: "b", bar: bar{limit: 2.1, atLeast: true}}, 2,
			Miss},
		"a node":           {check{figure: nodeFigure + "x", side: "a", bar: noMore(0.5, "s")}, 0.6, Miss},
		"DuckDB in a node": {check{figure: engineFigure + "x", side: "a", bar: noMore(0.5, "s")}, 0.3, Pass},
		"what one has more, each": {check{figure: "wall", side: "a", less: "b", per: 400, bar: noMore(0.005, "s")},
			0.005, Pass},
	} {
		var r Report
		r.Runs = runs
		one.check.name = name
		Case{checks: []check{one.check}}.judge(&r, true, nil)
		require.NotNil(t, r.Checks[0].Value, name)
		require.InDelta(t, one.value, *r.Checks[0].Value, 1e-9, name)
		require.Equal(t, one.want, r.Checks[0].Status, name)
		r.Checks = nil
		Case{checks: []check{one.check}}.judge(&r, false, nil)
		require.Equal(t, NotJudged, r.Checks[0].Status, name)
	}
	for name, k := range map[string]check{
		"nothing to divide by": {figure: "wall", side: "a", over: "none"},
		"a side left out":      {figure: "wall", side: "c", over: "a"},
		"none to divide by":    {figure: "wall", side: "a", over: "c"},
		"no such node":         {figure: nodeFigure + "y", side: "a"},
	} {
		r := Report{Runs: runs}
		k.bar = atMost(100)
		Case{checks: []check{k}}.judge(&r, true, nil)
		require.Equal(t, NotJudged, r.Checks[0].Status, name)
		require.NotEmpty(t, r.Checks[0].Note, name)
	}
	require.Equal(t, Miss, equality("x", "line 3", false).Status)
	require.Equal(t, "≤ 1.50×", atMost(1.5).String())
	require.Equal(t, "≥ 95 %", bar{limit: 95, unit: "%", atLeast: true}.String())
}

func TestMedian(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2, median([]float64{9, 1, 2}), 0)
	require.InDelta(t, 1.5, median([]float64{2, 1}), 0)
	require.InDelta(t, 4, median([]float64{4}), 0)
}

func TestWriteKeepsEarlierReports(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "results")
	r := Report{Case: "tiny", What: "a test", Date: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
		LeftOut: []string{"x: there is none"},
		Runs: []Run{{Side: "ours", WallMS: 2900, Disturbed: true}, {Side: "ours", WallMS: 3100},
			{Side: "theirs", WallMS: 2000}}}
	Case{checks: []check{
		{name: "whole", figure: "wall", side: "ours", over: "theirs", bar: atMost(1.1)},
		{name: "own", figure: "wall", side: "ours", bar: noMore(4, "s")},
	}}.judge(&r, true, nil)
	require.True(t, r.Missed())
	require.True(t, r.Disturbed())
	first, md, err := r.Write(dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "2026-02-03-tiny.json"), first)
	second, _, err := r.Write(dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "2026-02-03-tiny-2.json"), second)

	text, err := os.ReadFile(first)
	require.NoError(t, err)
	var back Report
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, r, back)

	text, err = os.ReadFile(md)
	require.NoError(t, err)
	require.Contains(t, string(text), "| whole | ours: 3.00 s (2.90–3.10) | theirs: 2.00 s | 1.50× | ≤ 1.10× | MISS |")
	require.Contains(t, string(text), "| own | ours: 3.00 s (2.90–3.10) |  |  | ≤ 4 s | pass |", "seconds are no ratio")
	require.Contains(t, string(text), "Left out: x: there is none.")
	require.Contains(t, string(text), "not to be quoted")
	require.Contains(t, r.Text(), "MISS")
	require.Contains(t, r.Text(), "disturbed")
}

func TestAlike(t *testing.T) {
	t.Parallel()
	write := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		return dir
	}
	a := write(map[string]string{"x.csv": "h\r\n1\n2\n", "y.csv": "h\n"})
	for name, c := range map[string]struct {
		files map[string]string
		how   string
		same  bool
	}{
		"bytes":     {map[string]string{"x.csv": "h\r\n1\n2\n", "y.csv": "h\n"}, alikeBytes, true},
		"line ends": {map[string]string{"x.csv": "h\n1 \r\n2", "y.csv": "h\n"}, alikeBlanks, true},
		"a value":   {map[string]string{"x.csv": "h\r\n1\n3\n", "y.csv": "h\n"}, `x.csv line 3: "2" and "3"`, false},
		"a line": {map[string]string{"x.csv": "h\r\n1\n2\n3\n", "y.csv": "h\n"},
			"x.csv line 4: one file ends", false},
		"file names": {map[string]string{"x.csv": "h\r\n1\n2\n"}, "different files: [x.csv y.csv] and [x.csv]", false},
	} {
		how, same, err := alike(a, write(c.files))
		require.NoError(t, err, name)
		require.Equal(t, c.same, same, name)
		require.Equal(t, c.how, how, name)
	}
	_, _, err := alike(a, t.TempDir())
	require.ErrorContains(t, err, "no result files")
}
