package files

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneByOne is a scan that takes each record by itself, and says where they end.
func oneByOne(t *testing.T, text string, separator byte, fields int) (s *csvScan, ends []int64) {
	t.Helper()
	s = source{}.scan(strings.NewReader(text), 0, int64(len(text)), separator, fields, nil)
	for more := true; more; {
		var err error
		more, err = s.record(t.Context())
		require.NoError(t, err)
		if more {
			ends = append(ends, s.w.offset)
		}
	}
	return s, ends
}

// sameScan compares the scan of text, read through a window of so many bytes
// and cut at such distances, with that of its records one by one.
func sameScan(t *testing.T, text string, separator byte, fields, window int, distance int64) {
	t.Helper()
	size := int64(len(text))
	want, ends := oneByOne(t, text, separator, fields)
	got := source{}.scan(strings.NewReader(text), 0, size, separator, fields, make([]byte, 0, max(window, 1)))
	for at := distance; at < size; at += distance {
		got.targets = append(got.targets, at)
	}
	require.NoError(t, got.run(t.Context()))
	if want.found.blankLines > 0 { // nothing is said of their line ends
		want.found.cr, got.found.cr = true, true
	}
	require.Equal(t, want.found, got.found, "%q", text)
	require.Equal(t, []int64{want.w.offset, want.w.row, want.w.lines}, []int64{got.w.offset, got.w.row, got.w.lines},
		"%q", text)
	sameCuts(t, text, separator, fields, got.cuts, want.w.row)
	for at := distance; at < size; at += distance {
		end, some := slices.BinarySearch(ends, at)
		cut, _ := slices.BinarySearchFunc(got.cuts, at, func(c csvCut, at int64) int {
			return cmp.Compare(c.Offset, at)
		})
		if some || end < len(ends) { // or earlier, behind a blank line
			require.LessOrEqual(t, got.cuts[cut].Offset, ends[end], "%q wants a cut at %d", text, at)
		}
	}
}

// sameCuts checks that the records before and behind cuts are those of the text.
func sameCuts(t *testing.T, text string, separator byte, fields int, cuts []csvCut, rows int64) {
	t.Helper()
	if len(text) > 1<<12 && len(cuts) > 0 {
		cuts = cuts[len(cuts)/2:][:1] // each costs a scan
	}
	last := int64(0)
	for _, cut := range cuts {
		require.Greater(t, cut.Offset, last)
		last = cut.Offset
		before, _ := oneByOne(t, text[:last], separator, fields)
		behind, _ := oneByOne(t, text[last:], separator, fields)
		require.Equal(t, []int64{before.w.row, before.w.lines}, []int64{cut.Records, cut.Lines},
			"cut %q at %d", text, last)
		require.Equal(t, rows, cut.Records+behind.w.row, "cut %q at %d", text, last)
	}
}

// soundText draws text in which most records have nothing out of place.
func soundText(rnd *rand.Rand, separator byte, records int) (text string, fields int) {
	fields = 1 + rnd.IntN(4)
	odd, ends := rnd.IntN(9), []string{"\n", "\n", "\r\n", "\n\n", "\r\n\r\n", "\n\r\n"}
	ends = ends[rnd.IntN(len(ends)):][:1]
	plain := []string{"", "a", "b1", "12.50", "é", "\x00", " ", "some longer text", "'", "#", "\x01\x8a\xff",
		"!$&(-+/;"} // neighbours of what counts, too
	inQuotes := append([]string{`""`, string(rune(separator)), "\n", "\r\n", "\r"}, plain...)
	var b strings.Builder
	for range records {
		n := fields
		if odd == 1 && rnd.IntN(8) == 0 {
			n = 1 + rnd.IntN(5)
		}
		for i := range n {
			if i > 0 {
				b.WriteByte(separator)
			}
			from, mark := plain, ""
			if rnd.IntN(3) == 0 {
				from, mark = inQuotes, `"`
			}
			b.WriteString(mark)
			for range rnd.IntN(4) {
				b.WriteString(from[rnd.IntN(len(from))])
			}
			b.WriteString(mark)
			if odd == 2 && rnd.IntN(12) == 0 {
				b.WriteString(csvTokens[rnd.IntN(len(csvTokens))])
			}
		}
		b.WriteString(ends[rnd.IntN(len(ends))])
	}
	text = b.String()
	if rnd.IntN(3) == 0 {
		text = strings.TrimSuffix(text, "\n")
	}
	if odd == 3 && len(text) > 0 { // one byte is lost
		at := rnd.IntN(len(text))
		text = text[:at] + text[at+1:]
	}
	return text, fields
}

// TestSoundRecordsSameAsOneByOne: the quick way finds the same records, lines
// and bad records as the grammar does.
func TestSoundRecordsSameAsOneByOne(t *testing.T) {
	t.Parallel()
	const seed = 64
	rnd := rand.New(rand.NewPCG(seed, 0))
	separators := []byte{',', ',', ';', '\t', '|', ' '}
	for range 6_000 {
		separator := separators[rnd.IntN(len(separators))]
		text, fields := soundText(rnd, separator, rnd.IntN(16))
		sameScan(t, text, separator, fields*rnd.IntN(2), 1+rnd.IntN(200), 1+rnd.Int64N(100))
	}
	for range 4_000 { // anything
		var b strings.Builder
		for range rnd.IntN(60) {
			b.WriteString(csvTokens[rnd.IntN(len(csvTokens))])
		}
		sameScan(t, b.String(), ',', rnd.IntN(5), 1+rnd.IntN(200), 1+rnd.Int64N(100))
	}
	for range 4 { // of several blocks
		text, fields := soundText(rnd, ',', 40_000)
		sameScan(t, text, ',', fields, 0, 1+rnd.Int64N(300_000))
	}
}

func FuzzSoundRecordsSameAsOneByOne(f *testing.F) {
	long := strings.Repeat("x", charBytes-2)
	for _, seed := range []string{"a,b\nc,d\n", "\"a\nb\",c\r\nd,e", "\"" + long + "\"\n\"\"\n",
		long + "\r\n\r\n\r\n", long + ",\"\"\"\"\n", "\"" + long + "\"\"\n"} {
		f.Add(seed, byte(','), uint(2), uint(70), uint(9))
	}
	f.Fuzz(func(t *testing.T, text string, separator byte, fields, window, distance uint) {
		if separator == '"' || separator == '\r' || separator == '\n' || separator == 0 || separator >= 0x80 {
			t.Skip("not a separator")
		}
		sameScan(t, text, separator, int(fields%8), int(window%300), int64(distance%200)+1)
	})
}

// Whatever has nothing out of place is taken at once, wherever it stands among
// the 64 bytes that are looked at together.
func TestSoundRecordsAreTakenAtOnce(t *testing.T) {
	t.Parallel()
	for _, records := range []string{"a,b\n", "\"a\",\"b\"\n", "\"a\",\"b\"\r\n", "\"\",\"\"\r\n",
		"\"\"\"\",\"a\"\"b\"\n", "a,\"b\n\r\n\"\n", ",\n\n\r\n,\r\n", "\"a\rb\",\r\n"} {
		for shift := range charBytes {
			text := strings.Repeat("x", shift) + "," + strings.Repeat("\n"+records, charBytes)
			got := takeSound([]byte(text), charSearch{separator: ',' * everyByte, quotes: true,
				crs: true}, 2, len(text))
			require.Equal(t, len(text), got.size, "%q", text)
		}
	}
}

// What is out of place is left to the grammar, wherever it stands.
func TestOddRecordsAreNotSound(t *testing.T) {
	t.Parallel()
	for _, record := range []string{`a"b,c`, `a"b",c`, `a"",""b`, `"a"b,c`, `"a" ,c`, `"a"" ,c`, "\"a\"\r,b", "a\rb,c",
		"a,b,c", "a"} {
		for shift := range charBytes {
			before := "a,b\n" + strings.Repeat("x", shift) + ",\n"
			got := takeSound([]byte(before+record+"\na,b\n"), charSearch{separator: ',' * everyByte,
				quotes: true, crs: true}, 2,
				1<<10)
			require.Equal(t, len(before), got.size, "%q", record)
			sameScan(t, before+record+"\na,b\n", ',', 2, 0, 5)
		}
	}
}

// The characters are found in any place, beside bytes that differ in one bit.
func TestPlacesOf(t *testing.T) {
	t.Parallel()
	for c := range byte(0x80) {
		for other := range 256 {
			var b [charBytes]byte
			want := uint64(0)
			for i := range b {
				b[i] = byte(other)
				if (i*7+other)%5 == 0 {
					b[i] = c
				}
				if b[i] == c {
					want |= 1 << i
				}
			}
			require.Equal(t, want, placesOf(&b, uint64(c)*everyByte), "%d among %d", c, other)
		}
	}
}
