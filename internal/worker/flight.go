package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"thalweg/internal/state"
)

// flight knows the batches that are being executed, so that those which do not
// come back can be given back in their place.
type flight struct {
	mu       sync.Mutex
	up       map[state.BatchKey]state.Claim
	closed   bool           // left behind: nobody listens any more
	recorded sync.WaitGroup // attempts that have been executed and are being recorded
}

func newFlight() *flight { return &flight{up: map[state.BatchKey]state.Claim{}} }

func (f *flight) begin(c state.Claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up[c.BatchKey] = c
}

// land says that the execution has ended; what it returns, that this is recorded.
func (f *flight) land(c state.Claim) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.up, c.BatchKey)
	if f.closed {
		return func() {}
	}
	f.recorded.Add(1)
	return f.recorded.Done
}

// leave gives the claims of those that are still up.
func (f *flight) leave() []state.Claim {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return slices.Collect(maps.Values(f.up))
}

func (f *flight) left() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// observe tells who watches, until the run is left behind.
func (w *Worker) observe(e Event) {
	if w.flight.left() && e.Kind != RunFinished {
		return
	}
	w.cfg.Observe(e)
}

// abandon gives back what is still being executed, and waits for what is being
// recorded already.
func (w *Worker) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	var errs []error
	for _, c := range w.flight.leave() {
		w.cfg.Logger.Info("a batch did not stop in time; it is given back", "node", c.Node, "batch", c.Batch)
		err := w.cfg.Store.Release(ctx, c, w.cfg.Now())
		switch {
		case errors.Is(err, state.ErrLeaseLost):
		case err != nil:
			errs = append(errs, fmt.Errorf("give back %s batch %d: %w", c.Node, c.Batch, err))
		default:
			w.cfg.Observe(Event{Time: w.cfg.Now(), Kind: BatchReleased, Node: c.Node, Batch: c.Batch, Attempt: c.Attempt})
		}
	}
	w.flight.recorded.Wait()
	return errors.Join(errs...)
}
