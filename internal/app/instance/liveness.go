package instance

import (
	"thalweg/internal/store/state"
)

// liveness says who works on which run. Where all processes are on one machine
// these are locks on files, which end with their processes; in a cluster they are
// notes in the state that are renewed. It saves work and keeps from clearing what
// somebody may still write: what counts is decided by claims and orders alone.
type liveness interface {
	// join says that this process works on the run from now on, until the lock is
	// closed. alone reports that no other process does.
	join(key state.RunKey) (lock *RunLock, alone bool, err error)
	// Empty keeps others from the run, if nobody works on it; ok is false if
	// somebody does, or may. Whoever is refused has held nothing that others could
	// take for work. With patient set it tries again for a moment: those who only look hold it
	// no longer.
	Empty(key state.RunKey, patient bool) (lock *RunLock, ok bool, err error)
	// atWork reports whether a process works on a run.
	atWork(key state.RunKey) bool
}

// RunLock says that a live process works on a run. Any number of processes may.
type RunLock struct{ release func() error }

// Close gives the lock up.
func (l *RunLock) Close() error { return l.release() }

// JoinRun says that this process works on the run from now on, until the lock is closed. alone
// reports that no other process does.
func (h *Instance) JoinRun(key state.RunKey) (lock *RunLock, alone bool, err error) {
	return h.Liveness.join(key)
}

// EnterEmpty locks a run that nobody works on; ok is false if somebody does.
func (h *Instance) EnterEmpty(key state.RunKey) (lock *RunLock, ok bool, err error) {
	return h.Liveness.Empty(key, true)
}

// AtWork reports whether a process works on a run.
func (h *Instance) AtWork(key state.RunKey) bool { return h.Liveness.atWork(key) }

// Interrupted reports whether a run that is stored as running has nobody who
// works on it: its processes died.
func (h *Instance) Interrupted(r state.Run) bool {
	return r.Status == state.Running && !h.AtWork(r.RunKey)
}
