// Package sqlite keeps users, tokens, sessions and the log of access in one SQLite file, beside the state and
// apart from it.
//
// It promises what access.Store says, to several processes of one machine; the conformance suite holds it. What can
// fail: the disk, and the file's permissions.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver

	"thalweg/internal/app/access"
	"thalweg/internal/base/fault"
)

const (
	fileMode       = 0o600
	lockWaitMillis = 15_000
	formKnown      = 1 // of the file, that this program reads
)

const schema = `
CREATE TABLE IF NOT EXISTS records (kind TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL,
	content BLOB NOT NULL, expires_ms INTEGER NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL,
	via TEXT NOT NULL, origin TEXT NOT NULL, workspace TEXT NOT NULL, what TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;`

// Store is an access.Store in a file.
type Store struct{ db *sql.DB }

// Open opens the file at path, and makes it if there is none, for the user of this process only.
func Open(ctx context.Context, path string) (_ *Store, err error) {
	failed := func(err error) error {
		return &fault.Error{Kind: fault.Environment, Message: "the users and tokens in " + path + " cannot be opened",
			Hint: "is the directory this user's, and has the disk room?", Err: err}
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, failed(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, failed(err)
	}
	if err := f.Close(); err != nil {
		return nil, failed(err)
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", lockWaitMillis), "journal_mode(WAL)", "synchronous(FULL)"}}.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, failed(err)
	}
	db.SetMaxOpenConns(1)
	s := &Store{db: db}
	var form int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&form); err != nil {
		return nil, errors.Join(failed(err), s.Close())
	}
	if form > formKnown {
		return nil, errors.Join(fault.OtherForm(path, form, formKnown), s.Close())
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(failed(err), s.Close())
	}
	return s, nil
}

// Close implements access.Store.
func (s *Store) Close() error { return s.db.Close() }

// Get implements access.Store.
func (s *Store) Get(ctx context.Context, kind access.Kind, key string) (access.Record, error) {
	found, err := s.records(ctx, "WHERE kind = ? AND key = ?", kind, key)
	if err == nil && len(found) == 0 {
		return access.Record{}, access.ErrNotFound
	}
	if err != nil {
		return access.Record{}, err
	}
	return found[0], nil
}

// List implements access.Store.
func (s *Store) List(ctx context.Context, kind access.Kind) ([]access.Record, error) {
	return s.records(ctx, "WHERE kind = ? ORDER BY key", kind)
}

func (s *Store) records(ctx context.Context, where string, args ...any) (out []access.Record, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT kind, key, revision, content, expires_ms FROM records "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read records of access: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r access.Record
		var expires int64
		if err := rows.Scan(&r.Kind, &r.Key, &r.Revision, &r.Content, &expires); err != nil {
			return nil, fmt.Errorf("read a record of access: %w", err)
		}
		if expires != 0 {
			r.Expires = time.UnixMilli(expires).UTC()
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// Put implements access.Store.
func (s *Store) Put(ctx context.Context, r access.Record) error {
	expires := int64(0)
	if !r.Expires.IsZero() {
		expires = r.Expires.UnixMilli()
	}
	const insert = `INSERT INTO records (kind, key, revision, content, expires_ms) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`
	const update = `UPDATE records SET revision = ?3, content = ?4, expires_ms = ?5
		WHERE kind = ?1 AND key = ?2 AND revision = ?3 - 1`
	statement := update
	if r.Revision == 1 {
		statement = insert
	}
	done, err := s.db.ExecContext(ctx, statement, r.Kind, r.Key, r.Revision, r.Content, expires)
	if err != nil {
		return fmt.Errorf("write a %s: %w", r.Kind, err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, access.ErrConflict)
	}
	return nil
}

// Remove implements access.Store.
func (s *Store) Remove(ctx context.Context, kind access.Kind, key string) error {
	if _, err := s.db.ExecContext(ctx, "DELETE FROM records WHERE kind = ? AND key = ?", kind, key); err != nil {
		return fmt.Errorf("remove a %s: %w", kind, err)
	}
	return nil
}

// Append implements access.Store.
func (s *Store) Append(ctx context.Context, e access.Entry) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO log (id, at_ms, kind, actor, via, origin, workspace, what)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, e.ID, e.Time.UnixMilli(), e.Kind, e.Actor, e.Via, e.From, e.Workspace, e.What)
	if err != nil {
		return fmt.Errorf("write to the log of access: %w", err)
	}
	return nil
}

// Entries implements access.Store.
func (s *Store) Entries(ctx context.Context, before string, limit int) (out []access.Entry, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, at_ms, kind, actor, via, origin, workspace, what FROM log
		WHERE ?1 = '' OR id < ?1 ORDER BY id DESC LIMIT ?2`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("read the log of access: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e access.Entry
		var at int64
		if err := rows.Scan(&e.ID, &at, &e.Kind, &e.Actor, &e.Via, &e.From, &e.Workspace, &e.What); err != nil {
			return nil, fmt.Errorf("read an entry of the log of access: %w", err)
		}
		e.Time = time.UnixMilli(at).UTC()
		out = append(out, e)
	}
	return out, rows.Err()
}

// Sweep implements access.Store.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	_, err := s.db.ExecContext(ctx, "DELETE FROM records WHERE expires_ms > 0 AND expires_ms < ?", now.UnixMilli())
	if err != nil {
		return fmt.Errorf("remove what has expired: %w", err)
	}
	return nil
}
