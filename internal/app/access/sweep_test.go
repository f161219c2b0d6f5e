package access_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/app/access/sqlite"
	"thalweg/internal/test/effort"
)

// What has expired is removed while a server runs, and what has not stays.
func TestSweepEvery(t *testing.T) {
	t.Parallel()
	s, _, c, path := open(t, 1)
	user(t, s[0], "ann", access.Grant{Workspace: "*", Role: access.Manager})
	login(t, s[0], "ann")
	c.pass(access.SessionMax + time.Hour)
	login(t, s[0], "ann")
	store, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	sessions := func() int {
		found, err := store.List(t.Context(), access.KindSession)
		require.NoError(t, err)
		return len(found)
	}
	require.Equal(t, 2, sessions())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s[0].SweepEvery(ctx, time.Hour) }()
	require.Eventually(t, func() bool { return sessions() == 1 }, effort.Patience, 10*time.Millisecond)
	cancel()
	<-done
	users, err := s[0].Users(t.Context())
	require.NoError(t, err)
	require.Len(t, users, 1)
}
