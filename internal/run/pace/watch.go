package pace

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/run/adapt"
)

// Watch decides every so often, until ctx ends.
func (p *Pace) Watch(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.Look()
		}
	}
}

// Look takes in what was measured since, and decides if it says something.
func (p *Pace) Look() {
	busy := -1.0
	if p.cfg.Busy != nil {
		busy = p.cfg.Busy()
	}
	memory := int64(0)
	if p.cfg.Memory != nil {
		memory = int64(memoryShare * float64(p.cfg.Memory()))
	}
	var decided []adapt.Decision
	p.change(func() {
		for _, class := range Classes() {
			w := p.classes[class]
			if busy >= 0 {
				w.busy, w.looks = w.busy+busy, w.looks+1
			}
			decided = append(decided, p.sample(class, w, memory)...)
		}
		p.write(p.latest)
		p.decisions = append(p.decisions, decided...)
		p.decisions = p.decisions[max(0, len(p.decisions)-decisionsKept):]
	})
	for _, d := range decided {
		p.cfg.Logger.Info("how much is done at once is changed", "class", d.Class, "knob", d.Knob, "from",
			d.From, "to", d.To, "reason", d.Reason)
		p.cfg.Decided(d)
	}
}

// sample gives the window of a class to the tuner once it is long enough; mu is held.
func (p *Pace) sample(class string, w *window, memory int64) []adapt.Decision {
	span := p.moved.Sub(w.since)
	if w.batches < batchesEach*p.tuner.Value(class, Batches) && span < sampleLongest {
		return nil
	}
	p.peaks[class] = max(p.peaks[class], w.peak)
	if memory > 0 { // those beside the ones that compute wait for the memory of a slot
		memory += int64(max(0, p.cfg.Start-p.cfg.Slots)) * p.peaks[class]
	}
	s := adapt.Sample{Class: class, At: p.moved, Span: span, Done: w.done, Peak: w.peak, Memory: memory,
		Pointless: p.pointless(w),
		Starved: w.batches < batchesEach || float64(w.idle) > idleShare*float64(span) ||
			float64(w.own) < ownShare*float64(w.all)}
	*w = window{since: p.moved}
	return p.tuner.Observe(s)
}

// pointless are the knobs that could do nothing.
func (p *Pace) pointless(w *window) map[string]string {
	out := map[string]string{}
	if w.looks > 0 && w.busy/float64(w.looks) >= fullShare*float64(p.cfg.Cores) {
		const why = "all processors are in use"
		out[Batches], out[Threads], out[Writers] = why, why, why
		return out
	}
	if share := float64(w.writing) / float64(max(w.executing, 1)); share < writesShare {
		out[Writers] = fmt.Sprintf("%.0f %% of the time is spent writing", 100*share)
	}
	return out
}

// write puts the number of writers of a class in force; mu is held, or nobody else is there.
func (p *Pace) write(class string) {
	if n := p.tuner.Value(class, Writers); n > 0 && p.cfg.Writers != nil && n != p.cfg.Writers.Most() {
		p.cfg.Writers.Let(n)
	}
}
