package scripts

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/lang/script"
)

const (
	watchEvery  = 400 * time.Millisecond // between two looks at files
	lookTimeout = 30 * time.Second       // for finding out which they are
)

// Watch tells when files of this machine change that a script is made of. It is for one goroutine.
type Watch struct {
	s    *Service
	n    Named
	seen map[string]stamp
}

// stamp is how a file is; zero: it is not there.
type stamp struct {
	changed time.Time
	bytes   int64
}

// Watch begins to watch a script.
func (s *Service) Watch(ctx context.Context, n Named) *Watch {
	w := &Watch{s: s, n: n}
	w.look(ctx)
	return w
}

// Next returns once something has changed since Watch or the last Next.
func (w *Watch) Next(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for maps.Equal(w.seen, stamps(w.seen)) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	w.look(ctx)
	return ctx.Err()
}

// look finds the files. What changes while it looks has changed afterwards.
func (w *Watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	before := stamps(w.seen)
	src := w.s.sources(w.n)
	files := map[string]stamp{}
	if path, err := address.LocalIn(src.Dir, w.n.Path); err == nil {
		files[filepath.Clean(path)] = stamp{}
	}
	read := src.Read
	src.Read = func(ctx context.Context, url string) ([]byte, error) {
		text, err := read(ctx, url)
		if !address.Remote(url) && (err == nil || errors.Is(err, fs.ErrNotExist)) { // else it may not be looked at
			if path, perr := address.LocalIn(src.Dir, url); perr == nil {
				files[filepath.Clean(path)] = stamp{}
			}
		}
		return text, err
	}
	script.Load(ctx, src)
	w.seen = stamps(files)
	for path, is := range before {
		if _, still := w.seen[path]; still {
			w.seen[path] = is
		}
	}
}

// stamps says how files are now.
func stamps[V any](files map[string]V) map[string]stamp {
	out := make(map[string]stamp, len(files))
	for path := range files {
		out[path] = stamp{}
		if is, err := os.Stat(path); err == nil {
			out[path] = stamp{is.ModTime(), is.Size()}
		}
	}
	return out
}
