package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/secret"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// A run can say what it was made from: every file of the script, and the
// parameters of the command line, without secrets.
func TestSourcesArePinned(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir, ctx := t.TempDir(), context.Background()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("in.csv", "id\n1\n")
	params := write("params.yaml", "much: three\nwho: hunter22\n")
	text := `
nodes:
  # a comment stays, too
  load:
    type: file_table
    desc: "{who|string} {much|string}"
    r:
      urls: [` + filepath.Join(dir, "in.csv") + `]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {id: {col_type: int, csv: {col_hdr: id}}}
    w: {name: t, fields: {id: {expression: r.id + 1, type: int}}}
`
	script := write("script.yaml", text)
	known := secret.New()
	known.Add("hunter22", "xxxxx")
	home, err := instance.Open(ctx, filepath.Join(dir, instance.DefaultDir), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: script, ParamsPath: params,
		Process: runtime.Process{Program: "v9", Known: known}, Workspace: instance.DefaultWorkspace,
		Params: map[string]string{"much": "four"}})
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status)
	run, err := home.State.Run(ctx, sum.Key)
	require.NoError(t, err)
	require.Equal(t, "v9", run.Program)
	require.NotEmpty(t, run.Engine)
	require.NotEmpty(t, run.BucketHash)
	require.NotEmpty(t, run.Actor)
	got := map[string]string{}
	for _, p := range run.Pins {
		content, err := home.State.Blob(ctx, p.Digest)
		require.NoError(t, err)
		require.Equal(t, state.NewBlob(content).Digest, p.Digest)
		require.EqualValues(t, len(content), p.Bytes)
		require.Equal(t, filepath.Base(p.Name) == "params.yaml", p.Redacted)
		got[p.Kind+" "+filepath.Base(p.Name)] = string(content)
	}
	require.Contains(t, got["settings ."], `"budget":{"total_bytes":`, "what its nodes are planned by")
	delete(got, "settings .")
	require.Equal(t, map[string]string{"script script.yaml": text, "params params.yaml": "much: three\nwho: xxxxx\n",
		"params .": `{"much":"four"}`}, got)
	nodes, err := home.State.Nodes(ctx, sum.Key)
	require.NoError(t, err)
	require.NotEmpty(t, nodes[0].Fingerprint)
	inputs, err := state.All(ctx, home.State.Inputs, nodes[0].NodeKey)
	require.NoError(t, err)
	require.Len(t, inputs, 1)
	require.Equal(t, int64(5), inputs[0].Bytes)
}
