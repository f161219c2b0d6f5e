package durable

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where two names cannot be exchanged, the directory that is there stays if the new one is gone:
// before the first step, and between the two.
func TestSwapWithoutTheNewOne(t *testing.T) {
	t.Parallel()
	for _, when := range []Step{"", Rename} {
		dir := t.TempDir()
		from, to, old := filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "old")
		require.NoError(t, os.Mkdir(to, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(to, "x"), nil, 0o600))
		if when == Rename {
			require.NoError(t, os.Mkdir(from, 0o700))
		}
		files := Watched(func(op Op, do func() error) error {
			err := do()
			if op.Step == when && op.Path == old {
				require.NoError(t, os.Remove(from))
			}
			return err
		})
		require.ErrorIs(t, files.swap(from, to, old), fs.ErrNotExist)
		require.FileExists(t, filepath.Join(to, "x"))
		require.NoDirExists(t, old)
	}
}
