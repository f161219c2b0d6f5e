package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// errCannotExchange says that the system cannot exchange two names in one step.
var errCannotExchange = errors.New("two names cannot be exchanged")

// Exchange puts a directory, whose content is flushed, in the place of another one, and flushes
// the names. Where the system can, that is one step, and what was there has the name from then.
// Else it is given the name old first, and for a moment there is nothing. If nothing
// was there, it is a rename.
func (f FS) Exchange(from, to, old string) error {
	if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
		return f.Rename(from, to)
	} else if err != nil {
		return err
	}
	err := f.Do(Rename, to, func() error { return exchange(from, to) })
	if errors.Is(err, errCannotExchange) {
		return f.swap(from, to, old)
	}
	if err != nil {
		return err
	}
	return f.SyncDir(filepath.Dir(to))
}

// swap does in two steps what Exchange does in one. What was there gets its name again if the other
// one cannot have it: somebody may have removed that meanwhile.
func (f FS) swap(from, to, old string) error {
	if _, err := os.Lstat(from); err != nil {
		return err
	}
	if err := f.Rename(to, old); err != nil {
		return err
	}
	err := f.Rename(from, to)
	if err != nil {
		err = errors.Join(err, f.Do(TakeBack, to, func() error { return os.Rename(old, to) }))
	}
	return err
}
