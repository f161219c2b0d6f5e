package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"thalweg/internal/app/caller"
	"thalweg/internal/base/fault"
)

// Identity is somebody whom a provider of identities vouches for.
type Identity struct {
	Subject string // whose it is, for ever: issuer and subject
	Name    string // what the provider calls them; it may change, and others may have had it
	Display string
	Grants  []Grant // that their groups give
}

// LoginAs opens a session for somebody whom a provider has signed in, and returns its secret. Whoever is new becomes a
// user without a password. The grants of a user become those of their groups.
func (s *Service) LoginAs(ctx context.Context, id Identity, from string) (string, error) {
	u, err := s.follow(ctx, id)
	if err != nil {
		return "", err
	}
	if u.Disabled || len(u.Grants) == 0 {
		s.log(ctx, Entry{Kind: LoginFailed, Actor: u.Name, From: from, What: "disabled, or no group with grants"})
		return "", &fault.Error{Kind: fault.Script, Code: fault.Forbidden, Message: "you may do nothing here",
			Hint: "an admin disabled you, or no group of yours has grants in the server's configuration"}
	}
	return s.open(ctx, session{User: u.Name, Name: u.Name}, from)
}

// LoginRefused notes that nobody came in from an address, and why.
func (s *Service) LoginRefused(ctx context.Context, why, from string) {
	s.log(ctx, Entry{Kind: LoginFailed, From: from, Via: string(caller.Session), What: why})
}

// follow makes the user of an identity, or gives it the grants that its groups give now.
func (s *Service) follow(ctx context.Context, id Identity) (u User, err error) {
	if err := checkGrants(id.Grants); err != nil {
		return u, err
	}
	users, err := s.Users(ctx)
	if err != nil {
		return u, err
	}
	name := id.Name
	if i := slices.IndexFunc(users, func(u User) bool { return u.Subject == id.Subject }); i >= 0 {
		name = users[i].Name // whatever the provider calls them now
	} else if len(id.Grants) == 0 {
		return User{Name: name}, nil
	} else if !userName.MatchString(name) {
		name = "oidc-" + hashOf(id.Subject)[:tokenIDBytes]
	}
	u, revision, err := s.user(ctx, name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return u, err
	}
	if revision > 0 && u.Subject != id.Subject {
		return u, &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
			Message: "the name " + name + " is that of another user here",
			Hint:    "let the provider give you another name, or an admin of the server ask whose it is"}
	}
	if u.Disabled || revision > 0 && u.Display == plain(id.Display) && slices.EqualFunc(u.Grants, id.Grants, sameGrant) {
		return u, nil
	}
	u.Name, u.Subject, u.Display, u.Grants, u.Password = name, id.Subject, plain(id.Display), id.Grants, ""
	content, err := json.Marshal(u)
	if err != nil {
		return u, fmt.Errorf("write user %s: %w", name, err)
	}
	err = s.store.Put(ctx, Record{Kind: KindUser, Key: name, Revision: revision + 1, Content: content})
	s.forget(KindUser, name)
	if errors.Is(err, ErrConflict) {
		return u, &fault.Error{Kind: fault.Script, Code: fault.Conflict, Message: "you are signing in twice at once",
			Hint: "try again", Err: err}
	}
	if err == nil {
		s.log(ctx, Entry{Kind: UserChanged, Actor: name, What: name + " by its groups"})
	}
	return u, err
}

func sameGrant(a, b Grant) bool {
	return a.Workspace == b.Workspace && a.Role == b.Role && slices.Equal(a.GateRoles, b.GateRoles)
}

// External reports whether a provider of identities signs the user in.
func (u User) External() bool { return u.Subject != "" }
