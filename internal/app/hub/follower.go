package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

// follower reads what happens to a run.
type follower struct {
	pacer
	audience
	*ring
	hub   *Hub
	key   state.RunKey
	ready chan struct{} // closed once the ring has begun, or cannot
	over  bool          // the run is, by what has been read of it; follow's own
}

// follow reads lines until nobody listens. The ring begins behind the line after, or as near to it as it can.
func (f *follower) follow(after int64) {
	defer f.end()
	stream, err := f.begin(after)
	if err != nil {
		f.close(fmt.Errorf("follow run %d: %w", f.key.Run, err))
	}
	close(f.ready)
	for ok := err == nil; ok; ok = f.wait(f.hub.ctx, f.every(), f.gone) {
		at := time.Now()
		f.look(stream)
		f.looked(at, 0)
	}
}

// begin sets where the ring begins, and returns the stream from there on.
func (f *follower) begin(after int64) (*history.Stream, error) {
	ctx, store := f.hub.ctx, f.hub.cfg.Store
	run, err := store.Run(ctx, f.key)
	if err != nil {
		return nil, err
	}
	f.over = run.Status.Terminal() && !run.Command.Pending()
	stream := history.NewStream(store, f.key, 0)
	count, err := stream.SkipAll(ctx)
	if err != nil {
		return nil, err
	}
	if from := max(after, count-int64(f.mostLines)); from < count {
		count, stream = from, history.NewStream(store, f.key, from)
	}
	f.ring.begin(count)
	return stream, nil
}

// every returns the longest time until the next look.
func (f *follower) every() time.Duration {
	every := f.hub.every()
	if f.over {
		every *= overShare
	}
	return every
}

// every returns the longest time between looks.
func (h *Hub) every() time.Duration {
	if h.cfg.Watch == nil {
		return clusterEvery
	}
	return quietEvery
}

// look adds what has happened since the last look.
func (f *follower) look(stream *history.Stream) {
	for {
		lines, err := stream.Next(f.hub.ctx, state.PageMax)
		if f.hub.ctx.Err() != nil {
			return
		}
		told := make([]Line, 0, len(lines))
		for _, l := range lines {
			told = append(told, lineOf(l))
			f.sees(l.Event)
		}
		f.add(told, err)
		if err != nil || len(lines) < state.PageMax {
			return
		}
	}
}

// sees keeps whether the run is over.
func (f *follower) sees(e state.Event) {
	switch e.Kind {
	case state.OrderBegun:
		f.over = false
	case state.RunCompleted, state.OrderEnded:
		f.over = e.Status.Terminal()
	}
}

// end forgets a follower that has ended by itself, and tells its listeners.
func (f *follower) end() {
	h := f.hub
	h.mu.Lock()
	f.finish()
	if h.runs[f.key] == f {
		f.forget()
	}
	h.mu.Unlock()
	f.close(errEnded)
}

// forget makes room for another follower. Hub.mu is held.
func (f *follower) forget() {
	delete(f.hub.runs, f.key)
	f.hub.followed.Add(-1)
	f.hub.shareOut()
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

// End stands for the number of a run's latest line.
const End = math.MaxInt64

// Run listens to a run, from the line behind after on; with End, to what it does not have when Run returns. The
// caller closes the result.
func (h *Hub) Run(ctx context.Context, key state.RunKey, after int64) (*Listener, error) {
	h.mu.Lock()
	f := h.runs[key]
	if f == nil {
		if err := h.room(); err != nil {
			h.mu.Unlock()
			return nil, err
		}
		f = &follower{pacer: newPacer(h.cfg.pace), audience: audience{gone: make(chan struct{})},
			ring: newRing(h.cfg.ringLines, 0), hub: h, key: key, ready: make(chan struct{})}
		h.runs[key] = f
		h.shareOut()
		h.done.Go(func() { f.follow(after) })
	}
	f.enter()
	h.mu.Unlock()
	l := &Listener{follower: f, at: after}
	select {
	case <-ctx.Done():
		l.Close()
		return nil, context.Cause(ctx)
	case <-f.ready:
	}
	if err := f.failed(); err != nil {
		l.Close()
		return nil, err
	}
	if after == End {
		l.at = f.last()
	}
	return l, nil
}

// Listener gets the lines of a run. It is not safe for concurrent use.
type Listener struct {
	*follower
	at     int64           // number of the last line that was given
	past   *history.Stream // reads what is older than the ring
	inRing bool            // the listener has been
	closed bool
}

// Close ends listening. It may be called more than once.
func (l *Listener) Close() {
	if !l.closed {
		l.closed = true
		l.hub.leave(&l.audience, l.forget)
	}
}

// Next returns the next lines, limit at most. It waits until there are some, or ctx ends.
func (l *Listener) Next(ctx context.Context, limit int) ([]Line, error) {
	for {
		lines, moved, old, err := l.read(l.at, limit)
		switch {
		case err == nil && old && l.inRing:
			return nil, ErrPassed
		case err == nil && old:
			lines, err = l.older(ctx, limit)
		default:
			l.inRing = true
		}
		if len(lines) > 0 {
			l.at = lines[len(lines)-1].Number
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-moved:
		}
	}
}

// older returns lines from before the ring, limit at most. There are some.
func (l *Listener) older(ctx context.Context, limit int) ([]Line, error) {
	if l.past == nil {
		l.past = history.NewStream(l.hub.cfg.Store, l.key, l.at)
	}
	lines, err := l.past.Next(ctx, int(min(int64(limit), l.before()-l.at)))
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("line %d of run %d cannot be read", l.at+1, l.key.Run)
	}
	out := make([]Line, len(lines))
	for i, line := range lines {
		out[i] = lineOf(line)
	}
	return out, nil
}
