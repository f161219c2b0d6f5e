package api_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/base/fault"
	"thalweg/internal/test/effort"
)

// generous are limits that no test reaches by its requests.
const generous = "limits: {user_requests_per_second: 1000000, user_requests_burst: 1000000, " +
	"address_requests_per_second: 1000000, address_requests_burst: 1000000}\n"

func tooMany(t *testing.T, a answer) {
	t.Helper()
	p := a.problem(http.StatusTooManyRequests)
	require.Equal(t, fault.TooMany, p.Code)
	require.NotEmpty(t, p.Hint)
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	require.NoError(t, err)
	require.Positive(t, seconds)
}

// Each user has requests of their own, by whatever token.
func TestRequestsOfUser(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	s := serveAs(t, "limits: {user_requests_per_second: 1, user_requests_burst: 5}\n")
	ann, ben := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer}),
		s.as("ben", access.Grant{Workspace: "main", Role: access.Viewer})
	more := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	good := 0
	for range 60 { // more than come back meanwhile, on a slow machine, too
		c := ann
		if good%2 == 1 {
			c = more
		}
		a := c.get("/v1/me")
		if a.status == http.StatusTooManyRequests {
			tooMany(t, a)
			break
		}
		require.Equal(t, http.StatusOK, a.status)
		good++
	}
	require.GreaterOrEqual(t, good, 5)
	require.Less(t, good, 60)
	require.Equal(t, http.StatusOK, ben.get("/v1/me").status, "others are not held up")
}

// An address is refused before anybody is asked who it is, also with wrong tokens and for what is no operation.
func TestRequestsOfAddress(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	s := serveAs(t, "limits: {address_requests_per_second: 1, address_requests_burst: 20}\n")
	refused := 0
	for range 100 {
		if a := s.nobody().get("/v1/me"); a.status == http.StatusTooManyRequests {
			tooMany(t, a)
			refused++
		} else {
			require.Equal(t, http.StatusUnauthorized, a.status)
		}
	}
	require.Positive(t, refused)
	c := s.nobody()
	c.header.Set("X-Forwarded-For", "203.0.113.9") // nobody has named a proxy
	status := 0
	for range 30 {
		if status = c.get("/none").status; status == http.StatusTooManyRequests {
			break
		}
	}
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, http.StatusOK, s.nobody().get("/healthz").status)
}

// Failed logins say when the next one is tried.
func TestLoginRetryAfter(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	s := serve(t)
	for range 10 {
		a := s.nobody().send(http.MethodPost, "/v1/login", map[string]string{"name": "ann", "password": "wrong password"})
		if a.status == http.StatusTooManyRequests {
			tooMany(t, a)
			return
		}
		require.Equal(t, http.StatusUnauthorized, a.status)
	}
	require.Fail(t, "ten failed logins cost nothing")
}

// Streams of one user are limited, and those of a user who has closed some open again. As many as watch a fleet
// are within what a server without limits of its own allows.
func TestStreamsOfUser(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	for config, most := range map[string]int{"limits: {user_streams: 2}\n": 2, "": 200} {
		s := serveAs(t, config)
		c := s.as("ann", access.Grant{Workspace: "*", Role: access.Manager})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range most {
			require.Equal(t, http.StatusOK, c.opened(ctx))
		}
		if config == "" {
			continue
		}
		tooMany(t, c.get("/v1/stream?topics=main"))
		cancel()
		again, stop := context.WithCancel(t.Context())
		defer stop()
		require.Eventually(t, func() bool { return c.opened(again) == http.StatusOK }, effort.Patience, effort.Patience/1000)
	}
}

// opened opens a stream until a context ends, and returns its status.
func (c *client) opened(ctx context.Context) int {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/v1/stream?topics=main", nil)
	require.NoError(c.t, err)
	req.Header = c.header.Clone()
	res, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = res.Body.Close() })
	return res.StatusCode
}
