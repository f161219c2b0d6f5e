package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// A server begins the runs of its scripts by their watches, with and without working on them itself, from the
// directories of the scripts and within the places of their workspaces.
func TestServeSchedules(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"alone": {"--scheduler"}, "with a worker": {"--scheduler", "--worker"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "jobs", "in"), 0o700))
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "other"), 0o700))
			const watch = "watch: {files: \"in/*.csv\", marker: \"{file}.done\"}\nnodes:\n" +
				"  read: {type: file_table, r: {urls: [\"{watched_file}\"], columns: {id: int}}, w: t}\n" +
				"  write: {type: table_file, r: t, w: \"out/{run_id}.csv\"}\n"
			for name, text := range map[string]string{"jobs/watch.yaml": "name: good\n" + watch,
				"jobs/bad.yaml":      "name: bad\n" + strings.ReplaceAll(watch, "out/", "../other/"),
				"jobs/in/a.csv":      "id\n1\n",
				"jobs/in/a.csv.done": "", "serve.yaml": "version: 1\nworkspaces:\n  main:\n    scripts: jobs\n" +
					"    places: {read: jobs/in, write: jobs/out}\n"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			startServer(t, dir, append(flags, "--config", "serve.yaml")...)
			require.Eventually(t, func() bool {
				found, err := filepath.Glob(filepath.Join(dir, "jobs", "out", "*.csv"))
				return err == nil && len(found) == 1
			}, effort.Patience, 50*time.Millisecond)
			require.Eventually(t, func() bool {
				cmd := thalweg(t.Context(), dir, "schedules")
				said, _ := cmd.CombinedOutput()
				return strings.Contains(string(said), "could not begin") &&
					strings.Contains(string(said), "may not be written by this run")
			}, effort.Patience, 50*time.Millisecond)
			found, err := filepath.Glob(filepath.Join(dir, "other", "*"))
			require.NoError(t, err)
			require.Empty(t, found)
		})
	}
	out, err := thalweg(t.Context(), t.TempDir(), "serve", "--scheduler").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "--scheduler has no scripts")
}
