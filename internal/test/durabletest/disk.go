package durabletest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"thalweg/internal/base/durable"
)

// ErrCut is the error of every step after the power is cut.
var ErrCut = errors.New("the power was cut")

// Plan is the fault of a Disk.
type Plan struct {
	At    int   // number of the step, from 1; 0: nothing happens
	Fail  error // it fails with; nil: the power is cut at it
	After bool  // of a cut: when the step is done, else before
	Seed  uint64
}

// Disk is a directory tree of which it is known what would survive.
type Disk struct {
	root    string
	trusted func(path string) bool
	plan    Plan

	mu      sync.Mutex
	steps   []string
	cut     bool
	files   map[id][]byte        // contents that are flushed
	dirs    map[id]map[string]id // names that are flushed
	seen    map[id]fs.FileMode   // of all that was ever flushed by name
	picture map[string]pictured  // the tree after the cut, by path below root
	err     error                // of looking at the tree
}

// id is a file's or a directory's identity.
type id struct{ dev, ino uint64 }

type pictured struct {
	mode    fs.FileMode
	content []byte
}

// New is a disk on the tree at root, all of which is flushed as it is. trusted
// tells the files, by path below root, that see to themselves.
func New(root string, plan Plan, trusted func(path string) bool) (*Disk, error) {
	d := &Disk{root: root, trusted: trusted, plan: plan, files: map[id][]byte{}, dirs: map[id]map[string]id{},
		seen: map[id]fs.FileMode{}}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return d.flushDir(path)
		case e.Type().IsRegular():
			return d.flushFile(path)
		}
		return nil
	})
	return d, err
}

// FS is the way to it.
func (d *Disk) FS() durable.FS { return durable.Watched(d.step) }

// Steps lists what was asked of it.
func (d *Disk) Steps() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.steps)
}

// Cut reports whether the power has been cut.
func (d *Disk) Cut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cut
}

func (d *Disk) step(op durable.Op, do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut {
		return &fs.PathError{Op: string(op.Step), Path: op.Path, Err: ErrCut}
	}
	rel, err := filepath.Rel(d.root, op.Path)
	if err != nil || !filepath.IsLocal(rel) && rel != "." {
		return do() // the names above the tree are not its own
	}
	d.steps = append(d.steps, string(op.Step)+" "+rel)
	due := d.plan.At == len(d.steps)
	if due && d.plan.Fail != nil {
		return &fs.PathError{Op: string(op.Step), Path: op.Path, Err: d.plan.Fail}
	}
	if due && !d.plan.After {
		return d.cutPower(op)
	}
	if err := do(); err != nil {
		return err
	}
	switch op.Step {
	case durable.Sync:
		err = d.flushFile(op.Path)
	case durable.SyncDir:
		err = d.flushDir(op.Path)
	default:
		err = nil
	}
	if d.err = errors.Join(d.err, err); due {
		return d.cutPower(op)
	}
	return nil
}

// identify gives a path's identity.
func identify(path string) (id, fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return id{}, nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return id{}, nil, fmt.Errorf("%s has no identity", path)
	}
	return id{uint64(st.Dev), st.Ino}, info, nil //nolint:unconvert // of another type elsewhere
}

func (d *Disk) flushFile(path string) error {
	who, info, err := identify(path)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	d.files[who], d.seen[who] = content, info.Mode()
	return err
}

func (d *Disk) flushDir(path string) error {
	who, info, err := identify(path)
	if err != nil {
		return err
	}
	names, err := d.names(path)
	d.dirs[who], d.seen[who] = names, info.Mode()
	return err
}

// names are a directory's as they are, of files and directories.
func (d *Disk) names(path string) (map[string]id, error) {
	entries, err := os.ReadDir(path)
	names := map[string]id{}
	for _, e := range entries {
		who, info, err := identify(filepath.Join(path, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names[e.Name()], d.seen[who] = who, info.Mode()
	}
	return names, err
}
