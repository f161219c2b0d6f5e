package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/calendar"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// Limits.
const (
	// OnTime is the longest delay after which a moment does not count as missed.
	OnTime = time.Minute
	// Horizon limits how far back missed moments are made up for.
	Horizon = 31 * 24 * time.Hour
	// QueueMax limits the moments that are due and not begun: older ones are skipped.
	QueueMax = 100

	skippedMax      = 5 // that are shown
	shownBytesMax   = 200
	standingVersion = 1
)

// What a standing is of.
const (
	KindSchedule = "schedule"
	KindWatch    = "watch"
)

// Standing is the stored record of a schedule or watch. It is stored.
type Standing struct {
	ID      string    `json:"-"` // of the record, where it was listed
	Version int       `json:"version"`
	Kind    string    `json:"kind"`
	Script  string    `json:"script"` // for people
	Name    string    `json:"name"`
	When    string    `json:"when"`           // cron expression, or pattern
	Zone    string    `json:"zone,omitempty"` // of the expression
	Looked  time.Time `json:"looked"`
	Queue   []int64   `json:"queue,omitempty"` // moments that are due, Unix seconds
	Last    *Begun    `json:"last,omitempty"`
	Skipped []Skip    `json:"skipped,omitempty"` // the latest ones
	Skips   int64     `json:"skips,omitempty"`   // how many there were
	Failing *Failing  `json:"failing,omitempty"`
	Pending []Pending `json:"pending,omitempty"` // files that are not begun; some of them
	Waiting int       `json:"waiting,omitempty"` // how many there are

	Blind    *Failing `json:"blind,omitempty"`    // why its files cannot be looked at
	Unopened bool     `json:"unopened,omitempty"` // they were not yet, since the watch is served
}

// Begun is a run that was begun.
type Begun struct {
	Run  int64     `json:"run"`
	At   time.Time `json:"at"` // for this moment
	File string    `json:"file,omitempty"`
}

// Skip is a moment for which no run was begun.
type Skip struct {
	At  time.Time `json:"at"`
	Why string    `json:"why"`
}

// Pending is a file for which no run was begun yet.
type Pending struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Failing describes a run that cannot be begun.
type Failing struct {
	At      time.Time `json:"at"` // the moment
	File    string    `json:"file,omitempty"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
	Tries   int       `json:"tries"`
	Next    time.Time `json:"next"`
	Told    bool      `json:"told,omitempty"`
}

// WithoutValues is the record for who may see no values of data, which messages can quote.
func (s Standing) WithoutValues() Standing {
	discreet := func(f *Failing) *Failing {
		if f == nil {
			return nil
		}
		out := *f
		out.Message = "who may read rows sees why"
		return &out
	}
	s.Failing, s.Blind = discreet(s.Failing), discreet(s.Blind)
	return s
}

func parseStanding(text []byte) (*Standing, error) {
	s := &Standing{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read the record of a schedule: %w", err)
	}
	if s.Version != standingVersion {
		return nil, fault.OtherForm("the record of a schedule", s.Version, standingVersion)
	}
	return s, nil
}

func (s *Standing) encode() ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("encode the record of a schedule: %w", err)
	}
	return text.Bytes(), nil
}

// skip notes that a moment is not begun.
func (s *Standing) skip(at time.Time, why string) {
	s.Skips++
	s.Skipped = append(s.Skipped, Skip{At: at, Why: Cut(why)})
	if n := len(s.Skipped); n > skippedMax {
		s.Skipped = slices.Delete(s.Skipped, 0, n-skippedMax)
	}
}

// Cut is the beginning of a text, for people.
func Cut(text string) string {
	if text = clean(text); len(text) > shownBytesMax {
		text = strings.ToValidUTF8(text[:shownBytesMax], "") + "…"
	}
	return text
}

// clean makes a text that is as long in a record as it is.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// advance puts the moments that have come into the queue, up to now, and reports
// whether there were any: those that are later than onTime are missed. It is a
// function of the record, the schedule and what it is given.
func (s *Standing) advance(times *calendar.Times, catchUp string, now time.Time, onTime time.Duration) (changed bool) {
	if now.Before(s.Looked) { // the clock was put back: what comes again has its run
		s.Looked = now
	}
	from := s.Looked
	if earliest := now.Add(-Horizon); from.Before(earliest) {
		if first := times.Next(from); !first.IsZero() && first.Before(earliest) {
			s.skip(first, fmt.Sprintf("nobody was there, and it and those behind it were more than %d days ago",
				int(Horizon.Hours()/24)))
			changed = true
		}
		from = earliest
	}
	var missed, due []time.Time
	for at := times.Next(from); !at.IsZero() && !at.After(now); at = times.Next(at) {
		if now.Sub(at) > onTime {
			missed = append(missed, at)
		} else {
			due = append(due, at)
		}
	}
	s.Looked = now
	due = append(s.catchUp(missed, due, catchUp), due...)
	changed = changed || len(due)+len(missed) > 0
	tooMany := fmt.Sprintf("more than %d moments wait for their runs", QueueMax)
	for ; len(due) > QueueMax; due = due[1:] {
		s.skip(due[0], tooMany)
	}
	for _, at := range due {
		if !slices.Contains(s.Queue, at.Unix()) {
			s.Queue = append(s.Queue, at.Unix())
		}
	}
	slices.Sort(s.Queue)
	for len(s.Queue) > QueueMax {
		s.skip(time.Unix(s.Queue[0], 0).In(times.Zone()), tooMany)
		s.Queue = s.Queue[1:]
	}
	return changed
}

// catchUp says which of the missed moments are made up for.
func (s *Standing) catchUp(missed, due []time.Time, how string) []time.Time {
	if how == script.CatchUpAll || len(missed) == 0 {
		return missed
	}
	kept := []time.Time{}
	why := "nobody was there, and catch_up is none"
	if how == script.CatchUpLast {
		why = "nobody was there, and catch_up makes up for the last moment only"
		if last := len(missed) - 1; len(due) == 0 {
			kept, missed = missed[last:], missed[:last]
		}
	}
	for _, at := range missed {
		s.skip(at, why)
	}
	return kept
}
