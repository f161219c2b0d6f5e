package worker

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// shaky is a state of which some calls fail.
type shaky struct {
	state.Store
	failures atomic.Int32 // of Notes that are still to come
	err      error
	bad      int64 // a run that cannot be read
}

var errDamaged = &fault.Error{Kind: fault.Environment, Message: "the record is damaged"}

func (s *shaky) Notes(ctx context.Context, workspace, topic, after string, most int) ([]state.Note, error) {
	if s.failures.Add(-1) >= 0 {
		return nil, s.err
	}
	return s.Store.Notes(ctx, workspace, topic, after, most)
}

func (s *shaky) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	if key.Run == s.bad {
		return state.Run{}, errDamaged
	}
	return s.Store.Run(ctx, key)
}

// Whoever has submitted a run waits for a state that is away for a moment.
func TestAwaitCandidatesWaitsForTheState(t *testing.T) {
	t.Parallel()
	home, err := instance.Open(t.Context(), t.TempDir(), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	key, err := home.State.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: "w"}, Token: "t",
		Created: time.Now()}, []state.NodeSpec{{Name: "n", Kind: "k"}})
	require.NoError(t, err)
	data := fmt.Sprintf(`{"owner": %q, "host": "h", "runs": [{"workspace": "w", "run": %d}]}`, job.Owner(), key.Run)
	require.NoError(t, home.State.PutNote(t.Context(), registry.FleetWorkspace,
		state.Note{Topic: registry.TopicWorkers, Name: "x",
			Data: []byte(data), Time: home.Clock.Now()}))
	away := &shaky{Store: home.State, err: &fault.Error{Kind: fault.Environment, Message: "away", Retryable: true}}
	away.failures.Store(3)
	home.State = away
	c, err := registry.AwaitCandidates(t.Context(), home, key, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.True(t, c.Taken)
	require.Negative(t, away.failures.Load())
}

// A run is stopped where no worker can take it: what passes by itself is told, and no reason for that.
func TestRefusalsThatPass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		passes bool
	}{
		{&fault.Error{Kind: fault.Environment, Message: "it is being cleared", Retryable: true}, true},
		{fmt.Errorf("read the run: %w", state.ErrUnknown), true},
		{fmt.Errorf("write to the scratch directory: %w", syscall.ENOSPC), true},
		{&fault.Error{Kind: fault.Script, Message: "there is no module x"}, false},
		{fs.ErrPermission, false},
	} {
		s := &Server{able: &able{},
			opts:    WorkerOptions{Process: runtime.Process{Logger: slog.New(slog.DiscardHandler)}},
			refused: map[string]refusal{"of yesterday": {}}, changed: make(chan struct{}, 1)}
		s.refuse("how", state.Run{RunKey: state.RunKey{Workspace: "w", Run: 1}}, c.err)
		require.NotEmpty(t, s.refused["how"].why, "%v", c.err)
		require.Equal(t, c.passes, s.refused["how"].passes, "%v", c.err)
		require.Len(t, s.refused, 1)
	}
}

// A record that cannot be read keeps no worker from the other runs.
func TestAWorkerGoesOnPastWhatItCannotRead(t *testing.T) {
	t.Parallel()
	home, err := instance.Open(t.Context(), t.TempDir(), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	var keys []state.RunKey
	for range 3 {
		key, err := home.State.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: "w"},
			Token: fmt.Sprint(len(keys)), Created: time.Now()}, []state.NodeSpec{{Name: "n", Kind: "k"}})
		require.NoError(t, err)
		keys = append(keys, key)
	}
	var seen []int64
	s := &Server{able: &able{}, changed: make(chan struct{}, 1),
		Runtime: &runtime.Runtime{Store: &shaky{Store: home.State, bad: keys[1].Run}}, joined: map[state.RunKey]bool{},
		unread: map[string]string{},
		opts: WorkerOptions{Process: runtime.Process{Logger: slog.New(slog.DiscardHandler)},
			Wants: func(r state.Run) bool { seen = append(seen, r.Run); return false }}}
	require.NoError(t, s.join(t.Context()))
	require.Equal(t, []int64{keys[0].Run, keys[2].Run}, seen)
	require.Contains(t, s.unread["w"], errDamaged.Error())
	_, _, notices := s.able.told()
	require.Len(t, notices, 1)
	require.Contains(t, notices[0], errDamaged.Error())
}

// A worker that comes to others of its machine says whom it shares the memory with, and what is too much.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	me := registry.WorkerEntry{Owner: "me", Host: "h", Scratch: "/a", Memory: 6 * gib}
	with := func(others ...registry.WorkerEntry) []registry.WorkerEntry { return append(others, me) }
	one := func(scratch string) registry.WorkerEntry {
		return registry.WorkerEntry{Owner: "x", Host: "h", Scratch: scratch, Memory: 5 * gib}
	}
	elsewhere, gone := one("/b"), one("/b")
	elsewhere.Host, gone.Gone = "i", true
	for _, c := range []struct {
		name            string
		workers         []registry.WorkerEntry
		shared, tooMuch string
	}{
		{"alone", with(), "", ""},
		{"on other machines, gone, or of a version that does not tell", with(elsewhere, gone, one("")), "", ""},
		{"with the same directory", with(one("/a")), "2 workers of this machine divide 5.0 GiB of memory", ""},
		{"with another", with(one("/b")), "",
			"1 worker of this machine with other scratch directories has 5.0 GiB of memory; together 11.0 GiB of " +
				"10.0 GiB: give each less ({{set memory}}, or worker: {memory: …})"},
		{"its own note has not come yet", []registry.WorkerEntry{one("/b"), one("/c")}, "",
			"2 workers of this machine with other scratch directories have 10.0 GiB of memory; together 16.0 GiB " +
				"of 10.0 GiB"},
	} {
		shared, tooMuch := neighboursOf(me, c.workers, 10*gib)
		require.True(t, strings.HasPrefix(shared, c.shared) && (shared == "") == (c.shared == ""),
			"%s: %s", c.name, shared)
		require.True(t, strings.HasPrefix(tooMuch, c.tooMuch) && (tooMuch == "") == (c.tooMuch == ""), "%s: %s",
			c.name, tooMuch)
	}
	_, tooMuch := neighboursOf(me, with(one("/b")), 11*gib)
	require.Empty(t, tooMuch, "it is enough for all")
}

// While one run is being joined, which may take long, hints of others go elsewhere, and those
// of the same run wait for it.
func TestEntersOther(t *testing.T) {
	t.Parallel()
	a, b := state.RunKey{Workspace: "w", Run: 1}, state.RunKey{Workspace: "w", Run: 2}
	s := &Server{}
	require.False(t, s.entersOther(a))
	s.entering(a)
	require.False(t, s.entersOther(a))
	require.True(t, s.entersOther(b))
	s.entering(state.RunKey{})
	require.False(t, s.entersOther(b))
}

// A worker that ends while it writes its note lets that be written: cut off, it could arrive
// after the note was removed.
func TestANoteIsWrittenWhole(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	s := &Server{changed: make(chan struct{}, 1)}
	s.changed <- struct{}{}
	var said error
	s.keepSaying(ctx, func(ctx context.Context) error {
		end()
		_, bounded := ctx.Deadline()
		require.True(t, bounded)
		said = ctx.Err()
		return said
	})
	require.NoError(t, said)
}
