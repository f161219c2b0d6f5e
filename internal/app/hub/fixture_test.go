package hub

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
	"thalweg/internal/test/statetest/hostile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a run in a state that two processes have open: the hub's, and another one.
type fixture struct {
	hub    *Hub
	store  state.Store // wakes the hub
	other  state.Store
	key    state.RunKey
	orders atomic.Int64
	reads  atomic.Int64          // calls of the hub
	looks  atomic.Int64          // likewise, for the sequence
	broken atomic.Pointer[error] // with which calls of the hub fail; nil: they do not
}

// open opens a state in a file.
func open(t testing.TB, cfg Config) *fixture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	own, err := sqlite.OpenScratch(context.Background(), path)
	require.NoError(t, err)
	other, err := sqlite.OpenScratch(context.Background(), path)
	require.NoError(t, err)
	cfg.Watch = own
	f := openOn(t, own, other, cfg)
	t.Cleanup(func() { require.NoError(t, errors.Join(f.hub.Close(), own.Close(), other.Close())) })
	return f
}

// openMemory opens a state in memory, as one of a cluster: nothing tells of what others write. The caller closes the hub.
func openMemory(t testing.TB, cfg Config) *fixture {
	t.Helper()
	s := hostile.New()
	return openOn(t, s.Open(), s.Open(), cfg)
}

func openOn(t testing.TB, own, other state.Store, cfg Config) *fixture {
	t.Helper()
	f := &fixture{other: other}
	counted := state.Around(own, func(ctx context.Context, op state.Op, call func(context.Context) error) error {
		if err := f.broken.Load(); err != nil {
			return *err
		}
		f.reads.Add(1)
		if op.Method == state.OpSequence {
			f.looks.Add(1)
		}
		return call(ctx)
	})
	cfg.Store = counted
	cfg.List = func(ctx context.Context, key state.RunKey) (history.Run, error) {
		return history.One(ctx, counted, key, history.ListOptions{All: true})
	}
	f.hub = New(cfg)
	f.store = f.hub.Waking(own)
	f.key = f.begin(t, f.store)
	return f
}

// begin begins a run.
func (f *fixture) begin(t require.TestingT, by state.Store) state.RunKey {
	key, err := by.CreateRun(context.Background(), state.Run{RunKey: state.RunKey{Workspace: "w"},
		Token: fmt.Sprint("run ", f.orders.Add(1)), Created: time.Now()}, []state.NodeSpec{{Name: "n", Kind: "x"}})
	require.NoError(t, err)
	return key
}

// command gives an order to a run.
func (f *fixture) command(t require.TestingT, by state.Store, key state.RunKey, kind state.CommandKind) {
	require.NoError(t, state.Direct(context.Background(), by, key, state.Command{Kind: kind,
		Token: fmt.Sprint("order ", f.orders.Add(1)), Mark: state.Mark{Actor: "me", Time: time.Now(), Reason: "so"}}))
}

// order gives orders to the run, each of which makes three events.
func (f *fixture) order(t require.TestingT, by state.Store, count int) {
	for range count {
		run, err := f.other.Run(context.Background(), f.key)
		require.NoError(t, err)
		kind := state.CommandPause
		if run.Status == state.Paused {
			kind = state.CommandUnpause
		}
		f.command(t, by, f.key, kind)
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

// listen begins to listen to the run.
func (f *fixture) listen(t require.TestingT, after int) *Listener {
	l, err := f.hub.Run(context.Background(), f.key, int64(after))
	require.NoError(t, err)
	return l
}

// passes lets time pass, in a bubble of package synctest.
func passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
