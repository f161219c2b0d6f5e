package adapt

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Knob is something of which more or less can be done at once.
type Knob struct {
	Name     string // batches, threads, writers
	Min, Max int    // 1 ≤ Min ≤ Max
	Start    int
	Fixed    int  // forced; 0: it is decided here
	Memory   bool // each costs what a batch takes of memory
}

// Class is a class of work with its knobs.
type Class struct {
	Name  string // load, join, python, write
	Knobs []Knob
}

// Sample is a measurement of a class over some time, with its knobs set as the tuner said.
type Sample struct {
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

// Tuner decides for one worker. It is for one goroutine.
type Tuner struct {
	classes map[string]*class
	trying  *climber // has its turn; nil: nobody
	last    time.Time
}

type class struct {
	names    []string
	climbers []*climber
	peak     float64
}

// turnMax is the time after which a knob loses its turn if nothing is measured of it.
const turnMax = 30 * time.Second

// peakKept is the factor by which the highest peak shrinks when a lower one is seen.
const peakKept = 0.98

// New returns a tuner. Values out of bounds are brought into them.
func New(classes []Class) *Tuner {
	t := &Tuner{classes: map[string]*class{}}
	for _, c := range classes {
		k := &class{}
		for _, knob := range c.Knobs {
			knob.Min = max(knob.Min, 1)
			knob.Max = max(knob.Max, knob.Min)
			knob.Start = min(max(knob.Start, knob.Min), knob.Max)
			k.names, k.climbers = append(k.names, knob.Name), append(k.climbers, newClimber(knob))
		}
		t.classes[c.Name] = k
	}
	return t
}

// Value returns the setting of a knob; 0 if there is no such knob.
func (t *Tuner) Value(className, knob string) int {
	c := t.classes[className]
	if c == nil {
		return 0
	}
	if i := slices.Index(c.names, knob); i >= 0 {
		return c.climbers[i].value
	}
	return 0
}

// Observe takes in a sample and gives what changes.
func (t *Tuner) Observe(s Sample) []Decision {
	c := t.classes[s.Class]
	if c == nil {
		return nil
	}
	before := t.Settings()
	c.remember(s)
	if throughput := s.Done / s.Span.Seconds(); s.Span > 0 && !s.Starved && throughput >= 0 &&
		!math.IsInf(throughput, 0) {
		c.spare(s)
		t.climb(c, s, throughput)
	}
	var changes []Decision
	for i, now := range t.Settings() {
		if was := before[i].Value; now.Value != was {
			changes = append(changes, Decision{At: s.At, Class: now.Class, Knob: now.Knob, From: was, To: now.Value,
				Reason: now.Reason})
		}
	}
	return changes
}

// remember brings the limits by memory up to date.
func (c *class) remember(s Sample) {
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
func (c *class) spare(s Sample) {
	for i, k := range c.climbers {
		if why := s.Pointless[c.names[i]]; why != "" && k.knob.Fixed == 0 && k.phase == measuring {
			k.rest(s.At, why)
		}
	}
}

// climb gives the throughput to the knob whose turn it is, if it is of the class.
// All others stand still meanwhile: one that has settled looks whether things are as
// they were.
func (t *Tuner) climb(c *class, s Sample, throughput float64) {
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
func (c *class) turn(at time.Time, pointless map[string]string) *climber {
	for i, k := range c.climbers {
		if pointless[c.names[i]] != "" {
			continue
		}
		if k.busy() && k.knob.Fixed == 0 || k.wants(at) {
			return k
		}
	}
	return nil
}

// Settings lists all knobs as they stand, by class.
func (t *Tuner) Settings() []Setting {
	var all []Setting
	for _, name := range slices.Sorted(maps.Keys(t.classes)) {
		c := t.classes[name]
		for i, k := range c.climbers {
			all = append(all, Setting{Class: name, Knob: c.names[i], Value: k.value, Settled: !k.busy(), Reason: k.why,
				Since: k.since})
		}
	}
	return all
}
