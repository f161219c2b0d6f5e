// Package cassandra keeps users, tokens, sessions and the log of access in a cluster's Cassandra, beside its state.
//
// It promises what access.Store says, to all servers of the cluster; the conformance suite holds it. Records change by
// conditional writes, and are read from a quorum: what one server has removed, no other finds. What can fail is a
// *fault.Error of kind Environment, or the context's error. Statements make the tables; Open refuses a keyspace
// that has none.
package cassandra

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/app/access"
	"thalweg/internal/base/fault"
	driver "thalweg/internal/store/cassandra"
)

// Statements make the tables, if they are not there. Deletions are remembered for longer than a node may be down
// before it is repaired: a token that is revoked does not come back.
func Statements() []string {
	const with = " WITH gc_grace_seconds = 864000 AND default_time_to_live = 0"
	return []string{
		`CREATE TABLE IF NOT EXISTS access_records (kind text, key text, revision bigint, content blob, expires_ms bigint,
			PRIMARY KEY ((kind), key))` + with,
		`CREATE TABLE IF NOT EXISTS access_log (day text, id text, at_ms bigint, kind text, actor text, via text,
			origin text, workspace text, what text, PRIMARY KEY ((day), id))` + with + " AND CLUSTERING ORDER BY (id DESC)",
		`CREATE TABLE IF NOT EXISTS access_log_days (one tinyint, day text, PRIMARY KEY ((one), day))` + with +
			" AND CLUSTERING ORDER BY (day DESC)",
	}
}

// Store is an access.Store in a keyspace.
type Store struct {
	session *driver.Session // the caller's

	mu  sync.Mutex
	day string // the last one that is in access_log_days
}

var _ access.Store = (*Store)(nil)

// Open returns the store in the keyspace of a session, which stays the caller's.
func Open(ctx context.Context, session *driver.Session) (*Store, error) {
	missing, err := driver.Missing(ctx, session, Statements())
	if err != nil {
		return nil, fmt.Errorf("open users and tokens: %w", err)
	}
	if len(missing) > 0 {
		return nil, &fault.Error{Kind: fault.Environment, Hint: "{{do cluster-init}} makes them",
			Message: fmt.Sprintf("keyspace %s has no tables of users and tokens (%s)", session.Keyspace,
				strings.Join(missing, ", "))}
	}
	return &Store{session: session}, nil
}

// Close implements access.Store.
func (s *Store) Close() error { return nil }

const columns = "SELECT kind, key, revision, content, expires_ms FROM access_records WHERE kind = ?"

// Get implements access.Store.
func (s *Store) Get(ctx context.Context, kind access.Kind, key string) (access.Record, error) {
	return s.one(ctx, gocql.Consistency(0), kind, key)
}

// one reads a record, at a consistency; 0: the session's.
func (s *Store) one(ctx context.Context, at gocql.Consistency, kind access.Kind, key string) (access.Record, error) {
	q := s.session.Query(columns+" AND key = ?", string(kind), key).Idempotent(true)
	if at != 0 {
		q = q.Consistency(at)
	}
	found, err := s.records(ctx, q)
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
	return s.records(ctx, s.session.Query(columns, string(kind)).Idempotent(true))
}

func (s *Store) records(ctx context.Context, q *gocql.Query) (out []access.Record, err error) {
	rows := q.IterContext(ctx).Scanner()
	for rows.Next() {
		var r access.Record
		var kind string
		var expires int64
		if err := rows.Scan(&kind, &r.Key, &r.Revision, &r.Content, &expires); err != nil {
			return nil, errors.Join(s.failed(ctx, "read a record of access", err), rows.Err())
		}
		r.Kind = access.Kind(kind)
		if expires != 0 {
			r.Expires = time.UnixMilli(expires).UTC()
		}
		out = append(out, r)
	}
	return out, s.failed(ctx, "read records of access", rows.Err())
}

// Put implements access.Store.
func (s *Store) Put(ctx context.Context, r access.Record) error {
	expires := int64(0)
	if !r.Expires.IsZero() {
		expires = r.Expires.UnixMilli()
	}
	var q *gocql.Query
	if r.Revision == 1 {
		q = s.session.Query(`INSERT INTO access_records (kind, key, revision, content, expires_ms) VALUES (?, ?, ?, ?, ?)
			IF NOT EXISTS`, string(r.Kind), r.Key, r.Revision, r.Content, expires)
	} else {
		q = s.session.Query(`UPDATE access_records SET revision = ?, content = ?, expires_ms = ? WHERE kind = ? AND key = ?
			IF revision = ?`, r.Revision, r.Content, expires, string(r.Kind), r.Key, r.Revision-1)
	}
	applied, err := s.decide(ctx, q)
	if err != nil {
		applied, err = s.settle(ctx, r, err)
	}
	if err != nil {
		return s.failed(ctx, fmt.Sprintf("write a %s", r.Kind), err)
	}
	if !applied {
		return access.ErrConflict
	}
	return nil
}

// decide carries out a conditional write.
func (s *Store) decide(ctx context.Context, q *gocql.Query) (applied bool, err error) {
	applied, err = q.SerialConsistency(s.session.Serial).MapScanCASContext(ctx, map[string]any{})
	return applied, driver.Asked(ctx, err)
}

// settle finds out whether a conditional write has been carried out that ended with an error. The serial read
// completes what is under way, or keeps it from happening.
func (s *Store) settle(ctx context.Context, r access.Record, err error) (applied bool, _ error) {
	if !driver.Passes(err) {
		return false, err
	}
	stored, readErr := s.one(ctx, s.session.Serial, r.Kind, r.Key)
	switch {
	case readErr == nil && stored.Revision == r.Revision && bytes.Equal(stored.Content, r.Content):
		return true, nil
	case readErr == nil && stored.Revision >= r.Revision:
		return false, nil
	}
	return false, err
}

// Remove implements access.Store.
func (s *Store) Remove(ctx context.Context, kind access.Kind, key string) error {
	_, err := s.decide(ctx, s.session.Query("DELETE FROM access_records WHERE kind = ? AND key = ? IF EXISTS",
		string(kind), key))
	return s.failed(ctx, fmt.Sprintf("remove a %s", kind), err)
}

// dayForm names the partitions of the log.
const dayForm = "2006-01-02"

// Append implements access.Store.
func (s *Store) Append(ctx context.Context, e access.Entry) error {
	const what = "write to the log of access"
	day := e.Time.UTC().Format(dayForm)
	s.mu.Lock()
	listed := s.day == day
	s.mu.Unlock()
	if !listed {
		err := s.session.Query("INSERT INTO access_log_days (one, day) VALUES (0, ?)", day).Idempotent(true).ExecContext(ctx)
		if err != nil {
			return s.failed(ctx, what, err)
		}
		s.mu.Lock()
		s.day = day
		s.mu.Unlock()
	}
	return s.failed(ctx, what, s.session.Query(`INSERT INTO access_log (day, id, at_ms, kind, actor, via, origin,
		workspace, what) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, day, e.ID, e.Time.UnixMilli(), string(e.Kind), e.Actor, e.Via,
		e.From, e.Workspace, e.What).Idempotent(true).ExecContext(ctx))
}

// Entries implements access.Store. It asks day by day, the latest first: ids do not say of which day they are.
func (s *Store) Entries(ctx context.Context, before string, limit int) (out []access.Entry, err error) {
	days := s.session.Query("SELECT day FROM access_log_days WHERE one = 0").Idempotent(true).IterContext(ctx).Scanner()
	for len(out) < limit && days.Next() {
		var day string
		if err := days.Scan(&day); err != nil {
			return nil, errors.Join(s.failed(ctx, "read the log of access", err), days.Err())
		}
		found, err := s.entriesOf(ctx, day, before, limit-len(out))
		if err != nil {
			return nil, errors.Join(err, days.Err())
		}
		out = append(out, found...)
	}
	return out, s.failed(ctx, "read the log of access", days.Err())
}

func (s *Store) entriesOf(ctx context.Context, day, before string, limit int) (out []access.Entry, err error) {
	text, args := "SELECT id, at_ms, kind, actor, via, origin, workspace, what FROM access_log WHERE day = ?", []any{day}
	if before != "" {
		text, args = text+" AND id < ?", append(args, before)
	}
	rows := s.session.Query(text+" LIMIT ?", append(args, limit)...).Idempotent(true).IterContext(ctx).Scanner()
	for rows.Next() {
		var e access.Entry
		var at int64
		var kind string
		if err := rows.Scan(&e.ID, &at, &kind, &e.Actor, &e.Via, &e.From, &e.Workspace, &e.What); err != nil {
			return nil, errors.Join(s.failed(ctx, "read an entry of the log of access", err), rows.Err())
		}
		e.Kind, e.Time = access.EntryKind(kind), time.UnixMilli(at).UTC()
		out = append(out, e)
	}
	return out, s.failed(ctx, "read the log of access", rows.Err())
}

// Sweep implements access.Store. What has been renewed since it was listed stays.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	for _, kind := range []access.Kind{access.KindSession, access.KindToken, access.KindUser} {
		all, err := s.List(ctx, kind)
		if err != nil {
			return err
		}
		for _, r := range all {
			if r.Expires.IsZero() || !r.Expires.Before(now) {
				continue
			}
			_, err := s.decide(ctx, s.session.Query("DELETE FROM access_records WHERE kind = ? AND key = ? IF revision = ?",
				string(kind), r.Key, r.Revision))
			if err != nil {
				return s.failed(ctx, "remove what has expired", err)
			}
		}
	}
	return nil
}

// failed says what was done when a request failed; nil if none has.
func (s *Store) failed(ctx context.Context, what string, err error) error {
	if err = driver.Asked(ctx, err); err == nil {
		return nil
	}
	return s.session.Fault(what, err)
}
