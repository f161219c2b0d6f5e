package access

import (
	"context"
	"errors"
	"time"
)

// Kind says what a record is.
type Kind string

// The kinds of records.
const (
	KindUser    Kind = "user"    // by name
	KindToken   Kind = "token"   // by hash
	KindSession Kind = "session" // by hash
)

// Record is something that a store keeps. Its content is the Service's business.
type Record struct {
	Kind     Kind
	Key      string
	Revision int64 // 1, 2, 3 …: counts the changes
	Content  []byte
	Expires  time.Time // after which the store may remove it; zero: never
}

// Entry is a line of the log.
type Entry struct {
	ID        string    `json:"id"` // orders entries by time, and is unique
	Time      time.Time `json:"time"`
	Kind      EntryKind `json:"kind"`
	Actor     string    `json:"actor,omitempty"`
	Via       string    `json:"via,omitempty"`
	From      string    `json:"from,omitempty"` // address of the client
	Workspace string    `json:"workspace,omitempty"`
	What      string    `json:"what,omitempty"`
}

// EntryKind says what an entry of the log is about.
type EntryKind string

// The kinds of entries.
const (
	LoggedIn     EntryKind = "login"
	LoginFailed  EntryKind = "login_failed"
	LoggedOut    EntryKind = "logout"
	TokenMade    EntryKind = "token_made"
	TokenRevoked EntryKind = "token_revoked"
	UserChanged  EntryKind = "user_changed"
	Refused      EntryKind = "refused"
	RowsSeen     EntryKind = "rows_seen"
	RowsTaken    EntryKind = "rows_taken"
	TextWritten  EntryKind = "text_written"
	PasswordSet  EntryKind = "password_set" // one's own
	SessionEnded EntryKind = "session_ended"
)

// Errors of stores that callers decide on.
var (
	ErrNotFound = errors.New("there is no such record")
	ErrConflict = errors.New("the record has been changed")
)

// Store keeps records and the log. Its methods can be called from several goroutines and processes.
type Store interface {
	// Get returns a record, or ErrNotFound.
	Get(ctx context.Context, kind Kind, key string) (Record, error)
	// List returns all records of a kind, by key.
	List(ctx context.Context, kind Kind) ([]Record, error)
	// Put writes a record if the stored one has the revision before r.Revision; 1: if there is none. Else ErrConflict.
	Put(ctx context.Context, r Record) error
	// Remove removes a record. One that is not there is no error.
	Remove(ctx context.Context, kind Kind, key string) error
	// Append adds an entry to the log.
	Append(ctx context.Context, e Entry) error
	// Entries returns limit entries of the log at most, the latest first, before the one of an id; "": the latest.
	Entries(ctx context.Context, before string, limit int) ([]Entry, error)
	// Sweep removes records that have expired.
	Sweep(ctx context.Context, now time.Time) error
	Close() error
}
