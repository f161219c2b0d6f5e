package runner_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// heavyScript looks rows up by a key that most left rows have: each match, and
// what all matches come to.
const heavyScript = `
nodes:
  lefts:
    type: file_table
    r:
      urls: [DIR/l.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {id: {col_type: int, csv: {col_hdr: id}}, k: {col_type: string, csv: {col_hdr: k}}, ` +
	`t: {col_type: string, csv: {col_hdr: t}}}
    w: {name: lefts, fields: {id: {expression: r.id, type: int}, k: {expression: r.k, type: string}, ` +
	`t: {expression: r.t, type: string}}}
  rights:
    type: file_table
    r:
      urls: [DIR/r.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {k: {col_type: string, csv: {col_hdr: k}}, v: {col_type: decimal2, csv: {col_hdr: v}}, ` +
	`x: {col_type: float, csv: {col_hdr: x}}}
    w:
      name: rights
      fields: {k: {expression: r.k, type: string}, v: {expression: r.v, type: decimal2}, x: ` +
	`{expression: r.x, type: float}, t: {expression: string(r.v), type: string}}
      indexes: {idx_r: non_unique(k)}
  each:
    type: table_lookup_table
    r: {table: lefts}
    l: {index_name: idx_r, join_on: r.k, group: false, join_type: left}
    w: {name: each, fields: {id: {expression: r.id, type: int}, t: {expression: r.t, type: string}, ` +
	`v: {expression: l.v, type: decimal2}}}
  sums:
    type: table_lookup_table
    r: {table: lefts}
    l: {index_name: idx_r, join_on: r.k, group: true, join_type: left}
    w:
      name: sums
      fields:
        id: {expression: r.id, type: int}
        n: {expression: count(), type: int}
        v: {expression: sum(l.v), type: decimal2}
        a: {expression: avg(l.x), type: float}
        x: {expression: sum(l.x), type: float}
        ts: {expression: 'string_agg(l.t, ";")', type: string}
  each_out:
    type: table_file
    r: {table: each}
    w:
      url_template: OUT/each.csv
      columns:
        - {name: id, expression: r.id, type: int, csv: {header: id, format: "%d"}}
        - {name: t, expression: r.t, type: string, csv: {header: t, format: "%s"}}
        - {name: v, expression: r.v, type: decimal2, csv: {header: v, format: "%s"}}
  sums_out:
    type: table_file
    r: {table: sums}
    w:
      url_template: OUT/sums.csv
      columns:
        - {name: id, expression: r.id, type: int, csv: {header: id, format: "%d"}}
        - {name: n, expression: r.n, type: int, csv: {header: n, format: "%d"}}
        - {name: v, expression: r.v, type: decimal2, csv: {header: v, format: "%s"}}
        - {name: a, expression: r.a, type: float, csv: {header: a, format: "%g"}}
        - {name: x, expression: r.x, type: float, csv: {header: x, format: "%g"}}
        - {name: ts, expression: r.ts, type: string, csv: {header: ts, format: "%s"}}
`

// TestABucketOfAHotKeyIsSharedOut has a key that two thirds of the left rows
// have: several batches have some of its rows each, and write what one would have.
func TestABucketOfAHotKeyIsSharedOut(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	const rows, keys, cuts = 60_000, 500, 4
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(3, 4))
	left, right := bytes.NewBufferString("id,k,t\n"), bytes.NewBufferString("k,v,x\n")
	for i := range rows {
		k := 0
		if i%3 == 0 {
			k = rng.IntN(keys)
		}
		fmt.Fprintf(left, "%d,k%d,%016x%016x\n", i, k, rng.Uint64(), rng.Uint64())
	}
	for i := range 3 * keys {
		fmt.Fprintf(right, "k%d,%d.%02d,%g\n", i%keys, rng.IntN(1000), rng.IntN(100), rng.NormFloat64())
	}
	for name, text := range map[string]*bytes.Buffer{"l.csv": left, "r.csv": right} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o600))
	}
	run := func(name string, tune func(*budget.Budget)) (files map[string]string, batches map[string]int) {
		at := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Join(at, "out"), 0o700))
		path := filepath.Join(at, "script.yaml")
		require.NoError(t, os.WriteFile(path,
			[]byte(replaceAll(heavyScript, "DIR", dir, "OUT", filepath.Join(at, "out"))), 0o600))
		home, err := instance.Open(t.Context(), filepath.Join(at, "state"), true)
		require.NoError(t, err)
		defer func() { require.NoError(t, home.Close()) }()
		sum, err := runner.Run(t.Context(), home, runner.Options{ScriptPath: path, Workspace: "main",
			Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 1, Tune: tune}})
		require.NoError(t, err)
		require.Nil(t, sum.Failure)
		nodes, err := home.State.Nodes(t.Context(), state.RunKey{Workspace: "main", Run: 1})
		require.NoError(t, err)
		batches = map[string]int{}
		for _, n := range nodes {
			batches[n.Name] = n.BatchesTotal
			require.True(t, n.Name != "each" && n.Name != "sums" || n.RowsIn == rows, "%s has read %d rows",
				n.Name, n.RowsIn)
		}
		return outputs(t, at), batches
	}
	want, batches := run("whole", nil)
	require.Equal(t, 1, batches["each"])
	got, batches := run("cut", func(b *budget.Budget) {
		b.BroadcastBytes, b.SmallBytes, b.BatchBytes, b.SlotEngineBytes = 0, 256<<10, 1<<20, 2<<20
	})
	require.Greater(t, batches["each"], cuts)
	require.Equal(t, batches["each"], batches["sums"])
	t.Logf("%d batches", batches["each"])
	require.Equal(t, want, got)
}
