package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// TestTableIndexKilled: whoever kills a build that is under way leaves the file as it was, or none.
func TestTableIndexKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(`nodes:
  read:
    type: file_table
    r: {urls: [in.csv], types: {id: int, text: string}}
    w: t
`), 0o600))
	rows := []byte("id,text\n")
	for i := range 300_000 {
		rows = fmt.Appendf(rows, "%d,a text that is somewhat longer than a number: %[1]d\n", i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), rows, 0o600))
	out, err := thalweg(t.Context(), dir, "run", "script.yaml").CombinedOutput()
	require.NoError(t, err, string(out))
	name := filepath.Join(dir, "index", "t.twx")
	require.NoError(t, os.Mkdir(filepath.Dir(name), 0o700))
	const before = "TWINDEX\nof before"
	for _, there := range []bool{false, true} {
		if there {
			require.NoError(t, os.WriteFile(name, []byte(before), 0o600))
		}
		cmd := thalweg(t.Context(), dir, "table-index", "1.t", "--key", "id", "-o", name)
		said, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(said)
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "300,000 rows")
		var begun []string
		require.Eventually(t, func() bool { // it writes beside the name
			begun, err = filepath.Glob(filepath.Join(dir, "index", ".t.twx-*"))
			return err == nil && len(begun) > 0
		}, effort.Patience, time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait(), "it was killed")
		content, err := os.ReadFile(name)
		if !there {
			require.ErrorIs(t, err, os.ErrNotExist)
			require.NoError(t, os.Remove(begun[0]))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, before, string(content))
	}
	out, err = thalweg(t.Context(), dir, "table-index", "1.t", "--key", "id", "-o", name).CombinedOutput()
	require.NoError(t, err, string(out))
}
