package concurrency

import (
	"fmt"
	"math"
	"time"
)

// What a climber goes by.
const (
	// samplesMin and samplesMax bound the samples by which a value is judged: more are taken while the error of
	// their mean is above errorWanted of it.
	samplesMin  = 3
	samplesMax  = 16
	errorWanted = 0.02
	// gainWanted is the least gain that makes more at once worth it. lossAllowed is the loss that less at
	// once may have against the best value seen.
	gainWanted  = 0.05
	lossAllowed = 0.03
	// certainty is the least ratio of a gain to its standard error.
	certainty = 2.0
	// stepsFirst is the part of a value that is tried beside it at first, and half as
	// much until stepsLast.
	stepsFirst = 0.5
	stepsLast  = 0.12
	// changed is the part by which throughput leaves what it was when something has
	// changed, or so many of its spreads: to one side, for changedFor samples in a row.
	changed    = 0.3
	oddSpreads = 1.5
	changedFor = 6
	// watchedMax limits the samples from which the spread of throughput is computed.
	watchedMax = 64
	// againFirst and againLongest space the tries of a knob that has settled.
	againFirst   = time.Minute
	againLongest = 16 * time.Minute
)

// estimate is a mean with its error.
type estimate struct {
	n        int
	mean, m2 float64
}

func (e *estimate) add(x float64) {
	e.n++
	d := x - e.mean
	e.mean += d / float64(e.n)
	e.m2 += d * (x - e.mean)
}

// spread is the standard deviation of one sample.
func (e *estimate) spread() float64 {
	if e.n < 2 {
		return 0
	}
	return math.Sqrt(e.m2 / float64(e.n-1))
}

func (e *estimate) err() float64 { return e.spread() / math.Sqrt(float64(max(e.n, 1))) }

func (e *estimate) sure() bool {
	return e.n >= samplesMax || e.n >= samplesMin && e.err() <= errorWanted*e.mean
}

// phase is the present use of a climber's samples.
type phase int

const (
	measuring phase = iota // how good the value is
	trying                 // how good another one is
	settled
)

// climber finds the value of one knob.
type climber struct {
	knob   knob
	limit  int // by memory, knob.Max at most
	value  int
	phase  phase
	ignore int // samples that are still of the value before
	now    estimate

	base       estimate // of the value that stands
	from       int      // it, while another one is tried
	best       float64
	part       float64 // of the value: the step
	no         [2]bool // that more, less, is worse
	again      time.Duration
	next       time.Time
	odd        int // samples that are away in a row; below 0: less than it was
	why        string
	since      time.Time
	everBefore bool // it has settled before
}

func newClimber(k knob) *climber {
	c := &climber{knob: k, limit: k.Max, value: k.Start, part: stepsFirst, again: againFirst, why: "start"}
	if k.Fixed > 0 {
		c.value, c.phase, c.why = k.Fixed, settled, "fixed by the configuration"
	}
	return c
}

// busy reports whether other knobs must wait.
func (c *climber) busy() bool { return c.phase != settled }

// wants reports whether a knob that has settled is to be tried again.
func (c *climber) wants(now time.Time) bool {
	return c.knob.Fixed == 0 && c.phase == settled && !now.Before(c.next)
}

// set changes the value.
func (c *climber) set(now time.Time, value int, why string, args ...any) {
	c.value, c.now, c.ignore = value, estimate{}, 1
	c.why, c.since = fmt.Sprintf(why, args...), now
}

// bound lowers the limit to what memory allows, or raises it again.
func (c *climber) bound(now time.Time, limit int, memory string) {
	limit = min(max(limit, c.knob.Min), c.knob.Max)
	if limit > c.limit && c.phase == settled && c.value == c.limit {
		c.next = now // there is room again
	}
	c.limit = limit
	if c.value > limit && c.knob.Fixed == 0 {
		c.set(now, limit, "memory: %s", memory)
		c.restart()
	}
}

// restart forgets what is known of other values.
func (c *climber) restart() {
	c.phase, c.part, c.no, c.best, c.base, c.odd = measuring, stepsFirst, [2]bool{}, 0, estimate{}, 0
	c.now = estimate{}
}

// observe takes in the throughput of some time in which the value was in force.
// may says that this knob's turn to try others has come.
func (c *climber) observe(now time.Time, throughput float64, may bool) {
	switch {
	case c.knob.Fixed > 0:
		return
	case c.ignore > 0:
		c.ignore--
		return
	}
	switch c.phase {
	case measuring:
		c.now.add(throughput)
		if may && c.now.sure() {
			c.base, c.best = c.now, max(c.best, c.now.mean)
			c.try(now)
		}
	case trying:
		c.now.add(throughput)
		if c.now.sure() || c.hopeless() {
			c.judge(now)
		}
	case settled:
		c.watch(now, throughput, may)
	}
}

// hopeless says that a value is so bad that it is not measured to the end.
func (c *climber) hopeless() bool { return c.now.n >= 2 && c.now.mean+c.now.err() < c.base.mean/2 }

// try goes to another value, or settles if none is left.
func (c *climber) try(now time.Time) {
	for {
		step := max(1, int(math.Round(float64(c.value)*c.part)))
		more, less := min(c.value+step, c.limit), max(c.value-step, c.knob.Min)
		switch {
		case !c.no[0] && more > c.value:
			c.begin(now, more, "is more better?")
			return
		case !c.no[1] && less < c.value:
			c.begin(now, less, "is less as good?")
			return
		case step == 1 || c.part/2 < stepsLast:
			c.settle(now)
			return
		}
		c.part, c.no = c.part/2, [2]bool{}
	}
}

func (c *climber) begin(now time.Time, value int, why string) {
	c.from = c.value
	c.set(now, value, "%s %d did %s", why, c.from, rate(c.base.mean))
	c.phase = trying
}

// judge keeps the value that was tried, or goes back.
func (c *climber) judge(now time.Time) {
	tried, base, value := c.now, c.base, c.value
	more := value > c.from
	gain := tried.mean/base.mean - 1
	doubt := certainty * math.Hypot(tried.err(), base.err()) / base.mean
	keep := gain > max(gainWanted, doubt)
	if !more {
		keep = tried.mean >= (1-lossAllowed)*c.best || keep
	}
	c.phase = measuring
	if !keep {
		c.no[index(more)] = true
		c.set(now, min(c.from, c.limit), "%d did %s, %d does %s", value, rate(tried.mean), c.from, rate(base.mean))
		return
	}
	c.no = [2]bool{!more, more} // where it comes from is worse
	if more {
		c.part = min(2*c.part, stepsFirst)
	}
	c.base, c.best = tried, max(c.best, tried.mean)
	c.why, c.since = fmt.Sprintf("%d did %s, %d does %s", c.from, rate(base.mean), value, rate(tried.mean)), now
	c.now = tried
}

// abandon ends a try that nothing is measured of any more.
func (c *climber) abandon(now time.Time) {
	if c.phase == trying {
		c.phase = measuring
		c.set(now, min(c.from, c.limit), "%d was not tried to the end: there was too little to do", c.value)
	}
}

func index(more bool) int {
	if more {
		return 0
	}
	return 1
}

// rest settles at what the value is: others could do nothing, for a reason.
func (c *climber) rest(now time.Time, why string) {
	if c.now.n > 0 {
		c.base = c.now
	}
	c.phase, c.odd, c.next = settled, 0, now.Add(againFirst)
	if c.why != why {
		c.why, c.since = why, now
	}
}

func (c *climber) settle(now time.Time) {
	c.phase, c.odd = settled, 0
	if c.everBefore {
		c.again = min(2*c.again, againLongest)
	}
	c.everBefore = true
	c.next, c.why = now.Add(c.again), fmt.Sprintf("neither more nor less does better than %s", rate(c.base.mean))
	if c.value == c.limit && c.limit < c.knob.Max {
		c.why += "; more would not have the memory"
	}
}

// watch looks whether things are as they were.
func (c *climber) watch(now time.Time, throughput float64, may bool) {
	switch away := max(changed*c.base.mean, oddSpreads*c.base.spread()); {
	case c.base.n < samplesMin: // it was let rest before it was measured
		c.base.add(throughput)
	case throughput > c.base.mean+away:
		c.odd = max(c.odd, 0) + 1
	case throughput < c.base.mean-away:
		c.odd = min(c.odd, 0) - 1
	default:
		c.odd = 0
		if c.base.n < watchedMax {
			c.base.add(throughput)
		}
	}
	switch {
	case c.odd >= changedFor, -c.odd >= changedFor:
		c.why, c.since = fmt.Sprintf("it did %s and does %s: something has changed", rate(c.base.mean),
			rate(throughput)), now
		c.restart()
		c.again, c.everBefore = againFirst, false
	case may && c.wants(now):
		c.restart()
		c.part = stepsFirst / 4
	}
}

// rate is a throughput for people.
func rate(x float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		if math.Abs(x) < 1000 || unit == "G" {
			return fmt.Sprintf("%.3g%s/s", x, unit)
		}
		x /= 1000
	}
	return ""
}
