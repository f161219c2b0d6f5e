package cache

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"thalweg/internal/store/parts"
)

// keptDir has the copies that stay when a Store is closed, or its process dies:
// under names that say of what key and with what checksum they are.
const keptDir = "kept"

// nameOf returns the file name of a key's copy.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// keptOf stands for the key of a copy of which only its name is known: no key
// has such a character.
func keptOf(name string) string { return "#" + name }

// whole is the copy of a whole part, nil if there is none. The lock is held.
func (s *Store) whole(key string) *partCopy {
	c := s.copies[key]
	if c == nil && s.keep {
		kept := keptOf(nameOf(key))
		if c = s.copies[kept]; c != nil { // now its key is known
			delete(s.copies, kept)
			c.key, s.copies[key] = key, c
		}
	}
	return c
}

// keepAs gives a copy that is whole the name under which it stays, which no other copy of
// the part has: who removes one must not remove another. Where that fails, it goes with
// this Store.
func (s *Store) keepAs(c *partCopy) {
	if !s.keep {
		return
	}
	path := filepath.Join(s.dir, keptDir, nameOf(c.key)+"-"+strings.ReplaceAll(c.sum, ":", "_")+"-"+rand.Text())
	if os.Rename(c.path, path) == nil {
		c.path = path
	}
}

// clear removes what is not kept: stages, and copies that nobody knows whole.
func (s *Store) clear() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == keptDir {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// takeOver finds the copies that an earlier Store has left, and removes all
// else. They are compared with their checksums when somebody wants them.
func (s *Store) takeOver() error {
	if err := os.MkdirAll(filepath.Join(s.dir, keptDir), 0o700); err != nil {
		return err
	}
	if err := s.clear(); err != nil {
		return err
	}
	kept, err := os.ReadDir(filepath.Join(s.dir, keptDir))
	if err != nil {
		return err
	}
	type file struct {
		copied *partCopy
		at     time.Time
	}
	var files []file
	for _, e := range kept {
		path := filepath.Join(s.dir, keptDir, e.Name())
		name, sum, ok := strings.Cut(e.Name(), "-")
		sum, _, _ = strings.Cut(sum, "-")
		info, err := e.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}
		c := &partCopy{key: keptOf(name), path: path, made: make(chan struct{}), sum: strings.ReplaceAll(sum, "_", ":"),
			bytes: info.Size(), found: &sync.Once{}}
		close(c.made)
		files = append(files, file{c, info.ModTime()})
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(a.at.Compare(b.at),
			strings.Compare(a.copied.path, b.copied.path))
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		if s.copies[f.copied.key] != nil { // of other bytes: nobody knows which
			_ = os.Remove(f.copied.path)
			continue
		}
		s.copies[f.copied.key], s.bytes = f.copied, s.bytes+f.copied.bytes
		f.copied.unread = s.unread.PushBack(f.copied)
	}
	s.makeRoom(0)
	return nil
}

// compare reads a copy that was there when the Store began, once.
func (s *Store) compare(c *partCopy) {
	if c.found == nil {
		return
	}
	c.found.Do(func() {
		f, err := os.Open(c.path)
		if err == nil {
			defer f.Close() // only read from
			var sum string
			if sum, _, err = parts.Checksum(f); err == nil && sum == c.sum {
				return
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		c.sum = ""
	})
}
