package state

import (
	"math"
	"reflect"
	"strings"
	"time"
)

// Limit is what a run may take before it is paused.
type Limit struct {
	Elapsed time.Duration `json:"elapsed_ns,omitempty"` // without the times in which it stands still; 0: any
	Cost    Money         `json:"cost_usd_millionths,omitempty"`
	// PerHour is what an hour of the run costs, and PerSlotHour what an hour of a slot at its batches does.
	PerHour     Money `json:"usd_millionths_per_hour,omitempty"`
	PerSlotHour Money `json:"usd_millionths_per_slot_hour,omitempty"`
	// Expected is the time of slots that nodes were expected to take when the run began; nil: nothing was.
	Expected map[string]time.Duration `json:"expected_ns,omitempty"`
	// ExpectedElapsed is what the run was expected to take then.
	ExpectedElapsed time.Duration `json:"expected_elapsed_ns,omitempty"`
	Foreseen        bool          `json:"foreseen,omitempty"` // it was told once that the run is about to reach it
}

// Money is an amount of US dollars in millionths.
type Money int64

// For returns what a time costs at m an hour, rounded up to a millionth; beyond what Money can hold, the most it can.
func (m Money) For(d time.Duration) Money {
	v := math.Ceil(float64(m) * d.Hours())
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return Money(v)
}

// None reports whether nothing is limited.
func (l *Limit) None() bool { return l == nil || l.Elapsed == 0 && l.Cost == 0 }

// Same reports whether two runs may take the same, whatever has been told of it.
func (l *Limit) Same(o *Limit) bool {
	if l.None() || o.None() {
		return l.None() && o.None()
	}
	a, b := *l, *o
	a.Foreseen, b.Foreseen = false, false
	return reflect.DeepEqual(a, b)
}

// limitAfter returns the limit of a run that has had a command.
func (c *Command) limitAfter(l *Limit) *Limit {
	switch {
	case c.Kind == CommandForesee && l != nil:
		told := *l
		told.Foreseen = true
		return &told
	case c.Limit == nil:
		return l
	case c.Limit.None():
		return nil
	}
	return c.Limit
}

// TokenLimit begins the tokens of commands that a run's limit gives.
const TokenLimit = "limit: "

// OfLimit reports whether the run's limit has given the command.
func (c *Command) OfLimit() bool { return c != nil && strings.HasPrefix(c.Token, TokenLimit) }
