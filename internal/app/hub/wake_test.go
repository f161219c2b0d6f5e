package hub

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// What this process and what another one writes is heard soon.
func TestSoon(t *testing.T) {
	t.Parallel()
	const listeners = 200
	writes := effort.Of(4, 8, 50)
	f := open(t, Config{})
	var all []*Listener
	for range listeners {
		all = append(all, f.listen(t, 0))
	}
	behind := func(to int) {
		for _, l := range all {
			_, err := hear(t.Context(), l, to-int(l.at))
			require.NoError(t, err)
		}
	}
	for name, by := range map[string]state.Store{"own": f.store, "another process": f.other} {
		var took []time.Duration
		for i := range writes {
			<-time.After(lookEvery * time.Duration(i) / time.Duration(writes)) // at all moments between two looks
			f.order(t, by, 1)
			written := time.Now()
			behind(len(f.all(t)))
			took = append(took, time.Since(written))
		}
		slices.Sort(took)
		t.Logf("%s: p50 %s, p95 %s, longest %s", name, took[writes/2], took[max(writes*95/100, 1)-1], took[writes-1])
		require.Less(t, took[writes/2], effort.Of(quietEvery, quietEvery, 300*time.Millisecond), "it was woken")
	}
	for _, l := range all {
		l.Close()
	}
}

// Where nobody wakes a follower it looks by itself, rarely at a run that is over.
func TestLooksByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openMemory(t, Config{})
		l := f.listen(t, 0)
		_, err := hear(t.Context(), l, 1)
		require.NoError(t, err)
		looks := func(in time.Duration) int64 {
			synctest.Wait()
			before := f.looks.Load()
			passes(in)
			synctest.Wait()
			return f.looks.Load() - before
		}
		require.EqualValues(t, 20, looks(20*clusterEvery))
		f.order(t, f.other, 1)
		written := time.Now()
		_, err = l.Next(t.Context(), 1)
		require.NoError(t, err)
		late := time.Since(written) // on the clock of the bubble
		require.LessOrEqual(t, late, clusterEvery)
		f.command(t, f.other, f.key, state.CommandStop)
		_, err = hear(t.Context(), l, len(f.all(t))-int(l.at))
		require.NoError(t, err)
		require.EqualValues(t, 2, looks(2*overShare*clusterEvery))
		f.command(t, f.store, f.key, state.CommandReopen)
		_, err = hear(t.Context(), l, len(f.all(t))-int(l.at))
		require.NoError(t, err)
		require.EqualValues(t, 20, looks(20*clusterEvery))
		l.Close()
		require.NoError(t, f.hub.Close())
	})
}

// However often a run is written to, and whoever does, it is looked at LooksASecond times a second at most.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		extended := 0
		f := openMemory(t, Config{})
		f.hub.cfg.Store = state.Around(f.hub.cfg.Store,
			func(ctx context.Context, op state.Op, call func(context.Context) error) error {
				if op.Method == state.OpExtendSequence {
					extended++
				}
				return call(ctx)
			})
		l := f.listen(t, 0)
		synctest.Wait()
		before := extended
		const seconds = 10
		for range 100 * seconds {
			f.order(t, f.store, 1)
			passes(time.Second / 100)
		}
		synctest.Wait()
		require.InDelta(t, LooksASecond*seconds, extended-before, 1)
		l.Close()
		require.NoError(t, f.hub.Close())
	})
}

// Signals of the queue wake those who follow the run.
func TestSignals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var signal func(state.RunKey)
		f := openMemory(t, Config{Signals: func(ctx context.Context, heard func(state.RunKey)) {
			signal = heard
			<-ctx.Done()
		}})
		l := f.listen(t, 0)
		_, err := hear(t.Context(), l, 1)
		require.NoError(t, err)
		passes(clusterEvery + clusterEvery/2) // between two looks
		synctest.Wait()
		f.order(t, f.other, 1)
		signal(f.key)
		written := time.Now()
		_, err = l.Next(t.Context(), 1)
		require.NoError(t, err)
		require.Zero(t, time.Since(written))
		l.Close()
		require.NoError(t, f.hub.Close())
	})
}

// Each call that changes something names its run.
func TestChangedRun(t *testing.T) {
	t.Parallel()
	key := state.RunKey{Workspace: "w", Run: 7}
	seen := 0
	store := reflect.ValueOf(state.Around(nil, func(_ context.Context, op state.Op, _ func(context.Context) error) error {
		if op.Kind != state.Changes {
			return nil
		}
		seen++
		if created := state.Pointer[state.RunKey](op.Results); created != nil {
			*created = key
		}
		got, ok := changedRun(op)
		require.True(t, ok, op.Method)
		require.Equal(t, key, got, op.Method)
		return nil
	}))
	for i := range store.NumMethod() {
		method := store.Type().Method(i)
		if method.Name == "Close" {
			continue
		}
		args := []reflect.Value{store, reflect.ValueOf(t.Context())}
		for at := 2; at < method.Type.NumIn(); at++ {
			arg := reflect.New(method.Type.In(at)).Elem()
			if method.Name != string(state.OpCreateRun) {
				setRun(arg, key)
			}
			args = append(args, arg)
		}
		if method.Type.IsVariadic() {
			method.Func.CallSlice(args)
		} else {
			method.Func.Call(args)
		}
	}
	require.Greater(t, seen, 15)
}

// setRun sets the keys of runs in a value.
func setRun(v reflect.Value, key state.RunKey) {
	if v.Kind() != reflect.Struct || !v.CanSet() {
		return
	}
	if v.Type() == reflect.TypeFor[state.RunKey]() {
		v.Set(reflect.ValueOf(key))
		return
	}
	for i := range v.NumField() {
		setRun(v.Field(i), key)
	}
}

// BenchmarkIdle tells what listeners to one run cost in which nothing happens, while another process writes to another.
func BenchmarkIdle(b *testing.B) {
	for _, listeners := range []int{0, 1, 200} {
		b.Run(time.Duration(listeners).String()[:1], func(b *testing.B) {
			f := open(b, Config{})
			var group sync.WaitGroup
			ctx, cancel := context.WithCancel(b.Context())
			for range listeners {
				l := f.listen(b, len(f.all(b)))
				group.Go(func() {
					defer l.Close()
					_, _ = l.Next(ctx, 1)
				})
			}
			for b.Loop() {
				<-time.After(time.Second)
			}
			cancel()
			group.Wait()
		})
	}
}
