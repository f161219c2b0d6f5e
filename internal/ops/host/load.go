package host

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"thalweg/internal/base/fault"
)

// Load is what a time of full load showed.
type Load struct {
	Seconds float64  `json:"seconds"`
	Threads int      `json:"threads"`
	Pinned  bool     `json:"pinned"` // each to a core of its own
	Steal   Steal    `json:"steal"`
	Samples []Sample `json:"samples"`
}

// Sample is a stretch of the load.
type Sample struct {
	At    float64 `json:"at_s"` // its end
	Steal float64 `json:"steal_percent"`
	Rate  float64 `json:"rounds_per_s"` // of a core
}

// Steal is the part of the time that others had while this machine had work.
type Steal struct {
	Mean   float64 `json:"mean_percent"`
	Spread float64 `json:"sd_percent"` // between samples
	Least  float64 `json:"min_percent"`
	Most   float64 `json:"max_percent"`
	Known  bool    `json:"known"`
}

// windows is how many repeats the rate of a core under load is told in.
const windows = 6

// fullLoad has all cores calculate, and looks at what happens meanwhile.
func (m *measuring) fullLoad(ctx context.Context) error {
	if err := m.alone(ctx); err != nil {
		return err
	}
	threads := m.threads
	cores := coresIn(m.Facts.Limits.Cores)
	m.Load.Threads, m.Load.Pinned = threads, m.root == "/" && len(cores) == threads
	before := m.root.temperatures()
	done := make([]atomic.Int64, threads)
	var failed atomic.Pointer[error]
	working, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	for i := range threads {
		wait.Go(func() {
			if m.Load.Pinned {
				if err := pinned(cores[i]); err != nil {
					failed.Store(&err)
				}
			}
			m.calculate(working, &done[i], &failed)
		})
	}
	first, last, err := m.sample(ctx, done)
	after := m.root.temperatures()
	stop()
	wait.Wait()
	if bad := failed.Load(); bad != nil && err == nil {
		err = &fault.Error{Kind: fault.Bug, Message: "calculate on all cores", Err: *bad}
	}
	if err != nil {
		return err
	}
	m.Interrupts = append(m.Interrupts, between(first, last, m.Facts.Cards, "full load"))
	m.Power = power(first, last)
	for _, name := range sortedKeys(after) {
		if was, there := before[name]; there {
			m.Temperatures = append(m.Temperatures, Temperature{name, was, after[name]})
		}
	}
	m.missPower()
	m.Load.summarize(len(first.cores) > 0)
	if !m.Load.Steal.Known {
		m.miss("steal", "the kernel does not count it")
	}
	m.add("core_rate_loaded", "rounds/s", m.Load.rates()...)
	return nil
}

var errResult = errors.New("the fixed calculation had another result than it always has")

// calculate works until its context ends.
func (m *measuring) calculate(ctx context.Context, done *atomic.Int64, failed *atomic.Pointer[error]) {
	var w work
	for ctx.Err() == nil {
		if w.round() != workResult {
			err := errResult
			failed.Store(&err)
			return
		}
		done.Add(1)
	}
}

// alone measures one core while the others have nothing to do.
func (m *measuring) alone(ctx context.Context) error {
	var w work
	var rates []float64
	for range m.repeats {
		begun, rounds := time.Now(), 0
		for time.Since(begun) < m.each {
			if err := ctx.Err(); err != nil {
				return err
			}
			if w.round() != workResult {
				return &fault.Error{Kind: fault.Bug, Message: "calculate on one core", Err: errResult}
			}
			rounds++
		}
		rates = append(rates, float64(rounds)/time.Since(begun).Seconds())
	}
	m.add("core_rate_alone", "rounds/s", rates...)
	return nil
}

// sample looks at the counters until the time of the load is over.
func (m *measuring) sample(ctx context.Context, done []atomic.Int64) (first, last counters, err error) {
	const parts, least = 5, 100 * time.Millisecond
	every := max(min(time.Second, m.load/parts), least)
	sum := func() (n int64) {
		for i := range done {
			n += done[i].Load()
		}
		return n
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	first = m.root.count()
	rounds, begun := sum(), first
	last = first
	for last.at.Sub(begun.at) < m.load {
		select {
		case <-ctx.Done():
			return first, last, ctx.Err()
		case <-ticks.C:
		}
		now, n := m.root.count(), sum()
		s := now.at.Sub(last.at).Seconds()
		m.Load.Samples = append(m.Load.Samples, Sample{At: now.at.Sub(begun.at).Seconds(), Steal: stolen(last, now),
			Rate: float64(n-rounds) / s / float64(len(done))})
		m.tell(ctx, "full load", now.at.Sub(begun.at), m.load)
		last, rounds = now, n
	}
	m.Load.Seconds = last.at.Sub(begun.at).Seconds()
	return first, last, nil
}

// stolen is the part of all cores' time that was stolen, in per cent.
func stolen(a, b counters) float64 {
	var all, steal float64
	for core, now := range b.cores {
		all, steal = all+now.all-a.cores[core].all, steal+now.steal-a.cores[core].steal
	}
	if all <= 0 {
		return 0
	}
	return 100 * max(steal, 0) / all
}

// summarize says what the samples have in common.
func (l *Load) summarize(known bool) {
	n := float64(len(l.Samples))
	l.Steal = Steal{Known: known && n > 0}
	if !l.Steal.Known {
		return
	}
	l.Steal.Least = math.Inf(1)
	for _, s := range l.Samples {
		l.Steal.Mean += s.Steal / n
		l.Steal.Least, l.Steal.Most = min(l.Steal.Least, s.Steal), max(l.Steal.Most, s.Steal)
	}
	for _, s := range l.Samples {
		l.Steal.Spread += (s.Steal - l.Steal.Mean) * (s.Steal - l.Steal.Mean)
	}
	l.Steal.Spread = math.Sqrt(l.Steal.Spread / max(n-1, 1))
}

// rates are means of the rate in windows of equal numbers of samples.
func (l *Load) rates() (out []float64) {
	size := max(len(l.Samples)/windows, 1)
	for part := range slices.Chunk(l.Samples, size) {
		if len(part) < size {
			break
		}
		sum := 0.0
		for _, s := range part {
			sum += s.Rate
		}
		out = append(out, sum/float64(len(part)))
	}
	return out
}

// threadsOf is how many threads may calculate at once.
func threadsOf() int { return runtime.GOMAXPROCS(0) }
