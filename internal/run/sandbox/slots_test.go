package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

func TestABatchIsExecutedInAChild(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	res, err := b.execute("room copies announce pid")
	require.NoError(t, err)
	require.EqualValues(t, 3, res.Outcome.Stats.RowsOut)
	require.NotEqualValues(t, os.Getpid(), res.Outcome.Stats.RowsIn)
	again, err := b.execute("pid")
	require.NoError(t, err)
	require.Equal(t, res.Outcome.Stats.RowsIn, again.Outcome.Stats.RowsIn, "one process serves many batches")
}

func TestFailuresAreThoseOfTheChild(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	_, err := b.execute("fault")
	f := job.FailureOf(err, state.BatchKey{})
	require.Equal(t, state.Failure{Kind: fault.UserData, Message: "bad: below: file does not exist", Hint: "mend it",
		Detail: "long", Place: fault.Place{File: "f", Line: 7, Table: "t"}}, f)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = b.execute("plain")
	require.Equal(t, "unclassified failure: plain", job.FailureOf(err, state.BatchKey{}).Message)
	_, err = b.execute("panic")
	require.Equal(t, fault.Bug, fault.Of(err).Kind)
	require.Contains(t, fault.Of(err).Detail, "main_test.go")
	b.state.err = state.ErrLeaseLost
	_, err = b.execute("announce")
	require.ErrorIs(t, err, state.ErrLeaseLost)
}

// Each way to die costs the attempt and nothing else.
func TestAChildThatDiesCostsOneAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(cfg *sandbox.Config) { cfg.Silence = 2 * time.Second })
	for how, said := range map[string]string{
		"kill":  "the process of slot 1 ended while it was executing batch 3 of node hold part kill: signal: killed",
		"abort": "terminate called after throwing an instance of 'std::bad_function'",
		"exit":  "exit status 7",
		"oom":   "the system was probably out of memory",
		"stop":  "it was killed because it stood still for 2s",
	} {
		before, err := b.execute("pid")
		require.NoError(t, err)
		_, err = b.execute("hold part " + how)
		f := fault.Of(err)
		require.Equal(t, fault.Environment, f.Kind, how)
		require.True(t, f.Retryable, how)
		require.Contains(t, f.Message, said, how)
		require.Equal(t, how == "oom", bytes.Contains([]byte(f.Message),
			[]byte("the system was probably out of memory")),
			f.Message)
		require.NotEmpty(t, f.Hint)
		res, err := b.execute("room pid") // what the dead one held is free again
		require.NoError(t, err, how)
		require.NotEqual(t, before.Outcome.Stats.RowsIn, res.Outcome.Stats.RowsIn, how)
	}
	left, err := filepath.Glob(filepath.Join(b.dir, "slot-*"))
	require.NoError(t, err)
	require.Len(t, left, 1, "directories go with their processes")
}

func TestAChildThatDiesBetweenTwoBatchesCostsNothing(t *testing.T) {
	t.Parallel()
	var log buffer
	b := newBench(t, func(cfg *sandbox.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	res, err := b.execute("pid")
	require.NoError(t, err)
	pid := int(res.Outcome.Stats.RowsIn)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Eventually(t, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }, effort.Patience,
		time.Millisecond)
	require.Eventually(t, func() bool {
		_, err = b.execute("pid")
		return err == nil
	}, effort.Patience, time.Millisecond)
	require.NoError(t, err)
	require.Contains(t, log.String(), "slot=1")
	require.Contains(t, log.String(), "msg=begun")
}

func TestWhatAChildHasMadeIsPublishedOrDiscarded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(b.dir, name))
		return err == nil
	}
	res, err := b.execute("file part")
	require.NoError(t, err)
	require.NoError(t, res.Publish(t.Context()))
	require.NoError(t, res.Publish(t.Context()))
	require.True(t, has("out"))
	res.Discard() // the commit was refused
	require.False(t, has("discarded"))
	require.Equal(t, 1, b.state.forgot)
	b.noParts()

	res, err = b.execute("part file")
	require.NoError(t, err)
	res.Discard()
	require.True(t, has("discarded"))
	require.NoError(t, os.Remove(filepath.Join(b.dir, "discarded")))

	res, err = b.execute("publish-fails")
	require.NoError(t, err)
	require.ErrorContains(t, res.Publish(t.Context()), "no place")
	res.Discard()
	require.True(t, has("discarded"))

	res, err = b.execute("part")
	require.NoError(t, err)
	require.Nil(t, res.Publish)
	res.Discard()
	b.noParts()
}

func (b *bench) noParts() {
	b.t.Helper()
	for info, err := range b.parts.List(context.Background(), "", "") {
		require.NoError(b.t, err)
		require.Empty(b.t, info.Key)
	}
}

// A child may die between its result and the commit.
func TestAChildThatDiesBeforeTheCommit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	res, err := b.execute("file part pid")
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(int(res.Outcome.Stats.RowsIn), syscall.SIGKILL))
	err = res.Publish(t.Context())
	require.True(t, fault.Of(err).Retryable, err)
	require.ErrorContains(t, err, "publishing batch 3")
	res.Discard()
	b.noParts()

	res, err = b.execute("part publish-dies")
	require.NoError(t, err)
	err = res.Publish(t.Context())
	require.True(t, fault.Of(err).Retryable, err)
	require.ErrorContains(t, err, "signal: killed")
	require.Nil(t, b.discard(res))
	_, err = b.execute("room")
	require.NoError(t, err)
}

// discard discards a result, which has something.
func (b *bench) discard(res job.Result) error {
	b.t.Helper()
	require.NotNil(b.t, res.Discard)
	res.Discard()
	b.noParts()
	return nil
}

func TestACancelledExecutionComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(cfg *sandbox.Config) { cfg.Grace = 200 * time.Millisecond })
	for _, scene := range []string{"wait", "deaf"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := b.job.Execute(ctx, b.claim(scene))
			done <- err
		}()
		waiting := filepath.Join(b.dir, "waiting")
		require.Eventually(t, func() bool { _, err := os.Stat(waiting); return err == nil }, effort.Patience,
			time.Millisecond)
		require.NoError(t, os.Remove(waiting))
		cancel()
		require.True(t, job.Interrupted(<-done), scene)
	}
}

// Starts that fail are repeated, with pauses.
func TestAChildThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for how, said := range map[string]string{"die": "no such luck", "refuse": "it does not want to"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			starts := 0
			b := newBench(t, func(cfg *sandbox.Config) {
				command := cfg.Command
				cfg.Settings = json.RawMessage(`"` + how + `"`)
				cfg.Command = func() keeper.Program { starts++; return command() }
			})
			_, err := b.execute("pid")
			f := fault.Of(err)
			require.True(t, f.Retryable)
			require.Equal(t, fault.Environment, f.Kind)
			require.Contains(t, fmt.Sprint(err, fault.Of(f.Err).Detail), said)
			require.Equal(t, 5, starts)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = b.job.Execute(ctx, b.claim("pid"))
			require.True(t, job.Interrupted(err))
		})
	}
}

// A child ends with its parent, however that ends.
func TestAChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("THALWEG_TEST_PARENT"); dir != "" {
		b := newBench(t, nil)
		res, err := b.execute("pid")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "pid"), fmt.Appendf(nil, "%d", res.Outcome.Stats.RowsIn),
			0o600))
		_, _ = b.execute("deaf")
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAChildEndsWithItsParent$")
	cmd.Env = append(os.Environ(), "THALWEG_TEST_PARENT="+dir)
	require.NoError(t, cmd.Start())
	pid := 0
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "pid"))
		_, scanErr := fmt.Sscan(string(text), &pid)
		return err == nil && scanErr == nil
	}, effort.Patience, time.Millisecond)
	require.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { // it may be waited for by nobody
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	}, effort.Patience, time.Millisecond)
}

// buffer may be written and read at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
