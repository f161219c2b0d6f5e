//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"

	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
)

const (
	dataName      = "data"
	versionName   = "VERSION"
	versionText   = "thalweg parts 1\n" // changes with the layout
	directoryMode = 0o755
	stageMode     = 0o700
	// concurrency is the number of operations up to which a local disk becomes faster by doing them at once.
	concurrency = 16
)

// Store is a part store in one directory.
type Store struct {
	root  string
	data  *os.File
	stage *stage
	dirs  *directories
	disk  disk
	known checked
	next  atomic.Int64 // number of the next stage

	close    sync.Once
	closeErr error
}

var _ parts.Store = (*Store)(nil)

// Open opens the store in the directory root and creates it where there is
// none. It removes what processes that are gone have left in the stage. It
// fails with a *fault.Error of kind Environment if the directory cannot be
// used or has another layout.
func Open(root string) (*Store, error) { return OpenOn(durable.FS{}, root) }

// OpenOn is Open on a file system of the caller's.
func OpenOn(files durable.FS, root string) (*Store, error) {
	s := &Store{root: root, disk: disk{files}}
	var err error
	if s.root, err = filepath.Abs(root); err != nil {
		return nil, s.explain("find directory", err)
	}
	if err := s.prepare(); err != nil {
		return nil, s.explain("open", err)
	}
	if _, err := s.Sweep(context.Background()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare makes the directories and opens the two that stay open.
func (s *Store) prepare() (err error) {
	for _, name := range []string{dataName, stageName} {
		if err := s.disk.MakeAll(filepath.Join(s.root, name), directoryMode); err != nil {
			return err
		}
	}
	if err := s.checkVersion(); err != nil {
		return err
	}
	if s.data, err = os.Open(filepath.Join(s.root, dataName)); err != nil {
		return err
	}
	if s.stage, err = newStage(s.root); err != nil {
		return errors.Join(err, s.data.Close())
	}
	s.dirs = newDirectories(s.disk, s.data)
	return nil
}

// checkVersion marks a new directory and refuses one of another layout. Two
// processes that mark it at the same time write the same.
func (s *Store) checkVersion() error {
	file := filepath.Join(s.root, versionName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return s.disk.WriteFile(file, []byte(versionText), 0o644)
	}
	if err != nil || string(text) == versionText {
		return err
	}
	f := fault.New(fault.Environment, "the part store in %s has a layout that this program does not know", s.root)
	f.Place.File, f.Hint = file, "use the program that wrote it, or another directory"
	return f
}

// Properties implements parts.Store.
func (s *Store) Properties() parts.Properties {
	return parts.Properties{Local: true, Concurrency: concurrency}
}

// Close removes this process's staged files. It may be called more than once,
// and only when no other call is at work.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.dirs.close()
		if err := errors.Join(s.stage.close(), s.data.Close()); err != nil {
			s.closeErr = s.explain("close", err)
		}
	})
	return s.closeErr
}

// Sweep removes the staged files of processes that are gone and says how many
// processes those were. Open does it, too; a process that lives long does it
// now and then.
func (s *Store) Sweep(ctx context.Context) (processes int, err error) {
	processes, err = s.stage.sweep(ctx, s.root)
	if err != nil {
		return processes, s.explain("sweep the stage", err)
	}
	return processes, nil
}

// Stage implements parts.Store.
func (s *Store) Stage(ctx context.Context) (*parts.Stage, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("make a stage: %w", err)
	}
	dir := filepath.Join(s.stage.dir.Name(), fmt.Sprintf("%08d", s.next.Add(1)))
	if err := os.Mkdir(dir, stageMode); err != nil {
		return nil, s.explain("make a stage", err)
	}
	return &parts.Stage{Dir: dir}, nil
}

// Put implements parts.Store. The file must be in one of this store's stages.
func (s *Store) Put(ctx context.Context, key, file string) (parts.Info, error) {
	info, err := s.put(ctx, key, file)
	if err != nil {
		return parts.Info{}, s.explain("put "+key, err)
	}
	return info, nil
}

func (s *Store) put(ctx context.Context, key, file string) (info parts.Info, err error) {
	if err := parts.CheckKey(key); err != nil {
		return info, err
	}
	staged, err := s.staged(file)
	if err != nil {
		return info, err
	}
	if info, err = s.settle(ctx, file); err != nil {
		return info, err
	}
	info.Key = key
	if err := s.place(ctx, key, staged); err != nil {
		return info, err
	}
	s.known.wrote(key, s.file(key), info.Checksum)
	return info, nil
}

// staged gives the path of a file relative to the stage.
func (s *Store) staged(file string) (string, error) {
	rel, err := filepath.Rel(s.stage.dir.Name(), file)
	if err != nil || !filepath.IsLocal(rel) || rel == "." || rel == lockName {
		return "", fault.New(fault.Bug, "%s was not staged in this store", file)
	}
	return rel, nil
}

// settle makes a staged file ready to be moved: read through, read-only, on
// the disk.
func (s *Store) settle(ctx context.Context, file string) (info parts.Info, err error) {
	if err := ctx.Err(); err != nil {
		return info, err
	}
	f, err := s.disk.open(file)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	err = s.disk.Do(durable.Read, file, func() (err error) {
		info.Checksum, info.Bytes, err = parts.Checksum(contextFile{ctx, f})
		return err
	})
	if err != nil {
		return info, err
	}
	if err := s.disk.protect(f); err != nil {
		return info, err
	}
	return info, s.disk.Sync(f)
}

// place moves a settled file to its key, durably.
func (s *Store) place(ctx context.Context, key, staged string) error {
	var err error
	for range maxMakeTries {
		if err := ctx.Err(); err != nil {
			return err
		}
		var dir *directory
		if dir, err = s.dirs.acquire(path.Dir(key)); err != nil {
			return err
		}
		err = s.placeIn(dir.File, path.Base(key), staged)
		removed := errors.Is(err, fs.ErrNotExist)
		s.dirs.release(dir, removed)
		if !removed {
			break
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return parts.ErrExists
	}
	return err
}

func (s *Store) placeIn(dir *os.File, name, staged string) error {
	if err := s.disk.move(durable.Rename, s.stage.dir, staged, dir, name); err != nil {
		return err
	}
	err := s.disk.syncDir(dir)
	if err == nil {
		return nil
	}
	// The part can be seen but might not survive: it must not stay. If it
	// cannot be taken back either, nobody was told of it and a sweep by the
	// manifest deletes it.
	return errors.Join(err, s.disk.move(durable.TakeBack, dir, name, s.stage.dir, staged))
}

// Fetch implements parts.Store: it gives the part itself, so there is nothing
// to release.
func (s *Store) Fetch(ctx context.Context, key, sum string) (string, func(), error) {
	file, err := s.find(ctx, key)
	if err == nil && sum != "" {
		err = s.known.check(ctx, key, file, sum)
	}
	if err != nil {
		return "", nil, s.explain("fetch "+key, err)
	}
	return file, func() {}, nil
}

// Open implements parts.Store.
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error) {
	file, err := s.find(ctx, key)
	if err != nil {
		return nil, 0, s.explain("open "+key, err)
	}
	f, err := os.Open(file)
	if missing(err) {
		err = parts.ErrNotFound // just deleted
	}
	if err != nil {
		return nil, 0, s.explain("open "+key, err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, s.explain("open "+key, errors.Join(err, f.Close()))
	}
	if length < 0 {
		length = st.Size()
	}
	return ranged{io.NewSectionReader(contextFile{ctx, f}, offset, length), f}, st.Size(), nil
}

// ranged is a range of a part that is open.
type ranged struct {
	io.Reader
	io.Closer
}

// Reserve implements parts.Store: parts take up no other room than they have.
func (s *Store) Reserve(ctx context.Context, _ int64) (func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("make room for parts: %w", err)
	}
	return func() {}, nil
}

// file returns the path of a part.
func (s *Store) file(key string) string {
	return filepath.Join(s.data.Name(), filepath.FromSlash(key))
}

// find gives the path of a part that is there.
func (s *Store) find(ctx context.Context, key string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := parts.CheckKey(key); err != nil {
		return "", err
	}
	file := s.file(key)
	info, err := os.Lstat(file)
	if missing(err) || err == nil && !info.Mode().IsRegular() {
		return "", parts.ErrNotFound
	}
	return file, err
}

// Delete implements parts.Store. The directories that it empties go, too. The
// deletion itself is not flushed: a part that a power cut brings back is in
// no manifest.
func (s *Store) Delete(ctx context.Context, key string) error {
	file, err := s.find(ctx, key)
	if errors.Is(err, parts.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil && !missing(err) {
		return s.explain("delete "+key, err)
	}
	s.known.forget(key)
	for rel := path.Dir(key); rel != "."; rel = path.Dir(rel) {
		if os.Remove(filepath.Join(s.data.Name(), filepath.FromSlash(rel))) != nil {
			break // it holds other parts, or somebody else was faster
		}
		s.dirs.removed(rel)
	}
	return nil
}

// missing reports whether an error says that there is nothing at a path.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDirectory)
}

// contextFile ends a long read when the context does.
type contextFile struct {
	ctx context.Context
	f   *os.File
}

func (r contextFile) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.f.Read(p)
}

func (r contextFile) ReadAt(p []byte, at int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.f.ReadAt(p, at)
}
