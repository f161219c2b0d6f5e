//go:build unix

package local

import (
	"context"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"thalweg/internal/store/parts"
)

// errNotDirectory is the system's error if a part is taken for a directory.
const errNotDirectory = unix.ENOTDIR

// List implements parts.Store. It leaves Checksum empty, which is not kept
// beside the part. Parts that come or go meanwhile may be there or not.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	return func(yield func(parts.Info, error) bool) {
		err := parts.CheckPrefix(prefix)
		if err == nil {
			slash := strings.LastIndexByte(prefix, '/') + 1
			w := walk{ctx: ctx, data: s.data.Name(), after: after, yield: yield}
			err = w.directory(prefix[:slash], prefix[slash:])
		}
		if err != nil {
			yield(parts.Info{}, s.explain("list "+prefix, err))
		}
	}
}

// walk is one listing under way.
type walk struct {
	ctx   context.Context
	data  string
	after string // what is wanted is behind it
	yield func(parts.Info, error) bool
	done  bool // the caller wants no more
}

// directory yields the parts below a directory (its key with a slash behind,
// or nothing) whose next name begins with rest.
func (w *walk) directory(key, rest string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(w.data, filepath.FromSlash(key)))
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	// A directory's parts come where its name with the slash comes: before
	// "a-b" there is "a-", and "a/b" is after it.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	for _, e := range entries {
		if w.done {
			return nil
		}
		if !strings.HasPrefix(e.Name(), rest) || parts.CheckKey(key+e.Name()) != nil {
			continue
		}
		if err := w.entry(key, e); err != nil {
			return err
		}
	}
	return nil
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

func (w *walk) entry(key string, e fs.DirEntry) error {
	if e.IsDir() {
		below := key + e.Name() + "/"
		if below < w.after && !strings.HasPrefix(w.after, below) {
			return nil // all of it is before
		}
		return w.directory(below, "")
	}
	if key+e.Name() <= w.after || !e.Type().IsRegular() {
		return nil
	}
	info, err := e.Info()
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	w.done = !w.yield(parts.Info{Key: key + e.Name(), Bytes: info.Size()}, nil)
	return nil
}
