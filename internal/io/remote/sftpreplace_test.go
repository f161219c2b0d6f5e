package remote

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/pkg/sftp"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/address"
)

// poorConn is a connection to a server of which nobody knows that it can rename to a name that is taken.
func poorConn(t *testing.T) *sftpConn {
	here, there := net.Pipe()
	server, err := sftp.NewServer(there)
	require.NoError(t, err)
	go func() { _ = server.Serve() }()
	client, err := sftp.NewClientPipe(here, here)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()); _ = client.Close() })
	return &sftpConn{Client: client}
}

// A server that cannot replace a file in one step: the file is replaced, and what was there stays if the
// new one is gone.
func TestReplaceInTwoSteps(t *testing.T) {
	t.Parallel()
	c, dir := poorConn(t), t.TempDir()
	final, temp := filepath.Join(dir, "x"), filepath.Join(dir, ".x.tmp")
	s := &sftpStaged{loc: address.Location{Path: final}, temp: temp}
	put := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	requireAlone := func(want string) {
		t.Helper()
		text, err := os.ReadFile(final)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
	put(final, "earlier")
	require.Error(t, s.replace(c))
	requireAlone("earlier")
	put(temp, "new")
	require.NoError(t, s.replace(c))
	requireAlone("new")

	// What a killed process was replacing gets its name again, or is removed if that is taken.
	put(temp+oldSuffix, "earlier")
	require.NoError(t, c.takeBack(temp, final))
	requireAlone("new")
	require.NoError(t, os.Rename(final, temp+oldSuffix))
	require.NoError(t, c.takeBack(temp, final))
	requireAlone("new")
}
