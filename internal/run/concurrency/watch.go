package concurrency

import (
	"context"
	"fmt"
	"time"
)

// Watch decides every so often, until ctx ends.
func (l *Limiter) Watch(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.Look()
		}
	}
}

// Look takes in what was measured since, and decides if it says something.
func (l *Limiter) Look() {
	busy := -1.0
	if l.cfg.Busy != nil {
		busy = l.cfg.Busy()
	}
	memory := int64(0)
	if l.cfg.Memory != nil {
		memory = int64(memoryShare * float64(l.cfg.Memory()))
	}
	var decided []Decision
	l.change(func() {
		for _, class := range Classes() {
			w := l.classes[class]
			if busy >= 0 {
				w.busy, w.looks = w.busy+busy, w.looks+1
			}
			decided = append(decided, l.sample(class, w, memory)...)
		}
		l.write(l.latest)
		l.decisions = append(l.decisions, decided...)
		l.decisions = l.decisions[max(0, len(l.decisions)-decisionsKept):]
	})
	for _, d := range decided {
		l.cfg.Logger.Info("how much is done at once is changed", "class", d.Class, "knob", d.Knob, "from", d.From, "to", d.To,
			"reason", d.Reason)
		l.cfg.Decided(d)
	}
}

// sample gives the window of a class to the tuner once it is long enough; mu is held.
func (l *Limiter) sample(class string, w *window, memory int64) []Decision {
	span := l.moved.Sub(w.since)
	if w.batches < batchesEach*l.tuner.value(class, Batches) && span < sampleLongest {
		return nil
	}
	l.peaks[class] = max(l.peaks[class], w.peak)
	if memory > 0 { // those beside the ones that compute wait for the memory of a slot
		memory += int64(max(0, l.cfg.Start-l.cfg.Slots)) * l.peaks[class]
	}
	s := sample{Class: class, At: l.moved, Span: span, Done: w.done, Peak: w.peak, Memory: memory,
		Pointless: l.pointless(w),
		Starved: w.batches < batchesEach || float64(w.idle) > idleShare*float64(span) ||
			float64(w.own) < ownShare*float64(w.all)}
	*w = window{since: l.moved}
	return l.tuner.observe(s)
}

// pointless are the knobs that could do nothing.
func (l *Limiter) pointless(w *window) map[string]string {
	out := map[string]string{}
	if w.looks > 0 && w.busy/float64(w.looks) >= fullShare*float64(l.cfg.Cores) {
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
func (l *Limiter) write(class string) {
	if n := l.tuner.value(class, Writers); n > 0 && l.cfg.Writers != nil && n != l.cfg.Writers.Most() {
		l.cfg.Writers.Let(n)
	}
}
