package runner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

func TestOpenRefusesWhatIsNoState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := instance.Open(context.Background(), filepath.Join(dir, "none"), false)
	require.ErrorContains(t, err, "there is no state in")
	require.Equal(t, fault.Script, fault.Of(err).Kind)

	broken := filepath.Join(dir, "broken")
	require.NoError(t, os.Mkdir(broken, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "state.db"),
		[]byte("this is no database, whatever its name says, and long enough to be looked at"), 0o600))
	_, err = instance.Open(context.Background(), broken, true)
	require.Error(t, err, "and no panic")
}

// A process stands still while it makes or clears directories for temporary
// files: whoever looks at the state does not wait for it.
func TestOpenBesideOneThatStandsStill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home, err := instance.Open(t.Context(), dir, true)
	require.NoError(t, err)
	require.NoError(t, home.Close())
	guard, err := os.OpenFile(filepath.Join(dir, "tmp", "guard"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer guard.Close()
	require.NoError(t, unix.Flock(int(guard.Fd()), unix.LOCK_EX))
	opened := make(chan error, 1)
	go func() {
		home, err := instance.Open(context.Background(), dir, false)
		if err == nil {
			err = home.Close()
		}
		opened <- err
	}()
	select {
	case err = <-opened:
	case <-time.After(time.Minute):
		_ = unix.Flock(int(guard.Fd()), unix.LOCK_UN)
		err = errors.Join(errors.New("it waits"), <-opened)
	}
	require.NoError(t, err)
}

func TestLockSaysWhetherARunIsDriven(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	home, err := instance.Open(context.Background(), t.TempDir(), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	key := state.RunKey{Workspace: "w", Run: 1}
	run := state.Run{RunKey: key, Status: state.Running}
	require.True(t, home.Interrupted(run), "nobody drives it")
	lock, alone, err := home.JoinRun(key)
	require.NoError(t, err)
	require.True(t, alone)
	require.False(t, home.Interrupted(run))
	second, alone, err := home.JoinRun(key)
	require.NoError(t, err)
	require.False(t, alone)
	require.NoError(t, lock.Close())
	require.False(t, home.Interrupted(run), "the other one works on it")
	require.NoError(t, second.Close())
	require.True(t, home.Interrupted(run))
	run.Status = state.Complete
	require.False(t, home.Interrupted(run))
}

func TestWorkspaceNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{"main": true, "a-b_9": true, "": false, "../x": false, "a b": false,
		"-a": false} {
		require.Equal(t, ok, instance.CheckWorkspace(name) == nil, name)
	}
}
