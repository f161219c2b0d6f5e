package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	driver "modernc.org/sqlite"

	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite/pagesum"
)

// Limits.
const (
	// lockWaitMillis limits a write's wait for another process's write; then it is reported as locked. A
	// write takes milliseconds; planning ten thousand batches takes a few hundred.
	lockWaitMillis = 15_000
	// firstPause and longestPause space the tries where SQLite does not wait.
	firstPause   = time.Millisecond
	longestPause = 50 * time.Millisecond
	// readConnections bounds the readers, each with its own page cache.
	readConnections = 4
	// cacheKiB is the page cache of one connection.
	cacheKiB = 8 * 1024
	// journalBytes is the size to which the write-ahead log shrinks after a checkpoint.
	journalBytes = 64 << 20
	// directoryMode is for parents of the file that Open creates.
	directoryMode = 0o755
)

// Store is a state store in one SQLite file.
type Store struct {
	path  string
	write *pool // one connection: SQLite has one writer anyway, and waiting in Go is fair
	read  *pool

	watch watch

	lockWait time.Duration // lockWaitMillis except in tests

	sync string // what commits wait for

	close    sync.Once
	closeErr error
}

var _ state.Store = (*Store)(nil)

// Open opens the state file at path and creates it, and its directory, where
// there is none. Several Stores, in one process or in several on one machine,
// may have the same file open. It fails with a *fault.Error of kind
// Environment if the file is not a state file, is of a newer version of this
// program, or cannot be written.
func Open(ctx context.Context, path string) (*Store, error) { return open(ctx, path, synced) }

// OpenScratch is Open for a file that nobody needs when the machine has stopped:
// nothing is flushed. It decides all else alike.
func OpenScratch(ctx context.Context, path string) (*Store, error) { return open(ctx, path, unsynced) }

// What commits wait for: SQLite's words.
const (
	synced   = "FULL" // see openPool
	unsynced = "OFF"
)

func open(ctx context.Context, path, sync string) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find state file %s: %w", path, err)
	}
	if err := (durable.FS{}).MakeAll(filepath.Dir(abs), directoryMode); err != nil {
		return nil, unusableDirectory(abs, err)
	}
	s := &Store{path: abs, sync: sync, lockWait: lockWaitMillis * time.Millisecond}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) connect(ctx context.Context) error {
	if err := pagesum.Register(); err != nil {
		return s.explain(ctx, "open", err)
	}
	unfinished, err := pagesum.CheckLog(s.path)
	if err != nil {
		return s.explain(ctx, "open", err)
	}
	unsummed, err := s.unsummed()
	if err != nil {
		return s.explain(ctx, "open", err)
	}
	if s.write, err = openPool(s.path, s.sync, 1, "immediate", false); err != nil {
		return s.explain(ctx, "open", err)
	}
	// The reading pool comes second: it must not touch a file of something else.
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if unfinished {
		if err := s.beginLog(ctx); err != nil {
			return s.explain(ctx, "begin the log anew", err)
		}
	}
	if unsummed {
		if _, err := s.write.ExecContext(ctx, "VACUUM"); err != nil { // writes every page, with its checksum
			return s.explain(ctx, "write checksums", err)
		}
	}
	if s.read, err = openPool(s.path, s.sync, readConnections, "deferred", true); err != nil {
		return s.explain(ctx, "open", err)
	}
	return nil
}

// beginLog moves all that the log has to the file. Others that have the file open
// wait for one another; what they keep from being moved is theirs to move.
func (s *Store) beginLog(ctx context.Context) error {
	return s.untilUnlocked(ctx, func() error {
		_, err := s.write.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	})
}

// unsummed reports whether the file is of a version that kept no checksums. It
// refuses to take an empty file for a new one if there are checksums: they come
// after the pages and go after them.
func (s *Store) unsummed() (bool, error) {
	sums, err := sizeOf(s.path + pagesum.Suffix)
	if err != nil {
		return false, err
	}
	bytes, err := sizeOf(s.path)
	if err == nil && bytes == 0 && sums > 0 {
		f := fault.New(fault.Environment, "the state file is empty or gone, but the checksums of its pages are there")
		f.Place.File, f.Hint = s.path, damagedHint+"; remove "+s.path+pagesum.Suffix+" to begin with an empty state"
		return false, f
	}
	return bytes > 0 && sums == 0, err
}

// sizeOf is a file's size; 0 if there is none.
func sizeOf(path string) (int64, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// openPool makes a pool whose connections are all set up the same way. It
// does not touch the file.
func openPool(path, sync string, connections int, txlock string, queryOnly bool) (*pool, error) {
	query := url.Values{
		"vfs":           {pagesum.Name},
		"_txlock":       {txlock},
		"_busy_timeout": {strconv.Itoa(lockWaitMillis)},
		// FULL makes a commit survive a power cut, not only a crash of the
		// process: the log is flushed once per commit. Measured (bench_test.go,
		// ext4 on a virtual SSD, median of five): a commit takes 0.68 ms
		// against 0.39 ms with NORMAL. A thousand batches pay a third of a
		// second for a manifest that they can believe; a plain disk would pay
		// about ten.
		"_synchronous":  {sync},
		"_foreign_keys": {"1"},
		"_dqs":          {"0"}, // a misspelt column is an error, not a text
		"_error_rc":     {"1"}, // no message of another operation in an error
		"_pragma": {
			"cache_size(-" + strconv.Itoa(cacheKiB) + ")",
			"journal_size_limit(" + strconv.Itoa(journalBytes) + ")",
		},
	}
	if queryOnly {
		query.Set("_query_only", "1")
	}
	dsn := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: query.Encode()}).String()
	connector, err := driver.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("prepare connection: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return &pool{DB: db, prepared: map[string]*sql.Stmt{}}, nil
}

// Close waits for the calls in progress and closes the file. It may be called
// more than once.
func (s *Store) Close() error {
	s.close.Do(func() {
		for _, db := range []*pool{s.watch.end(), s.read, s.write} {
			if db != nil {
				s.closeErr = errors.Join(s.closeErr, db.Close())
			}
		}
		if s.closeErr != nil {
			s.closeErr = fmt.Errorf("close state file %s: %w", s.path, s.closeErr)
		}
	})
	return s.closeErr
}

// update runs fn in a transaction that holds the file's only write lock from
// its start: what fn reads is true until it commits. what names the operation
// for errors.
func (s *Store) update(ctx context.Context, what string, fn func(tx *txn) error) error {
	return s.explain(ctx, what, s.untilUnlocked(ctx, func() error { return inTx(ctx, s.write, fn) }))
}

// view runs fn in a transaction that sees one committed state throughout and
// blocks nobody.
func (s *Store) view(ctx context.Context, what string, fn func(tx *txn) error) error {
	return s.explain(ctx, what, s.untilUnlocked(ctx, func() error { return inTx(ctx, s.read, fn) }))
}

// inTx runs fn in a transaction: all of it or nothing.
func inTx(ctx context.Context, p *pool, fn func(tx *txn) error) (err error) {
	p.prepare(ctx)
	begun, err := p.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	tx := &txn{Tx: begun, pool: p}
	defer func() {
		if err != nil {
			// A failed roll-back has nothing to add: without a commit nothing is kept.
			_ = tx.Rollback()
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// untilUnlocked calls fn again while the file is locked. SQLite itself waits
// in most cases, but not where waiting could end in a deadlock: when the log
// is enabled, recovered, or removed by the last process that closes the file.
func (s *Store) untilUnlocked(ctx context.Context, fn func() error) error {
	end := time.Now().Add(s.lockWait)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := fn()
		if !isLocked(err) || !time.Now().Before(end) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// exactlyOne turns a compare-and-set that hit nothing into ErrConflict.
func exactlyOne(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if n != 1 {
		return state.ErrConflict
	}
	return nil
}
