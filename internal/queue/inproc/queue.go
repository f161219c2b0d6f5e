package inproc

import (
	"context"
	"fmt"
	"sync"

	"thalweg/internal/queue"
	"thalweg/internal/state"
)

// DefaultLimitHints is how many hints may wait: more than the batches of any
// sensible node, and a few tens of megabytes at most.
const DefaultLimitHints = 100_000

// Queue is a queue in memory.
type Queue struct {
	limit int

	mu       sync.Mutex
	notEmpty *sync.Cond // a hint came, or the queue was closed
	notFull  *sync.Cond // a hint went, or the queue was closed
	waiting  ring
	known    map[state.BatchKey]struct{} // those in waiting
	closed   bool
}

var _ queue.Queue = (*Queue)(nil)

// New returns a queue in which at most limitHints hints wait; 0 or less means
// DefaultLimitHints.
func New(limitHints int) *Queue {
	if limitHints <= 0 {
		limitHints = DefaultLimitHints
	}
	q := &Queue{limit: limitHints, known: map[state.BatchKey]struct{}{}}
	q.notEmpty, q.notFull = sync.NewCond(&q.mu), sync.NewCond(&q.mu)
	return q
}

// Publish implements queue.Queue. When it fails, the hints before the one
// that found no room may have been accepted.
func (q *Queue) Publish(ctx context.Context, hints ...queue.Hint) error {
	for i, h := range hints {
		if err := q.publish(ctx, h); err != nil {
			return fmt.Errorf("publish hint %d of %d: %w", i+1, len(hints), err)
		}
	}
	return nil
}

func (q *Queue) publish(ctx context.Context, h queue.Hint) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.wait(ctx, q.notFull, func() bool {
		_, merged := q.known[h.BatchKey]
		return merged || q.waiting.len() < q.limit
	})
	if err != nil {
		return err
	}
	if _, merged := q.known[h.BatchKey]; merged {
		// It may have been woken for room that it does not need.
		q.notFull.Signal()
		return nil
	}
	q.known[h.BatchKey] = struct{}{}
	q.waiting.push(h)
	q.notEmpty.Signal()
	return nil
}

// Receive implements queue.Queue. The delivery's Done has nothing to do: a
// hint is gone when it is received, and so is the process that loses it.
func (q *Queue) Receive(ctx context.Context) (queue.Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.wait(ctx, q.notEmpty, func() bool { return q.waiting.len() > 0 }); err != nil {
		return queue.Delivery{}, fmt.Errorf("receive hint: %w", err)
	}
	h := q.waiting.pop()
	delete(q.known, h.BatchKey)
	q.notFull.Signal()
	return queue.Delivery{Hint: h, Done: func(context.Context) error { return nil }}, nil
}

// wait returns when ready holds, or with an error when the queue is closed or
// ctx ends; mu is held.
func (q *Queue) wait(ctx context.Context, changed *sync.Cond, ready func() bool) error {
	var stop func() bool
	for {
		switch {
		case q.closed:
			return queue.ErrClosed
		case ctx.Err() != nil:
			// This goroutine may have been the one that was woken for a
			// change, and may leave before its own broadcast: it passes the
			// news on.
			changed.Signal()
			return ctx.Err()
		case ready():
			return nil
		}
		if stop == nil {
			stop = context.AfterFunc(ctx, func() {
				q.mu.Lock()
				defer q.mu.Unlock()
				changed.Broadcast()
			})
			defer stop()
		}
		changed.Wait()
	}
}

// Close implements queue.Queue. It may be called more than once.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.waiting, q.known = ring{}, nil
	q.notEmpty.Broadcast()
	q.notFull.Broadcast()
	return nil
}
