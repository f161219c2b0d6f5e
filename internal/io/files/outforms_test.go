package files_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// formNodes write a table in all forms that hold every value: nodes that copyNodes has made read it.
func formNodes(nodes object, n int, w *script.FileWriter, dir string) {
	table := fmt.Sprintf("t%d", n)
	column := func(c *script.OutputColumn, part string, of object) object {
		return object{"name": c.Name, "expression": "r." + c.Name, "type": c.Type.String(), "nullable": c.Nullable,
			part: of}
	}
	var inJSON, inParquet, inCSV []object
	for _, c := range w.Columns {
		csv := object{"header": c.Name, "format": c.Format}
		if c.Nullable {
			csv["null_text"] = "NULL"
		}
		inJSON, inParquet, inCSV = append(inJSON, column(c, "json", object{"key": c.Name})),
			append(inParquet, column(c, "parquet", object{"column_name": c.Name})), append(inCSV, column(c, "csv", csv))
	}
	for name, w := range map[string]object{
		"json": {"url_template": filepath.Join(dir, table+".ndjson.zst"), "columns": inJSON},
		"parquet": {"url_template": filepath.Join(dir, table+".parquet"), "parquet": object{"codec": "zstd"},
			"columns": inParquet},
		"csv": {"url_template": filepath.Join(dir, table+".csv.gz"), "columns": inCSV},
		"cut": {"url_template": filepath.Join(dir, table+".csv"), "target_size": "1KB", "columns": inCSV},
	} {
		nodes[name+"_"+table] = object{"type": "table_file", "r": table, "w": w}
	}
}

// TestChaosFormsHoldTheSame: what is written in one form reads as what is written in the others, by a
// reader that is not ours, and a run that does it again writes the same bytes.
func TestChaosFormsHoldTheSame(t *testing.T) {
	t.Parallel()
	const seed = 23
	tablesInRun := effort.Of(2, 3, 10)
	rnd := rand.New(rand.NewPCG(seed, 0))
	db := files.OpenDB(t, 1)
	for range effort.Of(1, 1, 20) {
		dir := t.TempDir()
		nodes := object{}
		var writers []*script.FileWriter
		for n := range tablesInRun {
			in := filepath.Join(dir, fmt.Sprintf("in%d.csv", n))
			w, null := files.WriteRoundTable(t, db, rnd, in)
			writers = append(writers, w)
			copyNodes(nodes, n, w, null, in, filepath.Join(dir, fmt.Sprintf("copy%d.csv", n)))
			formNodes(nodes, n, w, dir)
		}
		runNodes(t, dir, nodes)
		before := writtenIn(t, dir)
		for n, w := range writers {
			var types []string
			for _, c := range w.Columns {
				types = append(types, sqltext.String(c.Name)+": "+sqltext.String(c.Type.SQL()))
			}
			columns := "{" + strings.Join(types, ", ") + "}"
			csv := "auto_detect = false, strict_mode = true, header = true, delim = ',', quote = '\"', escape = " +
				"'\"', nullstr = 'NULL', allow_quoted_nulls = false, columns = " + columns
			if len(w.Columns) == 1 {
				csv += ", null_padding = false"
			}
			path := func(end string) string { return sqltext.String(filepath.Join(dir, fmt.Sprintf("t%d%s", n, end))) }
			want := "SELECT * FROM read_parquet(" + path(".parquet") + ")"
			for _, got := range []string{
				"SELECT * FROM read_json(" + path(".ndjson.zst") + ", format = 'newline_delimited', columns = " +
					columns + ")", "SELECT * FROM read_csv(" + path(".csv.gz") + ", " + csv + ")",
				"SELECT * FROM read_csv(" + path(".csv/*.csv") + ", " + csv + ")",
			} {
				var differ int
				require.NoError(t, db.QueryRowContext(t.Context(),
					fmt.Sprintf("SELECT count(*) FROM ((%[1]s EXCEPT ALL %[2]s) UNION ALL (%[2]s EXCEPT ALL %[1]s))",
						want, got)).Scan(&differ), got)
				require.Zero(t, differ, got)
			}
		}
		runNodes(t, dir, nodes)
		require.Equal(t, before, writtenIn(t, dir))
	}
}

// runNodes runs a script of nodes.
func runNodes(t *testing.T, dir string, nodes object) {
	t.Helper()
	raw, err := json.Marshal(object{"nodes": nodes})
	require.NoError(t, err)
	name := filepath.Join(dir, "script.json")
	require.NoError(t, os.WriteFile(name, raw, 0o600))
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	sum, err := runner.Run(t.Context(), home, runner.Options{ScriptPath: name, Workspace: instance.DefaultWorkspace,
		Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 2}})
	require.NoError(t, home.Close())
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status)
}

// writtenIn are the output files by name, but for manifests, which name the run.
func writtenIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"t*.parquet", "t*.zst", "t*.gz", "t*.csv/part-*.csv"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found)
		for _, name := range found {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			out[name] = string(data)
		}
	}
	return out
}
