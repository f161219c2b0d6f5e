package calendar

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // for machines without a list of zones

	cron "github.com/netresearch/go-cron"
)

// Error describes a mistake in a text, and its place there.
type Error struct {
	Start, End int // bytes of the text
	Message    string
	Hint       string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Times are the moments of a cron expression in a time zone.
type Times struct {
	text  string
	zone  *time.Location
	spec  *cron.SpecSchedule // of the clock's hands, as if there were no zones
	hands bool               // it goes by them: the minute or the hour is a *
}

// fieldNames are those of an expression, in its order.
var fieldNames = [...]string{"minute", "hour", "day of month", "month", "day of week"}

// searchYears limits how far ahead Next searches: longer than the longest time without a 29th of February.
const searchYears = 9

// fieldForm is that of a field.
var fieldForm = regexp.MustCompile(`^(\*|\?|\w+(-\w+)?)(/\d+)?(,(\*|\?|\w+(-\w+)?)(/\d+)?)*$`)

// words maps the words that may replace the five fields to those fields.
var words = map[string]string{"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *",
	"@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *"}

// ParseTimes reads a cron expression of five fields, or a word like @daily. The
// error is an *Error.
func ParseTimes(text string, zone *time.Location) (*Times, error) {
	fields := text
	if strings.HasPrefix(strings.TrimSpace(text), "@") {
		var known bool
		if fields, known = words[strings.ToLower(strings.TrimSpace(text))]; !known {
			return nil, &Error{End: len(text), Message: fmt.Sprintf("%q is not known", text),
				Hint: "write @hourly, @daily, @weekly, @monthly, @yearly, or five fields"}
		}
	}
	spans := fieldsOf(fields)
	if len(spans) != len(fieldNames) {
		e := &Error{End: len(text), Message: fmt.Sprintf("a cron expression has 5 fields, this one has %d", len(spans)),
			Hint: "minute hour day-of-month month day-of-week: 30 6 * * 1-5 is 6:30 from Monday to Friday"}
		if strings.Contains(text, "TZ=") {
			e.Hint = "write the time zone in its own key: timezone: Europe/Berlin"
		}
		return nil, e
	}
	parser := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).
		WithMaxSearchYears(searchYears)
	for i, span := range spans { // one by one, to know which of them it is
		alone := strings.Repeat("* ", i) + fields[span.start:span.end] + strings.Repeat(" *", len(spans)-1-i)
		_, err := parser.Parse(alone)
		if field := fields[span.start:span.end]; err == nil && !fieldForm.MatchString(field) {
			// the library reads what it can: *-5 as *
			err = errors.New("it is not a list of numbers, names, ranges and steps")
		}
		if err != nil {
			return nil, &Error{Start: span.start, End: span.end, Message: fmt.Sprintf("the %s %q cannot be read: %v",
				fieldNames[i], fields[span.start:span.end], err),
				Hint: "write 5, 1,15, 1-5, */10, * or a name such as mon or jan"}
		}
	}
	read, err := parser.Parse(fields)
	if err != nil {
		return nil, &Error{End: len(text), Message: err.Error()}
	}
	spec, ok := read.(*cron.SpecSchedule)
	if !ok {
		return nil, &Error{End: len(text), Message: "it is not a list of moments"}
	}
	spec.Location = time.UTC
	t := &Times{text: text, zone: zone, spec: spec, hands: fields[spans[0].start] == '*' ||
		fields[spans[1].start] == '*'}
	if t.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, &Error{End: len(text), Message: "there is no such day",
			Hint: "check the day of the month and the month"}
	}
	return t, nil
}

type span struct{ start, end int }

// fieldsOf are the places of what blanks separate.
func fieldsOf(text string) (out []span) {
	start := -1
	for i, c := range text + " " {
		switch blank := c == ' ' || c == '\t'; {
		case blank && start >= 0:
			out, start = append(out, span{start, i}), -1
		case !blank && start < 0:
			start = i
		}
	}
	return out
}

// ParseZone reads the name of a time zone; "" is UTC. The error is an *Error.
func ParseZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	bad := &Error{End: len(name), Message: fmt.Sprintf("%q is not a time zone", name),
		Hint: "write a name of the list of time zones, such as Europe/Berlin, America/New_York or UTC"}
	if strings.EqualFold(name, "local") { // of which machine?
		return nil, bad
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, bad
	}
	return zone, nil
}

// String is the expression as it was written.
func (t *Times) String() string { return t.text }

// Zone is the time zone.
func (t *Times) Zone() *time.Location { return t.zone }

// Next is the first moment after one; the zero time if there is none.
//
// A zone's time goes in stretches with one offset each. Within a stretch the
// moments are those of the clock's hands. Between two, times of day that the
// clock leaves out are made up for when it jumps, and times that it shows again
// do not count again: for expressions that do not go by the hands.
func (t *Times) Next(after time.Time) time.Time {
	for at := after.In(t.zone); ; {
		begin, end := at.ZoneBounds()
		_, offset := at.Zone()
		from := hands(at, offset)
		if !t.hands && !begin.IsZero() {
			_, before := begin.Add(-1).Zone()
			if again := hands(begin, before).Add(-1); again.After(from) {
				from = again // what was shown before the clock was put back
			}
		}
		next := t.spec.Next(from)
		if next.IsZero() {
			return time.Time{}
		}
		moment := next.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || moment.Before(end) {
			return moment.In(t.zone)
		}
		if _, behind := end.Zone(); !t.hands && next.Before(hands(end, behind)) {
			return end.In(t.zone) // the clock jumps over it
		}
		if at = end.In(t.zone); t.at(at) {
			return at
		}
	}
}

// at reports whether a moment at which a stretch begins is one of t's.
func (t *Times) at(begin time.Time) bool {
	_, offset := begin.Zone()
	shown := hands(begin, offset)
	if !t.spec.Next(shown.Add(-1)).Equal(shown) {
		return false
	}
	_, before := begin.Add(-1).Zone()
	return t.hands || !shown.Before(hands(begin, before))
}

// hands returns the local time at a moment, as if it were UTC; offset is in seconds.
func hands(at time.Time, offset int) time.Time {
	return at.UTC().Add(time.Duration(offset) * time.Second)
}
