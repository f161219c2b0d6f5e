package control

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/state"
)

// TestPresenceInState is TestLockSaysWhetherARunIsDriven for processes that share no files.
func TestPresenceInState(t *testing.T) {
	t.Parallel()
	home, err := instance.Open(t.Context(), t.TempDir(), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	home.Liveness = instance.StateNotes{Store: home.State, Clock: home.Clock}
	key, err := home.State.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: "w"}, Token: "t",
		Created: time.Now()}, []state.NodeSpec{{Name: "n", Kind: "k"}})
	require.NoError(t, err)
	run := state.Run{RunKey: key, Status: state.Running}
	require.True(t, home.Interrupted(run))

	lock, alone, err := home.JoinRun(key)
	require.NoError(t, err)
	require.True(t, alone)
	require.False(t, home.Interrupted(run))
	second, alone, err := home.JoinRun(key)
	require.NoError(t, err)
	require.False(t, alone)
	_, ok, err := home.EnterEmpty(key)
	require.NoError(t, err)
	require.False(t, ok, "two work on it")
	require.NoError(t, lock.Close())
	require.False(t, home.Interrupted(run), "the other one works on it")
	require.NoError(t, second.Close())
	require.NoError(t, second.Close(), "closing twice is closing once")
	require.True(t, home.Interrupted(run))

	cleared, ok, err := home.EnterEmpty(key)
	require.NoError(t, err)
	require.True(t, ok)
	_, ok, err = home.Liveness.Empty(key, false)
	require.NoError(t, err)
	require.False(t, ok, "somebody clears it")
	require.NoError(t, cleared.Close())
	lock, alone, err = home.JoinRun(key)
	require.NoError(t, err)
	require.True(t, alone)
	require.NoError(t, lock.Close())
}

// TestPresenceOfOtherMachines has notes of processes that nobody here can look at.
func TestPresenceOfOtherMachines(t *testing.T) {
	t.Parallel()
	home, err := instance.Open(t.Context(), t.TempDir(), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	home.Liveness = instance.StateNotes{Store: home.State, Clock: home.Clock}
	key := state.RunKey{Workspace: "w", Run: 7}
	for age, want := range map[time.Duration]struct{ atWork, empty bool }{
		0:               {true, false},
		-time.Minute:    {true, false},  // its clock is ahead
		time.Minute:     {false, false}, // late, or its clock is behind: nobody clears what it may write
		6 * time.Minute: {false, true},
	} {
		require.NoError(t, home.State.PutNote(t.Context(), key.Workspace,
			state.Note{Topic: instance.TopicAtWork + state.RunName(key.Run), Name: "elsewhere/1/2#x", Run: key.Run,
				Time: time.Now().Add(-age)}))
		require.Equal(t, want.atWork, home.AtWork(key), age)
		lock, ok, err := home.Liveness.Empty(key, false)
		require.NoError(t, err)
		require.Equal(t, want.empty, ok, age)
		if ok {
			require.NoError(t, lock.Close())
		}
	}
}

// TestOneCollectsInACluster: machines share no files, so a role keeps the second gc out.
func TestOneCollectsInACluster(t *testing.T) {
	t.Parallel()
	home, err := instance.Open(t.Context(), t.TempDir(), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	home.ClusterConfig = &clusterconfig.Config{}
	done, err := collectAlone(t.Context(), home, "w")
	require.NoError(t, err, "there is nothing to collect")
	require.NoError(t, done())
	key, err := home.State.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: "w"}, Token: "t",
		Created: time.Now()}, []state.NodeSpec{{Name: "n", Kind: "k"}})
	require.NoError(t, err)
	done, err = collectAlone(t.Context(), home, "w")
	require.NoError(t, err)
	_, err = collectAlone(t.Context(), home, "w")
	require.ErrorContains(t, err, "another gc is at work")
	require.NoError(t, done())
	host, err := os.Hostname()
	require.NoError(t, err)
	now := time.Now()
	_, err = home.State.Acquire(t.Context(), key, roleCollect, host+"/999999999/1#x", now, now.Add(time.Hour))
	require.NoError(t, err)
	done, err = collectAlone(t.Context(), home, "w")
	require.NoError(t, err, "the other one has died")
	require.NoError(t, done())
}
