package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// Two hundred listeners hear all, each from where it began, and the state is read once for them.
func TestOneFollowerForAll(t *testing.T) {
	t.Parallel()
	const listeners, orders = 200, 10
	f := open(t, Config{})
	f.order(t, f.store, 3)
	begun := len(f.all(t))
	want := begun + 3*2*orders
	first := f.listen(t, 0)
	defer first.Close()
	_, err := hear(t.Context(), first, begun) // all is in the ring
	require.NoError(t, err)
	before, at := f.reads.Load(), time.Now()
	var group sync.WaitGroup
	heard, failed := make([][]string, listeners), make([]error, listeners)
	for i := range listeners {
		l := f.listen(t, i%begun)
		group.Go(func() {
			defer l.Close()
			heard[i], failed[i] = hear(t.Context(), l, want-i%begun)
		})
	}
	for range orders {
		f.order(t, f.store, 1)
		f.order(t, f.other, 1)
	}
	group.Wait()
	const readsALook = 12 // with an extension of the sequence, and what is read again then
	looks := time.Since(at)/lookEvery + 2
	require.LessOrEqual(t, f.reads.Load()-before, int64(readsALook*looks))
	all := f.all(t)
	require.Len(t, all, want)
	for i := range listeners {
		require.NoError(t, failed[i], i)
		require.Equal(t, all[i%begun:], heard[i], "listener %d", i)
	}
}

// Who does not read is passed, and keeps nobody waiting.
func TestSlowListenerIsPassed(t *testing.T) {
	t.Parallel()
	f := open(t, Config{ringLines: 5, pace: time.Millisecond})
	ctx := t.Context()
	slow, quick := f.listen(t, 0), f.listen(t, 0)
	defer quick.Close()
	begun := len(f.all(t))
	got, err := hear(ctx, slow, begun)
	require.NoError(t, err)
	fast := append([]string(nil), got...)
	for range 10 {
		f.order(t, f.store, 1)
		more, err := hear(ctx, quick, len(f.all(t))-int(quick.at))
		require.NoError(t, err)
		fast = append(fast[:max(len(fast), 0)], more...)
	}
	_, err = slow.Next(ctx, 1)
	require.ErrorIs(t, err, ErrPassed)
	slow.Close()
	again := f.listen(t, len(got))
	defer again.Close()
	all := f.all(t)
	rest, err := hear(ctx, again, len(all)-len(got))
	require.NoError(t, err)
	require.Equal(t, all, append(got, rest...), "without gap or double")
}

// A ring has no more bytes than its share.
func TestRingsShareBytes(t *testing.T) {
	t.Parallel()
	const bytes = 4_000
	f := open(t, Config{ringsBytes: 2 * bytes, pace: time.Millisecond})
	l := f.listen(t, 0)
	defer l.Close()
	f.order(t, f.store, 40)
	all := f.all(t)
	heard, err := hear(t.Context(), l, len(all))
	require.NoError(t, err)
	require.Equal(t, all, heard)
	size := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.bytes
	}
	require.LessOrEqual(t, size(), 2*bytes)
	require.Greater(t, size(), bytes)
	other, err := f.hub.Run(t.Context(), f.begin(t, f.store), 0)
	require.NoError(t, err)
	defer other.Close()
	require.LessOrEqual(t, size(), bytes, "there are two")
	past := f.listen(t, 0)
	defer past.Close()
	heard, err = hear(t.Context(), past, len(all))
	require.NoError(t, err)
	require.Equal(t, all, heard, "the state has what the ring has not")
}

func TestTooManyAreFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openMemory(t, Config{})
		var all []*SpaceListener
		for i := range followedMax {
			l, err := f.hub.Workspace(fmt.Sprint(i))
			require.NoError(t, err)
			all = append(all, l)
		}
		_, err := f.hub.Run(t.Context(), f.key, 0)
		require.Equal(t, fault.TooMany, fault.Of(err).Code)
		all[0].Close()
		all[0].Close()
		_, err = f.hub.Workspace("one more")
		require.Equal(t, fault.TooMany, fault.Of(err).Code, "it lingers")
		passes(lingers + time.Second)
		l, err := f.hub.Run(t.Context(), f.key, 0)
		require.NoError(t, err)
		l.Close()
		require.NoError(t, f.hub.Close())
	})
}

// A follower goes on for a while without listeners, and then ends.
func TestFollowerEndsBehindItsListeners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openMemory(t, Config{})
		l := f.listen(t, 0)
		first := l.follower
		l.Close()
		l.Close()
		passes(lingers - time.Second)
		l = f.listen(t, 0)
		require.Same(t, first, l.follower)
		passes(2 * lingers)
		_, err := hear(t.Context(), l, 1)
		require.NoError(t, err)
		l.Close()
		passes(lingers + time.Second)
		reads := f.reads.Load()
		passes(time.Minute)
		require.Equal(t, reads, f.reads.Load(), "nobody reads any more")
		require.Zero(t, f.hub.followed.Load())
		l = f.listen(t, 0)
		require.NotSame(t, first, l.follower)
		l.Close()
		require.NoError(t, f.hub.Close())
	})
}

// Whoever listens learns that following ends, and nobody can begin to.
func TestClose(t *testing.T) {
	t.Parallel()
	f := open(t, Config{})
	l := f.listen(t, 0)
	space, err := f.hub.Workspace("w")
	require.NoError(t, err)
	ended := make(chan error, 2)
	go func() {
		for {
			if _, err := l.Next(context.Background(), 10); err != nil {
				ended <- err
				return
			}
		}
	}()
	go func() {
		for {
			if _, err := space.Next(context.Background()); err != nil {
				ended <- err
				return
			}
		}
	}()
	require.NoError(t, f.hub.Close())
	require.ErrorIs(t, <-ended, errEnded)
	require.ErrorIs(t, <-ended, errEnded)
	l.Close()
	space.Close()
	_, err = f.hub.Run(t.Context(), state.RunKey{Workspace: "w", Run: 2}, 0)
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
	_, err = f.hub.Workspace("w")
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
	require.NoError(t, f.hub.Close())
}

// Close waits for all that the hub has begun, whatever listeners and writers do.
func TestCloseUnderLoad(t *testing.T) {
	t.Parallel()
	for range effort.Of(1, 2, 100) {
		f := open(t, Config{ringLines: 4, pace: time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var heard sync.WaitGroup
		for i := range 8 {
			heard.Add(1)
			once := sync.OnceFunc(heard.Done)
			group.Go(func() {
				defer once()
				for ctx.Err() == nil {
					l, err := f.hub.Run(ctx, f.key, int64(i))
					if err != nil {
						return
					}
					for range 3 {
						if _, err = l.Next(ctx, 2); err != nil {
							break
						}
						once()
					}
					l.Close()
				}
			})
		}
		for i := range 4 {
			group.Go(func() {
				for ctx.Err() == nil {
					l, err := f.hub.Workspace([]string{"w", "x"}[i%2])
					if err != nil {
						return
					}
					_, _, _ = l.changed()
					l.Close()
				}
			})
		}
		group.Go(func() {
			for ctx.Err() == nil {
				f.order(t, f.store, 1)
			}
		})
		heard.Wait()
		require.NoError(t, f.hub.Close())
		cancel()
		group.Wait()
		require.Empty(t, f.hub.runs)
		require.Empty(t, f.hub.spaces)
		require.Zero(t, f.hub.followed.Load())
	}
}

// A state that is away is told to those who have heard all, and heard of again.
func TestStateIsAway(t *testing.T) {
	t.Parallel()
	f := open(t, Config{pace: time.Millisecond})
	l := f.listen(t, 0)
	defer l.Close()
	space, err := f.hub.Workspace("w")
	require.NoError(t, err)
	defer space.Close()
	begun := len(f.all(t))
	_, err = hear(t.Context(), l, begun)
	require.NoError(t, err)
	_, err = space.Next(t.Context())
	require.NoError(t, err)
	away := errors.New("away")
	f.broken.Store(&away)
	f.order(t, f.store, 1)
	_, err = l.Next(t.Context(), 1)
	require.ErrorIs(t, err, away)
	_, err = space.Next(t.Context())
	require.ErrorIs(t, err, away)
	_, err = f.hub.Run(t.Context(), state.RunKey{Workspace: "w", Run: 7}, 0)
	require.ErrorIs(t, err, away)
	f.broken.Store(nil)
	f.order(t, f.store, 1)
	all := f.all(t)
	var heard []string
	require.Eventually(t, func() bool {
		more, err := hear(t.Context(), l, len(all)-begun-len(heard))
		heard = append(heard, more...)
		return err == nil
	}, effort.Patience, time.Millisecond)
	require.Equal(t, all[begun:], heard)
	f.order(t, f.store, 1)
	require.Eventually(t, func() bool {
		_, err := space.Next(t.Context())
		return err == nil
	}, effort.Patience, time.Millisecond)
}

func TestNoSuchRun(t *testing.T) {
	t.Parallel()
	f := open(t, Config{})
	_, err := f.hub.Run(t.Context(), state.RunKey{Workspace: "w", Run: 7}, 0)
	require.ErrorIs(t, err, state.ErrNotFound)
	require.Eventually(t, func() bool { return f.hub.followed.Load() == 0 }, effort.Patience, time.Millisecond)
	l := f.listen(t, 1_000) // behind what there is
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Next(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
}

// Whoever comes whenever, from whichever line on, hears the run's stream.
func TestEachListenerHearsTheStream(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := openMemory(t, Config{ringLines: rapid.IntRange(1, 8).Draw(rt, "lines of the ring"), pace: time.Nanosecond})
		defer func() { require.NoError(rt, f.hub.Close()) }()
		listeners, heard := map[int]*Listener{}, map[int][]string{}
		begun := map[int]int{}
		read := func(i, count int) {
			for begun[i]+len(heard[i]) < count {
				lines, err := listeners[i].Next(t.Context(), 3)
				if errors.Is(err, ErrPassed) {
					listeners[i].Close()
					listeners[i] = f.listen(rt, begun[i]+len(heard[i]))
					continue
				}
				require.NoError(rt, err)
				for _, line := range lines {
					heard[i] = append(heard[i], string(line.JSON))
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"order": func(rt *rapid.T) { f.order(rt, f.store, rapid.IntRange(1, 3).Draw(rt, "orders")) },
			"come": func(rt *rapid.T) {
				if i := rapid.IntRange(0, 3).Draw(rt, "listener"); listeners[i] == nil {
					begun[i] = rapid.IntRange(0, len(f.all(rt))).Draw(rt, "after")
					listeners[i] = f.listen(rt, begun[i])
				}
			},
			"read": func(rt *rapid.T) {
				if i := rapid.IntRange(0, 3).Draw(rt, "listener"); listeners[i] != nil {
					read(i, rapid.IntRange(0, len(f.all(rt))).Draw(rt, "lines"))
				}
			},
			"go on elsewhere": func(rt *rapid.T) { // as behind a restart
				if i := rapid.IntRange(0, 3).Draw(rt, "listener"); listeners[i] != nil {
					listeners[i].Close()
					listeners[i] = f.listen(rt, begun[i]+len(heard[i]))
				}
			},
		})
		all := f.all(rt)
		for i, l := range listeners {
			read(i, len(all))
			require.Equal(rt, all[begun[i]:], append([]string{}, heard[i]...))
			listeners[i].Close()
			_ = l
		}
	})
}
