package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// doomedScript has a table whose check fails, and what would follow it; and a
// file whose check fails.
const doomedScript = `
nodes:
  load:
    type: file_table
    r:
      urls: [in.csv]
      csv: { hdr_line_idx: 0, first_data_line_idx: 1 }
      columns:
        id: { csv: { col_hdr: id }, col_type: int }
    w:
      name: loaded
      fields:
        id: { expression: r.id, type: int }
    checks:
      - unique: id
        severity: SEVERITY
  file:
    type: table_file
    r: { table: loaded, expected_batches_total: 2 }
    w:
      url_template: "out/part_{batch_idx|string}.csv"
      columns:
        - { csv: { header: id, format: "%d" }, name: id, expression: r.id, type: int }
    checks:
      - unique: id
`

func doomed(t *testing.T, severity string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"),
		[]byte(replaceAll(doomedScript, "SEVERITY", severity)), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n1\n2\n2\n3\n"), 0o644))
	return dir
}

// A run whose check fails is killed at each crash point each time that it is
// passed, and resumed: it fails, there is no file and no row downstream, and
// the failing rows are there once.
func TestKilledWhileChecksFail(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	// the table's check fails; only the file's does; several batches share the table's
	for _, how := range []string{"error", "warn", "error shared"} {
		severity, share, _ := strings.Cut(how, " ")
		for _, point := range job.CrashPoints() {
			if point == job.Published || point == job.Settling && severity == "error" {
				continue // nothing is
			}
			t.Run(how+" "+string(point), func(t *testing.T) {
				t.Parallel()
				for n := 1; n == 1 || !testing.Short(); n++ { // -short: only the first time
					dir := doomed(t, severity)
					victim := func(at string, resume bool) ([]byte, error) {
						cmd := victimCmd(t, dir, at, resume)
						cmd.Env = append(cmd.Env, sharedChecks+"="+share)
						return cmd.CombinedOutput()
					}
					text, err := victim(fmt.Sprintf("%s:%d", point, n), false)
					resumed := err != nil
					if resumed {
						requireKilled(t, err, text)
						text, err = victim("run", true)
					}
					require.NoError(t, err, string(text))
					require.True(t, strings.HasPrefix(string(text), "failed\n"), string(text))
					requireDoomed(t, dir, severity, share != "")
					if !resumed {
						require.Greater(t, n, 1, "the crash point is never passed")
						return
					}
				}
			})
		}
	}
}

func requireDoomed(t *testing.T, dir, severity string, shared bool) {
	t.Helper()
	require.Empty(t, outputs(t, dir))
	ctx := context.Background()
	home, err := instance.Open(ctx, filepath.Join(dir, instance.DefaultDir), false)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	run := state.RunKey{Workspace: "main", Run: 1}
	file, err := home.State.Node(ctx, state.NodeKey{RunKey: run, Node: "file"})
	require.NoError(t, err)
	require.Zero(t, file.BatchesDone)
	names := []string{"load"}
	if severity == "error" {
		require.Equal(t, state.Stopped, file.Status)
		require.Empty(t, file.PlanDigest)
	} else {
		require.Equal(t, state.Failed, file.Status)
		names = []string{"load", "file"}
	}
	results, err := state.OfNodes(ctx, home.State, run, home.State.Checks)
	require.NoError(t, err)
	require.Len(t, results, len(names))
	for i, name := range names {
		require.Equal(t, name, results[i].Node)
		require.Equal(t, []int64{4, 2, 2}, []int64{results[i].Checked, results[i].Failed, results[i].Kept})
		parts, err := state.SideParts(ctx, home.State, state.NodeKey{RunKey: run, Node: name})
		require.NoError(t, err)
		shares := len(parts)
		parts = slices.DeleteFunc(parts, func(p state.Part) bool { return p.Side == state.SideFound })
		shares -= len(parts)
		require.Equal(t, shared && name == "load", shares > 1, "batches that share the checks")
		require.Len(t, parts, 1)
		require.EqualValues(t, 2, parts[0].Rows)
	}
}
