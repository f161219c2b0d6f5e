package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// Expectation is when a run that is under way is expected to end, from what earlier runs of its script took. Without
// such runs it is empty but for Why: nothing is guessed.
type Expectation struct {
	Expected *time.Time `json:"expected,omitempty"` // the middle one of what the earlier runs lead to
	From     *time.Time `json:"from,omitempty"`     // the earliest one
	To       *time.Time `json:"to,omitempty"`       // the latest one
	Deadline *time.Time `json:"deadline,omitempty"` // when it is to be over
	Of       int        `json:"of"`                 // runs that it rests on
	Why      string     `json:"why,omitempty"`      // why nothing is expected
	Last     *LastTime  `json:"last,omitempty"`     // the latest complete run of its script before it
}

// Late reports whether a run is not expected to be over by its deadline, or is behind it.
func (e Expectation) Late(now time.Time) bool {
	return e.Deadline != nil && (now.After(*e.Deadline) || e.Expected != nil && e.Expected.After(*e.Deadline))
}

// Limits of what an expectation rests on.
const (
	ExperiencesMost = 7  // complete runs
	experiencesRead = 20 // runs that are looked at, of which some may have other nodes
)

// EarlierReadMax limits the runs that Earlier looks at.
const EarlierReadMax = 2_000

// Earlier lists complete runs that a run can be compared with, the latest first: those for which same is true.
func Earlier(ctx context.Context, store state.Store, workspace string, same func(state.Run) bool) ([]state.Run, error) {
	var out []state.Run
	for page, read := (state.Page{Limit: pageOfSelected, Brief: true}), 0; ; {
		runs, next, err := store.Runs(ctx, workspace, page)
		if err != nil {
			return nil, fmt.Errorf("list the runs of workspace %s: %w", workspace, err)
		}
		for _, r := range runs {
			if Whole(r) && same(r) {
				out = append(out, r)
			}
		}
		read += len(runs)
		if page.From = next; next == 0 || read >= EarlierReadMax || len(out) >= experiencesRead {
			return out, nil
		}
	}
}

// Whole reports whether a run is complete, and nobody has declared it invalid or dropped it.
func Whole(r state.Run) bool {
	return r.Status == state.Complete && r.Invalidated == nil && r.Dropped == nil
}

// Experience knows what complete runs took. It reads each of them once. It is not safe for concurrent use.
type Experience struct {
	store state.Store
	known map[state.RunKey]past
}

// NewExperience returns an Experience that reads runs from a store.
func NewExperience(store state.Store) *Experience {
	return &Experience{store: store, known: map[state.RunKey]past{}}
}

// past is what the nodes of a complete run took.
type past map[string]spell

// spell is the work at a node.
type spell struct {
	lag    time.Duration // between the end of what it reads and its begin
	took   time.Duration // by batches, or by people at a gate
	reused bool          // another run had its rows
	asked  bool          // somebody decided
}

// Expect says when a run that is under way is expected to end. earlier are complete runs of its script, the latest
// first.
func (e *Experience) Expect(ctx context.Context, run state.Run, nodes []state.Node, earlier []state.Run,
	now time.Time) (Expectation, error) {
	out := Expectation{Why: "no earlier run of its script with its nodes is complete"}
	if !run.Deadline.IsZero() {
		out.Deadline = &run.Deadline
	}
	if run.Status != state.Running {
		out.Why = fmt.Sprintf("it is %s", run.Status)
		return out, nil
	}
	worked := map[string]time.Duration{}
	for _, n := range nodes {
		if n.Status != state.Running {
			continue
		}
		var err error
		if worked[n.Name], err = state.Worked(ctx, e.store, run, n, now); err != nil {
			return out, err
		}
	}
	var ends []time.Time
	for _, r := range earlier[:min(len(earlier), experiencesRead)] {
		if r.RunKey == run.RunKey {
			continue
		}
		p, err := e.of(ctx, r)
		if err != nil {
			return out, err
		}
		if end, ok := p.leads(run, nodes, worked, now); ok {
			ends = append(ends, end)
		}
		if len(ends) == ExperiencesMost {
			break
		}
	}
	if len(ends) == 0 {
		return out, nil
	}
	slices.SortFunc(ends, time.Time.Compare)
	low, high := ends[(len(ends)-1)/2], ends[len(ends)/2]
	middle := low.Add(high.Sub(low) / 2)
	out.Expected, out.From, out.To, out.Of, out.Why = &middle, &ends[0], &ends[len(ends)-1], len(ends), ""
	return out, nil
}

// ExpectNext does so of a run that begins in the future, and has the nodes of the latest of the earlier ones.
func (e *Experience) ExpectNext(ctx context.Context, begins, deadline time.Time,
	earlier []state.Run) (Expectation, error) {
	run := state.Run{Status: state.Running, Created: begins, Deadline: deadline}
	var nodes []state.Node
	if len(earlier) > 0 {
		were, err := e.store.Nodes(ctx, earlier[0].RunKey)
		if err != nil {
			return Expectation{}, fmt.Errorf("read the nodes of run %d: %w", earlier[0].Run, err)
		}
		for _, n := range were {
			nodes = append(nodes, state.Node{NodeKey: n.NodeKey, NodeSpec: n.NodeSpec, Status: state.Pending})
		}
	}
	return e.Expect(ctx, run, nodes, earlier, begins)
}

// of returns what the nodes of a complete run took.
func (e *Experience) of(ctx context.Context, run state.Run) (past, error) {
	if p, ok := e.known[run.RunKey]; ok {
		return p, nil
	}
	nodes, err := e.store.Nodes(ctx, run.RunKey)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	p, ended, undisturbed := past{}, map[string]time.Time{}, true
	for _, n := range nodes { // in the order in which they read each other
		begun, end, ready := cmp.Or(n.Started, n.Finished), n.Finished, run.Created
		one := spell{reused: n.ReusedFrom != nil}
		if one.took, err = state.Worked(ctx, e.store, run, n, end); err != nil {
			return nil, err
		}
		if asked, decided, ok := decision(n); ok {
			one.took, one.asked, begun, end = max(decided.Sub(asked), 0), true, asked, decided
		} else {
			undisturbed = undisturbed && n.Epoch == 0
		}
		for _, in := range n.Inputs {
			if at := ended[in]; at.After(ready) {
				ready = at
			}
		}
		if undisturbed && !begun.IsZero() { // else it may have stood still in between
			one.lag = max(begun.Sub(ready), 0)
		}
		ended[n.Name] = end
		p[n.Name] = one
	}
	e.known[run.RunKey] = p
	return p, nil
}

// decision returns when a gate asked, and when somebody decided.
func decision(n state.Node) (asked, decided time.Time, ok bool) {
	if n.Decision == nil || len(n.Gate) == 0 {
		return asked, decided, false
	}
	r, err := gate.Decode(n.Gate)
	return r.Since, n.Decision.Time, err == nil
}

// leads returns when a run ends whose nodes take what they took in this one; ok is false if it says nothing of some
// of them.
func (p past) leads(run state.Run, nodes []state.Node, worked map[string]time.Duration, now time.Time) (end time.Time,
	ok bool) {
	ends := map[string]time.Time{}
	end = now
	for _, n := range nodes {
		at := n.Finished
		if n.Status != state.Succeeded {
			was, known := p[n.Name]
			if !known || was.tellsNothing(n) {
				return end, false
			}
			ready := run.Created
			for _, in := range n.Inputs {
				if ends[in].After(ready) {
					ready = ends[in]
				}
			}
			at = was.ends(n, ready, worked[n.Name], now)
		}
		if ends[n.Name] = at; at.After(end) {
			end = at
		}
	}
	return end, true
}

// tellsNothing reports whether a node is worked on, or waits for people, and was not and did not before.
func (s spell) tellsNothing(n state.Node) bool {
	return s.reused && n.PlanDigest != "" && n.ReusedFrom == nil || n.Status == state.Waiting && !s.asked
}

// ends returns when a node is done that took so long before, and can begin when it is ready.
func (s spell) ends(n state.Node, ready time.Time, worked time.Duration, now time.Time) time.Time {
	begin := ready.Add(s.lag)
	if begin.Before(now) {
		begin = now
	}
	switch {
	case n.Status == state.Waiting:
		if r, err := gate.Decode(n.Gate); err == nil {
			return now.Add(max(s.took-now.Sub(r.Since), 0))
		}
	case n.Status == state.Running && n.BatchesDone == 0:
		return now.Add(max(s.took-worked, 0))
	case n.Status == state.Running:
		// the more of it is done, the more counts what that took here
		left := 1 - float64(n.BatchesDone)/float64(n.BatchesTotal)
		return now.Add(time.Duration(left * (float64(worked) + left*float64(s.took))))
	}
	return begin.Add(s.took)
}
