package queue

import (
	"context"
	"errors"

	"thalweg/internal/state"
)

// ErrClosed is returned by a queue that was closed.
var ErrClosed = errors.New("queue closed")

// Hint says that a batch can probably be taken. It may be wrong, late, lost
// or doubled: state decides.
type Hint struct{ state.Offer }

// Delivery is a received hint. Done tells the queue that it is not needed any
// more: called as soon as the claim is decided, never after the work.
type Delivery struct {
	Hint
	Done func(ctx context.Context) error
}

// Queue carries hints.
type Queue interface {
	// Publish offers hints to the queue's receivers; when it returns nil the
	// backend has accepted all of them.
	Publish(ctx context.Context, hints ...Hint) error
	// Receive waits for a hint until ctx ends or the queue is closed (ErrClosed).
	Receive(ctx context.Context) (Delivery, error)
	Close() error
}
