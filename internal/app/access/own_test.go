package access_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/app/access/sqlite"
	"thalweg/internal/base/fault"
)

// One's own password: the old one is asked for, as slowly as at logins, and all sessions but the new one end.
func TestChangePassword(t *testing.T) {
	t.Parallel()
	const other = "five wild geese at dawn"
	s, start, c, _ := open(t, 2)
	user(t, s[0], "ann", access.Grant{Workspace: "*", Role: access.Manager})
	elsewhere, _ := login(t, s[1], "ann")
	here, p := login(t, s[0], "ann")

	_, err := s[0].ChangePassword(t.Context(), p, "wrong password", other, "::1")
	require.Equal(t, fault.Forbidden, fault.CodeOf(err))
	_, err = s[0].ChangePassword(t.Context(), p, password, "password2024!", "::1")
	require.ErrorContains(t, err, "tried first")
	fresh, err := s[0].ChangePassword(t.Context(), p, password, other, "::1")
	require.NoError(t, err)
	c.pass(access.RevokedWithin)
	for _, old := range []string{elsewhere, here} {
		for _, service := range s {
			_, err := service.Session(t.Context(), old)
			require.ErrorIs(t, err, access.ErrUnauthorized)
		}
	}
	p, err = s[1].Session(t.Context(), fresh)
	require.NoError(t, err)
	_, err = s[0].Login(t.Context(), "ann", password, "::1")
	require.ErrorIs(t, err, access.ErrUnauthorized)
	_, err = s[0].Login(t.Context(), "ann", other, "::1")
	require.NoError(t, err)

	_, secret, err := s[0].MakeToken(t.Context(), p, "t", p.Grants(), time.Hour)
	require.NoError(t, err)
	token, err := s[0].Bearer(t.Context(), secret)
	require.NoError(t, err)
	_, err = s[0].ChangePassword(t.Context(), token, other, password, "::1")
	require.ErrorContains(t, err, "only a user", "a program with a token does not")
	_, err = s[0].Sessions(t.Context(), token)
	require.ErrorContains(t, err, "a token does not see")
	_, err = s[0].EndSessions(t.Context(), token, "", "::1")
	require.ErrorContains(t, err, "a token does not see")
	begun, err := s[0].Start(t.Context(), start, "::1")
	require.NoError(t, err)
	starter, err := s[0].Session(t.Context(), begun)
	require.NoError(t, err)
	_, err = s[0].ChangePassword(t.Context(), starter, other, password, "::1")
	require.ErrorContains(t, err, "only a user")

	tries, at := 0, c.Now()
	for c.Now().Sub(at) < time.Hour {
		if _, err := s[1].ChangePassword(t.Context(), p, "wrong password", password, "203.0.113.9"); fault.CodeOf(err) !=
			fault.TooMany {
			require.Equal(t, fault.Forbidden, fault.CodeOf(err))
			tries++
		}
		c.pass(time.Second)
	}
	require.Less(t, tries, 20, "in an hour")
}

func TestOwnSessions(t *testing.T) {
	t.Parallel()
	s, _, c, _ := open(t, 2)
	user(t, s[0], "ann", access.Grant{Workspace: "*", Role: access.Manager})
	user(t, s[0], "ben", access.Grant{Workspace: "*", Role: access.Manager})
	var secrets []string
	for range 3 {
		secret, _ := login(t, s[0], "ann")
		secrets = append(secrets, secret)
		c.pass(time.Minute)
	}
	others, ben := login(t, s[0], "ben")
	p, err := s[0].Session(t.Context(), secrets[2])
	require.NoError(t, err)
	own, err := s[0].Sessions(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, own, 3)
	require.True(t, own[0].This, "the latest first")
	require.Equal(t, "::1", own[0].From)
	require.Equal(t, c.Now().Add(-time.Minute), own[0].Begun)
	require.False(t, own[1].This)

	_, err = s[0].EndSessions(t.Context(), ben, own[1].ID, "::1")
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "another's")
	_, err = s[0].EndSessions(t.Context(), p, own[1].ID, "::1")
	require.NoError(t, err)
	c.pass(access.RevokedWithin)
	_, err = s[1].Session(t.Context(), secrets[1])
	require.ErrorIs(t, err, access.ErrUnauthorized)
	_, err = s[1].Session(t.Context(), secrets[0])
	require.NoError(t, err)

	ended, err := s[1].EndSessions(t.Context(), p, "", "::1")
	require.NoError(t, err)
	require.Equal(t, 1, ended)
	c.pass(access.RevokedWithin)
	_, err = s[0].Session(t.Context(), secrets[0])
	require.ErrorIs(t, err, access.ErrUnauthorized)
	for _, secret := range []string{secrets[2], others} {
		_, err = s[0].Session(t.Context(), secret)
		require.NoError(t, err, "the one that asks, and another's")
	}
	c.pass(access.SessionIdle + time.Second)
	own, err = s[0].Sessions(t.Context(), p)
	require.NoError(t, err)
	require.Empty(t, own, "those that are over are not listed")
}

func TestWeakPasswords(t *testing.T) {
	t.Parallel()
	s, _, _, _ := open(t, 1)
	display := "Ann Lindqvist"
	for text, want := range map[string]string{"qwertyuiop123": "tried first", "Password12345": "tried first",
		"christopher1984": "tried first", "1970-Sunshine!": "tried first", "passwordpassword": "twice",
		"bluebirdbluebird": "twice", "abcdefghijklmnop": "row", "aaaaaaaaaaaabb": "row", "1234567890abcd": "row",
		"ab1ab1ab1ab1ab": "row", "my dear lindqvist x": "a name", "x thalweg server": "a name",
		"for ann.karin only": "a name"} {
		_, err := s[0].PutUser(t.Context(), access.Principal{}, "ann.karin@example.com",
			access.UserChange{Password: &text, Display: &display})
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), text, "no failure tells a password")
	}
	for _, text := range []string{"correct horse battery", "annoyed by planners", "5%gT0-qLm2_xZ", "sunshine over the lake"} {
		_, err := s[0].PutUser(t.Context(), access.Principal{}, "ann.karin@example.com",
			access.UserChange{Password: &text, Display: &display})
		require.NoError(t, err, text)
	}
}

// A login that is under way while its user gets another password ends with the sessions of before.
func TestLoginBesideANewPassword(t *testing.T) {
	t.Parallel()
	s, _, c, path := open(t, 1)
	user(t, s[0], "ann", access.Grant{Workspace: "*", Role: access.Manager})
	store, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	asked := 0
	late := access.New(store, slog.New(slog.DiscardHandler), func() time.Time {
		if asked++; asked == 3 { // the password has been looked at, and the session is not written yet
			c.pass(time.Second)
			other := "five wild geese at dawn"
			_, err := s[0].PutUser(t.Context(), access.Principal{}, "ann", access.UserChange{Password: &other})
			require.NoError(t, err)
			c.pass(time.Second)
		}
		return c.Now()
	})
	secret, err := late.Login(t.Context(), "ann", password, "::1")
	require.NoError(t, err)
	require.GreaterOrEqual(t, asked, 3)
	c.pass(access.RevokedWithin)
	_, err = s[0].Session(t.Context(), secret)
	require.ErrorIs(t, err, access.ErrUnauthorized)
}
