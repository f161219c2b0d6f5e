package runner_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/settings"
	"thalweg/internal/io/remote"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// Whoever begins a run of a cluster while another one is being begun, whose note is there before the
// run is, or whoever died between the two, begins it.
func TestARunBeginsBesideOneThatIsNotThereYet(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"cluster.yaml": "version: 1\nstate: {directory: state}\nworker: {scratch: scratch}\n",
		"in.csv":       "id\n1\n",
		"script.yaml": "nodes:\n  read: {type: file_table, r: {urls: [" + dir +
			"/in.csv], types: {id: int}}, w: items}\n" +
			"  write: {type: table_file, r: items, w: " + dir + "/out.csv}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cfg, err := instance.LoadCluster(filepath.Join(dir, "cluster.yaml"), settings.Options{Known: nil})
	require.NoError(t, err)
	require.NoError(t, cluster.Init(t.Context(), cfg))
	home, err := instance.OpenCluster(t.Context(), cfg, instance.ClusterOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	require.NoError(t, home.State.PutNote(t.Context(), "main", state.OpenNote(99, "", time.Now())))
	client := remote.New(remote.Config{})
	defer client.Close()
	_, _, err = runner.Submit(t.Context(), home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
		Workspace: "main", Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 1, Remote: client}})
	require.NoError(t, err)
}
