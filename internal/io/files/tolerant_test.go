package files

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// tolerantRead reads all batches of r: the texts of the sound records' columns
// with their rows, and the bad records as row:line.
func tolerantRead(t testing.TB, db *sql.Conn, r *script.FileReader, target int64) (sound [][]string, bad []BadRecord,
	located []BadRecord) {
	t.Helper()
	r.Tolerant = true
	plan, err := PlanSlices(t.Context(), r, target, 4)
	require.NoError(t, err)
	for _, batch := range plan {
		scratch, err := os.MkdirTemp(t.TempDir(), "scratch [*]")
		require.NoError(t, err)
		read, err := ReadTolerant(r, batch, scratch, func(string) bool { return true })
		require.NoError(t, err)
		require.NoError(t, read.Prepare(t.Context(), func(rec BadRecord) error { bad = append(bad, rec); return nil }))
		cols := make([]string, 0, len(r.Columns)+1)
		for i := range r.Columns {
			cols = append(cols, fmt.Sprintf("CAST(%s[1] AS VARCHAR)", TolerantColumn(i)))
		}
		rows, err := texts(t.Context(), db,
			"SELECT "+strings.Join(append(cols, "CAST("+RowColumn+" AS VARCHAR)", "CAST("+LineColumn+" AS VARCHAR)"),
				", ")+
				" FROM "+read.SQL+" AS s")
		require.NoError(t, err)
		sound = append(sound, rows...)
		var cells []BadCell
		for _, row := range rows {
			var n int64
			_, err := fmt.Sscan(row[len(row)-2], &n)
			require.NoError(t, err)
			cells = append(cells, BadCell{File: batch[0].File, Row: n, Column: len(r.Columns) - 1})
		}
		require.NoError(t, read.Locate(t.Context(), db, cells, func(i int, rec BadRecord) error {
			require.Equal(t, cells[i].Row, rec.Row)
			located = append(located, rec)
			return nil
		}))
	}
	return sound, bad, located
}

// TestTolerantSameAsReference divides the records as the plain reader sees them
// into those of the first one's length, in valid UTF-8, and the others.
func TestTolerantSameAsReference(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	dir := t.TempDir()
	tokens := append(slices.Clone(csvTokens), "\xff", "\n", "\n")
	rapid.Check(t, func(rt *rapid.T) {
		content := strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 40).Draw(rt, "tokens"), "")
		if rapid.Bool().Draw(rt, "regular") {
			content = drawRegular(rt, ',')
			if n := len(content); n > 0 && rapid.Bool().Draw(rt, "damaged") {
				at := rapid.IntRange(0, n-1).Draw(rt, "at")
				content = content[:at] + rapid.SampledFrom([]string{`"`, "", "\n"}).Draw(rt,
					"damage") + content[at+rapid.IntRange(0, 1).Draw(rt, "instead"):]
			}
		}
		target := rapid.SampledFrom([]int64{1 << 20, 5, 20}).Draw(rt, "target")
		all := refRecords(content, ',', 0)
		columns := 0
		for _, r := range all {
			if !r.broken {
				columns = len(r.fields)
				break
			}
		}
		r := csvTexts(max(columns, 1), writeFile(t, dir, "in.csv", content))
		if oldLines(content, ',') || columns == 0 && len(all) > 0 {
			_, err := readAll(t, db, r, target, 4, Unnumbered)
			require.Equal(t, fault.UserData, fault.Of(err).Kind, "%q", content)
			return
		}
		sound, bad, located := tolerantRead(t, db, r, target)
		var wantSound [][]string
		var wantBad []string
		for i, r := range all {
			if r.sound(columns) && valid(r.fields) {
				wantSound = append(wantSound, append(slices.Clone(r.fields), fmt.Sprint(i), fmt.Sprint(r.line)))
				continue
			}
			wantBad = append(wantBad, fmt.Sprint(i, " line ", r.line))
		}
		var gotBad []string
		for _, b := range bad {
			line := b.Place.Line
			if b.Place.Column > 0 { // of the cell, not of the record
				line = int64(all[b.Row].line)
			}
			gotBad = append(gotBad, fmt.Sprint(b.Row, " line ", line))
		}
		require.Equal(t, wantSound, sound, "%q", content)
		require.Equal(t, wantBad, gotBad, "%q", content)
		require.Len(t, located, len(sound), "%q", content)
		for i, rec := range located {
			want := all[rec.Row]
			require.EqualValues(t, want.lastRow, rec.Place.Line, "%q: %q", content, rec.Raw)
			require.Equal(t, sound[i][columns-1], want.fields[columns-1])
		}
	})
}

// TestTolerantOverlongRecords puts records aside that are too long to be held,
// planned in one batch or several. The lines behind a quote that is not closed
// in time are records again.
func TestTolerantOverlongRecords(t *testing.T) {
	t.Parallel()
	row := strings.Repeat("0123456789", 100) + ",x\n"
	rows := MaxRecordBytes/len(row) + 10
	long := strings.Repeat(row, rows)
	line := strings.NewReplacer("\n", "x", ",", "x").Replace(long)
	for name, tc := range map[string]struct {
		content string
		sound   int
		bad     []string // row, line, reason
	}{
		"a quote that is never closed": {"a,b\nc,\"d\n" + long, 1 + rows,
			[]string{"1 2 field 2 begins with a quote that is not closed, or another quote of the record is " +
				"out of place"}},
		"a record of many lines": {"a,b\nc,\"" + long + "\"\ne,f\n", rows + 1,
			[]string{"1 2 field 2 begins with a quote that is not closed, or another quote of the record is " +
				"out of place", fmt.Sprint(rows+1, rows+2,
				" field 1 begins with a quote that is not closed, or another quote of the record is out of place")}},
		"a line without end": {"a,b\n" + line, 1, []string{"1 2 the record is longer than 8 MiB"}},
		"a line that is too long, and one more": {"a,b\n" + line + "\ne,f\n", 2,
			[]string{"1 2 the record is longer than 8 MiB"}},
		"after more lines than one is kept of": {"a,b\n\"x\n" + strings.Repeat(strings.Repeat("y", 1000)+"\n", 67), 1,
			[]string{"1 2 field 1 begins with a quote that is not closed, or another quote of the record is " +
				"out of place", "2 68 the record has 1 fields, the first record of the file has 2",
				"3 69 the record has 1 fields, the first record of the file has 2"}},
	} {
		for _, target := range []int64{1 << 30, 1 << 20} {
			t.Run(fmt.Sprint(name, " ", target), func(t *testing.T) {
				t.Parallel()
				sound, bad, _ := tolerantRead(t, openDB(t, 1),
					csvTexts(2, writeFile(t, t.TempDir(), "in.csv", tc.content)), target)
				require.Len(t, sound, tc.sound)
				var got []string
				for _, b := range bad {
					got = append(got, fmt.Sprint(b.Row, b.Place.Line, " ", b.Reason))
					require.Less(t, len(b.Raw), rawBytesMax+100)
				}
				require.Equal(t, tc.bad, got)
				require.Equal(t, strings.Contains(tc.bad[0], "longer"), strings.HasSuffix(bad[0].Raw, " bytes)"))
			})
		}
	}
}

// TestTolerantKeepsNulls reads empty cells with and without quotes as ReadSQL does.
func TestTolerantKeepsNulls(t *testing.T) {
	t.Parallel()
	db := openDB(t, 1)
	content := "a,b\n,1\n\"\",2\nx,\n\"q\"\"\",\"\"\n"
	for _, null := range []bool{false, true} {
		r := csvByHeader("a|string b|string", writeFile(t, t.TempDir(), "in.csv", content))
		for _, c := range r.Columns {
			c.Nullable, c.QuotedEmptyNull, c.NullTexts = true, null, []string{""}
		}
		want, err := readAll(t, db, r, 1<<20, 1, Unnumbered)
		require.NoError(t, err)
		sound, bad, _ := tolerantRead(t, db, r, 1<<20)
		require.Empty(t, bad)
		for i := range sound {
			sound[i] = sound[i][:2]
		}
		require.Equal(t, want, sound)
	}
}

func TestTolerantStopsWithItsCaller(t *testing.T) {
	t.Parallel()
	r := csvTexts(2, writeFile(t, t.TempDir(), "in.csv", "a,b\nc\nd\n"))
	r.Tolerant = true
	plan, err := PlanSlices(t.Context(), r, 1<<20, 1)
	require.NoError(t, err)
	read, err := ReadTolerant(r, plan[0], t.TempDir(), func(string) bool { return true })
	require.NoError(t, err)
	enough := errors.New("enough")
	require.ErrorIs(t, read.Prepare(t.Context(), func(BadRecord) error { return enough }), enough)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, read.Prepare(ended, func(BadRecord) error { return nil }), context.Canceled)
}

func TestRawText(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a\xffé`, rawText([]byte("a\xff\u00e9\r\n"), 6))
	cut := rawText([]byte(strings.Repeat("é", rawBytesMax)), 2*rawBytesMax)
	require.True(t, utf8.ValidString(cut))
	require.Contains(t, cut, fmt.Sprintf("(%d bytes)", 2*rawBytesMax))
}
