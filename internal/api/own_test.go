package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/test/effort"
)

// session returns a client with a cookie, of whoever has a name and a password.
func (s *served) session(name, password string) *client {
	s.t.Helper()
	got := s.nobody().send(http.MethodPost, "/v1/login", map[string]string{"name": name, "password": password})
	require.Equal(s.t, http.StatusNoContent, got.status, got.text)
	return s.holding(got)
}

// holding returns a client with the cookie of an answer.
func (s *served) holding(a answer) *client {
	cookie, attributes, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	require.Contains(s.t, attributes, "HttpOnly")
	return &client{s, http.Header{"Cookie": {cookie}}}
}

func TestOwnAccount(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	const password, other = "correct horse battery", "five wild geese at dawn"
	s := serve(t)
	program := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	here, there := s.session("ann", password), s.session("ann", password)
	var own []access.OwnSession
	here.get("/v1/me/sessions").into(http.StatusOK, &own)
	require.Len(t, own, 3, "these, and the one that has made the token")
	ids := map[bool]string{}
	for _, one := range own {
		ids[one.This] = one.ID
	}
	require.Contains(t, ids, true)
	require.Equal(t, http.StatusNoContent, there.send(http.MethodDelete, "/v1/me/sessions/"+ids[true], nil).status)
	require.Equal(t, http.StatusUnauthorized, here.get("/v1/me").status)
	there.send(http.MethodDelete, "/v1/me/sessions/"+ids[true], nil).problem(http.StatusNotFound)

	change := func(c *client, old, fresh string) answer {
		return c.send(http.MethodPut, "/v1/me/password", map[string]string{"old": old, "new": fresh})
	}
	here = s.session("ann", password)
	change(program, password, other).problem(http.StatusForbidden)
	change(here, "wrong password", other).problem(http.StatusForbidden)
	p := change(here, password, "password12345").problem(http.StatusUnprocessableEntity)
	require.Contains(t, p.Detail, "tried first")
	got := change(here, password, other)
	require.Equal(t, http.StatusNoContent, got.status, got.text)
	fresh := s.holding(got)
	for _, c := range []*client{here, there} {
		require.Equal(t, http.StatusUnauthorized, c.get("/v1/me").status, "sessions of before")
	}
	require.Equal(t, http.StatusOK, fresh.get("/v1/me").status)
	require.Equal(t, http.StatusOK, program.get("/v1/me").status, "tokens go on")

	more := s.session("ann", other)
	require.Equal(t, http.StatusNoContent, fresh.send(http.MethodDelete, "/v1/me/sessions", nil).status)
	require.Equal(t, http.StatusUnauthorized, more.get("/v1/me").status)
	require.Equal(t, http.StatusOK, fresh.get("/v1/me").status, "but the one that asks")
}
