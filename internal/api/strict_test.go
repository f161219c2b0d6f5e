package api_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/test/effort"
)

// sent sends a request as it is written, and follows nothing.
func (c *client) sent(method, target, text string) answer {
	c.t.Helper()
	at, err := url.Parse(c.url)
	require.NoError(c.t, err)
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url, strings.NewReader(text))
	require.NoError(c.t, err)
	req.URL.Opaque = "//" + at.Host + target
	for k, v := range c.header {
		req.Header[k] = v
	}
	if text != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(c.t, err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	require.NoError(c.t, err)
	return answer{c.t, res.StatusCode, res.Header, string(got)}
}

// What programs read in different ways is refused with its place.
func TestAmbiguousRequests(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "*", Role: access.Manager})
	const at = "/v1/workspaces/main/runs/1/orders"
	for text, place := range map[string]string{
		`{"kind":"stop","kind":"resume"}`:                 "body.kind",
		`{"kind":"stop","\u006bind":"resume"}`:            "body.kind",
		"{\"kind\":\"stop\",\"reason\":\"a\xff\"}":        "body.reason",
		`{"kind":"stop","reason":"a\ud800"}`:              "body.reason",
		`{"kind":"stop","reason":"\ud800\ud800\udc00"}`:   "body.reason",
		`{"kind":"stop","reason":"\udc00\ud800"}`:         "body.reason",
		`{"kind":"stop","reason":"\\\ud83dx"}`:            "body.reason",
		`{"kind":"stop","nodes":["a","\udfff"]}`:          "body.nodes[1]",
		`{"kind":"stop","x":[{"a":[1,{"b":1,"b":[2]}]}]}`: "body.x[0].a[1].b",
	} {
		p := c.sent("POST", at, text).problem(http.StatusBadRequest)
		require.Len(t, p.Errors, 1, text)
		require.Equal(t, place, p.Errors[0].Location, text)
	}
	for _, text := range []string{`{"kind":"resume","reason":"\ud83d\ude00 \\ud800 \"\u00e9\" ü","dry_run":true}`,
		`{"kind":"resume","reason":"kind","dry_run":true}`} {
		got := c.sent("POST", at, text)
		require.NotEqual(t, http.StatusBadRequest, got.status, got.text)
	}
	for query, place := range map[string]string{"limit=5&limit=6": "query.limit",
		"script=&script=x": "query.script"} {
		p := c.sent("GET", ws+"/runs?"+query, "").problem(http.StatusUnprocessableEntity)
		require.Len(t, p.Errors, 1, query)
		require.Equal(t, place, p.Errors[0].Location, query)
	}
	p := c.get(ws + "/runs?status=complet").problem(http.StatusUnprocessableEntity)
	require.Contains(t, p.Hint, "complete")
	c.get(ws+"/runs?status=complete").into(http.StatusOK, &struct{}{})
}

// Paths are taken as they are: none is sent on to another.
func TestPathsAreNotCleaned(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	c := s.as("ann", access.Grant{Workspace: "*", Role: access.Manager})
	for _, target := range []string{"/v1/users/..", "/v1/users/.", "/v1/workspaces/main//runs", "//v1/me", "/v1/./me",
		"/v1/x/../me", "//", "/ui", "/v1/me/"} {
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			got := c.sent(method, target, "")
			require.Equal(t, http.StatusNotFound, got.problem(http.StatusNotFound).Status, "%s %s", method, target)
			require.Empty(t, got.header.Get("Location"))
		}
	}
	require.Equal(t, http.StatusOK, c.sent(http.MethodGet, "/v1/me", "").status)
}

// The scheme of credentials has letters of either case, and whoever has none is told which is known.
func TestSchemeOfTokens(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	_, secret, _ := strings.Cut(c.header.Get("Authorization"), " ")
	for _, scheme := range []string{"bearer ", "BEARER  "} {
		(&client{s, http.Header{"Authorization": {scheme + secret}}}).get("/v1/me").into(http.StatusOK, &struct{}{})
	}
	for _, bad := range []string{"Basic " + secret, secret, "Bearer" + secret} {
		got := (&client{s, http.Header{"Authorization": {bad}}}).get("/v1/me")
		require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
		got.problem(http.StatusUnauthorized)
	}
	got := s.nobody().send("POST", "/v1/login", body{"name": "ann", "password": "wrong"})
	require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
	got.problem(http.StatusUnauthorized)
}

// A workspace is there once it has a run, or is in the configuration.
func TestUnknownWorkspace(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	c := s.as("ann", access.Grant{Workspace: "*", Role: access.Manager})
	p := c.get("/v1/workspaces/mian/runs").problem(http.StatusNotFound)
	require.Contains(t, p.Detail, "there is no workspace mian")
	c.get("/v1/workspaces/main/runs").into(http.StatusOK, &struct{}{})
	s.runIn("mian")
	c.get("/v1/workspaces/mian/runs").into(http.StatusOK, &struct{}{})
}

// A token for more than its owner may is refused, and says what is lacked.
func TestTokensBeyondTheirOwner(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.as("ann", access.Grant{Workspace: "main", Role: access.Approver, GateRoles: []string{"sales"}})
	c := s.session("ann", "correct horse battery")
	for lacked, g := range map[string]access.Grant{
		"operate in main, which operator has": {Workspace: "main", Role: access.Operator},
		"view in *":                           {Workspace: "*", Role: access.Viewer},
		"view in other":                       {Workspace: "other", Role: access.Viewer},
		"the gate role legal in main":         {Workspace: "main", Role: access.Approver, GateRoles: []string{"sales", "legal"}},
		"the gate role * in main":             {Workspace: "main", Role: access.Approver, GateRoles: []string{"*"}},
	} {
		p := c.send("POST", "/v1/tokens", body{"name": "x", "days": 1, "grants": []access.Grant{g}}).
			problem(http.StatusUnprocessableEntity)
		require.Contains(t, p.Detail, lacked)
	}
	for _, g := range []access.Grant{{Workspace: "main", Role: access.Reader},
		{Workspace: "main", Role: access.Viewer, GateRoles: []string{"sales"}}} {
		got := c.send("POST", "/v1/tokens", body{"name": "x", "days": 1, "grants": []access.Grant{g}})
		require.Equal(t, http.StatusCreated, got.status, got.text)
	}
}

// A proposal says in words what can be done, in all texts that go into the script.
func TestInferenceHasNoMarks(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, c, _ := authorOf(t)
	s.file("in/one.csv", "id,name\n")
	for _, texts := range []string{"", "marks"} {
		c.header.Set("Thalweg-Texts", texts)
		j := c.jobOf(c.send("POST", ws+"/inferences", body{"files": []string{"../in/one.csv"}}))
		require.Nil(t, j.Problem, j.Problem)
		text := j.Result.(map[string]any)["text"].(string)
		require.Contains(t, text, "(the option header false if it is data)")
	}
}

// Places name the files as the request does.
func TestPlacesNameFilesAsGiven(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	_, c, _ := authorOf(t)
	var valid view.Validated
	c.send("POST", ws+"/validations", body{"name": "jobs/orders.yaml", "text": "nodes:\n  load: {type: file_tabel}\n"}).
		into(http.StatusOK, &valid)
	require.NotEmpty(t, valid.Diagnostics)
	require.Equal(t, "jobs/orders.yaml", valid.Diagnostics[0].Pos.File)
}
