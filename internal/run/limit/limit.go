package limit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/allowance"
	"thalweg/internal/base/format"
	"thalweg/internal/store/state"
)

// The names of limits, as people give them and as the actors of what is done for them.
const (
	MaxElapsed = "max-elapsed"
	MaxCost    = "max-cost"
)

// None is the text of a limit that is none.
const None = allowance.None

// Used is what a run has taken.
type Used struct {
	Elapsed time.Duration // without the times in which it stood still
	Slots   time.Duration // of attempts
	Cost    state.Money   // 0: nothing has a price
}

// Of returns what a run with these nodes has taken after so long.
func Of(l state.Limit, elapsed time.Duration, nodes []state.Node) Used {
	u := Used{Elapsed: elapsed}
	for _, n := range nodes {
		u.Slots += n.Spent.Worked + n.Spent.Lost
	}
	return u.priced(l)
}

// Plus returns what it has taken after more time, of the run and of slots.
func (u Used) Plus(l state.Limit, elapsed, slots time.Duration) Used {
	u.Elapsed += elapsed
	u.Slots += slots
	return u.priced(l)
}

func (u Used) priced(l state.Limit) Used {
	u.Cost = l.PerHour.For(u.Elapsed) + l.PerSlotHour.For(u.Slots)
	return u
}

// Reached names the limit that is reached, and says how; "": none is.
func (u Used) Reached(l state.Limit) (name, figures string) {
	switch {
	case l.Elapsed > 0 && u.Elapsed >= l.Elapsed:
		return MaxElapsed, fmt.Sprintf("it has taken %s of %s", Time(u.Elapsed), Time(l.Elapsed))
	case l.Cost > 0 && u.Cost >= l.Cost:
		return MaxCost, fmt.Sprintf("it has cost %s of %s", Dollars(u.Cost), Dollars(l.Cost))
	}
	return "", ""
}

// Exceeds names the limit that is below what is expected, and says how; "": none is.
func (u Used) Exceeds(l state.Limit) (name, figures string) {
	switch {
	case l.Elapsed > 0 && u.Elapsed > l.Elapsed:
		return MaxElapsed, fmt.Sprintf("expected are %s, of %s", Time(u.Elapsed), Time(l.Elapsed))
	case l.Cost > 0 && u.Cost > l.Cost:
		return MaxCost, fmt.Sprintf("expected are %s, of %s", Dollars(u.Cost), Dollars(l.Cost))
	}
	return "", ""
}

// maxHours keeps times within what time.Duration can hold.
const maxHours = 2_000_000

// Left returns the time after which a run reaches its limit even if no attempt ends; ok is false if it never does.
func (u Used) Left(l state.Limit) (left time.Duration, ok bool) {
	if l.Elapsed > 0 {
		left, ok = l.Elapsed-u.Elapsed, true
	}
	if l.Cost > 0 && l.PerHour > 0 {
		hours := float64(l.Cost-u.Cost) / float64(l.PerHour)
		by := time.Duration(min(hours, maxHours) * float64(time.Hour))
		if !ok || by < left {
			left, ok = by, true
		}
	}
	return max(left, 0), ok
}

// Nothing is foreseen before so much of a limit is used: the first batches say little, and less where no earlier run
// says anything.
const (
	foreseenFrom = 0.1
	guessedFrom  = 0.3
)

// Expect returns what a run with these nodes is expected to take in all; ok is false if that cannot be said yet. A node
// that has no plan yet counts with what it was expected to take when the run began, or not at all: it is at least so
// much.
func (u Used) Expect(l state.Limit, nodes []state.Node) (all Used, ok bool) {
	from := foreseenFrom
	if l.ExpectedElapsed == 0 {
		from = guessedFrom
	}
	early := func(used, most float64) bool { return most == 0 || used < from*most }
	if u.Slots <= 0 || early(float64(u.Elapsed), float64(l.Elapsed)) && early(float64(u.Cost), float64(l.Cost)) {
		return u, false
	}
	var left, expected time.Duration
	for _, n := range nodes {
		left += leftOf(n, l.Expected[n.Name])
		expected += l.Expected[n.Name]
	}
	// what an hour of slots takes here, and took in earlier runs
	ratio := float64(u.Elapsed+l.ExpectedElapsed) / float64(u.Slots+expected)
	return u.Plus(l, time.Duration(float64(left)*ratio), left), true
}

// leftOf returns the time of slots that is left of a node that was expected to take so much.
func leftOf(n state.Node, expected time.Duration) time.Duration {
	switch {
	case n.Status == state.Succeeded || n.Kind == state.KindGate:
		return 0
	case n.BatchesTotal == 0 || n.BatchesDone == 0:
		return max(expected-n.Spent.Worked, 0)
	}
	// the more of it is done, the more counts what that took here
	part := float64(n.BatchesDone) / float64(n.BatchesTotal)
	here := float64(n.Spent.Worked) / part
	if expected == 0 {
		expected = time.Duration(here)
	}
	return time.Duration((1 - part) * (part*here + (1-part)*float64(expected)))
}

// Elapsed returns the time that a run has taken until now, without the times in which it stood still.
func Elapsed(ctx context.Context, s state.Store, run state.Run, now time.Time) (time.Duration, error) {
	c, err := ClockOf(ctx, s, run)
	return c.At(now), err
}

// Clock says how long a run has taken, as long as it has no further command.
type Clock struct {
	Epoch  int64 // of the run that it is right for
	before time.Duration
	since  time.Time // zero: it stands still
}

// At returns the time that the run has taken until then.
func (c Clock) At(now time.Time) time.Duration {
	if c.since.IsZero() {
		return c.before
	}
	return c.before + max(now.Sub(c.since), 0)
}

// ClockOf reads a run's commands: there are few of them.
func ClockOf(ctx context.Context, s state.Store, run state.Run) (Clock, error) {
	c := Clock{Epoch: run.Epoch, since: run.Created}
	for after := int64(0); ; {
		events, err := s.Events(ctx, state.NodeKey{RunKey: run.RunKey}, after, state.PageMax)
		if err != nil {
			return c, fmt.Errorf("read the events of run %d: %w", run.Run, err)
		}
		for _, e := range events {
			after = e.Seq
			c.hear(e)
		}
		if len(events) < state.PageMax {
			return c, nil
		}
	}
}

func (c *Clock) hear(e state.Event) {
	stop := func(at time.Time) {
		if !c.since.IsZero() {
			c.before, c.since = c.before+max(at.Sub(c.since), 0), time.Time{}
		}
	}
	switch {
	case e.Kind == state.OrderBegun && e.Command != nil && e.Command.Left != nil:
		stop(*e.Command.Left)
	case e.Kind != state.OrderEnded && e.Kind != state.RunCompleted:
	case e.Status != state.Running:
		stop(e.Time)
	case c.since.IsZero():
		c.since = e.Time
	}
}

// Time returns a time as it is shown.
func Time(d time.Duration) string { return format.Span(d) }

// Dollars returns an amount as it is shown beside a limit, from which it may differ by little: in cents, below a dollar
// in hundredths of them, and below a tenth of a cent with all of its digits.
func Dollars(m state.Money) string {
	digits := 2
	switch {
	case m < 1_000:
		digits = 6
	case m < 1_000_000:
		digits = 4
	}
	text := strconv.FormatFloat(float64(m)/1e6, 'f', digits, 64)
	if digits > 2 {
		whole, rest, _ := strings.Cut(text, ".")
		text = whole + "." + rest[:2] + strings.TrimRight(rest[2:], "0")
	}
	return "$" + text
}
