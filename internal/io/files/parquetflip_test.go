package files

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/test/effort"
)

// flipSource is a file with checksums and what it holds.
type flipSource struct {
	name    string
	raw     []byte
	columns []script.FileColumn
	want    [][]string
}

// TestChaosParquetFlips damages files that have page checksums: a bit, some
// bytes, or their end. What is read then is an error or the same values.
func TestChaosParquetFlips(t *testing.T) {
	t.Parallel()
	trials := effort.Of(30, 150, 10_000)
	sources := flipSources(t)
	db := openDB(t, 2)
	random := rand.New(rand.NewPCG(6, 2))
	refused, same := 0, 0
	for trial := range trials {
		s := sources[random.IntN(len(sources))]
		raw, what := damage(random, s.raw)
		path := filepath.Join(t.TempDir(), "in.parquet")
		require.NoError(t, os.WriteFile(path, raw, 0o600))
		started := time.Now()
		got, err := readCorpusColumns(t.Context(), t, db, path, s.columns, false)
		effort.Promised(t, started, time.Minute, "%s, %s", s.name, what)
		if err != nil {
			refused++
			if fault.Of(err).Kind != fault.UserData {
				t.Errorf("trial %d: %s, %s: %s", trial, s.name, what, err)
			}
			continue
		}
		same++
		if !equalRows(s.want, got) {
			t.Errorf("trial %d: %s, %s: other values", trial, s.name, what)
		}
	}
	t.Logf("%d refused, %d the same", refused, same)
	require.Positive(t, refused)
}

func equalRows(a, b [][]string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// damage changes a copy of a file and says how.
func damage(random *rand.Rand, raw []byte) ([]byte, string) {
	raw = bytes.Clone(raw)
	at := random.IntN(len(raw))
	switch random.IntN(10) {
	case 0:
		return raw[:at], fmt.Sprintf("cut off at byte %d of %d", at, len(raw))
	case 1:
		n := min(1+random.IntN(16), len(raw)-at)
		clear(raw[at : at+n])
		return raw, fmt.Sprintf("%d bytes zeroed at %d of %d", n, at, len(raw))
	}
	bit := random.IntN(8)
	raw[at] ^= 1 << bit
	return raw, fmt.Sprintf("bit %d of byte %d of %d flipped", bit, at, len(raw))
}

// flipSources are the files of the corpus with checksums, and some of a writer
// whose row groups have several pages.
func flipSources(t *testing.T) []flipSource {
	t.Helper()
	dir := unzipCorpus(t)
	corpus := readCorpus(t, dir)
	var names []string
	for name, f := range corpus {
		if f.About.Checksums {
			names = append(names, name)
		}
	}
	type row struct {
		N int64
		S *string
		F float64
		D int64  `parquet:",decimal(2:12)"`
		C string `parquet:",dict"`
		B bool
	}
	rows := make([]row, 3_000)
	for i := range rows {
		text := fmt.Sprintf("text %d", i*i)
		rows[i] = row{N: int64(i) * 1_000_003, F: float64(i) / 7, D: int64(i) * 100, C: text[:6], B: i%3 == 0}
		if i%5 != 0 {
			rows[i].S = &text
		}
	}
	for i, codec := range []parquet.WriterOption{parquet.Compression(&parquet.Uncompressed),
		parquet.Compression(&parquet.Snappy), parquet.Compression(&parquet.Gzip), parquet.Compression(&parquet.Zstd)} {
		for version := 1; version <= 2; version++ {
			name := fmt.Sprintf("go_%d_%d.parquet", i, version)
			require.NoError(t, parquet.WriteFile(filepath.Join(dir, name), rows, codec,
				parquet.DataPageVersion(version), parquet.PageBufferSize(4096), parquet.MaxRowsPerRowGroup(1_200)))
			names = append(names, name)
		}
	}
	sort.Strings(names)
	db := openDB(t, 2)
	var out []flipSource
	for _, name := range names {
		path := filepath.Join(dir, name)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		s := flipSource{name: name, raw: raw}
		all, err := parquetColumns(Input{Path: path, URL: path})
		require.NoError(t, err)
		for _, c := range all {
			if c.Type != expr.Invalid {
				s.columns = append(s.columns, c)
			}
		}
		if s.want, err = readCorpusColumns(t.Context(), t, db, path, s.columns, false); err == nil {
			out = append(out, s)
		}
	}
	require.Greater(t, len(out), len(names)/2)
	return out
}
