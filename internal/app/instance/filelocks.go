package instance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/store/state"
)

// fileLocks is the liveness of processes of one machine: locks on files below a
// directory, shared while they work, exclusive to clear.
type fileLocks struct {
	dir   string
	looks *sync.Mutex // held by who looks: two at once would take each other for somebody at work
}

// lockTries and lockPause bound the wait for somebody who only looks.
const (
	lockTries = 100
	lockLooks = 10
	lockPause = 10 * time.Millisecond
)

func (l fileLocks) join(key state.RunKey) (*RunLock, bool, error) {
	// Those who only look hold it for a moment.
	for range lockTries {
		f, err := l.try(key, unix.LOCK_EX)
		if err != nil {
			return nil, false, err
		}
		if f != nil { // others may come now
			if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
				return nil, false, Fault(l.dir, "lock the run", errors.Join(err, f.Close()))
			}
			return &RunLock{f.Close}, true, nil
		}
		if f, err = l.try(key, unix.LOCK_SH); err != nil {
			return nil, false, err
		}
		if f != nil {
			return &RunLock{f.Close}, false, nil
		}
		<-time.After(lockPause)
	}
	return nil, false, Fault(l.dir, "lock the run", fmt.Errorf("%s is being cleared by another process", l.path(key)))
}

func (l fileLocks) Empty(key state.RunKey, patient bool) (*RunLock, bool, error) {
	for range lockLooks {
		f, err := l.try(key, unix.LOCK_EX)
		if err != nil {
			return nil, false, err
		}
		if f != nil {
			return &RunLock{func() error { return Release(f) }}, true, nil
		}
		if !patient {
			return nil, false, nil
		}
		<-time.After(lockPause)
	}
	return nil, false, nil
}

func (l fileLocks) atWork(key state.RunKey) bool {
	l.looks.Lock()
	defer l.looks.Unlock()
	f, err := l.try(key, unix.LOCK_EX)
	if err != nil || f == nil {
		return true
	}
	_ = f.Close() // only a look: closing the file gives the lock back
	return false
}

// try locks the file of a run; nil if somebody else has it.
func (l fileLocks) try(key state.RunKey, how int) (*os.File, error) {
	f, err := os.OpenFile(l.path(key), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, Fault(l.dir, "open the run's lock", err)
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		closeErr := f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, closeErr
		}
		return nil, Fault(l.dir, "lock the run", errors.Join(err, closeErr))
	}
	return f, nil
}

func (l fileLocks) path(key state.RunKey) string {
	return filepath.Join(l.dir, "locks", fmt.Sprintf("%s-%d.lock", key.Workspace, key.Run))
}

// Release gives a lock back at once: closing alone does not while a process
// that is being started has the file, too.
func Release(f *os.File) error { return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close()) }
