package cassandra

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/sync/semaphore"

	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/parts"
)

// Limits.
const (
	writesMax       = 8  // chunks being written at once
	readsMax        = 16 // chunks being read at once
	patienceDefault = time.Minute
	cleanupTimeout  = 5 * time.Second
	pauseFirst      = 50 * time.Millisecond
	pauseLongest    = 2 * time.Second
	deletionAhead   = time.Hour // see the package's comment
)

// Point is a place in a Put at which a process may die.
type Point string

// The points.
const (
	Intended Point = "intended" // the row is there, no chunk yet
	Sent     Point = "sent"     // all chunks are, the checksum is not
	Done     Point = "done"     // the part is there
)

// Config of a Store.
type Config struct {
	// Space sets the parts apart from those of other stores in the keyspace.
	Space string
	// Patience is the time for which a failed request is repeated; 0: patienceDefault.
	Patience time.Duration
	// Checkpoint is called at each Point; tests die there. nil is allowed.
	Checkpoint func(Point)
}

// Store keeps parts in the keyspace of a session, which stays the caller's.
type Store struct {
	cfg     Config
	session *cassandra.Session
	owner   gocql.UUID // of this process's Puts
	writes  *parts.ResizableSemaphore
	reads   *semaphore.Weighted
	buffers sync.Pool // of *[]byte

	mu      sync.Mutex
	putting map[string]chan struct{} // keys; closed when it has ended
}

// New returns a store whose tables have been made (see Tables).
func New(session *cassandra.Session, cfg Config) *Store {
	if cfg.Patience == 0 {
		cfg.Patience = patienceDefault
	}
	if cfg.Checkpoint == nil {
		cfg.Checkpoint = func(Point) {}
	}
	return &Store{
		cfg: cfg, session: session, owner: gocql.MustRandomUUID(),
		writes: parts.NewResizableSemaphore(writesMax), reads: semaphore.NewWeighted(readsMax),
		buffers: sync.Pool{New: func() any { b := make([]byte, chunkBytes); return &b }},
		putting: map[string]chan struct{}{},
	}
}

// Writers implements parts.Writing.
func (s *Store) Writers() *parts.ResizableSemaphore { return s.writes }

// Properties implements parts.Backend.
func (s *Store) Properties() parts.Properties { return parts.Properties{Concurrency: writesMax} }

// Close implements parts.Backend.
func (s *Store) Close() error { return nil }

// place is the position of a key in the index.
type place struct {
	root  string
	shard int16
	key   string
}

func (s *Store) place(key string) place {
	first, _, _ := strings.Cut(key, "/")
	return place{root: s.root(first), shard: int16(crc32.ChecksumIEEE([]byte(key)) % shards), key: key}
}

func (s *Store) root(first string) string { return s.cfg.Space + "/" + first }

// row is the record of one Put in the index.
type row struct {
	put, owner  gocql.UUID
	bytes       int64
	checksum    string // "": it has not ended
	latestWrite int64  // microseconds
}

// rows are the Puts of a key.
func (s *Store) rows(ctx context.Context, at place) (out []row, err error) {
	err = s.persist(ctx, "part rows", func(ctx context.Context) error {
		out = nil
		iter := s.session.Query(selectKey, at.root, at.shard, at.key).IterContext(ctx)
		var r row
		var begun, done *int64
		for iter.Scan(&r.put, &r.owner, &r.bytes, &r.checksum, &begun, &done) {
			for _, at := range []*int64{begun, done} {
				if at != nil {
					r.latestWrite = max(r.latestWrite, *at)
				}
			}
			if begun != nil { // else it was removed and written to again: nothing of it is left
				out = append(out, r)
			}
			r, begun, done = row{}, nil, nil
		}
		return iter.Close()
	})
	return out, err
}

// persist repeats a request as long as its failure may pass.
func (s *Store) persist(ctx context.Context, name string, op func(ctx context.Context) error) error {
	ctx = cassandra.Named(ctx, name)
	until := time.Now().Add(s.cfg.Patience)
	for pause := pauseFirst; ; pause = min(2*pause, pauseLongest) {
		err := op(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", name, ctx.Err())
		}
		err = cassandra.Asked(ctx, err)
		if !cassandra.Passes(err) || time.Now().Add(pause).After(until) {
			return s.session.Fault(name+" in Cassandra", err)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // spacing, not a secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s: %w", name, ctx.Err())
		}
	}
}

// exec carries out a statement that can be repeated.
func (s *Store) exec(ctx context.Context, name, statement string, values ...any) error {
	return s.persist(ctx, name, func(ctx context.Context) error {
		return s.session.Query(statement, values...).Idempotent(true).ExecContext(ctx)
	})
}

// Delete implements parts.Backend.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.delete(ctx, key, func(row) bool { return true })
}

// Abandon removes what Puts of a key have left that have not ended.
func (s *Store) Abandon(ctx context.Context, key string) error {
	return s.delete(ctx, key, func(r row) bool { return r.checksum == "" })
}

func (s *Store) delete(ctx context.Context, key string, which func(row) bool) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	at := s.place(key)
	rows, err := s.rows(ctx, at)
	if err != nil {
		return fmt.Errorf("delete part %s: %w", key, err)
	}
	for _, r := range rows {
		if !which(r) {
			continue
		}
		if err := s.remove(ctx, at, r); err != nil {
			return fmt.Errorf("delete part %s: %w", key, err)
		}
	}
	return nil
}

// remove removes the chunks of a Put, and then its row: who dies in between
// leaves what can be found.
func (s *Store) remove(ctx context.Context, at place, r row) error {
	when := max(r.latestWrite, time.Now().UnixMicro()) + deletionAhead.Microseconds()
	erase := func(name, statement string, values ...any) error {
		return s.persist(ctx, name, func(ctx context.Context) error {
			return s.session.Query(statement, values...).WithTimestamp(when).Idempotent(true).ExecContext(ctx)
		})
	}
	for section := 0; section*sectionChunks < chunksOf(r.bytes); section++ {
		if err := erase("delete chunks", deleteChunks, r.put, section); err != nil {
			return err
		}
	}
	return erase("delete part row", deleteIndex, at.root, at.shard, at.key, r.put)
}

func check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return parts.CheckKey(key)
}

// alone waits until this process puts the key nowhere else.
func (s *Store) alone(ctx context.Context, key string) (done func(), err error) {
	for {
		s.mu.Lock()
		other := s.putting[key]
		if other == nil {
			mine := make(chan struct{})
			s.putting[key] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.putting, key)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errGone says that a part was removed while it was read.
var errGone = errors.New("the part was removed")
