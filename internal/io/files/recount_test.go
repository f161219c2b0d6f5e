package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/fault"
)

// Whatever records are above the data, all of the data is read.
func TestReadBelowAnyHead(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	dir := t.TempDir()
	tokens := []string{"a", "b c", `"`, `"`, `""`, ",", ";", " ", "\t", "#", "\r", "é", "'", "\\", "\n"}
	rapid.Check(t, func(rt *rapid.T) {
		var head strings.Builder
		for range rapid.IntRange(1, 3).Draw(rt, "records") {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 1, 12).Draw(rt, "record"), "")
			if rapid.Bool().Draw(rt, "quoted") {
				text = `"` + text + `"`
			}
			head.WriteString(text + rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\n\n"}).Draw(rt, "end"))
		}
		skipped := refRecords(head.String(), ',', -1)
		for _, r := range skipped {
			if r.broken {
				rt.Skip("refused")
			}
		}
		r := csvTexts(2, writeFile(t, dir, "in.csv", head.String()+"#,x\n1,y\n2,\"z\"\n"))
		r.CSV.FirstDataRecord = len(skipped)
		got, err := readAll(t, db, r, rapid.SampledFrom([]int64{1 << 20, 5}).Draw(rt, "target"), 4, Unnumbered)
		if err != nil { // the head is no text, or a table of one column
			require.Equal(t, fault.UserData, fault.Of(err).Kind, "%q: %v", head.String(), err)
			return
		}
		require.Equal(t, [][]string{{"#", "x"}, {"1", "y"}, {"2", "z"}}, got, "%q", head.String())
	})
}

// DuckDB is held to what was counted before it reads.
func TestRecount(t *testing.T) {
	t.Parallel()
	db := openDB(t, 1)
	dir := t.TempDir()
	r := csvByHeader("a|int", writeFile(t, dir, "first.csv", "a,b\n1,2\n"),
		writeFile(t, dir, "second.csv", "a,b\n1,2\n\n\"3\",4\n5,6\n"))
	plan, err := PlanSlices(t.Context(), r, 1<<30, 1)
	require.NoError(t, err)
	scratch := t.TempDir()
	reading, err := Read(r, plan[0], scratch, Unnumbered)
	require.NoError(t, err)
	for range 2 { // a second time, for who looks for a failure
		require.NoError(t, reading.Prepare(t.Context()))
		require.EqualValues(t, 4, reading.CSVRecords())
		require.NoError(t, reading.Recount(t.Context(), db))
	}
	lost, err := filepath.Glob(filepath.Join(scratch, "csv", "*", "000001_*.csv"))
	require.NoError(t, err)
	require.Len(t, lost, 1)
	require.NoError(t, os.WriteFile(lost[0], []byte("\ufeffx\n1,2\n"), 0o600))
	err = reading.Recount(t.Context(), db)
	require.ErrorContains(t, err, "DuckDB reads 1 of the 3 records that the file has from here on")
	f := fault.Of(err)
	require.Equal(t, fault.Bug, f.Kind)
	require.Equal(t, fault.Place{File: filepath.Join(dir, "second.csv"), Line: 2}, f.Place)
}
