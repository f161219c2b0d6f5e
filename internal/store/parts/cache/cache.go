package cache

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
)

// Observer is told what a Store saves, and what it does not.
type Observer interface {
	// Found says that a part was asked for whose copy was there.
	Found(bytes int64)
	// Copied says that one was not, and how copying it went.
	Copied(bytes int64, took time.Duration, err error)
	// Written says how putting a part went.
	Written(bytes int64, took time.Duration, err error)
}

// Config of a Store.
type Config struct {
	Backend    parts.Backend
	Dir        string // for copies, which nobody else uses
	LimitBytes int64  // of all copies
	// Keep leaves the copies in the directory when the Store is closed, and takes
	// over those that are there when it begins.
	Keep     bool
	Observer Observer // nil: nobody
}

// Store is a backend with copies of its parts.
type Store struct {
	parts.Backend
	dir        string
	limitBytes int64
	keep       bool
	observer   Observer
	room       *semaphore.Weighted // what readers have reserved

	mu     sync.Mutex
	bytes  int64                // of all copies, those on their way with what they will have
	number int64                // of the latest file or stage
	copies map[string]*partCopy // by keys, see piecesOf and keptOf
	unread list.List            // of *partCopy that nobody reads, the one read last at the end
}

var _ parts.Store = (*Store)(nil)

// partCopy is a part's copy. Whoever makes it closes made; checksum and path are
// written before, all else under the Store's lock.
type partCopy struct {
	key, path string
	made      chan struct{}
	sum       string // "": it could not be made
	bytes     int64
	readers   int
	unread    *list.Element
	pieces    *pieces    // nil: it is of the whole part
	found     *sync.Once // it was there when the Store began: compares it with its checksum
}

// New makes a store whose copies are in dir, which nobody else uses.
func New(backend parts.Backend, dir string, limitBytes int64) (*Store, error) {
	return Open(Config{Backend: backend, Dir: dir, LimitBytes: limitBytes})
}

// Open makes a store.
func Open(cfg Config) (*Store, error) {
	if cfg.Observer == nil {
		cfg.Observer = nobody{}
	}
	s := &Store{Backend: cfg.Backend, dir: cfg.Dir, limitBytes: cfg.LimitBytes, keep: cfg.Keep, observer: cfg.Observer,
		room: semaphore.NewWeighted(cfg.LimitBytes), copies: map[string]*partCopy{}}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, diskFault("make the directory for copies of parts", err)
	}
	if cfg.Keep {
		if err := s.takeOver(); err != nil {
			return nil, diskFault("look for copies of parts", err)
		}
	}
	return s, nil
}

// nobody observes nothing.
type nobody struct{}

func (nobody) Found(int64)                         {}
func (nobody) Copied(int64, time.Duration, error)  {}
func (nobody) Written(int64, time.Duration, error) {}

// Unwrap is the backend.
func (s *Store) Unwrap() parts.Backend { return s.Backend }

// Close closes the backend and removes all copies that are not kept.
func (s *Store) Close() error {
	err := s.Backend.Close()
	remove := func() error { return os.RemoveAll(s.dir) }
	if s.keep {
		remove = s.clear
	}
	if removing := remove(); removing != nil {
		err = errors.Join(err, diskFault("remove copies of parts", removing))
	}
	return err
}

// Holds reports whether there is a copy of a part: a worker better takes what it
// need not fetch.
func (s *Store) Holds(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.whole(key)
	if c == nil {
		return false
	}
	select {
	case <-c.made:
		return c.sum != ""
	default:
		return false
	}
}

// Put implements parts.Store. The file stays as the part's copy, as long as
// there is room: who writes a part often reads it next.
func (s *Store) Put(ctx context.Context, key, path string) (parts.Info, error) {
	s.mu.Lock()
	c := &partCopy{key: key, path: s.newPath("part"), made: make(chan struct{})}
	s.mu.Unlock()
	close(c.made)
	linked := os.Link(path, c.path) == nil // else it is on another file system
	began := time.Now()
	info, err := s.Backend.Put(ctx, key, path)
	s.observer.Written(info.Bytes, time.Since(began), err)
	if !linked {
		return info, err
	}
	if err == nil {
		c.sum, c.bytes = info.Checksum, info.Bytes
		if s.add(c) {
			return info, nil
		}
	}
	_ = os.Remove(c.path) // what stays goes with the directory
	return info, err
}

// add makes a copy one that Fetch gives, if there is none and there is room.
func (s *Store) add(c *partCopy) bool {
	s.keepAs(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole(c.key) != nil {
		return false
	}
	if s.makeRoom(c.bytes); s.bytes+c.bytes > s.limitBytes {
		return false
	}
	s.bytes += c.bytes
	s.copies[c.key] = c
	c.unread = s.unread.PushBack(c)
	return true
}

// Stage implements parts.Store.
func (s *Store) Stage(ctx context.Context) (*parts.Stage, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("make a stage: %w", err)
	}
	s.mu.Lock()
	dir := s.newPath("stage")
	s.mu.Unlock()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, diskFault("make a stage", err)
	}
	return &parts.Stage{Dir: dir}, nil
}

// newPath names something that is not there. The lock is held.
func (s *Store) newPath(kind string) string {
	s.number++
	return filepath.Join(s.dir, fmt.Sprintf("%s-%08d", kind, s.number))
}

// Reserve implements parts.Store. Who needs more than all has all.
func (s *Store) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	bytes = min(bytes, s.limitBytes)
	if err := s.room.Acquire(ctx, bytes); err != nil {
		return nil, fmt.Errorf("wait for room for copies of parts: %w", err)
	}
	return sync.OnceFunc(func() { s.room.Release(bytes) }), nil
}

// Delete implements parts.Store. Who reads the copy may go on.
func (s *Store) Delete(ctx context.Context, key string) error {
	err := s.Backend.Delete(ctx, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range []*partCopy{s.whole(key), s.copies[piecesOf(key)]} {
		if err == nil && c != nil {
			s.forget(c)
		}
	}
	return err
}

// Fetch implements parts.Store.
func (s *Store) Fetch(ctx context.Context, key, sum string) (path string, release func(), err error) {
	if err := parts.CheckKey(key); err != nil {
		return "", nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return "", nil, fmt.Errorf("fetch %s: %w", key, err)
		}
		c, mine := s.take(key)
		if mine {
			began := time.Now()
			err = s.fill(ctx, c)
			s.observer.Copied(c.bytes, time.Since(began), err)
			close(c.made)
		} else {
			select {
			case <-c.made:
			case <-ctx.Done():
				s.leave(c)
				continue
			}
			s.compare(c)
		}
		if c.sum != "" && (sum == "" || sum == c.sum) {
			if !mine {
				s.observer.Found(c.bytes)
			}
			return c.path, sync.OnceFunc(func() { s.leave(c) }), nil
		}
		if mine && err == nil {
			err = fmt.Errorf("fetch %s: %w: %s instead of %s", key, parts.ErrCorrupt, c.sum, sum)
		}
		s.mu.Lock()
		s.forget(c) // others try for themselves
		s.mu.Unlock()
		s.leave(c)
		if mine {
			return "", nil, err
		}
	}
}

// take gives a part's copy, and says whether the caller has to make it.
func (s *Store) take(key string) (c *partCopy, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c = s.whole(key); c == nil {
		c, mine = &partCopy{key: key, path: s.newPath("part"), made: make(chan struct{})}, true
		s.copies[key] = c
	}
	if c.readers++; c.unread != nil {
		s.unread.Remove(c.unread)
		c.unread = nil
	}
	return c, mine
}

// leave ends a reader's use of a copy.
func (s *Store) leave(c *partCopy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.readers--; c.readers > 0 {
		return
	}
	if s.copies[c.key] != c {
		s.remove(c)
		return
	}
	c.unread = s.unread.PushBack(c)
	s.makeRoom(0)
}

// forget takes a copy out of what Fetch gives. The lock is held.
func (s *Store) forget(c *partCopy) {
	if s.copies[c.key] != c {
		return
	}
	delete(s.copies, c.key)
	if c.unread != nil {
		s.unread.Remove(c.unread)
		s.remove(c)
	}
}

// makeRoom removes copies that nobody reads. The lock is held.
func (s *Store) makeRoom(bytes int64) {
	for s.bytes+bytes > s.limitBytes && s.unread.Len() > 0 {
		s.forget(s.unread.Front().Value.(*partCopy))
	}
}

// remove removes a copy that nobody has any more. What stays goes with the directory.
func (s *Store) remove(c *partCopy) {
	s.bytes -= c.bytes
	_ = os.Remove(c.path)
}

// fill copies a part. Its sum stays empty if that fails.
func (s *Store) fill(ctx context.Context, c *partCopy) (err error) {
	from := &steady{ctx: ctx, backend: s.Backend, key: c.key}
	if err := from.open(); err != nil {
		return err
	}
	defer from.close()
	s.mu.Lock()
	s.makeRoom(from.total)
	c.bytes = from.total
	s.bytes += c.bytes
	s.mu.Unlock()
	f, err := os.OpenFile(c.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return diskFault("copy a part", err)
	}
	sum, _, err := parts.Checksum(io.TeeReader(from, f))
	if closing := f.Close(); err == nil && closing != nil {
		err = diskFault("copy a part", closing)
	}
	if err != nil {
		return fmt.Errorf("copy part %s: %w", c.key, err)
	}
	c.sum = sum
	s.keepAs(c)
	return nil
}

func diskFault(what string, err error) error {
	return &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err), Message: what, Err: err,
		Hint: "check the permissions and the free space of the directory"}
}
