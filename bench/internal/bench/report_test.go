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
	atMost, atLeast := bar{limit: 1.5}, bar{limit: 95, unit: "%", atLeast: true}
	require.Equal(t, Pass, ratio("x", "s", 3, 2, atMost, true).Status)
	require.Equal(t, Miss, ratio("x", "s", 3.1, 2, atMost, true).Status)
	require.Equal(t, NotJudged, ratio("x", "s", 3.1, 2, atMost, false).Status)
	require.Equal(t, NotJudged, ratio("x", "s", 3.1, 0, atMost, true).Status, "nothing to compare with")
	require.Equal(t, Pass, figure("x", 95, atLeast, true).Status)
	require.Equal(t, Miss, figure("x", 94.9, atLeast, true).Status)
	require.Equal(t, Miss, equality("x", "line 3", false).Status)
	require.Equal(t, "≤ 1.50×", atMost.String())
	require.Equal(t, "≥ 95 %", atLeast.String())
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
		Checks: []Check{ratio("whole", "s", 3, 2, bar{limit: 1.1}, true)},
		Runs:   []Run{{Side: sideThalweg, WallMS: 3000, Disturbed: true}, {Side: sidePeer, WallMS: 2000}}}
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
	require.Contains(t, string(text), "| whole | 3.00 s | 2.00 s | 1.50× | ≤ 1.10× | MISS |")
	require.Contains(t, string(text), "not to be quoted")
	require.Contains(t, r.Table(), "MISS")
	own := figure("whole", 3, bar{limit: 4, unit: "s"}, true)
	own.Peer = ptr(2)
	require.NotContains(t, Report{Checks: []Check{own}}.Table(), times, "seconds are no ratio")
	require.Contains(t, r.RunTable(), "disturbed")
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
		"bytes":      {map[string]string{"x.csv": "h\r\n1\n2\n", "y.csv": "h\n"}, alikeBytes, true},
		"line ends":  {map[string]string{"x.csv": "h\n1 \r\n2", "y.csv": "h\n"}, alikeBlanks, true},
		"a value":    {map[string]string{"x.csv": "h\r\n1\n3\n", "y.csv": "h\n"}, `x.csv line 3: "2" and "3"`, false},
		"a line":     {map[string]string{"x.csv": "h\r\n1\n2\n3\n", "y.csv": "h\n"}, "x.csv line 4: one file ends", false},
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
