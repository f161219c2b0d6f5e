package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"thalweg/internal/app/caller"
	"thalweg/internal/base/fault"
)

// Limits of sessions and tokens.
const (
	SessionIdle   = 8 * time.Hour
	SessionMax    = 7 * 24 * time.Hour
	TokenMax      = 366 * 24 * time.Hour
	TokenPrefix   = "tw_"
	RevokedWithin = 5 * time.Second // in all processes
	believedFor   = 2 * time.Second // what was read of a record
	believedMost  = 10_000          // records
	touchEvery    = 5 * time.Minute // that a session is noted as used
	secretBytes   = 32
	whatBytesMax  = 500 // of texts in the log
	tokensMax     = 100 // of a user
)

// ErrUnauthorized is the failure of credentials that let nobody in. It gives no reason.
var ErrUnauthorized = errors.New("the name, the password or the token is wrong")

// Service says who somebody is and what they may do. Close ends it.
type Service struct {
	store   Store
	now     func() time.Time
	logger  *slog.Logger
	start   [sha256.Size]byte // of the start secret
	starts  bool              // there is one
	starter string            // name of who comes in with it
	hashing chan struct{}
	tries   throttle

	mu       sync.Mutex
	believed map[string]belief
}

// belief is what was read of a record a moment ago.
type belief struct {
	record Record
	err    error
	at     time.Time
}

// New returns a service over a store, which stays the caller's. now is the clock; nil: the machine's.
func New(store Store, logger *slog.Logger, now func() time.Time) *Service {
	if now == nil {
		now = time.Now
	}
	return &Service{store: store, now: now, logger: logger, hashing: make(chan struct{}, hashesAtOnce),
		tries: throttle{seen: map[string]failures{}}, believed: map[string]belief{}}
}

// StartSecret makes a secret with which whoever has started the server comes in, as name, and may do everything.
// It is good as long as the service lives.
func (s *Service) StartSecret(name string) string {
	text := secretText()
	s.start, s.starts, s.starter = sha256.Sum256([]byte(text)), true, name
	return text
}

// Starts reports whether there is a start secret.
func (s *Service) Starts() bool { return s.starts }

// secretText returns 256 random bits as text.
func secretText() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// session is the content of a session's record.
type session struct {
	User  string    `json:"user,omitempty"` // "": it came in with the start secret
	Name  string    `json:"name"`
	From  string    `json:"from,omitempty"` // address that it has begun at
	Begun time.Time `json:"begun"`
	Seen  time.Time `json:"seen"`
}

// Start opens a session for whoever has the start secret, and returns its secret.
func (s *Service) Start(ctx context.Context, secret, from string) (string, error) {
	sum := sha256.Sum256([]byte(secret))
	if wait := s.tries.wait(s.now(), "", from); wait > 0 {
		return "", tooOften(wait)
	}
	if !s.starts || sum != s.start {
		s.log(ctx, Entry{Kind: LoginFailed, From: from, What: "start secret"})
		return "", ErrUnauthorized
	}
	s.tries.won("", from)
	return s.open(ctx, session{Name: s.starter}, from)
}

// Login opens a session for a user with a password, and returns its secret.
func (s *Service) Login(ctx context.Context, name, password, from string) (string, error) {
	if wait := s.tries.wait(s.now(), name, from); wait > 0 {
		return "", tooOften(wait)
	}
	// A session is of the moment at which its user was read: what ends sessions meanwhile ends this one, too.
	began := s.now().UTC()
	u, _, err := s.user(ctx, name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return "", err
	}
	good, err := s.matches(ctx, password, u.Password)
	if err != nil {
		return "", err
	}
	if !good || u.Disabled || len(password) > passwordBytesMax {
		s.log(ctx, Entry{Kind: LoginFailed, Actor: name, From: from})
		return "", ErrUnauthorized
	}
	s.tries.won(name, from)
	return s.open(ctx, session{User: u.Name, Name: u.Name, Begun: began}, from)
}

func tooOften(wait time.Duration) error {
	return &fault.Error{Kind: fault.Script, Code: fault.TooMany, Message: "there were too many failed logins",
		Hint: fmt.Sprintf("try again in %d seconds", 1+int(wait.Seconds())), Err: &WaitError{wait}}
}

// WaitError says that something may be tried again later.
type WaitError struct{ Wait time.Duration }

// Error implements error.
func (e *WaitError) Error() string { return fmt.Sprintf("wait %s", e.Wait.Round(time.Second)) }

// open writes a new session, begun now unless it says when.
func (s *Service) open(ctx context.Context, of session, from string) (string, error) {
	secret := secretText()
	of.Seen, of.From = s.now().UTC(), plain(from)
	if of.Begun.IsZero() {
		of.Begun = of.Seen
	}
	content, err := json.Marshal(of)
	if err != nil {
		return "", fmt.Errorf("write a session: %w", err)
	}
	err = s.store.Put(ctx, Record{Kind: KindSession, Key: hashOf(secret), Revision: 1, Content: content,
		Expires: of.Begun.Add(SessionMax)})
	if err != nil {
		return "", fmt.Errorf("begin a session: %w", err)
	}
	s.log(ctx, Entry{Kind: LoggedIn, Actor: of.Name, Via: string(caller.Session), From: from})
	return secret, nil
}

// Session says who has a session's secret.
func (s *Service) Session(ctx context.Context, secret string) (Principal, error) {
	key := hashOf(secret)
	r, err := s.read(ctx, KindSession, key)
	if err != nil {
		return Principal{}, unauthorized(err)
	}
	var of session
	if err := json.Unmarshal(r.Content, &of); err != nil {
		return Principal{}, fmt.Errorf("read a session: %w", err)
	}
	now := s.now()
	if s.over(of) {
		return Principal{}, errors.Join(ErrUnauthorized, s.store.Remove(ctx, KindSession, key))
	}
	p := Principal{name: of.Name, via: caller.Session, session: key}
	if of.User == "" {
		p.grants = []Grant{{Workspace: AllWorkspaces, Role: Manager, GateRoles: []string{caller.AnyRole}}}
	} else {
		u, err := s.believe(ctx, of.User)
		if err != nil {
			return Principal{}, unauthorized(err)
		}
		if u.Disabled || of.Begun.Before(u.Sessions) {
			return Principal{}, ErrUnauthorized
		}
		p.grants, p.trusted = u.Grants, true
	}
	s.touch(ctx, r, of, now)
	return p, nil
}

// touch notes that a session is used. What fails is left: the session ends earlier.
func (s *Service) touch(ctx context.Context, r Record, of session, now time.Time) {
	if now.Sub(of.Seen) < touchEvery {
		return
	}
	of.Seen = now.UTC()
	content, err := json.Marshal(of)
	if err != nil {
		return
	}
	r.Revision, r.Content = r.Revision+1, content
	if err := s.store.Put(ctx, r); err != nil && !errors.Is(err, ErrConflict) {
		s.logger.WarnContext(ctx, "a session could not be noted as used", "error", err)
	}
	s.forget(KindSession, r.Key)
}

// Logout ends the session of a principal.
func (s *Service) Logout(ctx context.Context, p Principal, from string) error {
	if p.session == "" {
		return nil
	}
	if err := s.store.Remove(ctx, KindSession, p.session); err != nil {
		return err
	}
	s.forget(KindSession, p.session)
	s.log(ctx, Entry{Kind: LoggedOut, Actor: p.name, From: from})
	return nil
}

// read returns a record as it was within believedFor.
func (s *Service) read(ctx context.Context, kind Kind, key string) (Record, error) {
	now, id := s.now(), string(kind)+" "+key
	s.mu.Lock()
	b, is := s.believed[id]
	s.mu.Unlock()
	if is && now.Sub(b.at) < believedFor && now.Sub(b.at) >= 0 {
		return b.record, b.err
	}
	r, err := s.store.Get(ctx, kind, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return r, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.believed) >= believedMost {
		clear(s.believed)
	}
	s.believed[id] = belief{r, err, now}
	return r, err
}

func (s *Service) forget(kind Kind, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.believed, string(kind)+" "+key)
}

// unauthorized hides why credentials let nobody in, unless the store has failed.
func unauthorized(err error) error {
	if errors.Is(err, ErrNotFound) {
		return ErrUnauthorized
	}
	return err
}

// Note writes to the log what somebody has seen, taken, or was refused.
func (s *Service) Note(ctx context.Context, p Principal, kind EntryKind, workspace, what, from string) {
	s.log(ctx, Entry{Kind: kind, Actor: p.name, Via: string(p.via), Workspace: workspace, What: what, From: from})
}

// log writes an entry. One that cannot be written is told to the process's log.
func (s *Service) log(ctx context.Context, e Entry) {
	e.Time = s.now().UTC()
	e.ID = fmt.Sprintf("%013x-%s", e.Time.UnixMicro(), rand.Text()[:8])
	for _, text := range []*string{&e.Actor, &e.Workspace, &e.What, &e.From} {
		*text = plain(*text)
	}
	if err := s.store.Append(context.WithoutCancel(ctx), e); err != nil {
		s.logger.ErrorContext(ctx, "the log of access cannot be written", "entry", e.Kind, "actor", e.Actor,
			"error", err)
	}
}

// plain returns a text without control characters, cut to whatBytesMax.
func plain(text string) string {
	if len(text) > whatBytesMax {
		text = strings.ToValidUTF8(text[:whatBytesMax], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return '�'
		}
		return r
	}, text)
}

// Entries returns a page of the log, the latest first: see Store.Entries.
func (s *Service) Entries(ctx context.Context, before string, limit int) ([]Entry, error) {
	return s.store.Entries(ctx, before, limit)
}

// SweepEvery removes what has expired, at once and at intervals, until ctx ends. What fails is tried again.
func (s *Service) SweepEvery(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := s.store.Sweep(ctx, s.now()); err != nil && ctx.Err() == nil {
			s.logger.WarnContext(ctx, "expired sessions and tokens stay for now", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// userName is the form of users' names.
var userName = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]{0,99}$`)

// User is somebody who can log in.
type User struct {
	Name     string    `json:"name"`
	Display  string    `json:"display,omitempty"`
	Password string    `json:"password,omitempty"` // as hash has it; "": they come in by another way
	Subject  string    `json:"subject,omitempty"`  // at the provider of identities
	Disabled bool      `json:"disabled,omitempty"`
	Grants   []Grant   `json:"grants"`
	Sessions time.Time `json:"sessions,omitzero"` // those that have begun before are over
}

// user reads a user, and the revision of the record.
func (s *Service) user(ctx context.Context, name string) (u User, revision int64, err error) {
	r, err := s.store.Get(ctx, KindUser, name)
	if err != nil {
		return u, 0, err
	}
	return u, r.Revision, json.Unmarshal(r.Content, &u)
}

// believe reads a user as they were within believedFor.
func (s *Service) believe(ctx context.Context, name string) (u User, err error) {
	r, err := s.read(ctx, KindUser, name)
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(r.Content, &u)
}

// Users lists the users by name, without their passwords.
func (s *Service) Users(ctx context.Context) ([]User, error) {
	records, err := s.store.List(ctx, KindUser)
	out := make([]User, 0, len(records))
	for _, r := range records {
		var u User
		if err := json.Unmarshal(r.Content, &u); err != nil {
			return nil, fmt.Errorf("read user %s: %w", r.Key, err)
		}
		u.Password = ""
		out = append(out, u)
	}
	return out, err
}

// UserChange says what changes of a user; nil leaves it.
type UserChange struct {
	Display  *string
	Password *string
	Disabled *bool
	Grants   *[]Grant
}

// PutUser makes a user, or changes one. Sessions of a user whose password or state changes are over.
func (s *Service) PutUser(ctx context.Context, by Principal, name string, c UserChange) (User, error) {
	if !userName.MatchString(name) {
		return User{}, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q is no name of a user", plain(name)),
			Hint: "lower-case letters, digits and . _ @ -, 100 at most"}
	}
	u, revision, err := s.user(ctx, name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return u, err
	}
	u.Name = name
	if u.External() && (c.Grants != nil || c.Password != nil) {
		return u, &fault.Error{Kind: fault.Script, Code: fault.Conflict, Message: name + " signs in at the provider",
			Hint: "its grants are those of its groups, in the server's configuration; it has no password"}
	}
	if c.Grants != nil {
		if err := checkGrants(*c.Grants); err != nil {
			return u, err
		}
		u.Grants = *c.Grants
	}
	if c.Display != nil {
		u.Display = plain(*c.Display)
	}
	if c.Password != nil {
		if err := checkPassword(*c.Password, u.Name, u.Display); err != nil {
			return u, err
		}
		if u.Password, err = s.hash(ctx, *c.Password); err != nil {
			return u, err
		}
		u.Sessions = s.now().UTC()
	}
	if c.Disabled != nil {
		u.Disabled, u.Sessions = *c.Disabled, s.now().UTC()
	}
	if err := s.someAdminStays(ctx, u); err != nil {
		return u, err
	}
	err = s.putUser(ctx, u, revision+1)
	if err == nil {
		s.log(ctx, Entry{Kind: UserChanged, Actor: by.name, What: name})
	}
	u.Password = ""
	return u, err
}

// putUser writes a user as a revision of the record.
func (s *Service) putUser(ctx context.Context, u User, revision int64) error {
	content, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("write user %s: %w", u.Name, err)
	}
	err = s.store.Put(ctx, Record{Kind: KindUser, Key: u.Name, Revision: revision, Content: content})
	if errors.Is(err, ErrConflict) {
		return &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: "the user has been changed by somebody else", Hint: "look at it again", Err: err}
	}
	s.forget(KindUser, u.Name)
	return err
}

// someAdminStays refuses a change after which no user could change users any more.
func (s *Service) someAdminStays(ctx context.Context, changed User) error {
	users, err := s.Users(ctx)
	if err != nil {
		return err
	}
	manages := func(u User) bool { return !u.Disabled && may(u.Grants, "", Admin) }
	had := slices.ContainsFunc(users, manages)
	users = slices.DeleteFunc(users, func(u User) bool { return u.Name == changed.Name })
	if had && !slices.ContainsFunc(append(users, changed), manages) {
		return &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: "nobody could change users any more", Hint: "let another user be admin of * before"}
	}
	return nil
}
