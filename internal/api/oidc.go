package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/base/fault"
)

// Provider says who somebody is: see package oidc.
type Provider interface {
	Begin(ctx context.Context, redirect, secret string) (address string, err error)
	Finish(ctx context.Context, redirect, secret, state, code, issuer string) (access.Identity, error)
}

// Limits of signing in at a provider.
const (
	signInMax       = 10 * time.Minute
	nextBytesMax    = 2_000
	signInBytes     = 32
	unescapedForms  = 4 // of a path, that are looked at
	callbackPath    = "/oidc/callback"
	signInQueryMax  = 8 << 10
	signInSeparator = "."
)

func (s *Server) registerProvider() {
	if s.provider == nil {
		return
	}
	s.mux.HandleFunc("GET /oidc/login", s.serveSignIn)
	s.mux.HandleFunc("GET "+callbackPath, s.serveCallback)
}

// serveSignIn sends a browser to the provider.
func (s *Server) serveSignIn(w http.ResponseWriter, r *http.Request) {
	next := cmp.Or(r.URL.Query().Get("next"), "/")
	if !localPath(next) {
		writeProblem(w, problem(&fault.Error{Kind: fault.Script, Message: "next is no path of this server",
			Hint: "it begins with one /, such as /runs"}, s.known.Text))
		return
	}
	random := make([]byte, signInBytes)
	_, _ = rand.Read(random) // never fails
	secret := base64.RawURLEncoding.EncodeToString(random)
	to, err := s.provider.Begin(r.Context(), s.callback(r), secret)
	if err != nil {
		s.signInFailed(w, r, err)
		return
	}
	value := secret + signInSeparator + base64.RawURLEncoding.EncodeToString([]byte(next))
	http.SetCookie(w, s.signInCookie(value, int(signInMax.Seconds())))
	redirectTo(w, to)
}

// signInCookie is the cookie of a browser that is at the provider; age < 0 removes it.
func (s *Server) signInCookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: s.cookie + "-oidc", Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: s.secure,
		SameSite: http.SameSiteLaxMode}
}

// callback is where the provider sends a browser. Its host is one of the server's: ServeHTTP has looked.
func (s *Server) callback(r *http.Request) string {
	scheme := "http"
	if s.secure {
		scheme = "https"
	}
	return scheme + "://" + r.Host + callbackPath
}

// serveCallback begins a session for whoever comes back from the provider.
func (s *Server) serveCallback(w http.ResponseWriter, r *http.Request) {
	cookie, err := r.Cookie(s.cookie + "-oidc")
	http.SetCookie(w, s.signInCookie("", -1))
	if err != nil || len(r.URL.RawQuery) > signInQueryMax {
		s.signInFailed(w, r, app.ErrNotSignedIn)
		return
	}
	secret, text, _ := strings.Cut(cookie.Value, signInSeparator)
	next, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !localPath(string(next)) {
		s.signInFailed(w, r, app.ErrNotSignedIn)
		return
	}
	q := r.URL.Query()
	id, err := s.provider.Finish(r.Context(), s.callback(r), secret, q.Get("state"), q.Get("code"), q.Get("iss"))
	if err != nil {
		s.signInFailed(w, r, err)
		return
	}
	session, err := s.access.LoginAs(r.Context(), id, s.addressOf(r))
	if err != nil {
		s.signInFailed(w, r, err)
		return
	}
	own := s.sessionCookie(session, access.SessionMax)
	http.SetCookie(w, &own)
	redirectTo(w, string(next))
}

// signInFailed answers a browser that is not signed in. The log has the reason.
func (s *Server) signInFailed(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, app.ErrNotSignedIn) {
		s.access.LoginRefused(r.Context(), s.known.Text(err.Error()), s.addressOf(r))
		err = &fault.Error{Kind: fault.Script, Code: fault.Forbidden, Message: app.ErrNotSignedIn.Error(),
			Hint: "begin again at /oidc/login; the server's access log has the reason"}
	}
	writeProblem(w, s.failed(r.Context(), operation{id: "oidc"}, err))
}

func redirectTo(w http.ResponseWriter, address string) {
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}

// localPath reports whether an address is a path of this server for every browser, however often it is unescaped.
func localPath(address string) bool {
	path, _, _ := strings.Cut(address, "#")
	path, _, _ = strings.Cut(path, "?")
	if len(address) > nextBytesMax || strings.ContainsFunc(address, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '\\'
	}) {
		return false
	}
	for range unescapedForms {
		if !strings.HasPrefix(path, "/") || strings.Contains(path, "//") || strings.ContainsAny(path, "\\\t\r\n\x00") ||
			strings.Contains(path, "/..") {
			return false
		}
		plain, err := url.PathUnescape(path)
		if err != nil {
			return false
		}
		if plain == path {
			return true
		}
		path = plain
	}
	return false
}
