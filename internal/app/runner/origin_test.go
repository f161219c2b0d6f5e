package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// TestFailedRowsNameTheirRecords cuts nodes behind a file into many batches: a row that
// fails has the line of the one record that is bad, whatever is between, and its number
// in the table where rows have one.
func TestFailedRowsNameTheirRecords(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	const rows, bad = 3000, 2101 // of each file; the first file has no bad one
	const left = rows + bad - 1000
	dir := t.TempDir()
	line := int64(0)
	for file := range 2 {
		var text strings.Builder
		text.WriteString("id,note,n\n")
		for i := 1; i <= rows; i++ {
			n, note := i%9+1, "x"
			if i%7 == 0 {
				note = "\"two\nlines\"" // rows are no lines
			}
			if file == 1 && i == bad {
				n, line = 0, int64(strings.Count(text.String(), "\n")+1)
			}
			fmt.Fprintf(&text, "%d,%s,%d\n", file*rows+i, note, n)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("in%d.csv", file)),
			[]byte(text.String()), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f.py"), []byte("def half(n):\n    return 10 // n\n"), 0o644))
	const formula = `{type: table_custom_tfm_table, custom_proc_type: py_calc, r: %s, ` +
		`p: {python_code_urls: [DIR/f.py], calculated_fields: {h: {expression: half(r.n), type: int}}}, ` +
		`w: {name: halves, fields: [{h: p.h}]}}`
	const lookup = `{type: table_lookup_table, r: numbers, ` +
		`l: {index_name: idx_id, join_on: r.id, group: false, join_type: left}, ` +
		`w: {name: pairs, fields: [r.id, r.n, {other: l.n}]}}`
	for name, tc := range map[string]struct {
		nodes  string
		record int64 // in the table; 0: its rows have no numbers
	}{
		"an expression": {`half: {type: table_table, r: numbers, w: {name: halves, fields: [{h: 10 / r.n}]}}`,
			left},
		"a cap of bad rows": {`half: {type: table_table, bad_rows: {action: quarantine, max_rows: 0}, r: numbers, w: ` +
			`{name: halves, fields: [{h: 10 / r.n}]}}`, left},
		"a formula": {`half: ` + fmt.Sprintf(formula, "numbers"), left},
		"a file": {`half: {type: table_file, r: numbers, w: {url_template: DIR/out.csv, order: note, columns: ` +
			`[note, {h: 10 / r.n}]}}`, left},
		"files": {`half: {type: table_file, r: {table: numbers, expected_batches_total: 3}, w: ` +
			`{url_template: "DIR/out{batch_idx|string}.csv", columns: [{h: 10 / r.n}]}}`, left},
		"distinct keys": {`half: {type: distinct_table, rerun_policy: fail, r: numbers, w: {name: halves, fields: ` +
			`[{h: 10 / r.n}], indexes: {idx_h: unique(h)}}}`, left},
		"a lookup": {"pair: " + lookup +
			"\n  half: {type: table_table, r: pairs, w: {name: halves, fields: [{h: 10 / r.n}]}}", 0},
		"a formula of a lookup": {"pair: " + lookup + "\n  half: " + fmt.Sprintf(formula, "pairs"), 0},
		"the kept rows of a key": {"once: {type: distinct_table, rerun_policy: fail, r: numbers, w: {name: kept, " +
			"fields: [r.n, r.id], indexes: {idx_n: unique(n)}}}\n" +
			"  half: {type: table_table, r: kept, w: {name: halves, " +
			"fields: [{h: 10 / r.n}]}}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, own := context.Background(), t.TempDir()
			text := `nodes:
  read:
    type: file_table
    r: {urls: [DIR/in0.csv, DIR/in1.csv], columns: {id: int, note: string, n: int}}
    w: {name: numbers, having: w.id > 1000, fields: [r.*]INDEX}
  ` + tc.nodes
			index := ""
			if strings.Contains(tc.nodes, "idx_id") {
				index = ", indexes: {idx_id: unique(id)}"
			}
			require.NoError(t, os.WriteFile(filepath.Join(own, "script.yaml"),
				[]byte(replaceAll(text, "DIR", dir, "INDEX", index)), 0o644))
			home, err := instance.Open(ctx, filepath.Join(own, "state"), true)
			require.NoError(t, err)
			defer func() { require.NoError(t, home.Close()) }()
			sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: filepath.Join(own, "script.yaml"),
				Workspace: "main",
				Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3",
					Tune: cutInto(2, 4<<10)}})
			require.NoError(t, err)
			require.Equal(t, state.Failed, sum.Status)
			require.Equal(t, "half", sum.Failure.Node)
			place := sum.Failure.Place
			require.NotNil(t, place.Origin, "%s: %s", place, sum.Failure.Message)
			require.Equal(t, []any{filepath.Join(dir, "in1.csv"), line}, []any{place.Origin.File, place.Origin.Line},
				sum.Failure.Message)
			require.Equal(t, tc.record, place.Record, sum.Failure.Message)
		})
	}
}
