package hub

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

// space reads how the runs of a workspace are that are not over.
type space struct {
	pacer
	hub       *Hub
	name      string
	gone      chan struct{}
	listeners int // hub.mu

	mu     sync.Mutex
	runs   map[int64]told // that are not over, and the latest of those that are
	change int64          // counts the changes
	moved  chan struct{}
	err    error
	ended  bool
}

// told is a run as listeners know it.
type told struct {
	Line
	change int64 // with which it became so
	over   bool
}

// overKept limits the runs that are over of which late listeners are told.
const overKept = 100

// follow reads until nobody listens.
func (s *space) follow() {
	s.look()
	for s.wait(s.hub.ctx, s.hub.every(), s.gone) {
		s.look()
	}
	s.hub.mu.Lock()
	if s.hub.spaces[s.name] == s {
		delete(s.hub.spaces, s.name)
	}
	s.hub.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	close(s.moved)
}

// look reads the open runs, and those that were.
func (s *space) look() {
	ctx := s.hub.ctx
	open, err := state.OpenRuns(ctx, s.hub.cfg.Store, s.name, nil)
	is := map[int64]bool{}
	for _, r := range open {
		is[r.Run] = true
	}
	s.mu.Lock()
	for run, t := range s.runs {
		if _, listed := is[run]; !t.over && !listed {
			is[run] = false
		}
	}
	s.mu.Unlock()
	now := map[int64]told{}
	for run, open := range is {
		if err != nil {
			break
		}
		var shown any
		if shown, err = s.hub.cfg.List(ctx, state.RunKey{Workspace: s.name, Run: run}); err == nil {
			now[run] = told{Line: runLine(shown), over: !open}
		}
	}
	if ctx.Err() != nil {
		return
	}
	s.take(now, err)
}

// runLine encodes a run as lists have it.
func runLine(shown any) Line {
	l := Line{Event: "run", JSON: encode(shown)}
	l.Discreet = l.JSON
	if r, is := shown.(history.Run); is && r.Failure != nil {
		r.Failure = instance.FailureWithoutValues(r.Failure)
		l.Discreet = encode(r)
	}
	return l
}

func (s *space) take(now map[int64]told, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := err != nil
	s.err = err
	for run, t := range now {
		if was, known := s.runs[run]; known && was.over == t.over && bytes.Equal(was.JSON, t.JSON) {
			continue
		}
		s.change++
		t.change, moved = s.change, true
		s.runs[run] = t
	}
	s.trim()
	if moved {
		close(s.moved)
		s.moved = make(chan struct{})
	}
}

// trim forgets the oldest of those that are over.
func (s *space) trim() {
	var over []int64
	for run, t := range s.runs {
		if t.over {
			over = append(over, run)
		}
	}
	slices.SortFunc(over, func(a, b int64) int { return int(s.runs[a].change - s.runs[b].change) })
	for _, run := range over[:max(len(over)-overKept, 0)] {
		delete(s.runs, run)
	}
}

// Workspace listens to the runs of a workspace: first each that is not over, then each that begins or
// changes, as lists have it. The caller closes the result.
func (h *Hub) Workspace(name string) (*SpaceListener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.spaces[name]
	if s == nil {
		if err := h.room(); err != nil {
			return nil, err
		}
		s = &space{pacer: newPacer(h.cfg.pace), hub: h, name: name, gone: make(chan struct{}), runs: map[int64]told{},
			moved: make(chan struct{})}
		h.spaces[name] = s
		h.done.Go(s.follow)
	}
	s.listeners++
	return &SpaceListener{space: s}, nil
}

// SpaceListener gets the changes of a workspace's runs. It is not safe for concurrent use.
type SpaceListener struct {
	*space
	at int64 // the last change that was given
}

// Close ends listening.
func (l *SpaceListener) Close() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if l.listeners--; l.listeners == 0 && l.hub.spaces[l.name] == l.space {
		delete(l.hub.spaces, l.name)
		close(l.gone)
	}
}

// Next returns the runs that have changed since the last call, in the order of their changes. Of several changes
// of a run it gives the last one.
func (l *SpaceListener) Next(ctx context.Context) ([]Line, error) {
	for {
		l.mu.Lock()
		var changed []told
		for _, t := range l.runs {
			if t.change > l.at {
				changed = append(changed, t)
			}
		}
		moved, err, ended, latest := l.moved, l.err, l.ended, l.change
		l.mu.Unlock()
		slices.SortFunc(changed, func(a, b told) int { return int(a.change - b.change) })
		switch {
		case len(changed) > 0:
			l.at = latest
			out := make([]Line, len(changed))
			for i, t := range changed {
				out[i] = t.Line
			}
			return out, nil
		case ended:
			return nil, errEnded
		case err != nil:
			return nil, fmt.Errorf("follow workspace %s: %w", l.name, err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-moved:
		}
	}
}
