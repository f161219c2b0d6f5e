package python

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

// benchmark runs b.N rows and reports how busy the interpreters were.
func benchmark(b *testing.B, prog *Program, row func(i int) []any) {
	for _, interpreter := range []string{"python3", "pypy3"} {
		b.Run(interpreter, func(b *testing.B) {
			if _, err := exec.LookPath(interpreter); err != nil {
				b.Skipf("%s is not installed", interpreter)
			}
			pool := newTestPool(b, Config{Interpreter: interpreter, Size: 2, ChunkTarget: chunkTarget(b)})
			warm := func(n int) (Stats, error) {
				i := -1
				return pool.Run(b.Context(), prog, func() (Row, error) {
					if i++; i >= n {
						return nil, io.EOF
					}
					return values(row(i)), nil
				}, discard)
			}
			_, err := warm(100)
			require.NoError(b, err)
			b.ResetTimer()
			began := time.Now()
			stats, err := warm(b.N)
			require.NoError(b, err)
			took := time.Since(began)
			b.ReportMetric(float64(stats.Busy.Nanoseconds())/float64(b.N), "python-ns/op")
			b.ReportMetric(100*stats.Busy.Seconds()/(2*took.Seconds()), "%busy")
			b.ReportMetric(float64(stats.PeakBytes)/(1<<20), "MiB-peak")
			b.ReportMetric(float64(b.N)/float64(stats.Chunks), "rows/chunk")
		})
	}
}

// chunkTarget lets measurements vary the time of a chunk: THALWEG_BENCH_CHUNK=5ms.
func chunkTarget(b *testing.B) time.Duration {
	text := os.Getenv("THALWEG_BENCH_CHUNK")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	require.NoError(b, err)
	return d
}

// BenchmarkTinyRows is the cost of the way to Python and back.
func BenchmarkTinyRows(b *testing.B) {
	prog := &Program{
		Files:  source("def add(a, b):\n  return a + b"),
		Inputs: []Column{{Name: "a", Type: expr.Int}, {Name: "b", Type: expr.Float}},
		Fields: []Field{{Name: "y", Type: expr.Float, Expr: "add(r.a, r.b)"}},
	}
	row := []any{int64(1), 2.5}
	benchmark(b, prog, func(int) []any { return row })
}

func BenchmarkTinyRowsOfAllTypes(b *testing.B) {
	row := rowOfAll("some text", int64(1), 2.5, true, time.UnixMilli(1600000000000).UTC(), Cents(1234))
	benchmark(b, allTypes(Plain, Plain), func(int) []any { return row })
}

// BenchmarkBigStrings has rows like those of an account with all its trades.
func BenchmarkBigStrings(b *testing.B) {
	prog := &Program{
		Files:  source("import json", "def size(text):\n  return len(json.loads(text))"),
		Inputs: []Column{{Name: "s", Type: expr.String}},
		Fields: []Field{{Name: "n", Type: expr.Int, Expr: "size(r.s)"},
			{Name: "head", Type: expr.String, Expr: "r.s[:6000]"}},
	}
	text := "[" + strings.TrimSuffix(strings.Repeat(`"2021-03-14|TSLA|-1234567|439.67",`, 600_000/34), ",") + "]"
	row := []any{text}
	benchmark(b, prog, func(int) []any { return row })
}

// BenchmarkPortfolio has one account a row: what a long node of real formulas is like.
func BenchmarkPortfolio(b *testing.B) {
	data := filepath.Join("..", "..", "..", "..", "shared", "data", "portfolio", "in")
	formulas, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "portfolio", "portfolio.py"))
	require.NoError(b, err)
	if _, err := os.Stat(data); err != nil {
		b.Skip("no portfolio data beside the project")
	}
	data, err = filepath.Abs(data)
	require.NoError(b, err)
	prog := &Program{
		Files:  []Source{{Name: "portfolio.py", Text: string(formulas)}},
		Inputs: []Column{{Name: "txns", Type: expr.String}, {Name: "holdings", Type: expr.String}},
		Fields: []Field{{Name: "perf", Type: expr.String,
			Expr: fmt.Sprintf("calc_perf(r.txns, r.holdings, '2020-12-31', '2022-12-31', %q, %q)",
				filepath.Join(data, "prices.csv"), filepath.Join(data, "companies.csv"))}},
	}
	txns := packed(b, filepath.Join(data, "txns.csv"), 1, 0)
	holdings := packed(b, filepath.Join(data, "holdings.csv"), 0, 1)
	accounts := slices.Sorted(maps.Keys(txns))
	benchmark(b, prog, func(i int) []any {
		account := accounts[i%len(accounts)]
		return []any{txns[account], holdings[account]}
	})
}

// packed returns each account's rows of the period as a JSON array of "date|ticker|…" texts.
func packed(b *testing.B, path string, accountColumn, dateColumn int) map[string]string {
	f, err := os.Open(path)
	require.NoError(b, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(b, err)
	texts := map[string]*strings.Builder{}
	for _, row := range rows[1:] {
		if date := row[dateColumn]; date < "2020-12-31" || date > "2022-12-31" ||
			date == "2020-12-31" && len(row) == 5 {
			continue
		}
		t := texts[row[accountColumn]]
		if t == nil {
			t = &strings.Builder{}
			texts[row[accountColumn]] = t
		}
		sep := ","
		if t.Len() == 0 {
			sep = "["
		}
		fmt.Fprintf(t, "%s%q", sep, strings.Join(slices.Delete(slices.Clone(row), accountColumn, accountColumn+1), "|"))
	}
	out := map[string]string{}
	for account, t := range texts {
		out[account] = t.String() + "]"
	}
	return out
}
