package cassandra_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/app/access/cassandra"
	driver "thalweg/internal/store/cassandra"
	"thalweg/internal/test/accesstest"
	"thalweg/internal/test/cassandratest"
	"thalweg/internal/test/effort"
)

func open(t *testing.T, cfg driver.Config) *cassandra.Store {
	t.Helper()
	s, err := cassandra.Open(t.Context(), cassandratest.Open(t, cfg))
	require.NoError(t, err)
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	keyspaces := map[string]driver.Config{}
	for _, name := range accesstest.Names() {
		keyspaces[name] = cassandratest.Keyspace(t, cassandra.Statements())
	}
	accesstest.Run(t, func(t *testing.T, name string) access.Store { return open(t, keyspaces[name]) })
}

// What one server revokes is refused by another within the time that is promised.
func TestRevokedElsewhere(t *testing.T) {
	t.Parallel()
	cfg := cassandratest.Keyspace(t, cassandra.Statements())
	here, there := access.New(open(t, cfg), slog.New(slog.DiscardHandler), nil),
		access.New(open(t, cfg), slog.New(slog.DiscardHandler), nil)
	ctx, password := t.Context(), "correct horse battery"
	grants := []access.Grant{{Workspace: "*", Role: access.Manager}}
	_, err := here.PutUser(ctx, access.Principal{}, "ann", access.UserChange{Password: &password, Grants: &grants})
	require.NoError(t, err)
	session, err := here.Login(ctx, "ann", password, "::1")
	require.NoError(t, err)
	p, err := there.Session(ctx, session)
	require.NoError(t, err, "a session is good at every server")
	token, secret, err := here.MakeToken(ctx, p, "t", grants, time.Hour)
	require.NoError(t, err)
	_, err = there.Bearer(ctx, secret)
	require.NoError(t, err)

	require.NoError(t, here.RevokeToken(ctx, p, "ann", token.ID))
	require.NoError(t, here.Logout(ctx, p, "::1"))
	begun := time.Now()
	for what, ask := range map[string]func() error{
		"token":   func() error { _, err := there.Bearer(ctx, secret); return err },
		"session": func() error { _, err := there.Session(ctx, session); return err },
	} {
		require.Eventually(t, func() bool { return ask() != nil }, effort.Patience, 20*time.Millisecond, what)
		require.ErrorIs(t, ask(), access.ErrUnauthorized, what)
	}
	effort.Promised(t, begun, access.RevokedWithin)
}

// The log goes on over days.
func TestLogOfSeveralDays(t *testing.T) {
	t.Parallel()
	s := open(t, cassandratest.Keyspace(t, cassandra.Statements()))
	at := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	for i, id := range []string{"a", "b", "c", "d"} {
		require.NoError(t, s.Append(t.Context(), access.Entry{ID: id, Time: at.Add(time.Duration(i) * 12 * time.Hour)}))
	}
	ids := func(before string, limit int) (out string) {
		found, err := s.Entries(t.Context(), before, limit)
		require.NoError(t, err)
		for _, e := range found {
			out += e.ID
		}
		return out
	}
	require.Equal(t, "dcb", ids("", 3))
	require.Equal(t, "a", ids("b", 3))
	require.Equal(t, "ba", ids("c", 3))
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	cfg := cassandratest.Keyspace(t, nil)
	_, err := cassandra.Open(t.Context(), cassandratest.Open(t, cfg))
	require.ErrorContains(t, err, "no tables of users and tokens")
}
