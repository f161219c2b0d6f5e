package cluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/settings"
	"thalweg/internal/test/remotetest"
)

// Each worker of a machine has copies of its own, the next one takes them over,
// and those that nobody has wanted for a day go.
func TestWorkersOfAMachineKeepCopiesApart(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "copies")
	first, firstLock, err := instance.TakeCopies(parent)
	require.NoError(t, err)
	second, secondLock, err := instance.TakeCopies(parent)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	for _, dir := range []string{first, second} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, firstLock.Close())
	again, againLock, err := instance.TakeCopies(parent)
	require.NoError(t, err)
	require.Equal(t, first, again)

	require.NoError(t, againLock.Close())
	require.NoError(t, secondLock.Close())
	old := time.Now().Add(-2 * instance.CopiesAge)
	require.NoError(t, os.Chtimes(second+instance.LockSuffix, old, old))
	again, againLock, err = instance.TakeCopies(parent)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.DirExists(t, first)
	require.NoDirExists(t, second)
	require.NoError(t, againLock.Close())
}

// What a worker has stored is at hand when it is started again; what a command has
// fetched is not.
func TestCopiesStayForTheNextWorker(t *testing.T) {
	t.Parallel()
	service, dir := remotetest.NewS3(t), t.TempDir()
	path := filepath.Join(dir, "cluster.yaml")
	require.NoError(t, os.WriteFile(path,
		fmt.Appendf(nil, "version: 1\nstate: {directory: state}\nparts: {s3: {url: \"s3://%s/parts\", endpoint: %q, "+
			"access_key: a, secret_key: b}}\nworker: {scratch: scratch}\n",
			service.Bucket, service.Endpoint), 0o600))
	cfg, err := instance.LoadCluster(path, settings.Options{Known: nil})
	require.NoError(t, err)
	require.NoError(t, Init(t.Context(), cfg))
	const key = "main/00001/00-a/b00000-a1-0000.parquet"
	for i, keep := range []bool{true, false, true} {
		home, err := instance.OpenCluster(t.Context(), cfg, instance.ClusterOptions{Keep: keep})
		require.NoError(t, err)
		held := home.Parts.(interface{ Holds(key string) bool })
		require.Equal(t, i == 2, held.Holds(key))
		if i == 0 {
			stage, err := home.Parts.Stage(t.Context())
			require.NoError(t, err)
			file, err := stage.File(t.Context())
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("rows"), 1000), 0o600))
			_, err = home.Parts.Put(t.Context(), key, file)
			require.NoError(t, err)
			require.NoError(t, stage.Close())
		}
		before := len(service.Requests())
		_, release, err := home.Parts.Fetch(t.Context(), key, "")
		require.NoError(t, err)
		release()
		require.Equal(t, keep, len(service.Requests()) == before, "opened as number %d", i)
		require.NoError(t, home.Close())
	}
}
