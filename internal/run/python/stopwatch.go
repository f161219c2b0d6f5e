package python

import (
	"time"

	"thalweg/internal/base/awake"
)

// States of a process as the system names them.
const (
	stateRunning = 'R' // or it would, if it had a processor
	stateStopped = 'T'
	stateTraced  = 't'
)

// stopwatch measures the time that a process has for what it does. It stands
// still while this process does, while the other is stopped, and while the other
// waits for a processor: then it goes on by the processor time that it gets. A
// process that sleeps or waits for something else has all the time.
type stopwatch struct {
	clock *awake.Clock
	state func() byte          // of the process; 0 if unknown
	cpu   func() time.Duration // that it has used

	at, used time.Duration // when it was looked at last
	spent    time.Duration // that it had
	stopped  time.Duration // that it was stopped
}

// newStopwatch returns a stopwatch that is looked at as often as every says. pid is asked each time.
func newStopwatch(every time.Duration, pid func() int) *stopwatch {
	return &stopwatch{clock: awake.New(every, nil), state: func() byte { return stateOf(pid()) },
		cpu: func() time.Duration { return cpuOf(pid()) }}
}

// look returns the time that the process has had so far, and the time that has passed here.
func (w *stopwatch) look() (spent, passed time.Duration) {
	at, used := w.clock.Look(), w.cpu()
	step, computed := at-w.at, max(used-w.used, 0)
	w.at, w.used = at, used
	switch w.state() {
	case stateStopped, stateTraced:
		w.stopped += step
		w.spent += min(computed, step)
	case stateRunning:
		w.spent += min(computed, step)
	default:
		w.spent += step
	}
	return w.spent, w.at
}
