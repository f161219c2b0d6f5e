package sheet

import (
	"context"
	"errors"
	"sync"
	"time"

	"thalweg/internal/store/state"
)

// phase is what a place does at a moment. Slots are given to those before others.
type phase int

const (
	computing phase = iota // DuckDB and Python
	calling                // the state, or showing files
	moving                 // all else of an attempt: parts on their way
	waiting                // for a turn, or for memory
	idle                   // for work
	phases
)

// step is what a place is about.
type step int

const (
	between step = iota // two batches
	claiming
	attempting
	committing
)

// Place is where batches are executed one after another. The methods of nil do nothing.
type Place struct {
	m *Meter
	// The rest is the meter's, under its mu.
	run      state.RunKey
	step     step
	attempt  int // number of the latest that was begun here: hooks of those before do nothing
	computes int // of the attempt's hooks that have not ended
	waits    int
	had      [phases]float64 // seconds of slots, of what has not ended
	waited   map[state.RunKey]float64
}

// Place adds a place, until Leave.
func (m *Meter) Place() *Place {
	if m == nil {
		return nil
	}
	p := &Place{m: m, waited: map[state.RunKey]float64{}}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	m.places[p] = true
	return p
}

// Leave removes the place.
func (p *Place) Leave() {
	p.change(func() {
		p.ended(nil)
		delete(p.m.places, p)
	})
}

// change divides the time until now, and then changes something.
func (p *Place) change(do func()) {
	if p == nil {
		return
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.advance()
	do()
}

// phase is what the place does now; mu of the meter is held.
func (p *Place) phase() phase {
	switch {
	case p.step == between:
		return idle
	case p.step != attempting:
		return calling
	case p.waits > 0:
		return waiting
	case p.computes > 0:
		return computing
	}
	return moving
}

// ends says what the time of the place counts as if nothing more is heard of it; mu of the meter is held.
func (p *Place) ends() (times [Count]float64) {
	of := Other
	if p.step == claiming {
		of = Claims
	}
	for _, seconds := range p.had {
		times[of] += seconds
	}
	return times
}

// ended books what the place has had: nil as ends says; mu of the meter is held.
func (p *Place) ended(times *[Count]float64) {
	if times == nil {
		lost := p.ends()
		times = &lost
	}
	if a := p.m.open[p.run]; a != nil && p.step != between {
		for of, seconds := range times {
			a.times[of] += seconds
		}
	}
	p.step, p.had, p.computes, p.waits = between, [phases]float64{}, 0, 0
}

// Claims says that the place calls the state to claim a batch.
func (p *Place) Claims(run state.RunKey) {
	p.change(func() { p.run, p.step = run, claiming })
}

// Claimed says how that has ended. An attempt begins then if there is no error.
func (p *Place) Claimed(c state.Claim, err error) {
	p.change(func() {
		var times [Count]float64
		switch {
		case err == nil:
			times[Claims] = p.had[calling]
		case errors.Is(err, state.ErrNotClaimable):
			times[Refused] = p.had[calling]
		default:
			times[Other] = p.had[calling]
		}
		p.ended(&times)
		if err != nil {
			return
		}
		if a := p.m.open[p.run]; a != nil && c.Attempt == 1 && c.Spec.Phase == 0 {
			// since the node has batches, this one could have been taken
			late := min(p.waited[p.run], a.times[Nothing])
			a.times[Nothing] -= late
			a.times[Unoffered] += late
		}
		clear(p.waited)
		p.step = attempting
		p.attempt++
	})
}

// Commits says that the attempt is executed, and being recorded.
func (p *Place) Commits() {
	p.change(func() { p.step, p.computes, p.waits = committing, 0, 0 })
}

// Moved is what an attempt read and wrote of parts, and the most memory that was seen while it was executed.
type Moved struct{ Read, Written, PeakBytes int64 }

// Ended says that the attempt is recorded; committed, or lost.
func (p *Place) Ended(committed bool, moved Moved) {
	p.change(func() {
		a := p.m.open[p.run]
		if a == nil {
			p.ended(nil)
			return
		}
		a.peakResident = max(a.peakResident, moved.PeakBytes)
		if !committed {
			a.lost++
			p.ended(nil)
			return
		}
		a.batches++
		a.read += moved.Read
		a.written += moved.Written
		p.ended(&[Count]float64{Work: p.had[computing], Parts: p.had[moving], Commits: p.had[calling],
			Other: p.had[waiting]})
	})
}

// Collected says how much processor time the garbage collector of a slot's process took for the attempt of the context.
func Collected(ctx context.Context, d time.Duration) {
	in, ok := ctx.Value(placeKey{}).(inContext)
	if !ok {
		return
	}
	in.place.change(func() {
		if a := in.place.m.open[in.place.run]; a != nil && in.place.attempt == in.attempt {
			a.childGC += max(d, 0).Seconds()
		}
	})
}

type placeKey struct{}

// inContext is the attempt that a context is of.
type inContext struct {
	place   *Place
	attempt int
}

// Context returns a context by which Computes and Waits tell of the attempt.
func (p *Place) Context(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return context.WithValue(ctx, placeKey{}, inContext{p, p.attempt})
}

// Computes says that the attempt of the context computes, until over is called.
func Computes(ctx context.Context) (over func()) {
	return hook(ctx, func(p *Place) *int { return &p.computes })
}

// Waits says that the attempt of the context waits for a turn or for memory, until over is called.
func Waits(ctx context.Context) (over func()) {
	return hook(ctx, func(p *Place) *int { return &p.waits })
}

func hook(ctx context.Context, counter func(*Place) *int) (over func()) {
	in, ok := ctx.Value(placeKey{}).(inContext)
	if !ok {
		return func() {}
	}
	add := func(more int) {
		in.place.change(func() {
			if n := counter(in.place); in.place.step == attempting && in.place.attempt == in.attempt {
				*n += more
			}
		})
	}
	add(1)
	return sync.OnceFunc(func() { add(-1) })
}
