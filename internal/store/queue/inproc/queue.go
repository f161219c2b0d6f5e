package inproc

import (
	"context"
	"fmt"
	"sync"

	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// DefaultLimitHints limits the waiting hints: more than the batches of any sensible node, and a few tens of
// megabytes at most.
const DefaultLimitHints = 100_000

// Queue is a queue in memory.
type Queue struct {
	limit int

	mu       sync.Mutex
	notEmpty *sync.Cond // a hint came, or the queue was closed
	notFull  *sync.Cond // a hint went, or the queue was closed
	waiting  [3]ring    // by priority
	n        int        // waiting in all
	taken    uint64
	signals  signals
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
	q.signals = newSignals(&q.mu)
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
		return merged || q.n < q.limit
	})
	if err != nil {
		return err
	}
	if _, merged := q.known[h.BatchKey]; merged {
		// It may have been woken for room that it does not need.
		q.notFull.Signal()
		return nil
	}
	q.again(h)
	return nil
}

// Keep implements queue.Queue: all receivers are of this process.
func (q *Queue) Keep(ctx context.Context, hints ...queue.Hint) error { return q.Publish(ctx, hints...) }

// Shared implements queue.Queue.
func (q *Queue) Shared() bool { return false }

// Waiting implements queue.Queue.
func (q *Queue) Waiting(_ context.Context, p queue.Priority) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting[level(p)].len(), nil
}

// level is the place of a priority; one that there is not is the normal one.
func level(p queue.Priority) int {
	if p != queue.High && p != queue.Low {
		return int(queue.Normal)
	}
	return int(p)
}

// Receive implements queue.Queue. The delivery's Done has nothing to do: a
// hint is gone when it is received, and so is the process that loses it. Back puts it
// behind the others, for when this process can work on it.
func (q *Queue) Receive(ctx context.Context) (queue.Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.wait(ctx, q.notEmpty, func() bool { return q.n > 0 }); err != nil {
		return queue.Delivery{}, fmt.Errorf("receive hint: %w", err)
	}
	return q.delivery(q.pop()), nil
}

// Take is Receive where a hint waits; false where none does.
func (q *Queue) Take() (queue.Delivery, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		return queue.Delivery{}, false
	}
	return q.delivery(q.pop()), true
}

func (q *Queue) delivery(h queue.Hint) queue.Delivery {
	settled := false // guarded by mu
	settle := func(back bool) func(context.Context) error {
		return func(context.Context) error {
			q.mu.Lock()
			defer q.mu.Unlock()
			if back && !settled && !q.closed {
				q.again(h)
			}
			settled = true
			return nil
		}
	}
	return queue.Delivery{Hint: h, Done: settle(false), Back: settle(true)}
}

// again puts a hint behind the others, beyond the limit if need be: whoever gives it
// back waits for nobody; mu is held.
func (q *Queue) again(h queue.Hint) {
	if _, merged := q.known[h.BatchKey]; merged {
		return
	}
	q.known[h.BatchKey] = struct{}{}
	q.waiting[level(h.Priority)].push(h)
	q.n++
	q.notEmpty.Signal()
}

// pop takes the next hint; there must be one, and mu is held.
func (q *Queue) pop() queue.Hint {
	for _, p := range queue.LevelsFor(q.taken) {
		if r := &q.waiting[level(p)]; r.len() > 0 {
			h := r.pop()
			delete(q.known, h.BatchKey)
			q.n--
			q.taken++
			q.notFull.Signal()
			return h
		}
	}
	return queue.Hint{} // not reached: there is one
}

// Clear drops the hints that wait.
func (q *Queue) Clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting, q.known, q.n = [3]ring{}, map[state.BatchKey]struct{}{}, 0
	q.notFull.Broadcast()
}

// Signal implements queue.Queue.
func (q *Queue) Signal(ctx context.Context, s queue.Signal) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return fmt.Errorf("signal: %w", queue.ErrClosed)
	case ctx.Err() != nil:
		return fmt.Errorf("signal: %w", ctx.Err())
	}
	q.signals.add(s)
	return nil
}

// Signalled implements queue.Queue.
func (q *Queue) Signalled(ctx context.Context) (queue.Signal, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.wait(ctx, q.signals.came, func() bool { return len(q.signals.order) > 0 }); err != nil {
		return queue.Signal{}, fmt.Errorf("wait for a signal: %w", err)
	}
	return q.signals.take(), nil
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
	q.waiting, q.known, q.n, q.signals.order = [3]ring{}, nil, 0, nil
	q.notEmpty.Broadcast()
	q.notFull.Broadcast()
	q.signals.came.Broadcast()
	return nil
}
