package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/base/fault"
)

// OwnSession is a session as its user sees it.
type OwnSession struct {
	ID    string    `json:"id"` // the first digits of its hash
	From  string    `json:"from,omitempty" doc:"Address that it has begun at."`
	Begun time.Time `json:"begun"`
	Seen  time.Time `json:"seen" doc:"When it was used last, within minutes."`
	This  bool      `json:"this,omitempty" doc:"It is the one that asks."`
}

// sessionIDBytes is the length of a session's id.
const sessionIDBytes = 16

// ChangePassword gives a user who has logged in another password, and a new session in place of all, whose secret it
// returns. A wrong old one counts as a failed login.
func (s *Service) ChangePassword(ctx context.Context, by Principal, old, password, from string) (string, error) {
	if by.session == "" || !by.trusted {
		return "", &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
			Message: "only a user who has logged in changes their password", Hint: "log in with name and password"}
	}
	if wait := s.tries.wait(s.now(), by.name, from); wait > 0 {
		return "", tooOften(wait)
	}
	u, revision, err := s.user(ctx, by.name)
	if err != nil {
		return "", unauthorized(err)
	}
	if u.External() {
		return "", &fault.Error{Kind: fault.Script, Code: fault.Conflict, Message: "you sign in at the provider",
			Hint: "it has your password"}
	}
	good, err := s.matches(ctx, old, u.Password)
	if err != nil {
		return "", err
	}
	if !good || u.Disabled {
		s.log(ctx, Entry{Kind: LoginFailed, Actor: by.name, From: from, What: "old password"})
		return "", &fault.Error{Kind: fault.Script, Code: fault.Forbidden, Message: "the old password is another one"}
	}
	s.tries.won(by.name, from)
	if err := checkPassword(password, u.Name, u.Display); err != nil {
		return "", err
	}
	if u.Password, err = s.hash(ctx, password); err != nil {
		return "", err
	}
	u.Sessions = s.now().UTC()
	if err := s.putUser(ctx, u, revision+1); err != nil {
		return "", err
	}
	s.log(ctx, Entry{Kind: PasswordSet, Actor: by.name, Via: string(by.via), From: from})
	if _, err := s.EndSessions(ctx, by, "", from); err != nil { // also those of a server whose clock is ahead
		return "", err
	}
	if err := s.Logout(ctx, by, from); err != nil {
		return "", err
	}
	return s.open(ctx, session{User: u.Name, Name: u.Name}, from)
}

// Sessions lists the sessions of a principal's user that are not over, the latest first.
func (s *Service) Sessions(ctx context.Context, by Principal) ([]OwnSession, error) {
	out := []OwnSession{}
	u, _, err := s.user(ctx, by.name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	err = s.eachSession(ctx, by, func(key string, of session) error {
		if of.User != "" && of.Begun.Before(u.Sessions) {
			return nil
		}
		out = append(out, OwnSession{ID: key[:sessionIDBytes], From: of.From, Begun: of.Begun, Seen: of.Seen,
			This: key == by.session})
		return nil
	})
	slices.SortFunc(out, func(a, b OwnSession) int {
		return cmp.Or(b.Begun.Compare(a.Begun), cmp.Compare(a.ID, b.ID))
	})
	return out, err
}

// EndSessions ends the session of an id; "": all of the principal's user but the one that asks. It returns how many.
func (s *Service) EndSessions(ctx context.Context, by Principal, id, from string) (ended int, err error) {
	err = s.eachSession(ctx, by, func(key string, _ session) error {
		if id == "" && key == by.session || id != "" && key[:sessionIDBytes] != id {
			return nil
		}
		if err := s.store.Remove(ctx, KindSession, key); err != nil {
			return err
		}
		s.forget(KindSession, key)
		s.log(ctx, Entry{Kind: SessionEnded, Actor: by.name, Via: string(by.via), From: from, What: key[:sessionIDBytes]})
		ended++
		return nil
	})
	if err == nil && id != "" && ended == 0 {
		err = &fault.Error{Kind: fault.Script, Code: fault.NotFound, Message: "you have no such session"}
	}
	return ended, err
}

// eachSession hands do the sessions of a principal's user that are not over, by their keys.
func (s *Service) eachSession(ctx context.Context, by Principal, do func(key string, of session) error) error {
	if by.bounded { // a token may do less than its owner
		return &fault.Error{Kind: fault.Script, Code: fault.Forbidden, Message: "a token does not see its owner's sessions",
			Hint: "log in"}
	}
	user := by.name
	if !by.trusted { // who came in with the start secret is no user
		user = ""
	}
	records, err := s.store.List(ctx, KindSession)
	if err != nil {
		return err
	}
	for _, r := range records {
		var of session
		if err := json.Unmarshal(r.Content, &of); err != nil {
			return fmt.Errorf("read a session: %w", err)
		}
		if of.User != user || of.Name != by.name || s.over(of) || len(r.Key) < sessionIDBytes {
			continue
		}
		if err := do(r.Key, of); err != nil {
			return err
		}
	}
	return nil
}

// over reports whether a session has lasted, or been idle, for too long.
func (s *Service) over(of session) bool {
	now := s.now()
	return now.Sub(of.Seen) > SessionIdle || now.Sub(of.Begun) > SessionMax
}
