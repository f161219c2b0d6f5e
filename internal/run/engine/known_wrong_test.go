package engine

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// TestKnownWrongResults gates every renewal of DuckDB: each case is the shape
// of a wrong result that some release gave, with an answer known by other means.
func TestKnownWrongResults(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	for name, tc := range map[string]struct {
		why     string
		memory  int64
		threads int
		setup   []string
		query   string
		want    []any
	}{
		"spilled hash join": {
			why:    "duckdb#25702: a hash join that spilled lost rows",
			memory: 128 << 20, threads: 2,
			setup: []string{"CREATE TABLE l AS SELECT i AS k, repeat('l', 20) || i AS s FROM range(1500000) t(i)",
				"CREATE TABLE r AS SELECT i * 2 AS k, repeat('r', 20) || i AS s FROM range(1500000) t(i)"},
			query: "SELECT count(*), sum(l.k), count(DISTINCT r.s) FROM l JOIN r USING (k)",
			want:  []any{int64(750000), "562499250000", int64(750000)},
		},
		"parallel join filter": {
			why:    "duckdb#22075: a Bloom filter pushed into a parallel scan dropped matches",
			memory: 512 << 20, threads: 4,
			setup: []string{"CREATE TABLE l AS SELECT i AS k, hash(i) AS h FROM range(4000000) t(i)",
				"CREATE TABLE r AS SELECT i * 97 AS k FROM range(40000) t(i)"},
			query: "SELECT count(*), sum(l.k), count(DISTINCT l.h) FROM l JOIN r USING (k) WHERE r.k % 2 = 0",
			want:  []any{int64(20000), "38798060000", int64(20000)},
		},
		"long window sum": {
			why:    "duckdb#24985: a window sum went wrong past 1.04 million rows",
			memory: 512 << 20, threads: 2,
			query: "SELECT count(*), CAST(sum(CASE WHEN s <> i * (i + 1) // 2 THEN 1 ELSE 0 END) AS VARCHAR), max(i) " +
				"FROM (SELECT i, sum(i) OVER (ORDER BY i ROWS UNBOUNDED PRECEDING) AS s FROM range(1300000) t(i))",
			want: []any{int64(1300000), "0", int64(1299999)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := OpenInstance(context.Background(), InstanceConfig{MemoryBytes: tc.memory, Threads: tc.threads,
				SpillDir: filepath.Join(t.TempDir(), "spill")})
			require.NoError(t, err)
			defer func() { require.NoError(t, in.Close()) }()
			for _, stmt := range tc.setup {
				require.NoError(t, in.Exec(context.Background(), stmt))
			}
			rows, err := in.Query(context.Background(), "SELECT c0, CAST(c1 AS VARCHAR), c2 FROM ("+tc.query+
				") t(c0, c1, c2)")
			require.NoError(t, err)
			defer rows.Close()
			require.True(t, rows.Next())
			row, err := scanRow(rows)
			require.NoError(t, err)
			require.Equal(t, tc.want, row, tc.why)
		})
	}
}
