package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
	"thalweg/internal/test/effort"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a run in a file that two stores have open: the hub's, and another process's.
type fixture struct {
	hub    *Hub
	store  state.Store // wakes the hub
	other  *sqlite.Store
	key    state.RunKey
	orders atomic.Int64
	reads  atomic.Int64 // of the sequence
}

func open(t testing.TB, lines int, pace time.Duration) *fixture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	own, err := sqlite.OpenScratch(context.Background(), path)
	require.NoError(t, err)
	f := &fixture{}
	f.other, err = sqlite.OpenScratch(context.Background(), path)
	require.NoError(t, err)
	counted := state.Around(own, func(ctx context.Context, op state.Op, call func(context.Context) error) error {
		if op.Method == state.OpSequence {
			f.reads.Add(1)
		}
		return call(ctx)
	})
	f.hub = New(Config{Store: counted, Version: own, Logger: slog.New(slog.DiscardHandler), ringLines: lines, pace: pace,
		List: func(ctx context.Context, key state.RunKey) (any, error) {
			return history.One(ctx, own, key, history.ListOptions{All: true})
		}})
	f.store = f.hub.Waking(counted)
	t.Cleanup(func() {
		require.NoError(t, errors.Join(f.hub.Close(), own.Close(), f.other.Close()))
	})
	f.key, err = f.store.CreateRun(context.Background(), state.Run{RunKey: state.RunKey{Workspace: "w"}, Token: "t",
		Created: time.Now()}, []state.NodeSpec{{Name: "n", Kind: "x"}})
	require.NoError(t, err)
	return f
}

// order gives orders to the run, each of which makes events.
func (f *fixture) order(t require.TestingT, by state.Store, count int) {
	for range count {
		n := f.orders.Add(1)
		kind := state.CommandPause
		if n%2 == 0 {
			kind = state.CommandUnpause
		}
		require.NoError(t, state.Direct(context.Background(), by, f.key, state.Command{Kind: kind,
			Token: fmt.Sprint("order ", n), Mark: state.Mark{Actor: "me", Time: time.Now()}}))
	}
}

// all returns the stream of the run.
func (f *fixture) all(t require.TestingT) (out []string) {
	stream := history.NewStream(f.other, f.key, 0)
	for {
		lines, err := stream.Next(context.Background(), state.PageMax)
		require.NoError(t, err)
		if len(lines) == 0 {
			return out
		}
		for _, l := range lines {
			out = append(out, string(encode(l)))
		}
	}
}

// hear collects lines until there are as many.
func hear(ctx context.Context, l *Listener, count int) (out []string, err error) {
	for len(out) < count {
		lines, err := l.Next(ctx, 7)
		if err != nil {
			return out, err
		}
		for _, line := range lines {
			out = append(out, string(line.JSON))
		}
	}
	return out, nil
}

func TestOneFollowerForAll(t *testing.T) {
	t.Parallel()
	const listeners = 200
	f := open(t, 0, 0)
	f.order(t, f.store, 3)
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	begun := len(f.all(t))
	want := begun + 20*3 // events that an order makes
	var group sync.WaitGroup
	heard := make([][]string, listeners)
	failed := make([]error, listeners)
	var ready sync.WaitGroup
	ready.Add(listeners)
	for i := range listeners {
		group.Go(func() {
			l, err := f.hub.Run(ctx, f.key, int64(i%begun))
			ready.Done()
			if failed[i] = err; err == nil {
				defer l.Close()
				heard[i], failed[i] = hear(ctx, l, want-i%begun)
			}
		})
	}
	ready.Wait()
	before := f.reads.Load()
	for range 10 {
		f.order(t, f.store, 1)
		f.order(t, f.other, 1)
	}
	group.Wait()
	require.Less(t, f.reads.Load()-before, int64(listeners/2+100), "reads do not grow with listeners")
	all := f.all(t)
	require.Len(t, all, want)
	for i := range listeners {
		require.NoError(t, failed[i], i)
		require.Equal(t, all[i%begun:], heard[i], "listener %d", i)
	}
}

// What this process and what another one writes is heard soon.
func TestSoon(t *testing.T) {
	t.Parallel()
	f := open(t, 0, 0)
	ctx := t.Context()
	l, err := f.hub.Run(ctx, f.key, 0)
	require.NoError(t, err)
	defer l.Close()
	_, err = hear(ctx, l, len(f.all(t)))
	require.NoError(t, err)
	for name, by := range map[string]state.Store{"own": f.store, "another process": f.other} {
		longest := time.Duration(0)
		for range 5 {
			before := len(f.all(t))
			begun := time.Now()
			f.order(t, by, 1)
			_, err := hear(ctx, l, len(f.all(t))-before)
			require.NoError(t, err)
			longest = max(longest, time.Since(begun))
		}
		require.Less(t, longest, quietEvery, "%s: nobody woke it", name)
		t.Logf("%s: %s at most", name, longest)
	}
}

func TestSlowListenerIsPassed(t *testing.T) {
	t.Parallel()
	f := open(t, 5, 0)
	ctx := t.Context()
	slow, err := f.hub.Run(ctx, f.key, 0)
	require.NoError(t, err)
	begun := len(f.all(t))
	f.order(t, f.store, 1)
	got, err := hear(ctx, slow, begun+1)
	require.NoError(t, err)
	f.order(t, f.store, 10)
	require.Eventually(t, func() bool {
		_, err := slow.Next(ctx, 1)
		return errors.Is(err, ErrPassed)
	}, effort.Patience, time.Millisecond)
	slow.Close()
	again, err := f.hub.Run(ctx, f.key, int64(len(got)))
	require.NoError(t, err)
	defer again.Close()
	all := f.all(t)
	rest, err := hear(ctx, again, len(all)-len(got))
	require.NoError(t, err)
	require.Equal(t, all, append(got, rest...), "without gap or double")
}

func TestFollowersEnd(t *testing.T) {
	t.Parallel()
	f := open(t, 0, 0)
	l, err := f.hub.Run(t.Context(), f.key, 0)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := l.Next(context.Background(), 10); err != nil {
				ended <- err
				return
			}
		}
	}()
	require.NoError(t, f.hub.Close())
	require.ErrorIs(t, <-ended, errEnded)
	l.Close()
	_, err = f.hub.Run(t.Context(), state.RunKey{Workspace: "w", Run: 2}, 0)
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	f := open(t, 0, 0)
	l, err := f.hub.Workspace("w")
	require.NoError(t, err)
	defer l.Close()
	next := func() string {
		lines, err := l.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, lines, 1)
		require.Equal(t, "run", lines[0].Event)
		return string(lines[0].JSON)
	}
	require.Contains(t, next(), `"status":"running"`, "first, what is open")
	f.order(t, f.other, 1)
	require.Contains(t, next(), `"status":"paused"`)
	require.NoError(t, state.Direct(t.Context(), f.store, f.key, state.Command{Kind: state.CommandStop, Token: "end",
		Mark: state.Mark{Actor: "me", Time: time.Now()}}))
	require.Contains(t, next(), `"status":"stopped"`, "it is told how a run ended")
}

// Whoever comes whenever, from whichever line on, hears the run's stream.
func TestEachListenerHearsTheStream(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := open(t, rapid.IntRange(1, 8).Draw(rt, "lines of the ring"), time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
		defer cancel()
		listeners, heard := map[int]*Listener{}, map[int][]string{}
		defer func() {
			for _, l := range listeners {
				l.Close()
			}
		}()
		come := func(i int) {
			var err error
			listeners[i], err = f.hub.Run(ctx, f.key, int64(len(heard[i])))
			require.NoError(rt, err)
		}
		read := func(i, count int) {
			for len(heard[i]) < count {
				lines, err := listeners[i].Next(ctx, 3)
				if errors.Is(err, ErrPassed) {
					listeners[i].Close()
					come(i)
					continue
				}
				require.NoError(rt, err)
				for _, line := range lines {
					heard[i] = append(heard[i], string(line.JSON))
				}
			}
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch i := rapid.IntRange(0, 2).Draw(rt, "listener"); rapid.IntRange(0, 2).Draw(rt, "step") {
			case 0:
				f.order(rt, f.store, rapid.IntRange(1, 3).Draw(rt, "orders"))
			case 1:
				if listeners[i] == nil {
					come(i)
				}
			case 2:
				if listeners[i] != nil {
					read(i, rapid.IntRange(0, len(f.all(rt))).Draw(rt, "lines"))
				}
			}
		}
		all := f.all(rt)
		for i := range listeners {
			read(i, len(all))
			require.Equal(rt, all, heard[i])
		}
		cancel()
		require.NoError(rt, f.hub.Close())
	})
}
