package calendar

import (
	"strings"
	"time"
)

// Deadline says when something that began is to be over: a while later, at the
// next time of day, or at a moment.
type Deadline struct {
	while  time.Duration
	hour   int
	minute int
	zone   *time.Location // nil: not a time of day
	moment time.Time
}

// Limits of deadlines.
const (
	whileMin = time.Second
	whileMax = 366 * 24 * time.Hour
)

// ParseDeadline reads 2h, 06:30 Europe/Berlin (UTC without a zone), or a moment
// as RFC 3339 has it. The error is an *Error.
func ParseDeadline(text string) (Deadline, error) {
	bad := &Error{End: len(text), Message: "this is not a deadline",
		Hint: "write how long it may take (2h, 45m), a time of day with its zone (06:30 Europe/Berlin), or a moment " +
			"(2026-03-02T06:30:00+01:00)"}
	trimmed := strings.TrimSpace(text)
	if while, err := time.ParseDuration(trimmed); err == nil {
		if while < whileMin || while > whileMax {
			bad.Message = "a deadline is between a second and 366 days away"
			return Deadline{}, bad
		}
		return Deadline{while: while}, nil
	}
	if moment, err := time.Parse(time.RFC3339, trimmed); err == nil {
		return Deadline{moment: moment}, nil
	}
	clock, name, _ := strings.Cut(trimmed, " ")
	at, err := time.Parse("15:04", clock)
	if err != nil {
		return Deadline{}, bad
	}
	zone, err := ParseZone(strings.TrimSpace(name))
	if err != nil {
		return Deadline{}, err
	}
	return Deadline{hour: at.Hour(), minute: at.Minute(), zone: zone}, nil
}

// IsZero reports whether there is none.
func (d Deadline) IsZero() bool { return d == Deadline{} }

// Of is the deadline of what began at a moment. A time of day is the next one
// after it; one that the clock jumps over on that day is when it jumps.
func (d Deadline) Of(begin time.Time) time.Time {
	switch {
	case d.IsZero():
		return time.Time{}
	case d.zone != nil:
		for day := begin.In(d.zone); ; day = day.AddDate(0, 0, 1) {
			if at := onDay(day, d.hour, d.minute); at.After(begin) {
				return at
			}
		}
	case d.while > 0:
		return begin.Add(d.while)
	}
	return d.moment
}

// onDay is a time of day.
func onDay(day time.Time, hour, minute int) time.Time {
	at := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, day.Location())
	if at.Hour() == hour && at.Minute() == minute {
		return at
	}
	begin, end := at.ZoneBounds() // the jump is near: on one of the sides of what Go made of it
	if at.Sub(begin) < end.Sub(at) {
		return begin
	}
	return end
}
