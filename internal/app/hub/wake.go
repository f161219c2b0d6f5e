package hub

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// When followers look.
const (
	LooksASecond = 4
	lookEvery    = time.Second / LooksASecond // at the least
	// versionEvery is the time between questions whether other processes have written to the directory.
	versionEvery = 100 * time.Millisecond
	// clusterEvery is the time between looks where nobody tells of all that other processes write. quietEvery is
	// that where somebody does. At a run that is over it is looked overShare times less often.
	clusterEvery = 500 * time.Millisecond
	quietEvery   = 5 * time.Second
	overShare    = 10
	// pollRests is how many times longer it rests than a question has taken, at the least.
	pollRests = 4
)

// Watch tells of what is written to a state, by whatever process.
type Watch interface {
	// DataVersion returns a number that changes when anything has been written.
	DataVersion(ctx context.Context) (int64, error)
	// Revisions returns for each run a number that changes when anything has happened to it; 0: there is no such run.
	Revisions(ctx context.Context, keys []state.RunKey) ([]int64, error)
}

// Waking returns a store that wakes the followers of the runs that it changes.
func (h *Hub) Waking(s state.Store) state.Store {
	return state.Around(s, func(ctx context.Context, op state.Op, call func(context.Context) error) error {
		err := call(ctx)
		if op.Kind == state.Changes && h.followed.Load() > 0 { // also after an error: it may be of the answer only
			if key, ok := changedRun(op); ok {
				h.wake(key)
			}
		}
		if note := state.Pointer[state.Note](op.Args); note != nil && note.Topic == state.TopicPaused {
			h.wake(state.RunKey{Workspace: *state.Pointer[string](op.Args)})
		}
		return err
	})
}

// changedRun returns the run that a call is about: a new one is among its results.
func changedRun(op state.Op) (state.RunKey, bool) {
	for _, pointers := range [][]any{op.Results, op.Args} {
		for _, p := range pointers {
			if key, ok := runOf(reflect.ValueOf(p).Elem()); ok {
				return key, true
			}
		}
	}
	return state.RunKey{}, false
}

// runOf returns the key of a run that a value is, or begins with: keys are embedded, and come first.
func runOf(v reflect.Value) (state.RunKey, bool) {
	for v.Kind() == reflect.Struct {
		if key, ok := v.Interface().(state.RunKey); ok {
			return key, key.Run > 0
		}
		if v.NumField() == 0 || !v.Type().Field(0).IsExported() {
			break
		}
		v = v.Field(0)
	}
	return state.RunKey{}, false
}

// wake has those look who follow a run or its workspace; Run 0: those who follow the workspace.
func (h *Hub) wake(key state.RunKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.runs[key]; f != nil {
		f.wake()
	}
	if s := h.spaces[key.Workspace]; s != nil {
		s.hear(key.Run)
	}
}

// poll asks whether other processes have written, as long as something is followed.
func (h *Hub) poll() {
	version, known := int64(-1), map[state.RunKey]int64{}
	for pause := versionEvery; h.polled(); {
		timer := time.NewTimer(pause)
		select {
		case <-h.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		began := time.Now()
		version = h.compare(version, known)
		pause = max(versionEvery, pollRests*time.Since(began))
	}
}

// polled reports whether there is something to poll for.
func (h *Hub) polled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.polling = h.followed.Load() > 0
	return h.polling
}

// compare wakes the followers of the runs that are not as they were known, if the state has another version than
// before. It returns that version. What it cannot read followers see when they look by themselves.
func (h *Hub) compare(before int64, known map[state.RunKey]int64) (version int64) {
	version, err := h.cfg.Watch.DataVersion(h.ctx)
	if err != nil || version == before {
		return before
	}
	h.mu.Lock()
	keys := slices.Collect(maps.Keys(h.runs)) // who comes later reads what is written by now
	h.mu.Unlock()
	revisions, err := h.cfg.Watch.Revisions(h.ctx, keys)
	if err != nil {
		return before
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, key := range keys {
		if f := h.runs[key]; f != nil && known[key] != revisions[i] {
			known[key] = revisions[i]
			f.wake()
		}
	}
	maps.DeleteFunc(known, func(key state.RunKey, _ int64) bool { return h.runs[key] == nil })
	for _, s := range h.spaces {
		s.hear(0)
	}
	return version
}

// pacer lets somebody look when it is woken, and at least every so often. wake may be called by anybody, the other
// methods by one goroutine.
type pacer struct {
	woken chan struct{}
	pace  time.Duration // between looks at the least
	next  time.Time     // when it may look again
}

func newPacer(pace time.Duration) pacer { return pacer{woken: make(chan struct{}, 1), pace: pace} }

func (p *pacer) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// wait returns when it is time to look, woken or not; false: ctx has ended, or gone is closed.
func (p *pacer) wait(ctx context.Context, every time.Duration, gone <-chan struct{}) bool {
	quiet := time.NewTimer(max(every, time.Until(p.next)))
	defer quiet.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-gone:
		return false
	case <-quiet.C:
		return true
	case <-p.woken:
	}
	rest := time.NewTimer(time.Until(p.next))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-rest.C:
		return true
	}
}

// looked says that it was looked at a time, and for how long nobody has to look again.
func (p *pacer) looked(at time.Time, rest time.Duration) { p.next = at.Add(max(p.pace, rest)) }
