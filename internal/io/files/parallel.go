package files

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// eachInOrder calls do for 0 … n-1, several at once, and waits for them. It
// returns the error of the lowest index that failed, so that the error that a
// person sees does not depend on timing.
func eachInOrder(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	workers := min(n, 2*runtime.GOMAXPROCS(0), maxOpenFiles)
	if workers <= 1 {
		for i := range n {
			if err := firstOf(ctx.Err(), func() error { return do(ctx, i) }); err != nil {
				return err
			}
		}
		return nil
	}
	var (
		wg     sync.WaitGroup
		next   atomic.Int64
		failed atomic.Int64 // lowest index that failed
		mu     sync.Mutex
		lowest error
		bigger = int64(n)
	)
	failed.Store(bigger)
	for range workers {
		wg.Go(func() {
			for {
				// Indices are taken in order: whatever lies below a failure
				// has been taken already and will report its own.
				i := next.Add(1) - 1
				if i >= bigger || i > failed.Load() {
					return
				}
				err := firstOf(ctx.Err(), func() error { return do(ctx, int(i)) })
				if err == nil {
					continue
				}
				mu.Lock()
				if i < failed.Load() {
					failed.Store(i)
					lowest = err
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return lowest
}

// firstOf returns err, or what next returns if there is none.
func firstOf(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

func ctxDone(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
