package files

import (
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/script"
)

// tolerantRead reads all batches of r: the texts of the sound records' columns
// with their rows, and the bad records as row:line.
func tolerantRead(t testing.TB, db *sql.Conn, r *script.FileReader, target int64) (sound [][]string, bad []BadRecord, located []BadRecord) {
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
		rows, err := texts(t.Context(), db, "SELECT "+strings.Join(append(cols, "CAST("+RowColumn+" AS VARCHAR)", "CAST("+LineColumn+" AS VARCHAR)"), ", ")+" FROM "+read.SQL+" AS s")
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

// record is what encoding/csv says of one.
type record struct {
	fields          []string
	line            int
	lastLine, lastC int // of its last field
}

func records(content string, separator byte) (out []record) {
	c := csv.NewReader(strings.NewReader(strings.TrimPrefix(content, string(utf8BOM))))
	c.Comma, c.LazyQuotes, c.FieldsPerRecord = rune(separator), true, -1
	for {
		fields, err := c.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		r := record{fields: fields}
		r.line, _ = c.FieldPos(0)
		r.lastLine, r.lastC = c.FieldPos(len(fields) - 1)
		out = append(out, r)
	}
}

// TestTolerantSameAsEncodingCSV divides the records as encoding/csv sees them
// into those of the first one's length, in valid UTF-8, and the others.
func TestTolerantSameAsEncodingCSV(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	dir := t.TempDir()
	tokens := append(slices.Clone(csvTokens), "\xff", "\n")
	rapid.Check(t, func(rt *rapid.T) {
		content := strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 40).Draw(rt, "tokens"), "")
		if rapid.Bool().Draw(rt, "regular") {
			content = drawRegular(rt, ',')
		}
		target := rapid.SampledFrom([]int64{1 << 20, 5, 20}).Draw(rt, "target")
		all := records(content, ',')
		columns := 1
		if len(all) > 0 {
			columns = len(all[0].fields)
		}
		sound, bad, located := tolerantRead(t, db, csvTexts(columns, writeFile(t, dir, "in.csv", content)), target)
		var wantSound [][]string
		var wantBad []string
		for i, r := range all {
			if len(r.fields) == columns && utf8.ValidString(strings.Join(r.fields, "")) {
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
			require.EqualValues(t, want.lastLine, rec.Place.Line, "%q: %q", content, rec.Raw)
			require.Equal(t, sound[i][columns-1], all[rec.Row].fields[columns-1])
		}
	})
}

// TestTolerantOverlongRecords puts records aside that are too long to be held,
// planned in one batch or several.
func TestTolerantOverlongRecords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789\n", MaxRecordBytes/11+10)
	for name, tc := range map[string]struct {
		content     string
		sound       []string
		badRow      int64
		line, bytes int
	}{
		"a quote that is never closed":          {"a,b\nc,\"d\n" + long, []string{"a"}, 1, 2, len("c,\"d\n" + long)},
		"a record of many lines":                {"a,b\nc,\"" + long + "\"\ne,f\n", []string{"a", "e"}, 1, 2, len("c,\"" + long + "\"\n")},
		"a line without end":                    {"a,b\n" + strings.ReplaceAll(long, "\n", "x"), []string{"a"}, 1, 2, len(long)},
		"a line that is too long, and one more": {"a,b\n" + strings.ReplaceAll(long, "\n", "x") + "\ne,f\n", []string{"a", "e"}, 1, 2, len(long) + 1},
	} {
		for _, target := range []int64{1 << 30, 1 << 20} {
			t.Run(fmt.Sprint(name, " ", target), func(t *testing.T) {
				t.Parallel()
				sound, bad, _ := tolerantRead(t, openDB(t, 1), csvTexts(2, writeFile(t, t.TempDir(), "in.csv", tc.content)), target)
				var first []string
				for _, s := range sound {
					first = append(first, s[0])
				}
				require.Equal(t, tc.sound, first)
				require.Len(t, bad, 1)
				require.Equal(t, tc.badRow, bad[0].Row)
				require.EqualValues(t, tc.line, bad[0].Place.Line)
				require.Contains(t, bad[0].Reason, "longer than 8 MiB")
				require.Contains(t, bad[0].Raw, fmt.Sprintf("… (%d bytes)", tc.bytes))
				require.Less(t, len(bad[0].Raw), rawBytesMax+100)
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
		want, err := readAll(t, db, r, 1<<20, 1, false)
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
