package instance

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Pauses between looks for services that are away, and between saying so again.
const (
	outageFirstPause   = time.Second
	outageLongestPause = 30 * time.Second
	outageSaidEvery    = 10 * time.Minute
)

// ErrToldToEnd ends a process that serves for days before it has begun to.
var ErrToldToEnd = errors.New("asked to end while it waited for services of the cluster")

// Outage has a process that serves for days wait for services of its cluster that are away. What stays
// wrong until somebody acts ends it.
type Outage struct {
	logger *slog.Logger
	drain  <-chan struct{} // closed: it ends at once
	now    func() time.Time
	pause  func(d time.Duration) <-chan time.Time

	why    atomic.Pointer[string] // nil: nothing is away
	said   string
	saidAt time.Time
}

// NewOutage returns one that tells logger. It ends when drain is closed.
func NewOutage(logger *slog.Logger, drain <-chan struct{}) *Outage {
	return &Outage{logger: logger, drain: drain, now: time.Now, pause: time.After}
}

// Why says why a service is away; "": none is.
func (o *Outage) Why() string {
	if o == nil {
		return ""
	}
	if why := o.why.Load(); why != nil {
		return *why
	}
	return ""
}

// Open calls what opens the state until that succeeds, or fails for what does not pass. Who is told to end
// does not wait for it: a connection that is being made has a time of its own.
func (o *Outage) Open(ctx context.Context, open func() (*Instance, error)) (*Instance, error) {
	type answer struct {
		home *Instance
		err  error
	}
	for next := outageFirstPause; ; next = min(2*next, outageLongestPause) {
		done := make(chan answer, 1)
		go func() {
			home, err := open()
			done <- answer{home, err}
		}()
		var got answer
		select {
		case got = <-done:
		case <-o.drain:
			return nil, ErrToldToEnd
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !errors.Is(got.err, state.ErrUnknown) && !fault.Passes(got.err) {
			o.over(got.err)
			return got.home, got.err
		}
		o.missed(got.err)
		select {
		case <-o.pause(next - rand.N(next/2)): //nolint:gosec // spacing, not a secret
		case <-o.drain:
			return nil, ErrToldToEnd
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// missed says why nothing could be opened: the first reason at once, others and the same again seldom.
func (o *Outage) missed(err error) {
	text := err.Error()
	o.why.Store(&text)
	since := o.now().Sub(o.saidAt)
	if o.said != "" && (since < outageLongestPause || text == o.said && since < outageSaidEvery) {
		return
	}
	o.said, o.saidAt = text, o.now()
	o.logger.Warn("a service of the cluster is away; it is tried again until it is there", "error", text, "hint",
		fault.Of(err).Hint)
}

func (o *Outage) over(err error) {
	o.why.Store(nil)
	if o.said != "" && err == nil {
		o.logger.Warn("the services of the cluster are there")
	}
}
