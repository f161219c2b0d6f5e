package runner_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/python"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// hotScript gathers, for each row on the left, texts of both sides: nothing of that can be spilled.
const hotScript = `
nodes:
  lefts:
    type: file_table
    r:
      urls: [DIR/l.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {id: {col_type: int, csv: {col_hdr: id}}, k: {col_type: string, csv: {col_hdr: k}}}
    w: {name: lefts, fields: {id: {expression: r.id, type: int}, k: {expression: r.k, type: string}}}
  rights:
    type: file_table
    r:
      urls: [DIR/r.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {k: {col_type: string, csv: {col_hdr: k}}, t: {col_type: string, csv: {col_hdr: t}}}
    w:
      name: rights
      fields: {k: {expression: r.k, type: string}, t: {expression: r.t, type: string}}
      indexes: {idx_r: non_unique(k)}
  pairs:
    type: table_lookup_table
    r: {table: lefts}
    l: {index_name: idx_r, join_on: r.k, group: true, join_type: left}
    w:
      name: pairs
      fields:
        id: {expression: r.id, type: int}
        ts: {expression: 'string_agg(r.k + l.t, ";")', type: string, default_value: none}
        last: {expression: r.k + l.t, type: string}
  out:
    type: table_file
    r: {table: pairs}
    w:
      url_template: OUT/out.csv
      columns:
        - {name: id, expression: r.id, type: int, csv: {header: id, format: "%d"}}
        - {name: last, expression: r.last, type: string, csv: {header: last, format: "%s"}}
        - {name: ts, expression: r.ts, type: string, csv: {header: ts, format: "%s"}}
`

// few makes lookups run out of memory that write more than so many rows.
type few struct {
	engine.Executor
	rows  int64
	short *atomic.Int64
}

func (f few) Execute(ctx context.Context, cfg engine.InstanceConfig, pool *python.Pool,
	task engine.Task) (engine.Result, error) {
	res, err := f.Executor.Execute(ctx, cfg, pool, task)
	if err != nil || res.RowsOut <= f.rows || !strings.Contains(task.Query, " JOIN ") {
		return res, err
	}
	f.short.Add(1)
	for _, w := range res.Written {
		if err := os.Remove(w.Path); err != nil {
			return engine.Result{}, err
		}
	}
	return engine.Result{}, &fault.Error{Kind: fault.Environment, Message: task.Name, Err: engine.ErrOutOfMemory}
}

// One key has most of the rows on both sides, and no more than forty of the left
// ones fit with their matches: they are cut, whether the right side is read whole
// or by key. With one slot, nothing could run alone.
func TestAHotKeyIsCut(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := t.TempDir()
	left, right := []string{"id,k"}, []string{"k,t"}
	for i := range 240 {
		left = append(left, fmt.Sprintf("%d,%s", i, key(i)))
	}
	for i := range 400 {
		right = append(right, fmt.Sprintf("%s,%060d", key(i), i))
	}
	for name, lines := range map[string][]string{"l.csv": left, "r.csv": right} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	run := func(name string, rows int64, tune func(*budget.Budget)) (out string, short int64) {
		at := filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(at, 0o700))
		path := filepath.Join(at, "script.yaml")
		require.NoError(t, os.WriteFile(path, []byte(replaceAll(hotScript, "DIR", dir, "OUT", at)), 0o600))
		home, err := instance.Open(t.Context(), filepath.Join(at, "state"), true)
		require.NoError(t, err)
		defer func() { require.NoError(t, home.Close()) }()
		var count atomic.Int64
		sum, err := runner.Run(t.Context(), home, runner.Options{ScriptPath: path, Workspace: "main",
			Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 1, Tune: tune,
				Executor: func(e engine.Executor) engine.Executor { return few{e, rows, &count} }}})
		require.NoError(t, err)
		require.Nil(t, sum.Failure)
		require.Equal(t, state.Complete, sum.Status)
		data, err := os.ReadFile(filepath.Join(at, "out.csv"))
		require.NoError(t, err)
		return string(data), count.Load()
	}
	want, short := run("roomy", math.MaxInt64, nil)
	require.Zero(t, short)
	got, short := run("whole", 40, nil)
	require.Positive(t, short)
	require.Equal(t, want, got)
	got, short = run("by key", 40, func(b *budget.Budget) { b.BroadcastBytes, b.SlotEngineBytes = 0, 64<<10 })
	require.Positive(t, short)
	require.Equal(t, want, got)
}

// key is the key of a row: two thirds have the same.
func key(i int) string {
	if i%3 > 0 {
		return "hot"
	}
	return fmt.Sprintf("k%d", i)
}
