package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app/caller"
	"thalweg/internal/base/fault"
)

// Token lets a program in, in the name of a user.
type Token struct {
	ID      string    `json:"id"` // the first digits of its hash
	Name    string    `json:"name"`
	Owner   string    `json:"owner"`
	Grants  []Grant   `json:"grants"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
}

// tokenIDBytes is the length of a token's id.
const tokenIDBytes = 16

// MakeToken makes a token for a principal, and returns its secret, which is nowhere else. It gives only
// what its owner may, too, at any time.
func (s *Service) MakeToken(ctx context.Context, by Principal, name string, grants []Grant,
	life time.Duration) (Token, string, error) {
	if err := checkGrants(grants); err != nil {
		return Token{}, "", err
	}
	switch own, err := s.Tokens(ctx, by.name); {
	case err != nil:
		return Token{}, "", err
	case len(own) >= tokensMax:
		return Token{}, "", fault.New(fault.Script, "you have %d tokens: revoke some", len(own))
	case by.bounded || !by.trusted:
		return Token{}, "", &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
			Message: "only a user who has logged in makes tokens", Hint: "make a user, and log in as that"}
	case life <= 0 || life > TokenMax:
		return Token{}, "", fault.New(fault.Script, "a token lives for up to %d days", int(TokenMax.Hours()/24))
	case len(grants) == 0:
		return Token{}, "", fault.New(fault.Script, "a token without grants lets nobody do anything")
	}
	if lacked := lacks(by.grants, grants); lacked != "" {
		return Token{}, "", &fault.Error{Kind: fault.Script, Message: "you lack " + lacked,
			Hint: "a token has what its owner may, or less; GET /v1/me lists that"}
	}
	secret := TokenPrefix + secretText()
	hash := hashOf(secret)
	t := Token{ID: hash[:tokenIDBytes], Name: plain(name), Owner: by.name, Grants: grants, Made: s.now().UTC()}
	t.Expires = t.Made.Add(life)
	content, err := json.Marshal(t)
	if err != nil {
		return t, "", fmt.Errorf("write a token: %w", err)
	}
	err = s.store.Put(ctx, Record{Kind: KindToken, Key: hash, Revision: 1, Content: content, Expires: t.Expires})
	if err != nil {
		return t, "", fmt.Errorf("keep a token: %w", err)
	}
	s.log(ctx, Entry{Kind: TokenMade, Actor: by.name, What: t.ID + " " + t.Name})
	return t, secret, nil
}

// Bearer says who has a token's secret.
func (s *Service) Bearer(ctx context.Context, secret string) (Principal, error) {
	if !strings.HasPrefix(secret, TokenPrefix) {
		return Principal{}, ErrUnauthorized
	}
	r, err := s.read(ctx, KindToken, hashOf(secret))
	if err != nil {
		return Principal{}, unauthorized(err)
	}
	var t Token
	if err := json.Unmarshal(r.Content, &t); err != nil {
		return Principal{}, fmt.Errorf("read a token: %w", err)
	}
	if !s.now().Before(t.Expires) {
		return Principal{}, ErrUnauthorized
	}
	u, err := s.believe(ctx, t.Owner)
	if err != nil {
		return Principal{}, unauthorized(err)
	}
	if u.Disabled {
		return Principal{}, ErrUnauthorized
	}
	return Principal{name: u.Name, via: caller.Token, grants: u.Grants, bounds: t.Grants, bounded: true, trusted: true},
		nil
}

// Tokens lists the tokens of a user, the latest first; "": of all.
func (s *Service) Tokens(ctx context.Context, owner string) ([]Token, error) {
	records, err := s.store.List(ctx, KindToken)
	if err != nil {
		return nil, err
	}
	out := []Token{}
	for _, r := range records {
		var t Token
		if err := json.Unmarshal(r.Content, &t); err != nil {
			return nil, fmt.Errorf("read a token: %w", err)
		}
		if (owner == "" || t.Owner == owner) && s.now().Before(t.Expires) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Token) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// RevokeToken revokes a token of an owner; "": of anybody.
func (s *Service) RevokeToken(ctx context.Context, by Principal, owner, id string) error {
	records, err := s.store.List(ctx, KindToken)
	if err != nil {
		return err
	}
	for _, r := range records {
		var t Token
		if err := json.Unmarshal(r.Content, &t); err != nil || t.ID != id || owner != "" && t.Owner != owner {
			continue
		}
		if err := s.store.Remove(ctx, KindToken, r.Key); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		s.forget(KindToken, r.Key)
		s.log(ctx, Entry{Kind: TokenRevoked, Actor: by.name, What: id + " " + t.Name})
		return nil
	}
	return &fault.Error{Kind: fault.Script, Code: fault.NotFound, Message: "there is no such token"}
}
