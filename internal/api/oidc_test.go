package api_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
)

// provider is a provider of identities that signs in whoever asks, with claims that a test can spoil.
type provider struct {
	*httptest.Server
	t      *testing.T
	signer jose.Signer
	keys   jose.JSONWebKeySet

	mu     sync.Mutex
	codes  map[string]url.Values // questions that are not yet exchanged
	claims map[string]any        // instead of those that are right
	spoil  func(url.Values)      // the answer to the browser
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	require.NoError(t, err)
	p := &provider{t: t, signer: signer, codes: map[string]url.Values{}, claims: map[string]any{},
		keys: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.answer(w, http.StatusOK, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/auth",
			"token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { p.answer(w, http.StatusOK, p.keys) })
	mux.HandleFunc("GET /auth", p.auth)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// auth sends the browser back with a code.
func (p *provider) auth(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	code := rand.Text()
	p.codes[code] = r.URL.Query()
	back := url.Values{"code": {code}, "state": {r.URL.Query().Get("state")}, "session_state": {"x"}}
	if p.spoil != nil {
		p.spoil(back)
	}
	http.Redirect(w, r, r.URL.Query().Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token takes each code once, from who knows the verifier and the client's secret.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked, is := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	_, secret, _ := r.BasicAuth()
	if secret == "" {
		secret = r.FormValue("client_secret")
	}
	if !is || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || secret != "client-secret" ||
		asked.Get("code_challenge_method") != "S256" || asked.Get("redirect_uri") != r.FormValue("redirect_uri") {
		p.answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": "thalweg", "sub": "1", "nonce": asked.Get("nonce"),
		"exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "preferred_username": "Ann", "groups": []string{"data"}}
	for k, v := range p.claims {
		claims[k] = v
	}
	text, _ := json.Marshal(claims)
	signed, err := p.signer.Sign(text)
	if err != nil {
		p.answer(w, http.StatusInternalServerError, nil)
		return
	}
	raw, _ := signed.CompactSerialize()
	p.answer(w, http.StatusOK, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": raw})
}

func (p *provider) set(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

func serveOIDC(t *testing.T) (*served, *provider) {
	t.Helper()
	p := newProvider(t)
	t.Setenv("OIDC_CLIENT_SECRET", "client-secret")
	return serveAs(t, fmt.Sprintf(`oidc:
  issuer: %s
  client_id: thalweg
  client_secret: "{env.OIDC_CLIENT_SECRET}"
  groups:
    data: {workspace: main, role: operator}
    leads: [{workspace: main, role: approver, gate_roles: [sales]}, {workspace: other, role: viewer}]
`, p.URL)), p
}

// browser follows redirects with cookies.
type browser struct {
	*http.Client
	t    *testing.T
	last *url.URL // the last address of the server that it was sent to by the provider
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &browser{Client: &http.Client{Jar: jar}, t: t}
	b.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/oidc/callback" {
			b.last = r.URL
		}
		return nil
	}
	return b
}

func (b *browser) open(address string) answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
	require.NoError(b.t, err)
	res, err := b.Do(req)
	require.NoError(b.t, err)
	defer res.Body.Close()
	var text strings.Builder
	_, err = fmt.Fprint(&text, res.Request.URL.Path)
	require.NoError(b.t, err)
	return answer{b.t, res.StatusCode, res.Header, text.String()}
}

func TestSignInAtProvider(t *testing.T) {
	s, p := serveOIDC(t)
	b := newBrowser(t)
	require.Equal(t, "/v1/me", b.open(s.url+"/oidc/login?next=/v1/me").text)
	require.Equal(t, http.StatusOK, b.open(s.url+ws+"/runs").status)
	users, err := s.users.Users(t.Context())
	require.NoError(t, err)
	require.Len(t, users, 1)
	require.Equal(t, "ann", users[0].Name)
	require.True(t, users[0].External())
	require.Equal(t, []access.Grant{{Workspace: "main", Role: access.Operator}}, users[0].Grants)

	p.set(map[string]any{"groups": "leads", "preferred_username": "anna"})
	require.Equal(t, http.StatusOK, b.open(s.url+"/oidc/login?next=/v1/me").status)
	users, err = s.users.Users(t.Context())
	require.NoError(t, err)
	require.Len(t, users, 1, "the subject counts, not the name")
	require.Equal(t, []access.Grant{{Workspace: "main", Role: access.Approver, GateRoles: []string{"sales"}},
		{Workspace: "other", Role: access.Viewer}}, users[0].Grants, "as the groups are now")

	for _, groups := range []any{nil, []string{"nobody"}, 7} {
		p.set(map[string]any{"groups": groups})
		require.Equal(t, http.StatusForbidden, b.open(s.url+"/oidc/login").status, "no group has grants")
	}
	users, err = s.users.Users(t.Context())
	require.NoError(t, err)
	require.Empty(t, users[0].Grants)

	p.set(nil)
	require.Equal(t, http.StatusOK, b.open(s.url+"/oidc/login?next=/v1/me").status)
	yes := true
	_, err = s.users.PutUser(t.Context(), access.Principal{}, "ann", access.UserChange{Disabled: &yes})
	require.NoError(t, err)
	for _, name := range []string{"ann", "other"} {
		p.set(map[string]any{"preferred_username": name})
		require.Equal(t, http.StatusForbidden, b.open(s.url+"/oidc/login").status, "an admin has removed them")
	}
}

// What the provider calls somebody does not make them another user of the server.
func TestSignInAsLocalUser(t *testing.T) {
	s, p := serveOIDC(t)
	admin := s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	p.set(map[string]any{"preferred_username": "root"})
	require.Equal(t, http.StatusForbidden, newBrowser(t).open(s.url+"/oidc/login?next=/v1/me").status)
	p.set(map[string]any{"preferred_username": "../../x\n"})
	require.Equal(t, http.StatusOK, newBrowser(t).open(s.url+"/oidc/login?next=/v1/me").status)
	var users []struct{ Name, Kind string }
	admin.get("/v1/users").into(http.StatusOK, &users)
	require.Len(t, users, 2)
	require.Regexp(t, "^oidc-[0-9a-f]{16}$", users[0].Name)
	require.Equal(t, "oidc", users[0].Kind)
	p2 := admin.send(http.MethodPut, "/v1/users/"+users[0].Name, map[string]string{"password": "correct horse battery"})
	require.Contains(t, p2.problem(http.StatusConflict).Detail, "signs in at the provider")
	_, err := s.users.Login(t.Context(), users[0].Name, "", "::1")
	require.ErrorIs(t, err, access.ErrUnauthorized)
}

func TestSignInAttacks(t *testing.T) {
	s, p := serveOIDC(t)
	for name, claims := range map[string]map[string]any{
		"issuer":       {"iss": "https://evil.example.com"},
		"audience":     {"aud": "another"},
		"party":        {"aud": []string{"thalweg", "another"}, "azp": "another"},
		"expired":      {"exp": time.Now().Add(-time.Hour).Unix()},
		"nonce":        {"nonce": "another"},
		"no nonce":     {"nonce": ""},
		"nobody":       {"sub": ""},
		"not yet good": {"nbf": time.Now().Add(time.Hour).Unix()},
	} {
		p.set(claims)
		b := newBrowser(t)
		require.Equal(t, http.StatusForbidden, b.open(s.url+"/oidc/login?next=/v1/me").status, name)
		require.Equal(t, http.StatusUnauthorized, b.open(s.url+"/v1/me").status, name)
	}
	p.set(nil)
	for name, spoil := range map[string]func(url.Values){
		"state":    func(v url.Values) { v.Set("state", "another") },
		"no state": func(v url.Values) { v.Del("state") },
		"code":     func(v url.Values) { v.Set("code", "another") },
		"no code":  func(v url.Values) { v.Del("code") },
		"iss":      func(v url.Values) { v.Set("iss", "https://evil.example.com") },
	} {
		p.spoil = spoil
		require.Equal(t, http.StatusForbidden, newBrowser(t).open(s.url+"/oidc/login").status, name)
	}
	p.spoil = nil

	b := newBrowser(t)
	require.Equal(t, http.StatusOK, b.open(s.url+"/oidc/login?next=/v1/me").status)
	require.Equal(t, http.StatusForbidden, b.open(b.last.String()).status, "the browser's question is over")
	require.Equal(t, http.StatusForbidden, newBrowser(t).open(b.last.String()).status, "another browser has not asked")

	// A browser that keeps its cookie replays the code: the provider has given its token already.
	keep := newBrowser(t)
	var cookie *http.Cookie
	follow := keep.CheckRedirect
	keep.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Path == "/oidc/callback" {
			for _, c := range keep.Jar.Cookies(r.URL) {
				if c.Name == "thalweg-test-oidc" {
					cookie = c
				}
			}
		}
		return follow(r, via)
	}
	require.Equal(t, http.StatusOK, keep.open(s.url+"/oidc/login?next=/v1/me").status)
	replay := newBrowser(t)
	replay.Jar.SetCookies(keep.last, []*http.Cookie{cookie})
	require.Equal(t, http.StatusForbidden, replay.open(keep.last.String()).status, "a code is good once")

	entries, err := s.users.Entries(t.Context(), "", 1)
	require.NoError(t, err)
	require.Equal(t, access.LoginFailed, entries[0].Kind)
	require.Contains(t, entries[0].What, "invalid_grant")
}

// A browser is sent to paths of this server only, and its question is in a cookie that no script reads.
func TestSignInNext(t *testing.T) {
	s, _ := serveOIDC(t)
	for _, next := range []string{"//evil.example.com", `/\evil.example.com`, `\\evil.example.com`, "https://evil.example.com",
		"evil", "javascript:alert(1)", "/%2fevil.example.com", "/%5cevil.example.com", "/%252fevil.example.com",
		"/%25255cevil.example.com", "/%09/evil.example.com", "/\t/evil.example.com", "/\n/evil", "/a/..//evil.example.com",
		"/%2e%2e//evil", "/./../..//evil", "/%zz", "/é", "/" + strings.Repeat("a", 3_000), "?x", "#/x", " /x"} {
		a := newBrowser(t).open(s.url + "/oidc/login?next=" + url.QueryEscape(next))
		require.Equal(t, http.StatusUnprocessableEntity, a.status, next)
		require.Empty(t, a.header.Get("Set-Cookie"), next)
	}
	b := newBrowser(t)
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a := b.open(s.url + "/oidc/login?next=" + url.QueryEscape("/runs/7?q=a//b%5c#x"))
	require.Equal(t, http.StatusSeeOther, a.status)
	cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	require.NoError(t, err)
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, cookie.SameSite)
	require.Equal(t, 600, cookie.MaxAge)
	secret, _, _ := strings.Cut(cookie.Value, ".")
	require.NotContains(t, a.header.Get("Location"), secret)

	// A cookie that was changed on its way sends nobody elsewhere.
	at, err := url.Parse(s.url)
	require.NoError(t, err)
	b = newBrowser(t)
	follow := b.CheckRedirect
	b.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Path == "/oidc/callback" {
			b.Jar.SetCookies(at, []*http.Cookie{{Name: "thalweg-test-oidc", Path: "/",
				Value: secret + "." + base64.RawURLEncoding.EncodeToString([]byte("//evil.example.com"))}})
		}
		return follow(r, via)
	}
	require.Equal(t, http.StatusForbidden, b.open(s.url+"/oidc/login").status)
}

// A provider that does not answer is no refusal, and nobody comes in.
func TestSignInProviderAway(t *testing.T) {
	s, p := serveOIDC(t)
	p.Close()
	require.Equal(t, http.StatusServiceUnavailable, newBrowser(t).open(s.url+"/oidc/login").status)
}
