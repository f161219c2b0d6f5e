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
		if err := f.Rename(to, old); err != nil {
			return err
		}
		return f.Rename(from, to)
	}
	if err != nil {
		return err
	}
	return f.SyncDir(filepath.Dir(to))
}
