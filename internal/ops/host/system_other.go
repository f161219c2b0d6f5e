//go:build !linux

package host

import (
	"errors"
	"os"
	"time"
)

var errLinux = errors.New("only Linux tells that")

func coalescing(string) (Coalescing, error) { return Coalescing{}, errLinux }

func pinned(int) error { return errLinux }

func resolution() time.Duration { return 0 }

func past(_ *os.File, direct bool) error {
	if direct {
		return errLinux
	}
	return nil
}

func flush(f *os.File) error { return f.Sync() }

// room is not known: as much as is written at most.
func room(string) (int64, error) { return diskMost * roomPart, nil }
