package serving_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/serving"
)

// The address that lets in is not among the arguments of a program, which everybody on the machine sees.
func TestOpenPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opener := filepath.Join(dir, "opener")
	require.NoError(t, os.WriteFile(opener, []byte("#!/bin/sh\necho \"$@\" >"+dir+"/said\n"), 0o700))
	const page = "http://127.0.0.1:1/start?next=%2Fw%2Fmain&x=\"#secret"
	require.NoError(t, serving.OpenPage(t.Context(), opener, dir, page))
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	require.NoError(t, err)
	file := strings.TrimSpace(string(said))
	is, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), is.Mode().Perm())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `content="0;url=http://127.0.0.1:1/start?next=%2Fw%2Fmain&amp;x=&#34;#secret"`)
	require.Empty(t, serving.DesktopOpener(func(name string) string { return map[string]string{"SSH_TTY": "x"}[name] }))
	require.ErrorContains(t, serving.OpenPage(t.Context(), "/bin/false", dir, page), "exit status 1")
}
