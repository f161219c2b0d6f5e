package peek_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/peek"
	"thalweg/internal/base/progress"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/store/state"
)

// heard collects what is told of progress.
type heard struct {
	mu   sync.Mutex
	list []progress.Progress
}

func (h *heard) in(ctx context.Context) context.Context {
	return progress.Heard(ctx, func(p progress.Progress) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.list = append(h.list, p)
	})
}

// last is what was told last; all of it tells no more than there is.
func (h *heard) last(t *testing.T) progress.Progress {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	require.NotEmpty(t, h.list)
	for _, p := range h.list {
		require.NotEmpty(t, p.Phase)
		require.True(t, p.Of == 0 || p.Done <= p.Of, "%+v", p)
		require.Equal(t, p.Done > 0 || p.Of > 0, p.Unit != "", "%+v", p)
	}
	return h.list[len(h.list)-1]
}

// A download counts the rows that are written and the bytes that have come.
func TestProgressOfDownloads(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{})
	for _, c := range []struct {
		format peek.Format
		rows   int
		want   progress.Progress
	}{
		{peek.CSV, 0, progress.Progress{Phase: "writing the rows", Done: 3000, Of: 3000, Unit: "rows"}},
		{peek.NDJSON, 2500, progress.Progress{Phase: "writing the rows", Done: 2000, Of: 2500, Unit: "rows"}},
		{peek.XLSX, 0, progress.Progress{Phase: "writing the rows", Done: 3000, Of: 3000, Unit: "rows"}},
		{peek.Parquet, 0, progress.Progress{Phase: "handing over the file", Unit: "bytes"}},
	} {
		var out bytes.Buffer
		var h heard
		require.NoError(t, b.pool.Download(h.in(t.Context()), tester, peek.Download{Format: c.format,
			SQL: &peek.SQL{Workspace: "main", SQL: "FROM range(3000)", Rows: c.rows}}, &out))
		got := h.last(t)
		c.want.Bytes = int64(out.Len())
		if c.want.Unit == "bytes" {
			c.want.Done, c.want.Of = c.want.Bytes, c.want.Bytes
		}
		require.Equal(t, c.want, got, c.format)
		require.Equal(t, "waiting for memory", h.list[0].Phase)
		require.Equal(t, "at work on the download", h.list[1].Phase)
	}
}

// A child tells how far it is with what takes long.
func TestProgressOfChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{})
	files := map[string]string{"numbers.csv": csvOf(8), "twice.py": "def twice(n: int) -> int:\n    return 2 * n\n"}
	runs := [2]state.RunKey{b.run(checked, files, nil)}
	files["numbers.csv"] = csvOf(9)
	runs[1] = b.run(checked, files, nil)

	var h heard
	_, err := b.pool.Diff(h.in(t.Context()), tester, runs, inspect.DiffOptions{Table: "doubled", Key: []string{"n"}})
	require.NoError(t, err)
	require.Equal(t, progress.Progress{Phase: "comparing the rows that are not at the same places"}, h.last(t))

	h = heard{}
	_, err = b.pool.Trace(h.in(t.Context()), tester, inspect.TraceOptions{Workspace: "main", Name: "doubled",
		Run: runs[0].Run, Trace: lineage.Options{Limit: 1, Sample: 1}})
	require.NoError(t, err)
	require.Equal(t, progress.Progress{Phase: "following the rows of node read", Done: 1, Of: 2, Unit: "nodes"}, h.last(t))

	h = heard{}
	run, err := b.home.State.Run(t.Context(), runs[0])
	require.NoError(t, err)
	_, err = b.pool.Check(h.in(t.Context()), tester, nil, run, inspect.CheckOptions{RowsMax: 1})
	require.NoError(t, err)
	require.Equal(t, progress.Progress{Phase: "checking node twice", Of: 1, Unit: "checks"}, h.last(t))
}
