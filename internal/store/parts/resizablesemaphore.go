package parts

import (
	"container/list"
	"context"
	"sync"
)

// ResizableSemaphore limits how many goroutines hold it at once; the others wait in order of arrival. The limit can be
// changed at any time. Its methods are safe for concurrent use.
type ResizableSemaphore struct {
	mu      sync.Mutex
	most    int
	used    int
	waiting list.List // of chan struct{}: closed when its turn has come
}

// NewResizableSemaphore lets n hold it at once, at least one.
func NewResizableSemaphore(n int) *ResizableSemaphore { return &ResizableSemaphore{most: max(n, 1)} }

// Most returns the present limit.
func (t *ResizableSemaphore) Most() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.most
}

// Let changes how many may: who does it already goes on.
func (t *ResizableSemaphore) Let(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most = max(n, 1)
	t.admit()
}

// Acquire waits for a turn, which Release ends.
func (t *ResizableSemaphore) Acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	mine := make(chan struct{})
	t.mu.Lock()
	at := t.waiting.PushBack(mine)
	t.admit()
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-mine: // at the same moment
		t.used--
	default:
		t.waiting.Remove(at)
	}
	t.admit()
	return ctx.Err()
}

// Release ends a turn.
func (t *ResizableSemaphore) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used--
	t.admit()
}

// admit gives turns to those who wait; mu is held.
func (t *ResizableSemaphore) admit() {
	for t.used < t.most && t.waiting.Len() > 0 {
		close(t.waiting.Remove(t.waiting.Front()).(chan struct{}))
		t.used++
	}
}

// Writing is an optional interface of backends that limit their writing requests.
type Writing interface{ Writers() *ResizableSemaphore }

// WritersOf gives the turns of a backend, or of the one behind it; nil: there are none.
func WritersOf(b Backend) *ResizableSemaphore {
	for {
		if w, ok := b.(Writing); ok {
			return w.Writers()
		}
		around, ok := b.(interface{ Unwrap() Backend })
		if !ok {
			return nil
		}
		b = around.Unwrap()
	}
}
