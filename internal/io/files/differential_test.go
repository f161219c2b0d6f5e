package files

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/fault"
)

// reference reads content the way Capillaries does (less its BOM, and a CR
// before an LF in quotes stays); ok is false if a record has the wrong number
// of fields.
func reference(content string, separator byte) (records [][]string, ok bool) {
	c := csv.NewReader(strings.NewReader(strings.TrimPrefix(content, string(utf8BOM))))
	c.Comma = rune(separator)
	c.LazyQuotes = true
	for {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			return records, true
		}
		if err != nil {
			return nil, false
		}
		records = append(records, record)
	}
}

// sameAsReference reads content in one and in several batches and compares.
func sameAsReference(t *testing.T, read func(content string, columns int, separator byte, target int64) ([][]string,
	error), content string, separator byte, target int64) {
	want, columns, padded, ok := refAll(content, separator)
	if theirs, fine := reference(content, separator); ok && fine && !padded && !strings.Contains(content, "\r\n") {
		require.Equal(t, theirs, want, "the two references differ about %q", content)
	}
	got, err := read(content, max(columns, 1), separator, target)
	if !ok || oldLines(content, separator) {
		require.Error(t, err, "%q must be refused", content)
		require.Equal(t, fault.UserData, fault.Of(err).Kind, "%q: %v", content, err)
		return
	}
	for _, record := range want {
		if !valid(record) || unmarkedUTF16([]byte(content)) != "" {
			require.Error(t, err, "%q", content)
			return
		}
	}
	require.NoError(t, err, "%q", content)
	require.Equal(t, want, got, "%q", content)
}

// pieces of CSV text that make trouble in combination.
var csvTokens = []string{"a", "b1", "", ",", ",", ",", `"`, `"`, `""`, "\n", "\n", "\r\n", "\r", " ", ";", "é", "\x00",
	"\t", "'", "\\", "#", "\u00a0", "\ufeff", "NULL", "\x01"}

func TestReadSameAsEncodingCSV(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	dir := t.TempDir()
	read := func(content string, columns int, separator byte, target int64) ([][]string, error) {
		r := csvTexts(columns, writeFile(t, dir, "in.csv", content))
		r.CSV.Separator = separator
		return readAll(t, db, r, target, 4, Unnumbered)
	}
	rapid.Check(t, func(rt *rapid.T) {
		separator := rapid.SampledFrom([]byte{',', ',', ',', ';', '\t', ' ', '|'}).Draw(rt, "separator")
		var content string
		if rapid.Bool().Draw(rt, "regular") {
			content = drawRegular(rt, separator)
		} else {
			content = strings.Join(rapid.SliceOfN(rapid.SampledFrom(csvTokens), 0, 30).Draw(rt, "tokens"), "")
			content = strings.ReplaceAll(content, ",", string(rune(separator)))
		}
		target := rapid.SampledFrom([]int64{1 << 20, 5, 20}).Draw(rt, "target")
		sameAsReference(t, read, content, separator, target)
	})
}

// drawRegular draws records of one length, quoted where needed, with one kind of line end.
func drawRegular(rt *rapid.T, separator byte) string {
	columns := rapid.IntRange(1, 4).Draw(rt, "columns")
	end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end")
	var b strings.Builder
	if rapid.IntRange(0, 9).Draw(rt, "bom") == 0 {
		b.Write(utf8BOM)
	}
	rows := rapid.IntRange(0, 12).Draw(rt, "rows")
	for i := range rows {
		n := columns
		if rapid.IntRange(0, 60).Draw(rt, "ragged") == 0 {
			n += rapid.IntRange(-1, 2).Draw(rt, "by")
		}
		for k := range n {
			if k > 0 {
				b.WriteByte(separator)
			}
			v := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"x", "", "12", " ", "é", `"`, "\n",
				string(rune(separator))}), 0, 3).Draw(rt, "value"), "")
			if strings.ContainsAny(v, "\"\n"+string(rune(separator))) || rapid.IntRange(0, 3).Draw(rt, "quote") == 0 {
				v = `"` + strings.ReplaceAll(v, `"`, `""`) + `"`
			}
			b.WriteString(v)
		}
		if i < rows-1 || rapid.Bool().Draw(rt, "ended") {
			b.WriteString(end)
		}
	}
	return b.String()
}

func FuzzReadSameAsEncodingCSV(f *testing.F) {
	for _, seed := range []string{"a,b\nc,d\n", "\"a\nb\",c\r\nd,e", "a,\n,b\n", "a,b,\n", "\ufeffa,b\n", "\"a\"b,c\n",
		"a,b\r", "x\n\ny", "\"\"\n", "a,\"b\r\nc\"\n"} {
		f.Add(seed, byte(','), int64(10))
	}
	db := openDB(f, 2)
	f.Fuzz(func(t *testing.T, content string, separator byte, target int64) {
		if separator == '"' || separator == '\r' || separator == '\n' || separator == 0 || separator >= utf8.RuneSelf {
			t.Skip("not a separator")
		}
		dir := t.TempDir()
		read := func(content string, columns int, separator byte, target int64) ([][]string, error) {
			r := csvTexts(columns, writeFile(t, dir, "in.csv", content))
			r.CSV.Separator = separator
			return readAll(t, db, r, target, 4, Unnumbered)
		}
		sameAsReference(t, read, content, separator, target)
	})
}

// TestReadLargeSameAsEncodingCSV makes files of several of DuckDB's buffers,
// in which its threads have to find where records start.
func TestReadLargeSameAsEncodingCSV(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reads 240 MB")
	}
	values := map[string]func(i int) string{
		"plain": func(i int) string { return fmt.Sprintf("%d,value %d,%s", i, i*7, strings.Repeat("x", i%900)) },
		"quoted": func(i int) string {
			return fmt.Sprintf(`%d,"a, ""b"" %d","%s"`, i, i*7, strings.Repeat(`"",`, i%300))
		},
		"quoted newlines": func(i int) string {
			return fmt.Sprintf("%d,\"1,2,3\n4,5,6\n\"\"\n%d\",\"%s\"", i, i, strings.Repeat("7,8,9\n", i%200))
		},
		"looks like lines": func(i int) string {
			return fmt.Sprintf("%d,\",\"\",\"\",\"\",\",\"%s\"", i, strings.Repeat(`"",""`, i%200))
		},
		"bare quotes": func(i int) string { return fmt.Sprintf(`%d,5" pipe,%s`, i, strings.Repeat("y", i%500)) },
		"empty last":  func(i int) string { return fmt.Sprintf(`%d,%s,`, i, strings.Repeat("z", i%700)) },
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for i := 0; b.Len() < 20<<20; i++ {
				b.WriteString(value(i))
				b.WriteByte('\n')
			}
			path := writeFile(t, t.TempDir(), "large.csv", b.String())
			want, ok := reference(b.String(), ',')
			require.True(t, ok)
			for _, target := range []int64{1 << 40, 10 << 20} {
				got, err := readAll(t, openDB(t, 2), csvTexts(3, path), target, 8, Unnumbered)
				require.NoError(t, err)
				require.Len(t, got, len(want))
				for i := range want {
					if fmt.Sprint(want[i]) != fmt.Sprint(got[i]) {
						t.Fatalf("record %d: want %q, got %q", i, want[i], got[i])
					}
				}
			}
		})
	}
}
