package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// retryable is a fault that may pass by itself; after is how long the server
// asks to wait, 0 if it does not.
type retryable struct {
	fault *fault.Error
	after time.Duration
}

func (r retryable) Error() string { return r.fault.Error() }

func (r retryable) Unwrap() error { return r.fault }

// retry repeats op while its error may pass by itself. op reports whether it
// made progress: tries are counted from the last one that did.
func (c *Client) retry(ctx context.Context, loc address.Location, op func(ctx context.Context) (progress bool,
	err error)) error {
	pause, idle := c.cfg.Pause, 0
	for try := 1; ; try++ {
		progress, err := op(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		if progress {
			pause, idle = c.cfg.Pause, 0
		}
		idle++
		f := fault.Of(err)
		if !f.Retryable {
			return placed(err, loc)
		}
		if idle >= triesMax || try >= triesTotalMax {
			f.Message += fmt.Sprintf(" (tried %d times)", try)
			return placed(err, loc)
		}
		c.cfg.Logger.Info("a transfer broke; it is repeated", "url", loc.String(), "try", try, "error",
			loc.Hidden(err.Error()))
		if err := c.wait(ctx, pause, err); err != nil {
			return err
		}
		pause = min(2*pause, c.cfg.PauseMax)
	}
}

// wait pauses between half of pause and all of it, or as long as the server
// asked for.
func (c *Client) wait(ctx context.Context, pause time.Duration, err error) error {
	var r retryable
	if errors.As(err, &r) && r.after > pause {
		pause = min(r.after, c.cfg.PauseMax)
	} else {
		pause = pause/2 + rand.N(pause/2+1)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return canceled(ctx)
	}
}

func canceled(ctx context.Context) error {
	return &fault.Error{Kind: fault.Canceled, Retryable: true, Message: "the transfer was interrupted", Err: ctx.Err()}
}

// broken classifies what may pass by itself.
func broken(err error, format string, args ...any) error {
	return retryable{fault: &fault.Error{Kind: fault.Environment, Retryable: true,
		Message: fmt.Sprintf(format, args...), Err: err,
		Hint: "check the network and the server"}}
}

// errIdle cancels a transfer that stands still.
var errIdle = errors.New("nothing was transferred")

// watchdog ends a call during which nothing happens for too long.
type watchdog struct {
	ctx    context.Context
	timer  *time.Timer
	after  time.Duration
	cancel context.CancelCauseFunc
}

// watch starts a watchdog; its context ends when nobody feeds it.
func (c *Client) watch(ctx context.Context) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{ctx: ctx, after: c.cfg.IdleTimeout, cancel: cancel}
	w.timer = time.AfterFunc(w.after, func() { cancel(errIdle) })
	return ctx, w
}

func (w *watchdog) feed() { w.timer.Reset(w.after) }

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// explain says that it was the watchdog, if it was.
func (w *watchdog) explain(err error) error {
	if err != nil && errors.Is(context.Cause(w.ctx), errIdle) {
		return broken(errIdle, "the server was silent for %s", w.after)
	}
	return err
}
