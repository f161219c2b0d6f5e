package workerprocess

import (
	"context"
	"errors"

	"thalweg/internal/app/instance"
	"thalweg/internal/store/queue"
)

// drained is a queue as an executor sees it that may be asked to begin nothing more.
type drained struct {
	queue.Queue
	gone  context.Context
	close func() // nobody receives anything any more
}

func newDrained(q queue.Queue) *drained {
	gone, closed := context.WithCancel(context.Background())
	return &drained{Queue: q, gone: gone, close: closed}
}

// Receive implements queue.Queue.
func (d *drained) Receive(ctx context.Context) (queue.Delivery, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.gone, cancel)()
	got, err := d.Queue.Receive(ctx)
	switch {
	case d.gone.Err() == nil:
		return got, err
	case err == nil: // it came at the last moment
		limited, stop := context.WithTimeout(context.WithoutCancel(ctx), instance.PresenceTimeout)
		defer stop()
		return queue.Delivery{}, errors.Join(queue.ErrClosed, got.Back(limited))
	}
	return got, queue.ErrClosed
}
