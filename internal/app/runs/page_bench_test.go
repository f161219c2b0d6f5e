package runs

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/bench/generate/history"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/view"
)

// BenchmarkPages measures pages of a workspace of 100,000 runs of five nodes: the 95th of 100, of 50 of each.
func BenchmarkPages(b *testing.B) {
	home, err := instance.Open(b.Context(), b.TempDir(), true)
	require.NoError(b, err)
	defer func() { require.NoError(b, home.Close()) }()
	s := &Service{Home: home}
	const runs = 100_000
	require.NoError(b, history.Runs(b.Context(), home.State, runs))
	at := history.Began
	for name, ask := range map[string]func(context.Context) (any, error){
		"first":  s.asking(PageOptions{Limit: 100}),
		"deep":   s.asking(PageOptions{Limit: 100, From: 500}),
		"status": s.asking(PageOptions{Limit: 100, Status: "failed"}),
		"script": s.asking(PageOptions{Limit: 100, Script: "script7"}),
		"text":   s.asking(PageOptions{Limit: 100, Text: "NUMBER 2000"}),
		"until":  s.asking(PageOptions{Limit: 100, Until: at(5000)}),
		"since":  s.asking(PageOptions{Limit: 100, Since: at(runs - 50), Until: at(runs - 10)}),
		"matrix": func(ctx context.Context) (any, error) { return s.Matrix(ctx, "main", PageOptions{Limit: 100}) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				took := make([]time.Duration, 50)
				for i := range took {
					began := time.Now()
					page, err := ask(b.Context())
					require.NoError(b, err)
					_, err = view.JSON(page)
					require.NoError(b, err)
					took[i] = time.Since(began)
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[47])/float64(time.Millisecond), "p95-ms")
			}
		})
	}
}

func (s *Service) asking(p PageOptions) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		page, _, err := s.Page(ctx, "main", p)
		return page, err
	}
}
