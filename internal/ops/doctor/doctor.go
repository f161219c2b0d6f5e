package doctor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"thalweg/internal/base/fault"
)

// Verdict says whether something is good, and else whose move it is.
type Verdict string

// The verdicts. Their texts are printed in JSON: they do not change.
const (
	Good    Verdict = "good"
	Warning Verdict = "warning" // it works, and somebody should know
	Bad     Verdict = "bad"     // somebody has to mend it
	Ours    Verdict = "ours"    // a bug of ours
	Skipped Verdict = "skipped" // it was not looked at
)

// Limits of a check.
const (
	limitDefault = 10 * time.Second
	// afterLimit is the time that a check has to return once its time is over.
	afterLimit = 2 * time.Second
)

// Result is the result of a check.
type Result struct {
	Verdict Verdict
	Seen    string
	Mend    string // what somebody can do

	err   error  // that has ended the check
	above string // the service that is bad for the same reason; "": none
}

// FailedAs is the result of a check that an error ended which has ended one of another
// service as well: it is told there.
func FailedAs(service string, err error) Result {
	r := Failed(err)
	r.above = service
	return r
}

// Check is one thing that is looked at.
type Check struct {
	Name  string
	Limit time.Duration // 0: limitDefault
	Gate  bool          // unless it is good or a warning, the rest of the service is not looked at
	Look  func(ctx context.Context) Result
}

// Service lists the checks of a service. They run in order; services are checked at the same time.
type Service struct {
	Name   string
	Checks []Check
	Close  func() // after the last check; nil: nothing
}

// Finding is a check with its result.
type Finding struct {
	Service string  `json:"service"`
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Seen    string  `json:"seen"`
	Mend    string  `json:"mend,omitempty"`
	MS      int64   `json:"elapsed_ms"`

	above string // see Result
}

// Examine looks at all services at once, and gives the findings in order. No
// check takes longer than most; 0: as long as each may.
func Examine(ctx context.Context, services []Service, most time.Duration) ([]Finding, error) {
	found := make([][]Finding, len(services))
	var all sync.WaitGroup
	for i, s := range services {
		all.Go(func() { found[i] = s.examine(ctx, most) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var out []Finding
	for _, f := range found {
		out = append(out, f...)
	}
	return once(out), nil
}

// once tells of a service that is bad once, and not again where others need it.
func once(found []Finding) []Finding {
	bad := map[string]bool{}
	for _, f := range found {
		bad[f.Service] = bad[f.Service] || f.above == "" && (f.Verdict == Bad || f.Verdict == Ours)
	}
	for i, f := range found {
		if f.above != "" && bad[f.above] {
			found[i].Verdict, found[i].Seen, found[i].Mend = Skipped, "not looked at: see "+f.above, ""
		}
	}
	return found
}

// Must carries out the checks of a service, and gives the first failure.
func Must(ctx context.Context, s Service) error {
	stuck := false
	defer func() {
		if s.Close != nil && !stuck {
			s.Close()
		}
	}()
	for _, c := range s.Checks {
		var r Result
		switch r, stuck = c.look(ctx, 0); {
		case ctx.Err() != nil:
			return ctx.Err()
		case r.Verdict != Bad && r.Verdict != Ours:
		case r.err != nil:
			return fmt.Errorf("%s, %s: %w", s.Name, c.Name, r.err)
		default:
			return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("%s, %s: %s", s.Name, c.Name, r.Seen),
				Hint: r.Mend}
		}
	}
	return nil
}

func (s Service) examine(ctx context.Context, most time.Duration) (out []Finding) {
	stopped, stuck := "", false
	for _, c := range s.Checks {
		f := Finding{Service: s.Name, Check: c.Name, Verdict: Skipped,
			Seen: "not looked at: see " + s.Name + ", " + stopped}
		if stopped == "" && ctx.Err() == nil {
			begun := time.Now()
			var r Result
			r, stuck = c.look(ctx, most)
			f.Verdict, f.Seen, f.Mend, f.MS, f.above = r.Verdict, r.Seen, r.Mend,
				time.Since(begun).Milliseconds(), r.above
			if stuck || c.Gate && r.Verdict != Good && r.Verdict != Warning {
				stopped = c.Name
			}
		}
		out = append(out, f)
	}
	if s.Close != nil && !stuck {
		s.Close()
	}
	return out
}

// look carries a check out within its limit. stuck says that it has not come back.
func (c Check) look(ctx context.Context, most time.Duration) (r Result, stuck bool) {
	limit := c.Limit
	if limit == 0 {
		limit = limitDefault
	}
	if most > 0 {
		limit = min(limit, most)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan Result, 1)
	go func() { done <- c.Look(limited) }()
	over := Result{Verdict: Bad, Seen: fmt.Sprintf("no answer within %s", limit),
		Mend: "see whether it is overloaded or stands still, and whether something on the way swallows what is sent"}
	select {
	case r = <-done:
	case <-limited.Done():
		patience := time.NewTimer(afterLimit)
		defer patience.Stop()
		select {
		case r = <-done:
		case <-patience.C:
			return over, true
		}
	}
	if limited.Err() != nil && r.Verdict != Good && r.Verdict != Warning {
		over.above = r.above
		return over, false
	}
	return r, false
}

// good says what was seen, and that it is as it should be.
func good(format string, args ...any) Result {
	return Result{Verdict: Good, Seen: fmt.Sprintf(format, args...)}
}

// Failed is the result of a check that an error ended.
func Failed(err error) Result {
	f := fault.Of(err)
	if f.Kind == fault.Bug || f.Kind == fault.Canceled {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return Result{Verdict: Bad, Seen: err.Error(), Mend: "see whether the service is overloaded", err: err}
		}
		return Result{Verdict: Ours, Seen: err.Error(), Mend: "please report it", err: err}
	}
	return Result{Verdict: Bad, Seen: err.Error(), Mend: f.Hint, err: err}
}

// Worst gives the worst verdict of all.
func Worst(found []Finding) Verdict {
	worst := Good
	for _, f := range found {
		switch {
		case f.Verdict == Bad:
			return Bad
		case f.Verdict == Ours, f.Verdict == Warning && worst != Ours:
			worst = f.Verdict
		}
	}
	return worst
}
