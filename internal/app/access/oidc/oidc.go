// Package oidc signs people in at a provider of identities: OpenID Connect, by authorization code with PKCE.
//
// It promises that an identity comes from a token that the named issuer has signed for this client, in answer to the
// question that the same browser has asked. State, nonce and the verifier of the code are derived from one secret
// of the question, which only that browser has.
//
// What can fail: the provider cannot be asked (*fault.Error of kind Environment), or has not vouched for anybody
// (ErrRefused, with the reason for the log).
package oidc

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"thalweg/internal/app/access"
	"thalweg/internal/base/fault"
)

// Limits of what a provider answers.
const (
	answerTimeout  = 10 * time.Second
	answerBytesMax = 1 << 20
	groupsMax      = 1_000
)

// ErrRefused is the failure of an answer that signs nobody in.
var ErrRefused = errors.New("the provider of identities has not signed you in")

// Config of a Provider.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret string   // "": a public client
	Scopes       []string // beside openid, profile and email
	GroupsClaim  string
	Groups       map[string][]access.Grant // what each group gives
}

// Provider signs people in. It is asked about itself when it is needed first.
type Provider struct {
	cfg    Config
	client *http.Client

	mu    sync.Mutex
	known *oidc.Provider
}

// New returns a provider. It asks nothing yet.
func New(cfg Config) *Provider {
	return &Provider{cfg: cfg, client: &http.Client{Timeout: answerTimeout, Transport: bounded{http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// bounded cuts off answers that are too long.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	out, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		out.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(out.Body, answerBytesMax), out.Body}
	}
	return out, err
}

// derived returns a text that nobody can guess who has not the secret, and that does not tell it.
func derived(secret, what string) string {
	sum := sha256.Sum256([]byte(what + " " + secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Begin returns the address at which a browser asks the provider who its user is. redirect is where the provider sends
// it then; secret is 256 random bits that the browser keeps.
func (p *Provider) Begin(ctx context.Context, redirect, secret string) (string, error) {
	at, _, err := p.at(ctx, redirect)
	if err != nil {
		return "", err
	}
	return at.AuthCodeURL(derived(secret, "state"), oidc.Nonce(derived(secret, "nonce")),
		oauth2.S256ChallengeOption(derived(secret, "verifier"))), nil
}

// Finish says whom the provider has signed in. state, code and issuer are what it has sent the browser back with;
// issuer may be "".
func (p *Provider) Finish(ctx context.Context, redirect, secret, state, code, issuer string) (access.Identity, error) {
	var none access.Identity
	if secret == "" || !same(state, derived(secret, "state")) {
		return none, refused("the state is not that of this browser's question", nil)
	}
	if code == "" || issuer != "" && issuer != p.cfg.Issuer {
		return none, refused("there is no code, or another issuer has sent it", nil)
	}
	at, provider, err := p.at(ctx, redirect)
	if err != nil {
		return none, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := at.Exchange(ctx, code, oauth2.VerifierOption(derived(secret, "verifier")))
	if err != nil {
		return none, p.exchangeFailed(err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := provider.Verifier(&oidc.Config{ClientID: p.cfg.ClientID}).Verify(ctx, raw)
	if err != nil {
		return none, refused("the token is not good", err)
	}
	if !same(verified.Nonce, derived(secret, "nonce")) {
		return none, refused("the token answers another question", nil)
	}
	return p.identity(verified)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// exchangeFailed tells a provider that refuses a code from one that does not answer. What it has answered may
// have secrets: only its code for the failure is told.
func (p *Provider) exchangeFailed(err error) error {
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) && answer.Response.StatusCode < http.StatusInternalServerError {
		return refused(fmt.Sprintf("it does not take the code: %d %q", answer.Response.StatusCode, answer.ErrorCode), nil)
	}
	return p.unreachable(err)
}

func refused(why string, err error) error {
	if err == nil {
		return fmt.Errorf("%w: %s", ErrRefused, why)
	}
	return fmt.Errorf("%w: %s: %w", ErrRefused, why, err)
}

func (p *Provider) unreachable(err error) error {
	return &fault.Error{Kind: fault.Environment, Message: "the provider of identities " + p.cfg.Issuer + " does not answer",
		Hint: "is oidc.issuer of the server's configuration right, and reachable from the server?", Err: err}
}

// at returns how the provider is asked.
func (p *Provider) at(ctx context.Context, redirect string) (*oauth2.Config, *oidc.Provider, error) {
	p.mu.Lock()
	provider := p.known
	p.mu.Unlock()
	if provider == nil {
		var err error
		if provider, err = oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.cfg.Issuer); err != nil {
			return nil, nil, p.unreachable(err)
		}
		p.mu.Lock()
		p.known = provider
		p.mu.Unlock()
	}
	return &oauth2.Config{ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, Endpoint: provider.Endpoint(),
		RedirectURL: redirect, Scopes: append([]string{oidc.ScopeOpenID, "profile", "email"}, p.cfg.Scopes...)}, provider, nil
}

// identity reads who a token is about.
func (p *Provider) identity(token *oidc.IDToken) (id access.Identity, err error) {
	var all map[string]json.RawMessage
	if err := token.Claims(&all); err != nil {
		return id, refused("the token cannot be read", err)
	}
	text := func(name string) (out string) {
		_ = json.Unmarshal(all[name], &out) // what is no text is none
		return out
	}
	if party := text("azp"); party != "" && party != p.cfg.ClientID || token.Subject == "" {
		return id, refused("the token is for another program, or of nobody", nil)
	}
	id.Subject, id.Display = token.Issuer+" "+token.Subject, text("name")
	if id.Name = strings.ToLower(text("preferred_username")); id.Name == "" && string(all["email_verified"]) == "true" {
		id.Name = strings.ToLower(text("email"))
	}
	var groups []string
	if json.Unmarshal(all[p.cfg.GroupsClaim], &groups) != nil {
		groups = []string{text(p.cfg.GroupsClaim)}
	}
	if len(groups) > groupsMax {
		return id, refused(fmt.Sprintf("there are more than %d groups", groupsMax), nil)
	}
	seen := map[string]bool{}
	for _, g := range groups {
		if !seen[g] {
			id.Grants = append(id.Grants, p.cfg.Groups[g]...)
		}
		seen[g] = true
	}
	return id, nil
}
