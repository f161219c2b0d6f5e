package access_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/app/access"
	"thalweg/internal/app/access/sqlite"
	"thalweg/internal/app/caller"
	"thalweg/internal/base/fault"
)

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const password = "correct horse battery"

// open opens services over one store. The first has a start secret.
func open(t *testing.T, count int) (services []*access.Service, start string, c *clock, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "access.db")
	c = &clock{now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	for range count {
		s, err := sqlite.Open(t.Context(), path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		services = append(services, access.New(s, slog.New(slog.DiscardHandler), c.Now))
	}
	return services, services[0].StartSecret("me@here"), c, path
}

// user makes a user with grants.
func user(t *testing.T, s *access.Service, name string, grants ...access.Grant) {
	t.Helper()
	secret := password
	_, err := s.PutUser(t.Context(), access.Principal{}, name, access.UserChange{Password: &secret, Grants: &grants})
	require.NoError(t, err)
}

func login(t *testing.T, s *access.Service, name string) (secret string, p access.Principal) {
	t.Helper()
	secret, err := s.Login(t.Context(), name, password, "::1")
	require.NoError(t, err)
	p, err = s.Session(t.Context(), secret)
	require.NoError(t, err)
	return secret, p
}

func TestStartSecret(t *testing.T) {
	t.Parallel()
	s, start, _, _ := open(t, 1)
	_, err := s[0].Start(t.Context(), start+"x", "::1")
	require.ErrorIs(t, err, access.ErrUnauthorized)
	secret, err := s[0].Start(t.Context(), start, "::1")
	require.NoError(t, err)
	p, err := s[0].Session(t.Context(), secret)
	require.NoError(t, err)
	require.True(t, p.May("any", access.Author))
	require.True(t, p.May("", access.Admin))
	by := p.Caller("any")
	require.Equal(t, "me@here", by.Actor)
	require.Equal(t, caller.Session, by.Via)
	require.False(t, by.Verified, "nobody has given the roles")
	role, ok := by.RoleOf([]string{"sales"})
	require.True(t, ok)
	require.Equal(t, "sales", role)
	_, err = s[0].Bearer(t.Context(), start)
	require.ErrorIs(t, err, access.ErrUnauthorized)
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	s, _, c, _ := open(t, 2)
	user(t, s[0], "root", access.Grant{Workspace: "*", Role: access.Manager})
	user(t, s[0], "ann", access.Grant{Workspace: "w", Role: access.Operator, GateRoles: []string{"sales"}})
	secret, p := login(t, s[0], "ann")
	require.Equal(t, caller.Caller{Actor: "ann", Roles: []string{"sales"}, Verified: true, Via: caller.Session},
		p.Caller("w"))
	require.Empty(t, p.Caller("other").Roles)

	over := func(secret string) error {
		_, err := s[1].Session(t.Context(), secret)
		return err
	}
	require.NoError(t, over(secret))
	require.NoError(t, s[0].Logout(t.Context(), p, "::1"))
	c.pass(access.RevokedWithin)
	require.ErrorIs(t, over(secret), access.ErrUnauthorized, "logged out, in another process")

	secret, _ = login(t, s[0], "ann")
	yes := true
	_, err := s[0].PutUser(t.Context(), p, "ann", access.UserChange{Disabled: &yes})
	require.NoError(t, err)
	c.pass(access.RevokedWithin)
	require.ErrorIs(t, over(secret), access.ErrUnauthorized, "disabled")
	_, err = s[0].Login(t.Context(), "ann", password, "::1")
	require.ErrorIs(t, err, access.ErrUnauthorized)

	secret, _ = login(t, s[0], "root")
	c.pass(access.SessionIdle + time.Second)
	require.ErrorIs(t, over(secret), access.ErrUnauthorized, "idle")

	secret, _ = login(t, s[0], "root")
	for passed := time.Duration(0); passed < access.SessionMax; passed += access.SessionIdle / 2 {
		require.NoError(t, over(secret), passed)
		c.pass(access.SessionIdle / 2)
	}
	c.pass(time.Second)
	require.ErrorIs(t, over(secret), access.ErrUnauthorized, "7 days old, however busy")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s, start, c, path := open(t, 2)
	user(t, s[0], "root", access.Grant{Workspace: "*", Role: access.Manager})
	user(t, s[0], "ann", access.Grant{Workspace: "*", Role: access.Operator})
	session, p := login(t, s[0], "ann")
	token, secret, err := s[0].MakeToken(t.Context(), p, "nightly", []access.Grant{{Workspace: "*", Role: access.Reader}},
		24*time.Hour)
	require.NoError(t, err)
	_, _, err = s[0].MakeToken(t.Context(), p, "x", []access.Grant{{Workspace: "w", Role: access.Manager}}, time.Hour)
	require.ErrorContains(t, err, "you lack the permission decide in w, which admin has")
	less := []access.Grant{{Workspace: "w", Role: access.Operator}}
	_, err = s[0].PutUser(t.Context(), p, "ann", access.UserChange{Grants: &less})
	require.NoError(t, err)
	c.pass(access.RevokedWithin)
	got, err := s[1].Bearer(t.Context(), secret)
	require.NoError(t, err)
	require.True(t, got.May("w", access.Read))
	require.False(t, got.May("w", access.Operate), "more than the token's")
	require.False(t, got.May("other", access.Read), "more than the owner's")
	_, _, err = s[0].MakeToken(t.Context(), got, "x", []access.Grant{{Workspace: "w", Role: access.Viewer}}, time.Hour)
	require.ErrorContains(t, err, "only a user")
	_, _, err = s[0].MakeToken(t.Context(), p, "x", []access.Grant{{Workspace: "w", Role: access.Viewer}},
		access.TokenMax+1)
	require.ErrorContains(t, err, "366 days")

	viewer := []access.Grant{{Workspace: "w", Role: access.Viewer}}
	_, err = s[0].PutUser(t.Context(), p, "ann", access.UserChange{Grants: &viewer})
	require.NoError(t, err)
	c.pass(access.RevokedWithin)
	got, err = s[1].Bearer(t.Context(), secret)
	require.NoError(t, err)
	require.False(t, got.May("w", access.Read), "the owner may no more")

	require.NoError(t, s[0].RevokeToken(t.Context(), p, "ann", token.ID))
	require.ErrorContains(t, s[0].RevokeToken(t.Context(), p, "ann", token.ID), "no such token")
	c.pass(access.RevokedWithin)
	_, err = s[1].Bearer(t.Context(), secret)
	require.ErrorIs(t, err, access.ErrUnauthorized)

	for _, name := range []string{path, path + "-wal"} {
		kept, err := os.ReadFile(name)
		require.NoError(t, err)
		for what, text := range map[string]string{"a token": secret, "a session": session, "a password": password,
			"the start secret": start} {
			require.NotContains(t, string(kept), strings.TrimPrefix(text, access.TokenPrefix), what)
		}
	}
	entries, err := s[0].Entries(t.Context(), "", 100)
	require.NoError(t, err)
	require.Equal(t, access.TokenRevoked, entries[0].Kind)
}

func TestTokensExpire(t *testing.T) {
	t.Parallel()
	s, _, c, _ := open(t, 1)
	user(t, s[0], "ann", access.Grant{Workspace: "*", Role: access.Manager})
	_, p := login(t, s[0], "ann")
	_, secret, err := s[0].MakeToken(t.Context(), p, "t", p.Grants(), time.Hour)
	require.NoError(t, err)
	c.pass(time.Hour)
	_, err = s[0].Bearer(t.Context(), secret)
	require.ErrorIs(t, err, access.ErrUnauthorized)
	own, err := s[0].Tokens(t.Context(), "ann")
	require.NoError(t, err)
	require.Empty(t, own)
}

func TestTryingPasswords(t *testing.T) {
	t.Parallel()
	s, _, c, _ := open(t, 1)
	user(t, s[0], "ann", access.Grant{Workspace: "*", Role: access.Manager})
	tries, begun := 0, c.Now()
	for c.Now().Sub(begun) < time.Hour {
		_, err := s[0].Login(t.Context(), "ann", "wrong password", "203.0.113.9")
		if fault.CodeOf(err) != fault.TooMany {
			require.ErrorIs(t, err, access.ErrUnauthorized)
			tries++
		}
		c.pass(time.Second)
	}
	require.Less(t, tries, 20, "from one address in an hour")
	_, err := s[0].Login(t.Context(), "ann", password, "198.51.100.1")
	require.NoError(t, err, "from another address, the user is not locked out")
}

func TestLastAdmin(t *testing.T) {
	t.Parallel()
	s, _, _, _ := open(t, 1)
	user(t, s[0], "root", access.Grant{Workspace: "*", Role: access.Manager})
	yes, none := true, []access.Grant{}
	for name, change := range map[string]access.UserChange{"disabled": {Disabled: &yes}, "without grants": {Grants: &none}} {
		_, err := s[0].PutUser(t.Context(), access.Principal{}, "root", change)
		require.ErrorContains(t, err, "nobody could change users", name)
	}
	user(t, s[0], "other", access.Grant{Workspace: "*", Role: access.Manager})
	_, err := s[0].PutUser(t.Context(), access.Principal{}, "root", access.UserChange{Disabled: &yes})
	require.NoError(t, err)
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	s, _, _, _ := open(t, 1)
	short := "eleven char"
	for name, tc := range map[string]struct {
		user   string
		change access.UserChange
		want   string
	}{
		"name":      {"Ann\n", access.UserChange{}, "no name of a user"},
		"password":  {"ann", access.UserChange{Password: &short}, "at least 12 characters"},
		"role":      {"ann", access.UserChange{Grants: &[]access.Grant{{Workspace: "w", Role: "oprator"}}}, `no role "oprator"`},
		"workspace": {"ann", access.UserChange{Grants: &[]access.Grant{{Role: access.Viewer}}}, "names a workspace"},
		"approver":  {"ann", access.UserChange{Grants: &[]access.Grant{{Workspace: "w", Role: access.Approver}}}, "gate roles"},
	} {
		_, err := s[0].PutUser(t.Context(), access.Principal{}, tc.user, tc.change)
		require.ErrorContains(t, err, tc.want, name)
		require.Equal(t, fault.Script, fault.Of(err).Kind, name)
	}
}

// A token never gives more than its owner has, and no role gives less than one below it.
func TestPermissionsOfTokens(t *testing.T) {
	t.Parallel()
	s, _, c, _ := open(t, 1)
	user(t, s[0], "root", access.Grant{Workspace: "*", Role: access.Manager})
	roles := []access.Role{access.Viewer, access.Reader, access.Operator, access.Approver, access.Writer, access.Manager}
	spaces := []string{"*", "a", "b"}
	grants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) access.Grant {
		return access.Grant{Workspace: rapid.SampledFrom(spaces).Draw(t, "workspace"),
			Role:      rapid.SampledFrom(roles).Draw(t, "role"),
			GateRoles: []string{rapid.SampledFrom([]string{"x", "y", "*"}).Draw(t, "gate role")}}
	}), 1, 4)
	user(t, s[0], "ann", access.Grant{Workspace: "*", Role: access.Viewer})
	session, _ := login(t, s[0], "ann")
	rapid.Check(t, func(rt *rapid.T) {
		owner, bounds := grants.Draw(rt, "owner"), grants.Draw(rt, "token")
		has := func(grants []access.Grant) access.Principal {
			_, err := s[0].PutUser(t.Context(), access.Principal{}, "ann", access.UserChange{Grants: &grants})
			require.NoError(rt, err)
			c.pass(access.RevokedWithin)
			p, err := s[0].Session(t.Context(), session)
			require.NoError(rt, err)
			return p
		}
		all := has([]access.Grant{{Workspace: "*", Role: access.Manager, GateRoles: []string{"*"}}})
		token, secret, err := s[0].MakeToken(t.Context(), all, "t", bounds, time.Hour)
		require.NoError(rt, err)
		p := has(owner)
		got, err := s[0].Bearer(t.Context(), secret)
		require.NoError(rt, err)
		for _, space := range []string{"", "a", "b", "c"} {
			for _, needs := range []access.Permission{access.View, access.Read, access.Operate, access.Decide, access.Author,
				access.Admin} {
				if got.May(space, needs) {
					require.True(rt, p.May(space, needs), "%s in %q", needs, space)
				}
				if needs != access.View && got.May(space, needs) {
					require.True(rt, got.May(space, access.View))
				}
			}
			for _, role := range got.Caller(space).Roles {
				_, may := p.Caller(space).RoleOf([]string{role})
				require.True(rt, may, "role %s in %q", role, space)
			}
		}
		require.NoError(rt, s[0].RevokeToken(t.Context(), p, "ann", token.ID))
	})
}
