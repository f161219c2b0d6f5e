//go:build unix

package local

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
)

const (
	// maxOpenDirectories bounds the directories that are kept open; more are
	// open only while more Puts are at work in different ones.
	maxOpenDirectories = 64
	// maxMakeTries bounds how often a directory is made again because somebody
	// who deletes the last part of it has just removed it.
	maxMakeTries = 20
)

// directory is an open directory whose own entry, and those of all above it,
// are on the disk. As long as it is open its identity cannot pass to a
// directory that somebody made anew under the same name without flushing it:
// a rename into a removed directory fails instead.
type directory struct {
	*os.File
	rel   string
	users int
	gone  bool // no longer in the set: closed by the last user
}

// directories are the open directories below data/, by path relative to it.
type directories struct {
	disk disk
	mu   sync.Mutex
	root *os.File
	open map[string]*directory
}

func newDirectories(d disk, root *os.File) *directories {
	return &directories{disk: d, root: root, open: map[string]*directory{}}
}

// acquire opens a directory, and makes it and those above it where they are
// missing. The caller releases it.
func (s *directories) acquire(rel string) (*directory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for range maxMakeTries {
		var d *directory
		if d, err = s.find(rel); err == nil {
			d.users++
			return d, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, err
}

// find gives an open directory that is not counted as used; mu is held. When
// a directory above has been removed it forgets that one and fails with
// fs.ErrNotExist: the next try makes it again.
func (s *directories) find(rel string) (*directory, error) {
	if d := s.open[rel]; d != nil {
		return d, nil
	}
	if rel == "." {
		return s.keep(rel, func() (*os.File, error) { return s.disk.openDir(s.root, ".") })
	}
	up, err := s.find(path.Dir(rel))
	if err != nil {
		return nil, err
	}
	up.users++ // it must not be closed to make room for its own child
	defer s.drop(up)
	d, err := s.keep(rel, func() (*os.File, error) { return s.make(up.File, path.Base(rel)) })
	if errors.Is(err, fs.ErrNotExist) {
		s.forget(up)
	}
	return d, err
}

// make makes a directory and flushes its entry. The entry is flushed even if
// the directory was there: whoever made it may not have got that far.
func (s *directories) make(up *os.File, name string) (*os.File, error) {
	if err := s.disk.makeDir(up, name); err != nil {
		return nil, err
	}
	f, err := s.disk.openDir(up, name)
	if err != nil {
		return nil, err
	}
	if err := s.disk.syncDir(up); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (s *directories) keep(rel string, open func() (*os.File, error)) (*directory, error) {
	s.makeRoom()
	f, err := open()
	if err != nil {
		return nil, err
	}
	d := &directory{File: f, rel: rel}
	s.open[rel] = d
	return d, nil
}

func (s *directories) makeRoom() {
	for _, d := range s.open {
		if len(s.open) < maxOpenDirectories {
			return
		}
		if d.users == 0 {
			s.forget(d)
		}
	}
}

// forget takes a directory out of the set; mu is held.
func (s *directories) forget(d *directory) {
	if d.gone {
		return
	}
	d.gone = true
	delete(s.open, d.rel)
	s.closeUnused(d)
}

func (s *directories) drop(d *directory) {
	d.users--
	s.closeUnused(d)
}

func (s *directories) closeUnused(d *directory) {
	if d.gone && d.users == 0 {
		_ = d.Close() // nothing was written through it
	}
}

// release gives a directory back. removed says that it was found to be gone.
func (s *directories) release(d *directory, removed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if removed {
		s.forget(d)
	}
	s.drop(d)
}

// removed tells that a directory has been deleted by path.
func (s *directories) removed(rel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.open[rel]; d != nil {
		s.forget(d)
	}
}

func (s *directories) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.open {
		s.forget(d)
	}
}
