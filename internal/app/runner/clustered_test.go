package runner_test

import (
	"context"
	"fmt"
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
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

const clusteredScript = `
nodes:
  keys:
    type: file_table
    r: { urls: [ DIR/keys.csv ], csv: { hdr_line_idx: 0, first_data_line_idx: 1 }, ` +
	`columns: { k: { csv: { col_hdr: k }, col_type: string } } }
    w: { name: keys, fields: { k: { expression: r.k, type: string } } }
  values:
    type: file_table
    r:
      urls: [ DIR/values_0.csv, DIR/values_1.csv, DIR/values_2.csv ]
      csv: { hdr_line_idx: 0, first_data_line_idx: 1 }
      columns:
        k: { csv: { col_hdr: k }, col_type: string, nullable: true }
        n: { csv: { col_hdr: n }, col_type: int }
    w:
      name: values
      fields:
        k: { expression: r.k, type: string, nullable: true }
        n: { expression: r.n, type: int }
      indexes: { idx_k: non_unique(k) }
  joined:
    type: table_lookup_table
    r: keys
    l: { index_name: idx_k, join_on: r.k, group: true, join_type: left }
    w:
      name: joined
      fields:
        k: { expression: r.k, type: string }
        list: { expression: 'string_agg(string(l.n), ",")', type: string }
  pairs:
    type: table_lookup_table
    r: keys
    l: { index_name: idx_k, join_on: r.k, group: false, join_type: left }
    w:
      name: pairs
      fields:
        k: { expression: r.k, type: string }
        n: { expression: l.n, type: int, default_value: "-1" }
  firsts:
    type: distinct_table
    rerun_policy: fail
    r: values
    w:
      name: firsts
      fields: { k: { expression: r.k, type: string, nullable: true }, n: { expression: r.n, type: int } }
      indexes: { idx_firsts: unique(k) }
  f_joined: { type: table_file, r: joined, w: OUT/joined.csv }
  f_pairs: { type: table_file, r: pairs, w: OUT/pairs.csv }
  f_firsts: { type: table_file, r: firsts, w: OUT/firsts.csv }
  f_values: { type: table_file, r: values, w: OUT/values.csv }
`

// Whether rows come by key decides how their table lies, and nothing else.
func TestRowsThatComeByKeyGiveTheSameBytes(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	const rows = 2100
	sorted := func(i int) int { return i }
	shuffled := func(i int) int { return i * 7919 % rows }
	for name, tc := range map[string]struct {
		at     func(i int) int
		parts  string // that lie as they came
		ranges bool   // readers are cut by them
	}{
		"sorted":   {sorted, "all", true},
		"shuffled": {shuffled, "none", false},
		"sorted for a part": {func(i int) int {
			return map[bool]int{true: i, false: rows/3 + i*7919%(2*rows/3)}[i < rows/3]
		},
			"some", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			key := func(i int) string {
				if i%100 == 99 {
					return ""
				}
				return fmt.Sprintf("KEY-%05d", i/10)
			}
			var keys strings.Builder
			keys.WriteString("k\n")
			for i := range rows/10 + 5 {
				fmt.Fprintf(&keys, "KEY-%05d\n", i)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "keys.csv"), []byte(keys.String()), 0o644))
			for f := range 3 {
				var values strings.Builder
				values.WriteString("k,n\n")
				for i := f * rows / 3; i < (f+1)*rows/3; i++ {
					fmt.Fprintf(&values, "%s,%d\n", key(tc.at(i)), i)
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("values_%d.csv", f)),
					[]byte(values.String()), 0o644))
			}
			var want map[string]string
			for _, cut := range []func(*budget.Budget){
				func(b *budget.Budget) { b.BatchBytes, b.SmallBytes, b.BroadcastBytes = 1<<30, 1<<30, 1<<30 },
				func(b *budget.Budget) {
					b.Slots, b.BatchBytes, b.SmallBytes, b.BroadcastBytes, b.SlotEngineBytes = 1, 4<<10, 0, 0, 24<<10
				},
			} {
				run := t.TempDir()
				text := replaceAll(clusteredScript, "DIR", dir, "OUT", filepath.Join(run, "out"))
				require.NoError(t, os.WriteFile(filepath.Join(run, "script.yaml"), []byte(text), 0o644))
				home, err := instance.Open(context.Background(), filepath.Join(run, "state"), true)
				require.NoError(t, err)
				var ranges atomic.Int64
				ctx := engine.WithTrace(context.Background(), func(_ *engine.Instance, statement string) {
					if strings.Contains(statement, " >= 'KEY-") {
						ranges.Add(1)
					}
				})
				sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: filepath.Join(run, "script.yaml"),
					Workspace: "main", Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Tune: cut}})
				require.NoError(t, err)
				require.Nil(t, sum.Failure)
				got := outputs(t, run)
				require.Len(t, got, 4)
				if want == nil {
					want = got
				} else {
					require.Equal(t, want, got)
					values, err := pipeline.ReadTable(context.Background(), home.State, state.NodeKey{RunKey: sum.Key,
						Node: "values"})
					require.NoError(t, err)
					as := 0
					for _, p := range values.Parts {
						if p.Keys != nil {
							as++
						}
					}
					parts := "some"
					switch as {
					case 0:
						parts = "none"
					case len(values.Parts):
						parts = "all"
					}
					require.Equal(t, tc.parts, parts, "%d of %d parts lie as they came", as, len(values.Parts))
					require.Equal(t, tc.parts != "all", values.Scattered())
					require.Equal(t, tc.ranges, ranges.Load() > 0, "readers are cut by ranges of the key")
				}
				require.NoError(t, home.Close())
			}
		})
	}
}
