package python

import (
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/expr"
)

// benchmark runs b.N rows and reports how busy the interpreters were.
func benchmark(b *testing.B, prog *Program, row func(i int) []any) {
	for _, interpreter := range []string{"python3", "pypy3"} {
		b.Run(interpreter, func(b *testing.B) {
			if _, err := exec.LookPath(interpreter); err != nil {
				b.Skipf("%s is not installed", interpreter)
			}
			pool := newTestPool(b, Config{Interpreter: interpreter, Size: 2})
			warm := func(n int) (Stats, error) {
				i := -1
				return pool.Run(b.Context(), prog, func() ([]any, error) {
					if i++; i >= n {
						return nil, io.EOF
					}
					return row(i), nil
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

// BenchmarkTinyRows is the cost of the way to Python and back.
func BenchmarkTinyRows(b *testing.B) {
	prog := &Program{
		Files:  source("def add(a, b):\n  return a + b"),
		Inputs: []Column{{"a", expr.Int}, {"b", expr.Float}},
		Fields: []Field{{Name: "y", Type: expr.Float, Expr: "add(r.a, r.b)"}},
	}
	row := []any{int64(1), 2.5}
	benchmark(b, prog, func(int) []any { return row })
}

func BenchmarkTinyRowsOfAllTypes(b *testing.B) {
	row := []any{"some text", int64(1), 2.5, true, time.UnixMilli(1600000000000).UTC(), Cents(1234)}
	benchmark(b, allTypes(Plain, Plain), func(int) []any { return row })
}

// BenchmarkBigStrings has rows like those of an account with all its trades.
func BenchmarkBigStrings(b *testing.B) {
	prog := &Program{
		Files:  source("import json", "def size(text):\n  return len(json.loads(text))"),
		Inputs: []Column{{"s", expr.String}},
		Fields: []Field{{Name: "n", Type: expr.Int, Expr: "size(r.s)"}, {Name: "head", Type: expr.String, Expr: "r.s[:6000]"}},
	}
	text := "[" + strings.TrimSuffix(strings.Repeat(`"2021-03-14|TSLA|-1234567|439.67",`, 600_000/34), ",") + "]"
	row := []any{text}
	benchmark(b, prog, func(int) []any { return row })
}
