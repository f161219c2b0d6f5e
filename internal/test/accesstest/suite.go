package accesstest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
)

// Run tests a backend. open opens the same new store each time that it is called with the same name.
func Run(t *testing.T, open func(t *testing.T, name string) access.Store) {
	for name, test := range tests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func() access.Store { return open(t, name) })
		})
	}
}

func tests() map[string]func(*testing.T, func() access.Store) {
	return map[string]func(*testing.T, func() access.Store){"records": records, "one wins": oneWins, "log": entries,
		"expiry": expiry}
}

// Names lists the names of the stores that Run opens.
func Names() []string { return slices.Collect(maps.Keys(tests())) }

func record(key string, revision int64, content string) access.Record {
	return access.Record{Kind: access.KindUser, Key: key, Revision: revision, Content: []byte(content)}
}

func records(t *testing.T, open func() access.Store) {
	ctx := t.Context()
	a, b := open(), open()
	_, err := a.Get(ctx, access.KindUser, "ann")
	require.ErrorIs(t, err, access.ErrNotFound)
	require.ErrorIs(t, a.Put(ctx, record("ann", 2, "x")), access.ErrConflict, "there is none to change")
	require.NoError(t, a.Put(ctx, record("ann", 1, "first")))
	require.ErrorIs(t, b.Put(ctx, record("ann", 1, "other")), access.ErrConflict, "there is one")
	require.NoError(t, b.Put(ctx, record("ann", 2, "second")))
	require.ErrorIs(t, a.Put(ctx, record("ann", 2, "late")), access.ErrConflict)
	got, err := a.Get(ctx, access.KindUser, "ann")
	require.NoError(t, err)
	require.Equal(t, record("ann", 2, "second"), got)
	_, err = a.Get(ctx, access.KindToken, "ann")
	require.ErrorIs(t, err, access.ErrNotFound, "kinds are apart")
	require.NoError(t, a.Put(ctx, record("Ben", 1, "\x00'\"")))
	all, err := b.List(ctx, access.KindUser)
	require.NoError(t, err)
	require.Equal(t, []access.Record{record("Ben", 1, "\x00'\""), record("ann", 2, "second")}, all, "by key")
	require.NoError(t, b.Remove(ctx, access.KindUser, "ann"))
	require.NoError(t, b.Remove(ctx, access.KindUser, "ann"), "what is not there is removed")
	_, err = a.Get(ctx, access.KindUser, "ann")
	require.ErrorIs(t, err, access.ErrNotFound)
	require.NoError(t, a.Put(ctx, record("ann", 1, "again")))
}

// oneWins changes a record from several goroutines, over two stores: each revision is of one of them.
func oneWins(t *testing.T, open func() access.Store) {
	const changes, writers = 10, 4
	ctx := t.Context()
	stores := []access.Store{open(), open()}
	require.NoError(t, stores[0].Put(ctx, record("ann", 1, "0")))
	var wins [writers]int
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() {
			s := stores[w%len(stores)]
			for {
				r, err := s.Get(ctx, access.KindUser, "ann")
				if err != nil || r.Revision > changes {
					return
				}
				r.Revision, r.Content = r.Revision+1, fmt.Append(nil, w)
				if err = s.Put(ctx, r); err == nil {
					wins[w]++
				} else if !errors.Is(err, access.ErrConflict) {
					return
				}
			}
		})
	}
	done.Wait()
	r, err := stores[1].Get(ctx, access.KindUser, "ann")
	require.NoError(t, err)
	sum := 0
	for _, n := range wins {
		sum += n
	}
	require.Equal(t, int64(sum+1), r.Revision, "who was told that they won has")
	require.Greater(t, r.Revision, int64(changes))
}

func entries(t *testing.T, open func() access.Store) {
	ctx := t.Context()
	s := open()
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	var want []access.Entry
	for i := range 7 {
		e := access.Entry{ID: fmt.Sprintf("%04d", i), Time: at.Add(time.Duration(i) * time.Second), Kind: access.Refused,
			Actor: "ann", Via: "token", From: "::1", Workspace: "w", What: fmt.Sprint("x'", i)}
		require.NoError(t, s.Append(ctx, e))
		want = append([]access.Entry{e}, want...)
	}
	var got []access.Entry
	for before := ""; ; before = got[len(got)-1].ID {
		page, err := open().Entries(ctx, before, 3)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 3)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	require.Equal(t, want, got, "the latest first, each once")
}

func expiry(t *testing.T, open func() access.Store) {
	ctx := t.Context()
	s := open()
	now := time.Now().UTC().Truncate(time.Millisecond)
	for key, expires := range map[string]time.Time{"kept": {}, "later": now.Add(time.Hour), "over": now.Add(-time.Hour)} {
		r := record(key, 1, "x")
		r.Expires = expires
		require.NoError(t, s.Put(ctx, r))
	}
	require.NoError(t, s.Sweep(ctx, now))
	all, err := s.List(ctx, access.KindUser)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "kept", all[0].Key)
	require.True(t, all[0].Expires.IsZero())
	require.WithinDuration(t, now.Add(time.Hour), all[1].Expires, time.Second)
}
