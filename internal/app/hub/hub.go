package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

const (
	// followedMax limits the runs and workspaces that are followed at once.
	followedMax = 1_000
	// lingers is the time for which a follower goes on without listeners: they may come back.
	lingers = 5 * time.Second
)

// ErrPassed tells a listener that it was too slow: lines that it has not got are not in the ring any more.
var ErrPassed = errors.New("lines have passed that were not read in time")

var errEnded = fmt.Errorf("following has ended: %w", context.Canceled)

// Config of a Hub.
type Config struct {
	Store state.Store
	// Watch tells of what other processes write to a directory; nil: there is none.
	Watch Watch
	// Signals calls heard with each run of which a cluster's queue signals something, until ctx ends; nil: there
	// is no queue. It may end earlier, and miss any.
	Signals func(ctx context.Context, heard func(state.RunKey))
	// List describes a run as lists have it, for listeners of a workspace.
	List func(ctx context.Context, key state.RunKey) (history.Run, error)

	// For tests; 0: the constants.
	ringLines, ringsBytes int
	pace                  time.Duration
}

// Hub follows runs and workspaces. Its methods may be called concurrently. Close ends it.
type Hub struct {
	cfg      Config
	ctx      context.Context // of all followers
	end      context.CancelFunc
	done     sync.WaitGroup
	followed atomic.Int64 // len(runs) + len(spaces)

	mu        sync.Mutex
	closed    bool
	runs      map[state.RunKey]*follower
	spaces    map[string]*space
	polling   bool // a goroutine asks Watch
	listening bool // a goroutine listens to Signals
}

// New returns a hub, which does nothing until somebody listens.
func New(cfg Config) *Hub {
	if cfg.ringLines == 0 {
		cfg.ringLines = ringLines
	}
	if cfg.ringsBytes == 0 {
		cfg.ringsBytes = ringsBytes
	}
	if cfg.pace == 0 {
		cfg.pace = lookEvery
	}
	h := &Hub{cfg: cfg, runs: map[state.RunKey]*follower{}, spaces: map[string]*space{}}
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

// Close ends all followers and waits for them. Their listeners get an error. It may be called more than once.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	h.done.Wait()
	return nil
}

// room refuses another follower where there are too many, and begins what wakes followers. h.mu is held.
func (h *Hub) room() error {
	switch {
	case h.closed:
		return &fault.Error{Kind: fault.Canceled, Message: "nothing is followed any more: the process ends"}
	case h.followed.Load() >= followedMax:
		return &fault.Error{Kind: fault.Script, Code: fault.TooMany,
			Message: fmt.Sprintf("%d runs and workspaces are followed here already", followedMax),
			Hint:    "close some pages, or follow workspaces"}
	}
	h.followed.Add(1)
	if h.cfg.Watch != nil && !h.polling {
		h.polling = true
		h.done.Go(h.poll)
	}
	if h.cfg.Signals != nil && !h.listening {
		h.listening = true
		h.done.Go(func() { h.cfg.Signals(h.ctx, h.wake) })
	}
	return nil
}

// share divides what rings may have among them. h.mu is held.
func (h *Hub) share() int { return min(ringBytes, h.cfg.ringsBytes/max(len(h.runs), 1)) }

// shareOut bounds the rings that there are. h.mu is held.
func (h *Hub) shareOut() {
	bytes := h.share()
	for _, f := range h.runs {
		f.bound(bytes)
	}
}

// audience counts the listeners of a follower, which ends a while after the last has left. Hub.mu protects it.
type audience struct {
	listeners int
	left      *time.Timer   // closes gone; nil: somebody listens
	gone      chan struct{} // closed when nobody listens any more
	ended     bool          // the follower has
}

// enter counts a listener more. Hub.mu is held.
func (a *audience) enter() {
	a.listeners++
	if a.left != nil {
		a.left.Stop()
		a.left = nil
	}
}

// leave counts a listener less. forget is called, with h.mu held, if nobody comes for a while.
func (h *Hub) leave(a *audience, forget func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.listeners--; a.listeners > 0 || a.ended {
		return
	}
	a.left = time.AfterFunc(lingers, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if a.left != nil { // nobody has come
			a.left = nil
			forget()
			close(a.gone)
		}
	})
}

// finish says that the follower has ended. Hub.mu is held.
func (a *audience) finish() {
	a.ended = true
	if a.left != nil {
		a.left.Stop()
		a.left = nil
	}
}
