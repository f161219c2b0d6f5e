package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

// Line is a line of a stream.
type Line struct {
	Number int64  // 1, 2, 3 … of a run; 0 of a workspace
	Event  string // the kind of event; "run" of a workspace
	JSON   []byte // as events are printed
	// Discreet is JSON without values of the data.
	Discreet []byte
}

// ring holds the latest lines of a follower.
type ring struct {
	mu    sync.Mutex
	lines []Line // numbered first, first+1, …
	first int64
	bytes int
	most  int           // lines
	moved chan struct{} // closed when something changes
	err   error         // why the latest look failed
	ended error         // why nothing comes any more
}

func newRing(most int) *ring { return &ring{first: 1, most: most, moved: make(chan struct{})} }

// move tells those who wait. r.mu is held.
func (r *ring) move() {
	close(r.moved)
	r.moved = make(chan struct{})
}

func (r *ring) add(lines []Line, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(lines) == 0 && err == nil && r.err == nil {
		return
	}
	r.err = err
	for _, l := range lines {
		r.lines, r.bytes = append(r.lines, l), r.bytes+len(l.JSON)
	}
	for len(r.lines) > r.most || r.bytes > ringBytes && len(r.lines) > 1 {
		r.bytes -= len(r.lines[0].JSON)
		r.lines, r.first = r.lines[1:], r.first+1
	}
	r.move()
}

func (r *ring) close(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = err
	r.move()
}

// begin empties the ring, before the line behind after.
func (r *ring) begin(after int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = after + 1
}

// follower reads what happens to a run.
type follower struct {
	pacer
	*ring
	hub       *Hub
	key       state.RunKey
	ready     chan struct{} // closed once the ring has begun, or cannot
	gone      chan struct{} // closed when nobody listens any more
	listeners int           // hub.mu
	left      *time.Timer   // closes gone; hub.mu
}

// follow reads lines until nobody listens.
func (f *follower) follow() {
	stream := history.NewStream(f.hub.cfg.Store, f.key, 0)
	begun, err := stream.SkipAll(f.hub.ctx)
	if err == nil {
		f.begin(begun)
	} else {
		f.close(fmt.Errorf("follow run %d: %w", f.key.Run, err))
	}
	close(f.ready)
	for err == nil && f.wait(f.hub.ctx, f.hub.every(), f.gone) {
		f.look(stream)
	}
	f.hub.forgetRun(f)
	f.close(errEnded)
}

var errEnded = fmt.Errorf("following has ended: %w", context.Canceled)

// look adds what has happened since the last look.
func (f *follower) look(stream *history.Stream) {
	for {
		lines, err := stream.Next(f.hub.ctx, state.PageMax)
		told := make([]Line, 0, len(lines))
		for _, l := range lines {
			told = append(told, lineOf(l))
		}
		f.add(told, err)
		if err != nil || len(lines) < state.PageMax {
			return
		}
	}
}

// lineOf encodes a line of a run's stream.
func lineOf(l history.Line) Line {
	out := Line{Number: l.N, Event: string(l.Kind), JSON: encode(l)}
	out.Discreet = out.JSON
	if l.Failure != nil || l.Command != nil && l.Command.Cause != nil {
		l.Failure = instance.FailureWithoutValues(l.Failure)
		if l.Command != nil {
			command := *l.Command
			command.Cause = instance.FailureWithoutValues(command.Cause)
			l.Command = &command
		}
		out.Discreet = encode(l)
	}
	return out
}

// encode returns the JSON of a value as it is printed.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("{}") // of types of ours: it does not fail
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (h *Hub) forgetRun(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs[f.key] == f {
		delete(h.runs, f.key)
	}
}

// Run listens to a run, from the line behind after on. The caller closes the result.
func (h *Hub) Run(ctx context.Context, key state.RunKey, after int64) (*Listener, error) {
	h.mu.Lock()
	f := h.runs[key]
	if f == nil {
		if err := h.room(); err != nil {
			h.mu.Unlock()
			return nil, err
		}
		f = &follower{pacer: newPacer(h.cfg.pace), ring: newRing(h.cfg.ringLines), hub: h, key: key, ready: make(chan struct{}),
			gone: make(chan struct{})}
		h.runs[key] = f
		h.done.Go(f.follow)
	}
	f.listeners++
	if f.left != nil {
		f.left.Stop()
		f.left = nil
	}
	h.mu.Unlock()
	l := &Listener{follower: f, at: after, past: history.NewStream(h.cfg.Store, key, after)}
	select {
	case <-ctx.Done():
		l.Close()
		return nil, context.Cause(ctx)
	case <-f.ready:
		return l, nil
	}
}

// leave counts a listener less. The follower ends a while after the last.
func (f *follower) leave() {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	if f.listeners--; f.listeners == 0 {
		f.left = time.AfterFunc(lingers, f.abandon)
	}
}

func (f *follower) abandon() {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	if f.listeners > 0 || f.hub.runs[f.key] != f {
		return
	}
	delete(f.hub.runs, f.key)
	close(f.gone)
}

// Listener gets the lines of a run. It is not safe for concurrent use.
type Listener struct {
	*follower
	at   int64           // number of the last line that was given
	past *history.Stream // what is older than the ring; nil: the listener has been in the ring
}

// Close ends listening.
func (l *Listener) Close() { l.leave() }

// Next returns the next lines, limit at most. It waits until there are some, or ctx ends.
func (l *Listener) Next(ctx context.Context, limit int) ([]Line, error) {
	for {
		lines, moved, err := l.inRing(limit)
		if err != nil || len(lines) > 0 {
			return lines, err
		}
		if moved == nil {
			if lines, err = l.older(ctx, limit); err != nil || len(lines) > 0 {
				return lines, err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-moved:
		}
	}
}

// inRing returns lines of the ring, or what to wait for; neither: they are older than the ring.
func (l *Listener) inRing(limit int) ([]Line, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.at + 1 - l.first
	switch {
	case from < 0 && l.past == nil:
		return nil, nil, ErrPassed
	case from < 0 && l.ended == nil:
		return nil, nil, nil
	case from >= 0 && from < int64(len(l.lines)):
		l.past = nil
		out := l.lines[from:min(from+int64(limit), int64(len(l.lines)))]
		l.at += int64(len(out))
		return append([]Line(nil), out...), nil, nil
	case l.ended != nil:
		return nil, nil, l.ended
	}
	if from == 0 || from > 0 && l.past != nil {
		l.past = nil
	}
	return nil, l.moved, l.err
}

// older returns lines from before the ring.
func (l *Listener) older(ctx context.Context, limit int) ([]Line, error) {
	l.mu.Lock()
	until := l.first
	l.mu.Unlock()
	lines, err := l.past.Next(ctx, int(min(int64(limit), until-1-l.at)))
	if err != nil {
		return nil, err
	}
	out := make([]Line, len(lines))
	for i, line := range lines {
		out[i], l.at = lineOf(line), line.N
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("line %d of run %d cannot be read", l.at+1, l.key.Run)
	}
	return out, nil
}
