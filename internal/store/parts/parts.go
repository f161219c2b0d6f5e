package parts

import (
	"context"
	"errors"
	"io"
	"iter"
)

// Errors that callers decide on.
var (
	ErrNotFound = errors.New("no such part")
	ErrExists   = errors.New("part exists")
	ErrCorrupt  = errors.New("part's bytes do not match its checksum")
)

// Info describes a stored part.
type Info struct {
	Key      string
	Bytes    int64
	Checksum string // "crc32c:%08x" of the bytes; empty in a List of a backend that would have to read them
}

// Properties tell callers what a backend can do, so that they ask instead of guess.
type Properties struct {
	Local        bool  // Fetch returns the stored object itself, without a copy
	MaxPartBytes int64 // 0: no limit
	Concurrency  int   // operations in flight that it bears
}

// Backend keeps immutable parts. A key is slash-separated path segments of
// [A-Za-z0-9_.=-], none empty, "." or "..", 512 bytes at most and 255 a
// segment (CheckKey); anything else is refused. No key may be a directory of
// another: with a/b there is no a. Every method may be called concurrently. A
// part is never changed: Put to an existing key is ErrExists.
type Backend interface {
	// Put makes the file at path the part key: durable when it returns,
	// visible whole or not at all. It takes the file away; when it fails, the
	// file is still the caller's.
	Put(ctx context.Context, key, path string) (Info, error)
	// Open reads a part's bytes from offset on, length of them at most; -1: to
	// the end. Behind the end there are none. total is the size of the whole
	// part. ErrNotFound if there is none. The bytes of a range are compared with
	// nothing, and reading may break: who is given another range goes on there.
	Open(ctx context.Context, key string, offset, length int64) (body io.ReadCloser, total int64, err error)
	// Delete removes a part; a missing one is no error.
	Delete(ctx context.Context, key string) error
	// List yields the parts whose key starts with prefix and is behind after, by
	// key: who stops at one goes on behind it, page by page.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
	Properties() Properties
	Close() error
}

// Leavings is an optional interface of backends on which an unfinished Put of a process that died leaves data
// that List does not show.
type Leavings interface {
	// Unfinished yields Puts that have not ended, of processes that live or not,
	// as List does; Bytes is what they may take. A key may come more than once.
	Unfinished(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
	// Abandon removes what Puts of a key have left that have not ended; none is
	// no error. One that is being carried out may fail.
	Abandon(ctx context.Context, key string) error
}

// LeavingsOf gives what a backend, or the one behind it, can do about Puts that
// did not end; nil if they leave nothing.
func LeavingsOf(b Backend) Leavings {
	for {
		if l, ok := b.(Leavings); ok {
			return l
		}
		around, ok := b.(interface{ Unwrap() Backend })
		if !ok {
			return nil
		}
		b = around.Unwrap()
	}
}

// Store is a Backend whose parts have paths on this machine, which is all that
// DuckDB reads and writes: because they are files (parts/local), or as copies
// (parts/cache).
type Store interface {
	Backend
	// Stage makes a directory, private to one attempt, in which parts can be
	// written before Put; on a local backend it is on the same file system as
	// the store, and nothing else can be Put. The caller closes it; those of a
	// dead process are removed later.
	Stage(ctx context.Context) (*Stage, error)
	// Reserve waits until there is room for the bytes of all parts that one
	// reader is going to Fetch, and keeps it until release is called, once or
	// more often. Who holds some does not ask for more.
	Reserve(ctx context.Context, bytes int64) (release func(), err error)
	// Fetch gives the path of a local copy for reading until release is
	// called, once or more often. The caller must not change the file.
	// ErrNotFound if there is none; ErrCorrupt if sum is not empty and is not
	// the checksum of the bytes. They are read for this once, not at each
	// Fetch, and not at all by the Store that has put the part, unless the file
	// looks changed since.
	Fetch(ctx context.Context, key, sum string) (path string, release func(), err error)
}

// Piece is a range of a part's bytes.
type Piece struct {
	From, Bytes int64
	Checksum    string // as Info has it, of these bytes
}

// Pieced is a Store that can copy some pieces of a part without the rest.
type Pieced interface {
	Store
	// FetchPieces is Fetch for readers who want some pieces only, each of which is
	// compared with its checksum. The file that they are given is as large as the part; what else
	// is in it may be zeros. part says what the part is as a whole.
	FetchPieces(ctx context.Context, part Info, pieces []Piece) (path string, release func(), err error)
}
