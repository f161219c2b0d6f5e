package history

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/ops/bill"
	"thalweg/internal/store/state"
)

// Statuses of a run that people see in addition to those of state.Status.
const (
	Interrupted = "interrupted" // it is running, and nobody works on it
	Waiting     = "waiting"     // for a decision; in a cluster also for a worker
	Invalidated = "invalidated" // nobody may read its tables any more
	Dropped     = "dropped"     // its tables are gone, or will be
)

// Run is a run in the list of a workspace.
type Run struct {
	Workspace   string         `json:"workspace"`
	Run         int64          `json:"run"`
	Status      string         `json:"status"`
	Script      string         `json:"script"`
	Params      string         `json:"params,omitempty"`
	StartNodes  []string       `json:"start_nodes"`
	Description string         `json:"description,omitempty"`
	Actor       string         `json:"actor,omitempty"`
	Priority    state.Priority `json:"priority,omitempty"` // "": normal
	Parent      int64          `json:"parent,omitempty"`
	Created     time.Time      `json:"created"`
	Finished    *time.Time     `json:"finished,omitempty"`
	Elapsed     int64          `json:"elapsed_ms"`
	Rows        int64          `json:"rows"`  // written by its nodes
	Bytes       int64          `json:"bytes"` // written by its nodes
	Cost        Cost           `json:"cost"`  // of its nodes
	Failure     *state.Failure `json:"failure,omitempty"`
	Invalidated *state.Mark    `json:"invalidated,omitempty"`
	Dropped     *state.Mark    `json:"dropped,omitempty"`
	Stopped     *state.Mark    `json:"stopped,omitempty"`
	Taken       *state.Mark    `json:"taken,omitempty"`     // who looks after its failure
	WaitsFor    []string       `json:"waits_for,omitempty"` // nodes that somebody has to decide about
	NoWorker    string         `json:"no_worker,omitempty"` // why no worker of the cluster works on it
	Do          string         `json:"do,omitempty"`        // what lets it go on, if nobody works on it
}

// ListOptions selects runs of a history.
type ListOptions struct {
	Limit int   // runs; 0: all
	From  int64 // runs of lower numbers are listed; 0: all
	All   bool  // also dropped ones
	// Since and Until limit when listed runs began; zero: they do not.
	Since, Until time.Time
	// Match and Keep select among the runs; nil: all. Match is asked first, without the run's nodes, which then need
	// not be read. With one of them, a page ends after PageReadMax runs that were read.
	Match func(state.Run) bool
	Keep  func(Run) bool
	// Alone reports whether nobody works on a run that is running; nil: not known.
	Alone func(state.Run) (Orphan, bool)
	Now   time.Time
	Basis bill.Basis // of bills
}

// Orphan describes a run that is running although nobody works on it.
type Orphan struct {
	Why string // why no worker of the cluster works on it; "": the run is of no cluster, and interrupted
	Do  string // what lets it go on
}

// PageReadMax limits the number of runs that are read for a page of selected ones, which may then be short, or empty.
const PageReadMax = 5_000

// List lists a workspace's runs, the latest first.
func List(ctx context.Context, store state.Store, workspace string, o ListOptions) ([]Run, error) {
	out, _, err := ListPage(ctx, store, workspace, o)
	return out, err
}

// ListPage does so, and returns the From of the next page; 0: there is none.
func ListPage(ctx context.Context, store state.Store, workspace string, o ListOptions) ([]Run, int64, error) {
	var out []Run
	read := 0
	if err := o.within(ctx, store, workspace); err != nil {
		return nil, 0, err
	}
	selects := o.Keep != nil || o.Match != nil
	for page := (state.Page{From: o.From}); ; {
		page.Limit = 0
		if o.Limit > 0 {
			page.Limit = o.Limit - len(out)
		}
		if selects {
			page.Limit, page.Brief = pageOfSelected, true
		}
		runs, next, err := store.Runs(ctx, workspace, page)
		if err != nil {
			return nil, 0, fmt.Errorf("list the runs of workspace %s: %w", workspace, err)
		}
		for i, r := range runs {
			if !o.Since.IsZero() && r.Created.Before(o.Since.Add(-clockSkew)) {
				return out, 0, nil
			}
			one, wanted, err := o.listed(ctx, store, r)
			if err != nil {
				return nil, 0, err
			}
			if wanted {
				out = append(out, one)
			}
			if selects && o.Limit > 0 && len(out) == o.Limit && i+1 < len(runs) {
				return out, r.Run, nil
			}
		}
		read += len(runs)
		if page.From = next; next == 0 || o.Limit > 0 && len(out) >= o.Limit || selects && read >= PageReadMax {
			return out, next, nil
		}
	}
}

// clockSkew is how much the clocks of those who begin runs may differ: a run of a higher number may seem to be older
// by it.
const clockSkew = time.Hour

// within has Match select by time, and lets the list begin at the runs that began by Until: numbers grow with time.
func (o *ListOptions) within(ctx context.Context, store state.Store, workspace string) error {
	if o.Since.IsZero() && o.Until.IsZero() {
		return nil
	}
	match := o.Match
	o.Match = func(r state.Run) bool {
		return !r.Created.Before(o.Since) && (o.Until.IsZero() || r.Created.Before(o.Until)) && (match == nil || match(r))
	}
	if o.Until.IsZero() {
		return nil
	}
	latest, err := runBefore(ctx, store, workspace, o.From)
	if err != nil || latest.Run == 0 {
		return err
	}
	after := func(r state.Run) bool { return r.Run > 0 && !r.Created.Before(o.Until.Add(clockSkew)) }
	low, high := int64(1), latest.Run+1 // runs below low are before, those from high on are not listed
	for low < high {
		middle, err := runBefore(ctx, store, workspace, (low+high)/2+1)
		switch {
		case err != nil:
			return err
		case after(middle):
			high = middle.Run
		default:
			low = (low+high)/2 + 1
		}
	}
	o.From = high
	return nil
}

// runBefore reads the latest run below a number, 0: the latest of all. It has the number 0 if there is none.
func runBefore(ctx context.Context, store state.Store, workspace string, number int64) (state.Run, error) {
	runs, _, err := store.Runs(ctx, workspace, state.Page{From: number, Limit: 1, Brief: true})
	if err != nil || len(runs) == 0 {
		return state.Run{}, err
	}
	return runs[0], nil
}

// listed returns a run as the list has it, and whether it does.
func (o ListOptions) listed(ctx context.Context, store state.Store, r state.Run) (out Run, is bool, err error) {
	if !o.All && r.Dropped != nil || o.Match != nil && !o.Match(r) {
		return out, false, nil
	}
	if r.Nodes == nil {
		if r, _, err = withNodes(ctx, store, r); err != nil {
			return out, false, err
		}
	}
	out = o.of(r)
	return out, o.Keep == nil || o.Keep(out), nil
}

// pageOfSelected is the number of runs that are read at once to select among.
const pageOfSelected = 500

// One returns one run as List does.
func One(ctx context.Context, store state.Store, key state.RunKey, o ListOptions) (Run, error) {
	run, _, err := read(ctx, store, key)
	return o.of(run), err
}

// of returns a run as people see it. r must have its Nodes.
func (o ListOptions) of(r state.Run) Run {
	out := Run{Workspace: r.Workspace, Run: r.Run, Status: string(r.Status), Script: r.ScriptPath, Params: r.ParamsPath,
		StartNodes:  r.StartNodes,
		Description: r.Description, Actor: r.Actor, Priority: r.Priority, Parent: r.Parent, Created: r.Created,
		Elapsed: took(r, o.Now).Milliseconds(), Failure: r.Failure, Invalidated: r.Invalidated, Dropped: r.Dropped,
		Taken: r.Taken()}
	if !r.Finished.IsZero() {
		out.Finished = &r.Finished
	}
	if r.Status == state.Stopped && r.Command != nil && r.Command.Kind == state.CommandStop {
		out.Stopped = &r.Command.Mark
	}
	working := false
	var spent state.Spent
	for _, n := range r.Nodes {
		spent = spent.Plus(n.Spent)
		out.Rows, out.Bytes = out.Rows+n.RowsOut, out.Bytes+n.BytesOut
		working = working || n.Status == state.Running
		if n.Status == state.Waiting {
			out.WaitsFor = append(out.WaitsFor, n.Name)
		}
	}
	out.Cost = CostOf(spent)
	switch {
	case r.Dropped != nil:
		out.Status = Dropped
	case r.Invalidated != nil:
		out.Status = Invalidated
	case r.Status != state.Running:
	case len(out.WaitsFor) > 0 && !working:
		out.Status = Waiting
	default:
		o.alone(r, &out)
	}
	return out
}

// alone sets the status of a running run if nobody works on it.
func (o ListOptions) alone(r state.Run, out *Run) {
	if o.Alone == nil {
		return
	}
	alone, is := o.Alone(r)
	switch {
	case !is:
		return
	case alone.Why != "":
		out.Status = Waiting
	default:
		out.Status = Interrupted
	}
	out.NoWorker, out.Do = alone.Why, alone.Do
}

// took returns the time that a run has taken until it ended, or until now.
func took(r state.Run, now time.Time) time.Duration {
	if !r.Finished.IsZero() {
		now = r.Finished
	}
	return max(now.Sub(r.Created), 0)
}
