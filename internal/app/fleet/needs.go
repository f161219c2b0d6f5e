package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/runs"
	"thalweg/internal/app/view"
	"thalweg/internal/base/action"
	"thalweg/internal/base/format"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// Limits of what needs people.
const (
	// NeedsMax limits what is listed.
	NeedsMax = 200
	// NeedsLookBack is how long ago runs have begun that are looked at.
	NeedsLookBack = 14 * 24 * time.Hour
	// NeedsReadMax limits the runs that are looked at.
	NeedsReadMax = 5_000

	needsPage    = 500
	needsInputs  = 500 // runs whose parameters are read at once
	deadlinesMax = 100
	// deadlinesWithin is how far a deadline is away that is listed.
	deadlinesWithin = 24 * time.Hour
)

// Asker is who asks what needs people.
type Asker struct {
	caller.Caller
	Decides bool          // may decide at gates, in their roles
	Reads   bool          // may see values of the data
	Runs    *runs.Service // as the asker sees runs
}

// Needs lists what needs people in a workspace, the most urgent first. What it reads grows with what is open and has
// failed, and with the runs that have begun within NeedsLookBack, NeedsReadMax at most.
func (s *Service) Needs(ctx context.Context, by Asker, workspace string) (view.Needs, error) {
	now := time.Now()
	l := &needs{Service: s, by: by, workspace: workspace, now: now, known: history.NewExperience(by.Runs.Home.State),
		whole: map[string][]state.Run{}, reads: needsInputs}
	l.At, l.LookedTo = now, now.Add(-NeedsLookBack)
	l.Needs.Needs, l.Deadlines = []view.Need{}, []view.Deadline{}
	for _, look := range []func(context.Context) error{l.recent, l.gates, l.failures, l.open, l.schedules} {
		if err := look(ctx); err != nil {
			return view.Needs{}, err
		}
	}
	slices.SortStableFunc(l.Needs.Needs, moreUrgent)
	if len(l.Needs.Needs) > NeedsMax {
		l.Needs.Needs, l.More = l.Needs.Needs[:NeedsMax], true
	}
	slices.SortStableFunc(l.Deadlines, func(a, b view.Deadline) int { return a.Deadline.Compare(b.Deadline) })
	if len(l.Deadlines) > deadlinesMax {
		l.Deadlines, l.More = l.Deadlines[:deadlinesMax], true
	}
	return l.Needs, nil
}

// needs are what is collected.
type needs struct {
	*Service
	view.Needs
	by        Asker
	workspace string
	now       time.Time
	known     *history.Experience
	whole     map[string][]state.Run // complete runs by their kind, the latest first
	failed    []state.Run            // the latest first
	reads     int                    // of parameters of runs that are left: later calls know what was read
}

// moreUrgent puts first what is too late soonest, then what has no such time, the latest first, and last what
// somebody has taken.
func moreUrgent(a, b view.Need) int {
	rank := func(n view.Need) int {
		switch {
		case n.Taken != nil:
			return 2
		case n.Until == nil:
			return 1
		}
		return 0
	}
	if by := cmp.Compare(rank(a), rank(b)); by != 0 || a.Until == nil || b.Until == nil {
		return cmp.Or(by, b.Since.Compare(a.Since), cmp.Compare(a.Run, b.Run))
	}
	return cmp.Or(a.Until.Compare(*b.Until), cmp.Compare(a.Run, b.Run))
}

// kind is the same for runs of one script that began with the same nodes.
func (l *needs) kind(r state.Run) string {
	return strings.Join(append([]string{l.Home.IdentityOf(r)}, r.StartNodes...), "\x00")
}

// recent reads the runs that began within NeedsLookBack.
func (l *needs) recent(ctx context.Context) error {
	for page, read := (state.Page{Limit: needsPage, Brief: true}), 0; ; {
		found, next, err := l.by.Runs.Home.State.Runs(ctx, l.workspace, page)
		if err != nil {
			return fmt.Errorf("list the runs of workspace %s: %w", l.workspace, err)
		}
		for _, r := range found {
			switch {
			case r.Created.Before(l.LookedTo):
				return nil
			case history.Whole(r):
				l.whole[l.kind(r)] = append(l.whole[l.kind(r)], r)
			case r.Status == state.Failed && r.Invalidated == nil && r.Dropped == nil && !r.GoesOn():
				l.failed = append(l.failed, r)
			}
		}
		read += len(found)
		if page.From = next; next == 0 {
			return nil
		}
		if read >= NeedsReadMax {
			l.More = true
			l.LookedTo = found[len(found)-1].Created
			return nil
		}
	}
}

// gates adds what waits for a decision.
func (l *needs) gates(ctx context.Context) error {
	waiting, err := gate.Waiting(ctx, l.Home.State, l.workspace, l.now)
	if err != nil {
		return err
	}
	for _, g := range waiting {
		run, err := l.Home.State.Run(ctx, state.RunKey{Workspace: l.workspace, Run: g.Run})
		if err != nil {
			return fmt.Errorf("read run %d, which waits: %w", g.Run, err)
		}
		r := g.Record
		_, may := l.by.RoleOf(r.By)
		one := view.Need{Kind: view.NeedGate, Run: g.Run, Script: run.ScriptPath, Note: run.Description, Since: r.Since,
			Until: timeOf(r.Until), Gate: &r,
			May:  may && l.by.Decides && r.Refuses(l.by.Actor, l.by.Verified, run.Actor) == nil,
			Text: fmt.Sprintf("run %d waits for a decision about %s", g.Run, r.Gate)}
		if len(r.By) > 0 {
			one.Text += " by " + strings.Join(r.By, " or ")
		}
		if !l.by.Reads {
			*one.Gate = r.WithoutValues()
		}
		l.Needs.Needs = append(l.Needs.Needs, one)
	}
	return nil
}

// failures adds the runs that have failed and were not made good.
func (l *needs) failures(ctx context.Context) error {
	for _, r := range l.failed {
		if len(l.Needs.Needs) > NeedsMax {
			l.More = true
			return nil
		}
		good, err := l.madeGood(ctx, r)
		if err != nil {
			return err
		}
		if good {
			continue
		}
		one := view.Need{Kind: view.NeedFailure, Run: r.Run, Script: r.ScriptPath, Note: r.Description, Since: r.Finished,
			Failure: r.Failure, Taken: r.Taken(), Text: fmt.Sprintf("run %d has failed", r.Run)}
		if r.Failure != nil {
			one.Text += ": " + plain(r.Failure.Text())
		}
		if !r.Deadline.IsZero() && l.now.Sub(r.Deadline) < deadlinesWithin {
			one.Until = &r.Deadline
			l.due(view.Deadline{Run: r.Run, Script: r.ScriptPath, Status: r.Status, Begins: r.Created, Deadline: r.Deadline,
				Late: l.now.After(r.Deadline), Expectation: view.Expectation{Deadline: &r.Deadline, Why: "it has failed"}})
		}
		l.Needs.Needs = append(l.Needs.Needs, one)
	}
	return nil
}

// madeGood reports whether a later run of the same script with the same parameters and nodes is complete.
func (l *needs) madeGood(ctx context.Context, failed state.Run) (bool, error) {
	whole := l.whole[l.kind(failed)]
	later := whole
	if i := slices.IndexFunc(whole, func(r state.Run) bool { return r.Run < failed.Run }); i >= 0 {
		later = whole[:i]
	}
	if len(later) == 0 {
		return false, nil
	}
	if slices.ContainsFunc(later, func(r state.Run) bool {
		return failed.Fingerprint != "" && r.Fingerprint == failed.Fingerprint && r.ParamsPath == failed.ParamsPath
	}) {
		return true, nil
	}
	was, known, err := l.inputs.of(ctx, l.Home, failed, &l.reads)
	for i := 0; i < len(later) && known && err == nil; i++ {
		var is string
		if is, known, err = l.inputs.of(ctx, l.Home, later[i], &l.reads); known && err == nil && is == was {
			return true, nil
		}
	}
	l.More = l.More || !known
	return false, err
}

// open adds the runs that are late, and the deadlines of all that are under way.
func (l *needs) open(ctx context.Context) error {
	open, err := state.OpenRuns(ctx, l.by.Runs.Home.State, l.workspace, nil)
	if err != nil {
		return fmt.Errorf("look for runs that are not over: %w", err)
	}
	slices.SortFunc(open, func(a, b state.Run) int { return a.Deadline.Compare(b.Deadline) })
	open = slices.DeleteFunc(open, func(r state.Run) bool { return r.Deadline.IsZero() })
	if len(open) > deadlinesMax {
		open, l.More = open[:deadlinesMax], true
	}
	for _, r := range open {
		e, err := l.by.Runs.ExpectAfter(ctx, l.known, r, l.whole[l.kind(r)])
		if err != nil {
			return err
		}
		late := e.Late(l.now)
		l.due(view.Deadline{Run: r.Run, Script: r.ScriptPath, Status: r.Status, Begins: r.Created, Deadline: r.Deadline,
			Late: late, Expectation: e})
		if !late {
			continue
		}
		text := "is behind its deadline, for " + format.Span(l.now.Sub(r.Deadline))
		if l.now.Before(r.Deadline) {
			text = "is expected to end " + format.Span(e.Expected.Sub(r.Deadline)) + " behind its deadline"
		}
		l.Needs.Needs = append(l.Needs.Needs, view.Need{Kind: view.NeedLate, Run: r.Run, Script: r.ScriptPath,
			Note: r.Description, Since: r.Created, Until: &r.Deadline, Expectation: &e,
			Text: fmt.Sprintf("run %d %s", r.Run, text)})
	}
	return nil
}

// due adds a deadline, unless it is far.
func (l *needs) due(d view.Deadline) {
	if d.Deadline.Sub(l.now) < deadlinesWithin {
		l.Deadlines = append(l.Deadlines, d)
	}
}

// schedules adds schedules and watches that do not do what they should, and the deadlines of the runs that schedules
// begin next.
func (l *needs) schedules(ctx context.Context) error {
	all, err := l.Schedules(ctx, l.workspace)
	if err != nil {
		return err
	}
	for _, s := range all {
		if !l.by.Reads {
			s.Standing = s.WithoutValues()
		}
		if text, since := broken(s, l.now); text != "" {
			l.Needs.Needs = append(l.Needs.Needs, view.Need{Kind: view.NeedSchedule, Script: s.Script, Since: since, Schedule: &s,
				Text: fmt.Sprintf("%s %s %s", s.Kind, s.Name, plain(text))})
		}
		if err := l.next(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// broken says what is wrong with a schedule or watch, and since when; "": nothing.
func broken(s view.Schedule, now time.Time) (text string, since time.Time) {
	switch {
	case s.Paused != nil: // somebody wants that
		return "", since
	case s.Failing != nil:
		return "cannot begin its run: " + strings.TrimSpace(s.Failing.Message), s.Failing.Since
	case s.Blind != nil:
		return "cannot look at its files: " + strings.TrimSpace(s.Blind.Message), s.Blind.Since
	case now.Sub(s.Looked) > NeedsLookBack: // nobody serves it any more
		return "", since
	case now.Sub(s.Looked) > OnTime:
		return "is looked at by no scheduler", s.Looked
	case s.Unopened:
		return "has not looked at its files yet", s.Looked
	}
	return "", since
}

// next adds the deadline of the run that a schedule begins next.
func (l *needs) next(ctx context.Context, s view.Schedule) error {
	if s.Next == nil || s.Last == nil || s.Paused != nil || s.Next.Sub(l.now) > deadlinesWithin {
		return nil
	}
	last, err := l.by.Runs.Home.State.Run(ctx, state.RunKey{Workspace: l.workspace, Run: s.Last.Run})
	if err != nil {
		return nil // it is gone: what its script said is not known
	}
	deadline := l.by.Runs.DeadlineOf(ctx, last, *s.Next)
	if deadline.IsZero() {
		return nil
	}
	e, err := l.known.ExpectNext(ctx, *s.Next, deadline, l.whole[l.kind(last)])
	if err != nil {
		return err
	}
	l.due(view.Deadline{Schedule: s.Name, Script: s.Script, Status: state.Pending, Begins: *s.Next, Deadline: deadline,
		Late: e.Late(l.now), Expectation: e})
	return nil
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// plain returns a text without marks of actions, in one line.
func plain(text string) string {
	return strings.Join(strings.Fields(action.Render(text, words{})), " ")
}

// words renders actions as their names.
type words struct{}

// Action implements action.Renderer.
func (words) Action(a action.Action, _ bool) string { return strings.ReplaceAll(a.Verb, "-", " ") }

// Setting implements action.Renderer.
func (words) Setting(s action.Arg) string { return s.Name }
