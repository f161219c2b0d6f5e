package notify_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/message"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/notify"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// sender is one whose commands run under a keeper.
func (b *bundle) sender(t *testing.T) *notify.Sender {
	self, err := os.Executable()
	require.NoError(t, err)
	return &notify.Sender{Post: b.post, Keeper: self, Known: b.known, Clock: b.clock,
		Logger:      slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Environment: func(name string) (string, bool) { v, ok := b.env[name]; return v, ok }}
}

// What a command prints is kept up to a limit, whatever it prints.
func TestCommandsPrintWithinBounds(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	err := b.sender(t).Send(t.Context(),
		script.Hook{Command: []string{"sh", "-c", "head -c 8000000 /dev/zero | tr '\\0' x"}, Timeout: time.Minute},
		message.Example(message.Done), t.TempDir())
	require.NoError(t, err)
	require.Contains(t, b.log.String(), "xxxx")
	require.Less(t, b.log.Len(), 64<<10)
}

// A request is never signed with nothing: anybody could.
func TestAnEmptySecretSignsNothing(t *testing.T) {
	t.Parallel()
	r := receive(t)
	b := newBundle(t)
	b.env = map[string]string{"KEY": ""}
	err := b.sender(t).Send(t.Context(), script.Hook{URL: r.URL, Secret: "{env.KEY}"},
		message.Example(message.Done), "")
	require.ErrorContains(t, err, "KEY")
	require.ErrorContains(t, err, "is empty")
	require.Empty(t, r.all())
	b.env["KEY"] = "whsec_"
	err = b.sender(t).Send(t.Context(), script.Hook{URL: r.URL, Secret: "{env.KEY}"}, message.Example(message.Done), "")
	require.ErrorContains(t, err, "is empty")
	b.env["KEY"] = "whsec_not base64!"
	err = b.sender(t).Send(t.Context(), script.Hook{URL: r.URL, Secret: "{env.KEY}"}, message.Example(message.Done), "")
	require.ErrorContains(t, err, "base64")
	require.NotContains(t, err.Error(), "not base64!")
	require.Empty(t, r.all())
}

// A command sees little of the environment: what its message is, what programs
// need to run, and what it names.
func TestCommandsSeeLittle(t *testing.T) {
	t.Setenv("THALWEG_TEST_PASSWORD", "T0P5ECRET")
	b := newBundle(t)
	b.env["THALWEG_TEST_NAMED"] = "wanted"
	out := filepath.Join(t.TempDir(), "env")
	h := script.Hook{Command: []string{"sh", "-c", "env > " + out}, Environment: []string{"THALWEG_TEST_NAMED",
		"THALWEG_TEST_UNSET"}, Timeout: time.Minute}
	m := message.Example(message.Waiting)
	m.Gate.Name = "$(touch evil); `id`\nTHALWEG_EVENT=forged"
	require.NoError(t, b.sender(t).Send(t.Context(), h, m, filepath.Dir(out)))
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NotContains(t, string(text), "T0P5ECRET")
	require.NotContains(t, string(text), "THALWEG_TEST_UNSET")
	require.Contains(t, string(text), "THALWEG_TEST_NAMED=wanted")
	require.Contains(t, string(text), "PATH="+os.Getenv("PATH"))
	require.Contains(t, string(text), "THALWEG_EVENT=waiting")
	require.NoFileExists(t, filepath.Join(filepath.Dir(out), "evil"))
}

// A command with a relative path is that of the run's directory, wherever this
// process is.
func TestCommandsOfTheRunsDirectory(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hook.sh"), []byte("#!/bin/sh\necho $THALWEG_EVENT > told\n"),
		0o700))
	require.NoError(t, b.sender(t).Send(t.Context(), script.Hook{Command: []string{"./hook.sh"}, Timeout: time.Minute},
		message.Example(message.Done), dir))
	text, err := os.ReadFile(filepath.Join(dir, "told"))
	require.NoError(t, err)
	require.Equal(t, "done\n", string(text))
}

// Forty hooks that fail, at a run with a hundred gates: the record fits into a note.
func TestRecordsStaySmall(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.poster = refuses{}
	for range 2 * script.MaxHooksCount {
		b.hooks = append(b.hooks, script.Hook{On: message.Kinds(), URL: "https://example.test/"})
	}
	nodes := []state.NodeSpec{{Name: "read", Kind: "file_table"}}
	for i := range 120 {
		nodes = append(nodes, state.NodeSpec{Name: "approval:" + strconv.Itoa(i), Kind: gate.Kind})
	}
	deadline := b.clock.Now().Add(time.Minute)
	key := b.run(t, state.Run{Deadline: deadline}, nodes...)
	teller := b.teller(t, "a")
	require.NoError(t, teller.Follow(t.Context(), key))
	for _, n := range nodes[1:] {
		require.NoError(t, b.store.MoveNode(t.Context(), state.NodeKey{RunKey: key, Node: n.Name},
			state.Move{From: state.Pending, To: state.Waiting, Gate: []byte("{}"), GateDigest: "d",
				Now: b.clock.Now()}))
	}
	fail(b, t, key)
	for range 20 {
		teller.Pass(t.Context())
		b.clock.add(10 * time.Minute)
	}
	require.LessOrEqual(t, b.box.most, state.NoteBytesMax)
	b.poster = nil
}

type refuses struct{}

func (refuses) Post(context.Context, remote.Post) (remote.Answer, error) {
	return remote.Answer{Status: http.StatusServiceUnavailable}, nil
}

// counts how often it is told of what, after it has refused for a while.
type counts struct {
	mu      sync.Mutex
	refuses bool
	events  map[string]bool
}

func (c *counts) Post(_ context.Context, p remote.Post) (remote.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuses {
		return remote.Answer{Status: http.StatusServiceUnavailable}, nil
	}
	_, rest, _ := strings.Cut(string(p.Body), `"event":"`)
	kind, _, _ := strings.Cut(rest, `"`)
	c.events[kind] = true
	return remote.Answer{Status: http.StatusOK}, nil
}

// However much is owed when a late run ends, it is told that it is late.
func TestLateIsToldWhenMuchIsOwed(t *testing.T) {
	t.Parallel()
	for opened := range 6 {
		b := newBundle(t, script.Hook{On: message.Kinds(), URL: "https://example.test/"})
		c := &counts{refuses: true, events: map[string]bool{}}
		b.poster = c
		nodes := []state.NodeSpec{{Name: "read", Kind: "file_table"}}
		for i := range opened {
			nodes = append(nodes, state.NodeSpec{Name: "approval:" + strconv.Itoa(i), Kind: gate.Kind})
		}
		key := b.run(t, state.Run{Token: strconv.Itoa(opened), Deadline: b.clock.Now().Add(time.Minute)}, nodes...)
		require.NoError(t, b.teller(t, "a").Follow(t.Context(), key))
		for _, n := range nodes[1:] {
			require.NoError(t, b.store.MoveNode(t.Context(), state.NodeKey{RunKey: key, Node: n.Name},
				state.Move{From: state.Pending, To: state.Waiting, Gate: []byte("{}"), GateDigest: "d",
					Now: b.clock.Now()}))
		}
		b.clock.add(time.Hour) // nobody is there
		fail(b, t, key)
		teller := b.teller(t, "a")
		teller.Pass(t.Context())
		c.refuses = false
		for range 20 {
			b.clock.add(10 * time.Minute)
			teller.Pass(t.Context())
		}
		require.True(t, c.events["late"] && c.events["failed"], "%d gates: %v", opened, c.events)
		require.Empty(t, b.box.records)
	}
}

// stuck is a server that does not answer for one run's hook.
type stuck struct {
	once sync.Once
	in   chan struct{}
	told chan string
}

func (s *stuck) Post(ctx context.Context, p remote.Post) (remote.Answer, error) {
	if strings.HasSuffix(p.URL, "/stuck") {
		s.once.Do(func() { close(s.in) })
		<-ctx.Done()
		return remote.Answer{}, ctx.Err()
	}
	s.told <- p.URL
	return remote.Answer{Status: http.StatusOK}, nil
}

// A hook that does not answer keeps those of other runs waiting for nothing.
func TestSlowHooksHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := &stuck{in: make(chan struct{}), told: make(chan string, 10)}
	b.poster = s
	b.hooksOf = func(run state.Run) []script.Hook {
		url := "https://example.test/well"
		if run.Run == 1 {
			url = "https://example.test/stuck"
		}
		return []script.Hook{{On: message.Kinds(), URL: url, Timeout: time.Hour}}
	}
	teller := b.teller(t, "a")
	for _, token := range []string{"a", "b"} {
		key := b.run(t, state.Run{Token: token})
		require.NoError(t, teller.Follow(t.Context(), key))
		fail(b, t, key)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		teller.Pass(ctx)
	}()
	<-s.in
	require.Equal(t, "https://example.test/well", <-s.told)
	cancel()
	<-done
}
