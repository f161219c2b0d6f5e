package concurrency

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// knob is something of which more or less can be done at once.
type knob struct {
	Name     string // Batches, Threads or Writers
	Min, Max int    // 1 ≤ Min ≤ Max
	Start    int
	Fixed    int  // forced; 0: it is decided here
	Memory   bool // each costs what a batch takes of memory
}

// sample holds the measurements of a class over some time, with the knobs as they were set.
type sample struct {
	Class   string
	At      time.Time     // its end
	Span    time.Duration // of time
	Done    float64       // what was done in it: bytes, say, or rows
	Starved bool          // there was less to do than could be done at once: it says nothing of speed
	Peak    int64         // most bytes that a batch of the class was seen to take; 0: not known
	Memory  int64         // bytes that the class may have; 0: no limit
	// Pointless knobs could do nothing now, each with the reason: no other values of
	// them are begun to be tried.
	Pointless map[string]string
}

// Decision is a change of a knob.
type Decision struct {
	At     time.Time `json:"at"`
	Class  string    `json:"class"`
	Knob   string    `json:"knob"`
	From   int       `json:"from"`
	To     int       `json:"to"`
	Reason string    `json:"reason"`
}

// Setting is a knob as it stands.
type Setting struct {
	Class   string    `json:"class"`
	Knob    string    `json:"knob"`
	Value   int       `json:"value"`
	Settled bool      `json:"settled"` // false: others are being tried
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"` // when it became what it is, or the reason did
}

// tuner decides how much a worker does at once, by the samples that it is given. It reads no clock: the same
// samples give the same decisions. It is for one goroutine.
type tuner struct {
	classes map[string]*tuned
	trying  *climber // has its turn; nil: nobody
	last    time.Time
}

// tuned is a class of work.
type tuned struct {
	climbers []*climber // one for each knob
	peak     float64
}

// turnMax is the time after which a knob loses its turn if nothing is measured of it.
const turnMax = 30 * time.Second

// peakKept is the factor by which the highest peak shrinks when a lower one is seen.
const peakKept = 0.98

// newTuner returns a tuner of the knobs of each class. Values out of bounds are brought into them.
func newTuner(classes map[string][]knob) *tuner {
	t := &tuner{classes: map[string]*tuned{}}
	for name, knobs := range classes {
		c := &tuned{}
		for _, k := range knobs {
			k.Min = max(k.Min, 1)
			k.Max = max(k.Max, k.Min)
			k.Start = min(max(k.Start, k.Min), k.Max)
			c.climbers = append(c.climbers, newClimber(k))
		}
		t.classes[name] = c
	}
	return t
}

// value returns the value that a knob is to have; 0 if there is no such knob.
func (t *tuner) value(class, name string) int {
	if c := t.classes[class]; c != nil {
		for _, k := range c.climbers {
			if k.knob.Name == name {
				return k.value
			}
		}
	}
	return 0
}

// observe takes in a sample and gives what changes.
func (t *tuner) observe(s sample) []Decision {
	c := t.classes[s.Class]
	if c == nil {
		return nil
	}
	before := t.settings()
	c.remember(s)
	if throughput := s.Done / s.Span.Seconds(); s.Span > 0 && !s.Starved && throughput >= 0 &&
		!math.IsInf(throughput, 0) {
		c.spare(s)
		t.climb(c, s, throughput)
	}
	var changes []Decision
	for i, now := range t.settings() {
		if was := before[i].Value; now.Value != was {
			changes = append(changes, Decision{At: s.At, Class: now.Class, Knob: now.Knob, From: was, To: now.Value,
				Reason: now.Reason})
		}
	}
	return changes
}

// remember brings the limits by memory up to date.
func (c *tuned) remember(s sample) {
	if s.Peak <= 0 && c.peak == 0 {
		return
	}
	if s.Peak > 0 {
		c.peak = max(float64(s.Peak), c.peak*peakKept)
	}
	for _, k := range c.climbers {
		if !k.knob.Memory {
			continue
		}
		limit, why := k.knob.Max, ""
		if s.Memory > 0 {
			fits := float64(s.Memory) / c.peak
			limit = int(min(fits, float64(k.knob.Max)))
			why = fmt.Sprintf("a batch takes %.0f MB, and there are %.0f", c.peak/1e6, float64(s.Memory)/1e6)
		}
		k.bound(s.At, limit, why)
	}
}

// spare lets knobs rest that could do nothing. What is being tried is tried to its end.
func (c *tuned) spare(s sample) {
	for _, k := range c.climbers {
		if why := s.Pointless[k.knob.Name]; why != "" && k.knob.Fixed == 0 && k.phase == measuring {
			k.rest(s.At, why)
		}
	}
}

// climb gives the throughput to the knob whose turn it is, if it is of the class.
// All others stand still meanwhile: one that has settled looks whether things are as
// they were.
func (t *tuner) climb(c *tuned, s sample, throughput float64) {
	at := s.At
	if t.trying != nil && !t.trying.busy() { // it was let rest
		t.trying = nil
	}
	if t.trying != nil && !slices.Contains(c.climbers, t.trying) && at.Sub(t.last) > turnMax {
		t.trying.abandon(at)
		t.trying = nil
	}
	if t.trying == nil {
		t.trying = c.turn(at, s.Pointless)
	}
	if t.trying == nil || !slices.Contains(c.climbers, t.trying) {
		for _, k := range c.climbers {
			if !k.busy() {
				k.observe(at, throughput, false)
			}
		}
		return
	}
	t.last = at
	t.trying.observe(at, throughput, true)
	if t.trying.busy() {
		return
	}
	for _, k := range c.climbers { // what they have settled at is done by this one's value now
		if k.phase == settled && k.knob.Fixed == 0 {
			k.base = t.trying.base
		}
	}
	t.trying = nil
}

// turn finds the next knob of a class that wants to try others.
func (c *tuned) turn(at time.Time, pointless map[string]string) *climber {
	for _, k := range c.climbers {
		if pointless[k.knob.Name] != "" {
			continue
		}
		if k.busy() && k.knob.Fixed == 0 || k.wants(at) {
			return k
		}
	}
	return nil
}

// settings lists all knobs as they stand, by class.
func (t *tuner) settings() []Setting {
	var all []Setting
	for _, name := range slices.Sorted(maps.Keys(t.classes)) {
		for _, k := range t.classes[name].climbers {
			all = append(all, Setting{Class: name, Knob: k.knob.Name, Value: k.value, Settled: !k.busy(), Reason: k.why,
				Since: k.since})
		}
	}
	return all
}
