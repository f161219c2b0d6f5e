package keeper

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program sees of our environment what it is given, and nothing else.
func TestAProgramSeesWhatItIsGiven(t *testing.T) {
	t.Setenv("THALWEG_TEST_SECRET", "hunter2")
	for _, env := range [][]string{nil, {}, {"A=b"}, append(Some("THALWEG_TEST_NOTHING"), "A=b")} {
		var out bytes.Buffer
		end, err := Run(t.Context(), "", Program{Path: "/usr/bin/env", Env: env, Stdout: &out})
		require.NoError(t, err)
		require.Equal(t, "exit status 0", end.String())
		require.Equal(t, strings.Join(env, "\n"), strings.TrimSpace(out.String()))
	}
	require.Equal(t, []string{"THALWEG_TEST_SECRET=hunter2"}, Some("THALWEG_TEST_SECRET", "THALWEG_TEST_NOTHING"))
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	go func() {
		_, _ = read.Read(make([]byte, 1)) // it has begun
		end()
	}()
	how, err := Run(ctx, "", Program{Path: "/bin/sh", Args: []string{"-c", "echo; read nothing <&3"}, Stdout: write,
		Files: []*os.File{pipeOf(t)}})
	require.NoError(t, err)
	require.Equal(t, "signal: killed", how.String())
}

// pipeOf is a descriptor from which nothing comes.
func pipeOf(t *testing.T) *os.File {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { read.Close(); write.Close() })
	return read
}

func TestAProgramThatIsNotThere(t *testing.T) {
	t.Parallel()
	var missing *NotThereError
	_, err := Run(t.Context(), "", Program{Path: "thalweg-is-not-a-program"})
	require.ErrorAs(t, err, &missing)
	_, err = Find("thalweg-is-not-a-program")
	require.ErrorAs(t, err, &missing)
}
