package files

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := writeFile(t, dir, "a.csv", "a\n1\n")
	in, err := Inspect(t.Context(), csvByHeader("a|int", path), Places{})
	require.NoError(t, err)
	require.Len(t, in, 1)
	require.Equal(t, int64(4), in[0].Bytes)
	require.Equal(t, int64(-1), in[0].Rows)
	require.False(t, in[0].ModTime.IsZero())

	_, err = Inspect(t.Context(), csvByHeader("a|int", path, filepath.Join(dir, "no1"), filepath.Join(dir, "no2")),
		Places{})
	require.Equal(t, fault.UserData, fault.Of(err).Kind)
	require.Equal(t, filepath.Join(dir, "no1"), fault.Of(err).Place.File, "the first in the script's order")
	require.ErrorIs(t, err, os.ErrNotExist)

	_, err = Inspect(t.Context(), csvByHeader("a|int", dir), Places{})
	require.ErrorContains(t, err, "it is a folder")
	_, err = Inspect(t.Context(), csvByHeader("a|int", "s3://b/k"), Places{})
	require.Equal(t, fault.Place{File: "s.yaml", Line: 10, Column: 5}, fault.Of(err).Place)
}

// TestPlanSlices checks how files of given sizes fall into batches; a part of
// a file is written as name[from-to).
func TestPlanSlices(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		sizes   []int // in bytes, lines of 10 bytes
		target  int64
		batches int
		want    string
	}{
		"no files":               {nil, 100, 10, ""},
		"one small":              {[]int{50}, 100, 10, "0"},
		"one empty":              {[]int{0}, 100, 10, "0"},
		"all empty":              {[]int{0, 0}, 100, 10, "0 1"},
		"several in one":         {[]int{30, 30, 30}, 100, 10, "0 1 2"},
		"one each":               {[]int{100, 100, 100}, 100, 10, "0 | 1 | 2"},
		"large split":            {[]int{300}, 100, 10, "0[0-100) | 0[100-200) | 0[200-300)"},
		"upper bound":            {[]int{300}, 100, 2, "0[0-150) | 0[150-300)"},
		"no limit below one":     {[]int{300}, 100, 0, "0"},
		"large among small":      {[]int{50, 300, 50}, 100, 10, "0 1[0-50) | 1[50-150) | 1[150-250) | 1[250-300) 2"},
		"edges rather than cuts": {[]int{90, 110, 95, 105}, 100, 10, "0 | 1 | 2 | 3"},
		"empty at the ends":      {[]int{0, 100, 100, 0}, 100, 10, "0 1 | 2 3"},
		"longer than a record":   {[]int{40}, 5, 10, "0[0-10) | 0[10-20) | 0[20-30) | 0[30-40)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var paths []string
			for i, n := range test.sizes {
				paths = append(paths, writeFile(t, dir, fmt.Sprint(i), strings.Repeat("12345678,\n", n/10)))
			}
			plan, err := PlanSlices(t.Context(), csvTexts(2, paths...), test.target, test.batches)
			require.NoError(t, err)
			require.Equal(t, test.want, describePlan(plan))
		})
	}
}

func describePlan(plan [][]Slice) string {
	var batches []string
	for _, b := range plan {
		var list []string
		for _, s := range b {
			name := fmt.Sprint(s.File)
			if s.Length != s.FileBytes {
				name += fmt.Sprintf("[%d-%d)", s.Offset, s.Offset+s.Length)
			}
			list = append(list, name)
		}
		batches = append(batches, strings.Join(list, " "))
	}
	return strings.Join(batches, " | ")
}

// TestSlicesCoverEachRecordOnce cuts random files and counts with encoding/csv.
func TestSlicesCoverEachRecordOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		var paths, contents []string
		for i := range rapid.IntRange(1, 4).Draw(rt, "files") {
			content := strings.Join(rapid.SliceOfN(rapid.SampledFrom(csvTokens), 0, 60).Draw(rt, "tokens"), "")
			contents = append(contents, content)
			paths = append(paths, writeFile(t, dir, fmt.Sprint(i), content))
		}
		r := csvTexts(0, paths...)
		r.Tolerant = rapid.Bool().Draw(rt, "tolerant")
		target := int64(rapid.IntRange(1, 40).Draw(rt, "target"))
		batches := rapid.IntRange(1, 9).Draw(rt, "batches")
		plan, err := PlanSlices(t.Context(), r, target, batches)
		if err != nil {
			require.Equal(rt, fault.UserData, fault.Of(err).Kind)
			return
		}
		require.LessOrEqual(rt, len(plan), batches)
		again, err := PlanSlices(t.Context(), r, target, batches)
		require.NoError(rt, err)
		require.Equal(rt, plan, again)

		pieces := make([][]Slice, len(paths))
		last := -1
		for _, b := range plan {
			require.NotEmpty(rt, b)
			for _, s := range b {
				require.GreaterOrEqual(rt, s.File, last, "files in order")
				last = s.File
				pieces[s.File] = append(pieces[s.File], s)
			}
		}
		for i, content := range contents {
			checkPieces(rt, r, content, pieces[i])
		}
	})
}

// TestSliceBeginsWithByteOrderMark: U+FEFF behind the start of a file is a
// record's text, also where a slice happens to begin with it.
func TestSliceBeginsWithByteOrderMark(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"a\n\ufeff", "\ufeffa\n\ufeff\n\ufeff", "\ufeff\ufeff\nb"} {
		r := csvTexts(0, writeFile(t, t.TempDir(), "0", content))
		plan, err := PlanSlices(t.Context(), r, 1, 9)
		require.NoError(t, err)
		var pieces []Slice
		for _, b := range plan {
			pieces = append(pieces, b...)
		}
		checkPieces(t, r, content, pieces)
	}
}

// checkPieces compares the records of a file with those of its slices.
func checkPieces(t require.TestingT, r *script.FileReader, content string, pieces []Slice) {
	want := int64(len(refRecords(content, ',', 0)))
	offset, records := int64(0), int64(0)
	for i, s := range pieces {
		require.Equal(t, offset, s.Offset)
		if i > 0 { // the first includes blank lines and whatever is skipped
			require.Equal(t, records, s.FirstRecord)
			require.Equal(t, int64(strings.Count(content[:s.Offset], "\n"))+1, s.FirstLine)
		}
		records += countRecords(content, s)
		offset += s.Length
	}
	require.Equal(t, int64(len(content)), offset)
	require.Equal(t, want, records, "%q %v", content, pieces)
}

// countRecords counts the records that start in the slice.
func countRecords(content string, s Slice) int64 {
	n := int64(0)
	for _, r := range refRecords(content, ',', 0) {
		if int64(r.at) >= s.Offset && int64(r.at) < s.Offset+s.Length {
			n++
		}
	}
	return n
}

func TestSliceJSON(t *testing.T) {
	t.Parallel()
	plan, err := PlanSlices(t.Context(), csvTexts(2, writeFile(t, t.TempDir(), "a", strings.Repeat("1,2\n", 100))), 100,
		3)
	require.NoError(t, err)
	raw, err := json.Marshal(plan)
	require.NoError(t, err)
	var back [][]Slice
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, plan, back)
	require.NoError(t, back[0][0].unchanged())
}

// BenchmarkScan is the speed at which files are checked and cut.
func BenchmarkScan(b *testing.B) {
	for name, line := range map[string]string{
		"plain":    "12345,acc77,some text here,2020-01-02 03:04:05,17.25\n",
		"emptyend": "12345,acc77,some text here,2020-01-02 03:04:05,\n",
		"crlf":     "12345,acc77,some text here,2020-01-02 03:04:05,17.25\r\n",
		"onequote": "12345,acc77,\"some text, here\",2020-01-02 03:04:05,17.25\n",
		"quoted":   "\"12345\",\"acc77\",\"some text here\",\"2020-01-02 03:04:05\",\"17.25\"\n",
	} {
		b.Run(name, func(b *testing.B) {
			data := bytes.NewReader(bytes.Repeat([]byte(line), 64<<20/len(line)))
			b.SetBytes(data.Size())
			for b.Loop() {
				s := source{}.scan(data, 0, data.Size(), ',', 5, nil)
				for at := int64(pieceBytes); at < data.Size(); at += pieceBytes {
					s.targets = append(s.targets, at)
				}
				require.NoError(b, s.run(b.Context()))
				require.Nil(b, s.found.bad)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	r := csvTexts(2, writeFile(t, t.TempDir(), "a", strings.Repeat("1,2\n", 100)))
	plan, err := PlanSlices(t.Context(), r, 1<<20, 1)
	require.NoError(t, err)
	_, prepare, err := ReadSQL(r, plan[0], t.TempDir(), Unnumbered)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, prepare(ctx), context.Canceled)
	_, err = PlanSlices(ctx, r, 100, 5)
	require.ErrorIs(t, err, context.Canceled)
}

func TestEachInOrderReportsTheFirst(t *testing.T) {
	t.Parallel()
	for range 50 {
		err := eachInOrder(t.Context(), 40, func(_ context.Context, i int) error {
			if i >= 7 {
				return fmt.Errorf("job %d", i)
			}
			return nil
		})
		require.EqualError(t, err, "job 7")
	}
}
