package queue

import (
	"context"
	"errors"

	"thalweg/internal/store/state"
)

// ErrClosed is returned by a queue that was closed.
var ErrClosed = errors.New("queue closed")

// Priority orders the hints of a run against those of other runs. The numbers are on the wire: they do not
// change.
type Priority int8

// The priorities.
const (
	Normal Priority = iota
	High
	Low
)

// Levels lists the priorities, the most urgent first.
func Levels() []Priority { return []Priority{High, Normal, Low} }

// Of every lowFirst hints that are taken one is looked for among those of low
// priority first, and of every normalFirst one among the normal ones: so the
// less urgent go on slowly where there are always urgent ones.
const (
	normalFirst = 4
	lowFirst    = 16
)

// LevelsFor is the order in which a receiver looks at the priorities for the
// nth hint that it takes, counted from 0.
func LevelsFor(nth uint64) []Priority {
	switch {
	case nth%lowFirst == lowFirst-1:
		return []Priority{Low, High, Normal}
	case nth%normalFirst == normalFirst-1:
		return []Priority{Normal, High, Low}
	}
	return Levels()
}

// Hint says that a batch can probably be taken. It may be wrong, late, lost
// or doubled: state decides.
type Hint struct {
	state.Offer
	Priority Priority
}

// Delivery is a received hint. Either Done or Back is called as soon as the
// claim is decided, never after the work; what is called later has no effect.
type Delivery struct {
	Hint
	// Done tells the queue that the hint is not needed any more.
	Done func(ctx context.Context) error
	// Back gives the hint to others, where this process cannot work on it now: it
	// waits behind all others, and may come here again. Whoever gives back pauses before the next one.
	Back func(ctx context.Context) error
}

// SignalKind selects the processes that have to look.
type SignalKind int8

// The signals. The numbers are on the wire: they do not change.
const (
	// Moved: batches have ended, or wait again. Who leads the run looks.
	Moved SignalKind = 1 + iota
	// Ordered: an order was given, or the run is over, or new. Everybody looks.
	Ordered
	// Freed is Moved where batches can be claimed again, or can soon.
	Freed
	// Starved: batches are free, and their hints do not arrive. Who waits for hints takes
	// them from the state.
	Starved
)

// Signal asks processes to look at a run now. It may be lost: whoever waits for
// one looks from time to time.
type Signal struct {
	state.RunKey
	Kind SignalKind
}

// Queue carries hints and signals.
type Queue interface {
	// Publish offers hints to all receivers of the queue; when it returns nil the
	// backend has accepted all of them. It fails soon where the backend cannot
	// be reached.
	Publish(ctx context.Context, hints ...Hint) error
	// Keep offers hints to the receivers of this process only, backend or not.
	// They may be dropped when the backend can be reached again.
	Keep(ctx context.Context, hints ...Hint) error
	// Receive waits for a hint until ctx ends or the queue is closed (ErrClosed),
	// also while the backend cannot be reached.
	Receive(ctx context.Context) (Delivery, error)
	// Shared reports whether processes share the queue, now: false where there is
	// only this one, and while the backend cannot be reached.
	Shared() bool
	// Waiting counts the waiting hints of a priority, of all runs, as far as that can be known. Hints that
	// were received do not count, nor those that are only kept.
	Waiting(ctx context.Context, p Priority) (int, error)
	// Signal asks the processes that share the queue, this one included, to look
	// at a run. It does its best and waits for nobody.
	Signal(ctx context.Context, s Signal) error
	// Signalled waits for a signal until ctx ends or the queue is closed
	// (ErrClosed). Signals that are the same are one while they wait.
	Signalled(ctx context.Context) (Signal, error)
	Close() error
}
