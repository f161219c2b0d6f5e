package schedule

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/allow"
)

// Watches of a server see what its runs may read, and no more.
func TestWatchesSeePlacesOnly(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	in, other := filepath.Join(dir, "in"), filepath.Join(dir, "other")
	require.NoError(t, os.Mkdir(in, 0o700))
	require.NoError(t, os.Mkdir(other, 0o700))
	for name, files := range map[string]string{"elsewhere": other + "/*.csv", "by a link": in + "/link/*.csv",
		"by a wildcard": in + "/l*/*.csv", "one file": in + "/*.csv", "behind steps up": in + "/*/../../other/*.csv"} {
		w := newWorld(t, "watch: {files: '"+files+"', stable_for: 10s}\n")
		w.policy = &allow.Policy{Read: []string{in}}
		s := w.scheduler()
		w.write(t, filepath.Join(other, "secret.csv"), "1")
		_ = os.Symlink(other, filepath.Join(in, "link"))
		_ = os.Symlink(filepath.Join(other, "secret.csv"), filepath.Join(in, "secret.csv"))
		w.wait(t, s, time.Minute)
		w.wait(t, s, time.Minute)
		require.Empty(t, w.runs.begun, name)
		require.Empty(t, w.standing(t).Pending, name)
	}
	w := newWorld(t, "watch: {files: '"+in+"/*.csv', marker: '{file}.done'}\n")
	w.policy = &allow.Policy{Read: []string{in}}
	s := w.scheduler()
	w.write(t, filepath.Join(in, "a.csv"), "1")
	w.write(t, filepath.Join(other, "done"), "")
	require.NoError(t, os.Symlink(filepath.Join(other, "done"), filepath.Join(in, "a.csv.done")))
	w.wait(t, s, time.Minute)
	w.wait(t, s, time.Minute)
	require.Empty(t, w.runs.begun, "whether a marker is elsewhere is not told")
	require.Len(t, w.standing(t).Pending, 1)
}
