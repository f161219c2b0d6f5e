package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/format"
)

// Limits of what is seen of workers.
const (
	renewWait = 5 * time.Second // for workers to renew their notes; they do every two
	renewLook = 250 * time.Millisecond
	// renewForget is the age of notes from whose writers nothing is to be heard.
	renewForget = 10 * time.Minute
)

// Worker describes a worker by its own record.
type Worker struct {
	Name   string // host and process
	Engine string
	Hash   string // of buckets
	Python string
	Cannot []string  // why it takes no work
	Odd    []string  // what somebody should look at
	Gone   bool      // nothing was heard of it for a while
	Seen   time.Time // by its own clock
}

// OpenRuns are the runs that are not over.
type OpenRuns struct {
	Open, Looked int      // not over; of these looked at
	Why          []string // this machine could not work on some; none: it could on all that were looked at
}

// Workers holds the inputs of the checks of the other workers.
type Workers struct {
	Open   func(ctx context.Context) error
	List   func(ctx context.Context) ([]Worker, error)
	Engine string // of this program
	Hash   string
	Now    func() time.Time // by the clock that workers go by
	Runs   func(ctx context.Context) (OpenRuns, error)
	Close  func()
	found  []Worker
}

// Service gives the checks.
func (w *Workers) Service() Service {
	return Service{Name: "workers", Close: w.Close, Checks: []Check{
		{Name: "list", Limit: 20 * time.Second, Gate: true, Look: w.list},
		{Name: "able", Look: func(context.Context) Result { return w.able() }},
		{Name: "versions", Look: func(context.Context) Result { return w.versions() }},
		{Name: "clocks", Look: w.clocks},
		{Name: "open runs", Limit: time.Minute, Look: w.runs},
	}}
}

func (w *Workers) list(ctx context.Context) Result {
	if err := w.Open(ctx); err != nil {
		return FailedAs("state", err)
	}
	var err error
	if w.found, err = w.List(ctx); err != nil {
		return Failed(err)
	}
	var gone []string
	for _, k := range w.found {
		if k.Gone {
			gone = append(gone, k.Name)
		}
	}
	r := good("%s at work", format.Counted(int64(len(w.found)-len(gone)), "worker", "workers"))
	if len(gone) > 0 {
		r.Verdict, r.Seen, r.Mend = Warning, r.Seen+"; nothing is heard of "+strings.Join(gone, ", "),
			"see why they ended, and start others; their notes go after a day"
	}
	return r
}

// nobody is the result of a check of workers where there are none.
func nobody() Result { return Result{Verdict: Skipped, Seen: "no workers"} }

// able says which workers take no work, and what they say that somebody should look at.
func (w *Workers) able() Result {
	if !slices.ContainsFunc(w.found, func(k Worker) bool { return !k.Gone }) {
		return nobody()
	}
	var said []string
	for _, k := range w.found {
		if k.Gone {
			continue
		}
		for _, why := range k.Cannot {
			said = append(said, k.Name+" takes no work: "+why)
		}
		for _, text := range k.Odd {
			said = append(said, k.Name+": "+text)
		}
	}
	if len(said) > 0 {
		return Result{Verdict: Warning, Seen: strings.Join(said, "; "),
			Mend: "mend what they say; they go on by themselves"}
	}
	return good("all take work")
}

func (w *Workers) versions() Result {
	if !slices.ContainsFunc(w.found, func(k Worker) bool { return !k.Gone }) {
		return nobody()
	}
	var other []string
	pythons := map[string]bool{}
	for _, k := range w.found {
		if k.Gone {
			continue
		}
		if k.Python != "" && k.Python != "unknown" {
			pythons[k.Python] = true
		}
		if k.Engine != w.Engine || k.Hash != w.Hash {
			other = append(other, fmt.Sprintf("%s has DuckDB %s and bucket hash %s", k.Name, k.Engine, k.Hash))
		}
	}
	switch {
	case len(other) > 0:
		return Result{Verdict: Warning, Seen: strings.Join(other, "; ") + fmt.Sprintf(" (here: %s, %s)",
			w.Engine, w.Hash),
			Mend: "a run stays with workers of the versions that it began with: drain the old ones when their " +
				"runs are over"}
	case len(pythons) > 1:
		return Result{Verdict: Warning, Seen: "they have different Pythons: " +
			strings.Join(slices.Sorted(maps.Keys(pythons)), ", "),
			Mend: "a run with formulas stays with workers whose interpreter is the same: install the same " +
				"one everywhere"}
	}
	return good("all have DuckDB and bucket hash of this program")
}

// clocks waits until workers renew their notes, which have the time of their own
// clocks: each was written between two looks.
func (w *Workers) clocks(ctx context.Context) Result {
	if len(w.found) == 0 {
		return nobody()
	}
	first, told := map[string]time.Time{}, map[string]time.Duration{}
	for _, k := range w.found {
		first[k.Name] = k.Seen
	}
	before := w.Now()
	for end := before.Add(renewWait); len(first) > len(told) && w.Now().Before(end); {
		select {
		case <-ctx.Done():
			return Failed(ctx.Err())
		case <-time.After(renewLook):
		}
		asked := w.Now()
		now, err := w.List(ctx)
		if err != nil {
			return Failed(err)
		}
		after := w.Now()
		for _, k := range now {
			if was, ok := first[k.Name]; ok && !k.Seen.Equal(was) {
				if _, ok := told[k.Name]; !ok {
					told[k.Name] = apart(k.Seen, before, after)
				}
			}
		}
		before = asked
		if w.heardAll(told) {
			break
		}
	}
	whose, worst := "", time.Duration(0)
	for name, d := range told {
		if d.Abs() > worst.Abs() {
			whose, worst = name, d
		}
	}
	if len(told) == 0 {
		return Result{Verdict: Skipped, Seen: "no worker says what time it is"}
	}
	return JudgeClock(whose, worst, 0)
}

// heardAll reports whether each worker has renewed its record, or is gone for good. A worker that seems gone is waited
// for until renewForget, because its clock may be behind.
func (w *Workers) heardAll(told map[string]time.Duration) bool {
	for _, k := range w.found {
		if _, heard := told[k.Name]; !heard && !(k.Gone && w.Now().Sub(k.Seen) > renewForget) {
			return false
		}
	}
	return true
}

// apart returns the least error of a clock that showed a time at some moment between from and to.
func apart(shown, from, to time.Time) time.Duration {
	switch {
	case shown.After(to):
		return shown.Sub(to)
	case shown.Before(from):
		return shown.Sub(from)
	}
	return 0
}

func (w *Workers) runs(ctx context.Context) Result {
	runs, err := w.Runs(ctx)
	if err != nil {
		return Failed(err)
	}
	if len(runs.Why) > 0 {
		return Result{Verdict: Warning, Seen: "this machine cannot work on: " + strings.Join(runs.Why, "; "),
			Mend: "other workers may; else mend it here: what a run needs is looked at as a worker does " +
				"before it begins"}
	}
	seen := good("%s; this machine has what they need", format.Counted(int64(runs.Open), "run", "runs"))
	if runs.Looked < runs.Open {
		seen.Seen = fmt.Sprintf("%d runs; this machine has what the %d that were looked at need",
			runs.Open, runs.Looked)
	}
	return seen
}
