package parts

import (
	"context"
	"errors"
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

// Store keeps immutable parts. A key is slash-separated path segments of
// [A-Za-z0-9_.=-], none empty, "." or "..", 512 bytes at most and 255 a
// segment (CheckKey); anything else is refused. No key may be a directory of
// another: with a/b there is no a. Every method may be called concurrently. A
// part is never changed: Put to an existing key is ErrExists.
type Store interface {
	// Stage makes a directory, private to one attempt, in which parts can be
	// written before Put; on a local backend it is on the same file system as
	// the store. The caller closes it; those of a dead process are removed by
	// a later Sweep.
	Stage(ctx context.Context) (*Stage, error)
	// Put makes the staged file at path the part key: durable when it returns,
	// visible whole or not at all. It takes the file away; when it fails, the
	// file is still the caller's.
	Put(ctx context.Context, key, path string) (Info, error)
	// Fetch gives the path of a local copy for reading until release is
	// called, once or more often. The caller must not change the file.
	// ErrNotFound if there is none; ErrCorrupt if sum is not empty and is not
	// the checksum of the bytes. They are read for this once, not at each
	// Fetch, and not at all by the Store that has put the part, unless the file
	// looks changed since.
	Fetch(ctx context.Context, key, sum string) (path string, release func(), err error)
	// Delete removes a part; a missing one is no error.
	Delete(ctx context.Context, key string) error
	// List yields the parts whose key starts with prefix, by key.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	Properties() Properties
	Close() error
}
