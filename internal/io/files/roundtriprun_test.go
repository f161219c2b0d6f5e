package files_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// object is one of a script in JSON.
type object map[string]any

// copyNodes are the nodes that read a file and write it again.
func copyNodes(nodes object, n int, w *script.FileWriter, null, from, to string) {
	lineEnd := "lf"
	if w.CRLF {
		lineEnd = "crlf"
	}
	in, fields := object{}, object{}
	var out []object
	for i, c := range w.Columns {
		typ := c.Type.String()
		read, written := object{"col_idx": i}, object{"header": c.Header}
		if c.Format != "" {
			read["col_format"], written["format"] = c.Format, c.Format
		}
		if c.Nullable {
			read["null_text"], written["null_text"] = null, null
		}
		in[c.Name] = object{"col_type": typ, "nullable": c.Nullable, "csv": read}
		fields[c.Name] = object{"expression": "r." + c.Name, "type": typ, "nullable": c.Nullable}
		out = append(out, object{"name": c.Name, "expression": "r." + c.Name, "type": typ, "nullable": c.Nullable,
			"csv": written})
	}
	table := fmt.Sprintf("t%d", n)
	nodes["read_"+table] = object{"type": "file_table", "w": object{"name": table, "fields": fields},
		"r": object{"urls": []string{from}, "csv": object{"separator": w.Separator, "first_data_line_idx": 1},
			"columns": in}}
	nodes["write_"+table] = object{"type": "table_file", "r": table,
		"w": object{"url_template": to, "csv": object{"separator": w.Separator, "line_end": lineEnd, "quote": w.Quote},
			"columns": out}}
}

// TestChaosCSVRoundTripRuns loads written files by whole runs, which write
// them again: no byte may differ.
func TestChaosCSVRoundTripRuns(t *testing.T) {
	t.Parallel()
	runs := 1
	if os.Getenv("THALWEG_CHAOS") != "" {
		runs = 20
	}
	const seed, tablesInRun = 17, 10
	rnd := rand.New(rand.NewPCG(seed, 0))
	db := files.OpenDB(t, 1)
	for range runs {
		dir := t.TempDir()
		nodes := object{}
		path := func(kind string, n int) string { return filepath.Join(dir, fmt.Sprintf("%s%d.csv", kind, n)) }
		for n := range tablesInRun {
			w, null := files.WriteRoundTable(t, db, rnd, path("in", n))
			copyNodes(nodes, n, w, null, path("in", n), path("out", n))
		}
		raw, err := json.Marshal(object{"nodes": nodes})
		require.NoError(t, err)
		name := filepath.Join(dir, "script.json")
		require.NoError(t, os.WriteFile(name, raw, 0o600))
		home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
		require.NoError(t, err)
		sum, err := runner.Run(t.Context(), home, runner.Options{
			ScriptPath: name,
			Workspace:  instance.DefaultWorkspace,
			Process:    runtime.Process{MemoryBytes: 512 << 20, Cores: 2},
		})
		require.NoError(t, home.Close())
		require.NoError(t, err)
		require.Equal(t, state.Complete, sum.Status)
		for n := range tablesInRun {
			want, err := os.ReadFile(path("in", n))
			require.NoError(t, err)
			got, err := os.ReadFile(path("out", n))
			require.NoError(t, err)
			require.Equal(t, string(want), string(got), "%s", want)
		}
	}
}
