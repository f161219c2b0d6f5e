package hub

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Limits.
const (
	LooksASecond = 4
	lookEvery    = time.Second / LooksASecond // at the least
	versionEvery = 100 * time.Millisecond     // between questions whether other processes have written
	clusterEvery = 500 * time.Millisecond     // between looks where nobody wakes the hub
	quietEvery   = 2 * time.Second            // between looks at a directory in spite of no wake
	followedMax  = 1_000                      // runs and workspaces at once
	ringLines    = 10_000
	ringBytes    = 16 << 20
	lingers      = 5 * time.Second // a follower without listeners
)

// ErrPassed tells a listener that it was too slow: lines that it has not got are not in the ring any more.
var ErrPassed = errors.New("lines have passed that were not read in time")

// Versioned is a store that knows whether another connection has written to it.
type Versioned interface {
	// DataVersion returns a number that changes when another connection has written.
	DataVersion(ctx context.Context) (int64, error)
}

// Config of a Hub.
type Config struct {
	Store state.Store
	// Version tells of what other processes write; nil: followers look every clusterEvery.
	Version Versioned
	// List describes a run as lists have it, for listeners of a workspace.
	List   func(ctx context.Context, key state.RunKey) (any, error)
	Logger *slog.Logger

	ringLines int           // for tests; 0: ringLines
	pace      time.Duration // for tests, between looks at the least; 0: lookEvery
}

// Hub follows runs and workspaces. Close ends it.
type Hub struct {
	cfg  Config
	ctx  context.Context // of all followers
	end  context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	runs    map[state.RunKey]*follower
	spaces  map[string]*space
	polling bool // a goroutine asks for the version
}

// New returns a hub.
func New(cfg Config) *Hub {
	if cfg.ringLines == 0 {
		cfg.ringLines = ringLines
	}
	if cfg.pace == 0 {
		cfg.pace = lookEvery
	}
	h := &Hub{cfg: cfg, runs: map[state.RunKey]*follower{}, spaces: map[string]*space{}}
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

// Close ends all followers and waits for them. Their listeners get an error.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	h.done.Wait()
	return nil
}

// Waking returns a store that wakes the followers of the runs that it changes.
func (h *Hub) Waking(s state.Store) state.Store {
	return state.Around(s, func(ctx context.Context, op state.Op, call func(context.Context) error) error {
		err := call(ctx)
		if op.Kind == state.Changes {
			for _, list := range [][]any{op.Args, op.Results} {
				if key, ok := runOf(list); ok {
					h.wake(key)
					break
				}
			}
		}
		return err
	})
}

var runKeyType = reflect.TypeFor[state.RunKey]()

// runOf finds the run that a call is about.
func runOf(pointers []any) (state.RunKey, bool) {
	for _, p := range pointers {
		v := reflect.ValueOf(p).Elem()
		for v.Kind() == reflect.Struct && v.Type() != runKeyType && v.NumField() > 0 {
			v = v.Field(0) // keys are embedded, and come first
		}
		if v.Type() == runKeyType {
			return v.Interface().(state.RunKey), true
		}
	}
	return state.RunKey{}, false
}

// wake has the followers of a run look.
func (h *Hub) wake(key state.RunKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.runs[key]; f != nil {
		f.wake()
	}
	if s := h.spaces[key.Workspace]; s != nil {
		s.wake()
	}
}

// wakeAll has all followers look.
func (h *Hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.runs {
		f.wake()
	}
	for _, s := range h.spaces {
		s.wake()
	}
}

// every returns the longest time between looks.
func (h *Hub) every() time.Duration {
	if h.cfg.Version == nil {
		return clusterEvery
	}
	return quietEvery
}

// room refuses another follower where there are too many. h.mu is held.
func (h *Hub) room() error {
	switch {
	case h.closed:
		return &fault.Error{Kind: fault.Canceled, Message: "nothing is followed any more: the process ends"}
	case len(h.runs)+len(h.spaces) >= followedMax:
		return &fault.Error{Kind: fault.Script, Code: fault.TooMany, Message: "too many runs are followed",
			Hint: "close some pages, or follow workspaces"}
	}
	if h.cfg.Version != nil && !h.polling {
		h.polling = true
		h.done.Go(h.poll)
	}
	return nil
}

// poll asks whether other processes have written, as long as something is followed.
func (h *Hub) poll() {
	every := time.NewTicker(versionEvery)
	defer every.Stop()
	last := int64(-1)
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-every.C:
		}
		h.mu.Lock()
		if len(h.runs)+len(h.spaces) == 0 {
			h.polling = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		now, err := h.cfg.Version.DataVersion(h.ctx)
		if err != nil || now == last {
			continue // followers look by themselves
		}
		if last = now; last >= 0 {
			h.wakeAll()
		}
	}
}

// pacer lets somebody look when it is woken, and at least every so often.
type pacer struct {
	woken chan struct{}
	pace  time.Duration // between looks at the least
	last  time.Time
}

func newPacer(pace time.Duration) pacer { return pacer{woken: make(chan struct{}, 1), pace: pace} }

func (p *pacer) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// wait returns when it is time to look; false: ctx has ended.
func (p *pacer) wait(ctx context.Context, every time.Duration, gone <-chan struct{}) bool {
	quiet := time.NewTimer(every)
	defer quiet.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-gone:
		return false
	case <-quiet.C:
	case <-p.woken:
		rest := time.NewTimer(time.Until(p.last.Add(p.pace)))
		defer rest.Stop()
		select {
		case <-ctx.Done():
			return false
		case <-rest.C:
		}
	}
	p.last = time.Now()
	return true
}
