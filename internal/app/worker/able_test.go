package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/keeper"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

func silentAble(dir string) *able {
	return newAble(&Server{Runtime: &runtime.Runtime{Instance: &instance.Instance{Dir: filepath.Dir(dir)},
		WorkDir: dir},
		opts: WorkerOptions{Process: runtime.Process{Logger: slog.New(slog.DiscardHandler)}}})
}

// A worker whose scratch directory is full says so, takes nothing, and goes on when there is room.
func TestAFullScratchDirectory(t *testing.T) {
	t.Parallel()
	a := silentAble(filepath.Join(t.TempDir(), "scratch", "4711"))
	var full atomic.Bool
	a.probe = func(dir string) error {
		if full.Load() {
			return &fs.PathError{Op: "write", Path: dir, Err: syscall.ENOSPC}
		}
		return nil
	}
	ctx, end := context.WithCancel(t.Context())
	changed := make(chan struct{}, 9)
	var loop sync.WaitGroup
	loop.Go(func() { a.watch(ctx, func() { changed <- struct{}{} }) })
	require.NoError(t, a.wait(ctx))
	full.Store(true)
	a.look()
	<-changed
	require.False(t, a.is())
	_, cannot, _ := a.told()
	require.Len(t, cannot, 1)
	require.Contains(t, cannot[0], "scratch cannot be written: no space left on device")
	waited := make(chan error)
	go func() { waited <- a.wait(ctx) }()
	full.Store(false)
	a.look()
	require.NoError(t, <-waited)
	<-changed
	_, cannot, _ = a.told()
	require.Empty(t, cannot)
	full.Store(true)
	a.look()
	<-changed
	end()
	require.ErrorIs(t, a.wait(ctx), context.Canceled)
	loop.Wait()
}

func TestProbeOfScratch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, probeScratch(dir))
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.ErrorIs(t, probeScratch(filepath.Join(dir, "gone")), fs.ErrNotExist)
}

// An interpreter that was killed while it was asked is asked again; one that is not there is
// none, and is looked for again.
func TestTheInterpreterIsAskedAgain(t *testing.T) {
	t.Parallel()
	a := silentAble(t.TempDir())
	times := 0
	a.python = func(context.Context) (string, error) {
		if times++; times == 1 {
			return "", errors.New("signal: killed")
		}
		return "CPython 3.99.1", nil
	}
	var said []string
	a.askPython(t.Context(), func() {
		version, _, notices := a.told()
		said = append(append(said, version), notices...)
	})
	require.Equal(t, []string{"unknown", "signal: killed", "CPython 3.99.1"}, said)

	a = silentAble(t.TempDir())
	ctx, end := context.WithCancel(t.Context())
	a.python = func(context.Context) (string, error) { return "", &keeper.NotThereError{Err: exec.ErrNotFound} }
	a.askPython(ctx, end)
	version, _, notices := a.told()
	require.Equal(t, "none", version)
	require.Empty(t, notices, "runs without Python need none")
}

// What was odd in the broker is told for a while.
func TestOddMessages(t *testing.T) {
	t.Parallel()
	now := time.Now()
	require.Empty(t, oddMessages(queue.Stats{}, now))
	said := oddMessages(queue.Stats{Newer: 60, NewerAt: now, Malformed: 1, MalformedAt: now}, now)
	require.Len(t, said, 2)
	require.Contains(t, said[0], "60 messages of a later version of Thalweg")
	require.Contains(t, said[1], "1 message that nobody can read")
	require.Empty(t, oddMessages(queue.Stats{Newer: 60, NewerAt: now.Add(-time.Hour)}, now))
}

// Why nobody goes on with a run follows from what the workers say of themselves.
func TestNobodyTakes(t *testing.T) {
	t.Parallel()
	at := []registry.RunAt{{Workspace: "w", Run: 1}}
	refuses := func(passes bool) []registry.RunAt {
		return []registry.RunAt{{Workspace: "w", Run: 1, Why: "it lacks x", Passes: passes}}
	}
	full := []string{"its scratch directory is full"}
	for name, c := range map[string]struct {
		workers []registry.WorkerEntry
		want    string
	}{
		"nobody":                      {nil, "no worker is there"},
		"one that has not looked yet": {[]registry.WorkerEntry{{}}, ""},
		"one at work":                 {[]registry.WorkerEntry{{Runs: at}}, ""},
		"one at work, one full":       {[]registry.WorkerEntry{{Runs: at}, {Cannot: full}}, ""},
		"one that is full": {[]registry.WorkerEntry{{Cannot: full}},
			"can work on it now: h (process 7): its scratch directory is full"},
		"one at work that is full": {[]registry.WorkerEntry{{Runs: at, Cannot: full}},
			"can work on it now: h (process 7): its scratch"},
		"one that refuses": {[]registry.WorkerEntry{{Refused: refuses(false)}},
			"can take it: h (process 7): it lacks x"},
		"one that refuses for now": {[]registry.WorkerEntry{{Refused: refuses(true)}},
			"can work on it now: h (process 7): it lacks x"},
		"both": {[]registry.WorkerEntry{{Refused: refuses(false)}, {Cannot: full}},
			"it lacks x; h (process 7): its scratch directory is full"},
		"one that leaves": {[]registry.WorkerEntry{{Draining: true}}, "were asked to end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, err := instance.Open(t.Context(), t.TempDir(), true)
			require.NoError(t, err)
			defer func() { require.NoError(t, home.Close()) }()
			home.ClusterConfig = &clusterconfig.Config{Path: "cluster.yaml"}
			key, err := home.State.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: "w"}, Token: "t",
				Created: time.Now()}, []state.NodeSpec{{Name: "n", Kind: "k"}})
			require.NoError(t, err)
			for i, w := range c.workers {
				w.Owner, w.Host, w.PID = job.Owner(), "h", 7
				data, err := json.Marshal(w)
				require.NoError(t, err)
				require.NoError(t, home.State.PutNote(t.Context(), registry.FleetWorkspace,
					state.Note{Topic: registry.TopicWorkers, Name: string(rune('a' + i)), Data: data,
						Time: home.Clock.Now()}))
			}
			text, _, err := registry.NobodyTakes(t.Context(), home, key)
			require.NoError(t, err)
			if c.want == "" {
				require.Empty(t, text)
			} else {
				require.Contains(t, text, c.want)
			}
		})
	}
	require.Less(t, 10*registry.CandidatesLook, effort.Patience)
}
