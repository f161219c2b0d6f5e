package history

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// What people see of a run beyond its state.Status.
const (
	Interrupted = "interrupted" // it is running, and nobody works on it
	Waiting     = "waiting"     // somebody has to decide; in a cluster also: a worker has to come
	Invalidated = "invalidated" // nobody may read its tables any more
	Dropped     = "dropped"     // its tables are gone, or will be
)

// Run is a run in the list of a workspace's.
type Run struct {
	Workspace   string         `json:"workspace"`
	Run         int64          `json:"run"`
	Status      string         `json:"status"`
	Script      string         `json:"script"`
	Params      string         `json:"params,omitempty"`
	StartNodes  []string       `json:"start_nodes"`
	Description string         `json:"description,omitempty"`
	Actor       string         `json:"actor,omitempty"`
	Priority    state.Priority `json:"priority,omitempty"` // none: the usual one
	Parent      int64          `json:"parent,omitempty"`
	Created     time.Time      `json:"created"`
	Finished    *time.Time     `json:"finished,omitempty"`
	Elapsed     int64          `json:"elapsed_ms"`
	Rows        int64          `json:"rows"`  // that its nodes have written
	Bytes       int64          `json:"bytes"` // likewise
	Failure     *state.Failure `json:"failure,omitempty"`
	Invalidated *state.Mark    `json:"invalidated,omitempty"`
	Dropped     *state.Mark    `json:"dropped,omitempty"`
	Stopped     *state.Mark    `json:"stopped,omitempty"`
	WaitsFor    []string       `json:"waits_for,omitempty"` // nodes that somebody has to decide about
	NoWorker    string         `json:"no_worker,omitempty"` // why no worker of the cluster works on it
	Do          string         `json:"do,omitempty"`        // what lets it go on, if nobody works on it
}

// ListOptions selects runs of a history.
type ListOptions struct {
	Limit int  // runs; 0: all
	All   bool // also dropped ones
	// Alone says of a run that is running whether nobody works on it; nil: it is not known.
	Alone func(state.Run) (Alone, bool)
	Now   time.Time
}

// Alone is of a run that is running, and nobody works on it.
type Alone struct {
	Why string // no worker of the cluster does; "": it is of no cluster, and interrupted
	Do  string // what lets it go on
}

// List gives a workspace's runs, the latest first: it reads as many as it gives.
func List(ctx context.Context, store state.Store, workspace string, o ListOptions) ([]Run, error) {
	var out []Run
	for page := (state.Page{}); ; {
		page.Limit = 0
		if o.Limit > 0 {
			page.Limit = o.Limit - len(out)
		}
		runs, next, err := store.Runs(ctx, workspace, page)
		if err != nil {
			return nil, fmt.Errorf("list the runs of workspace %s: %w", workspace, err)
		}
		for _, r := range runs {
			if one := o.of(r); o.All || one.Status != Dropped {
				out = append(out, one)
			}
		}
		if page.From = next; next == 0 || o.Limit > 0 && len(out) >= o.Limit {
			return out, nil
		}
	}
}

// One gives one run.
func One(ctx context.Context, store state.Store, key state.RunKey, o ListOptions) (Run, error) {
	run, _, err := read(ctx, store, key)
	return o.of(run), err
}

// of says what people see of a run that was read with its nodes in brief.
func (o ListOptions) of(r state.Run) Run {
	out := Run{Workspace: r.Workspace, Run: r.Run, Status: string(r.Status), Script: r.ScriptPath, Params: r.ParamsPath,
		StartNodes:  r.StartNodes,
		Description: r.Description, Actor: r.Actor, Priority: r.Priority, Parent: r.Parent, Created: r.Created,
		Elapsed: took(r, o.Now).Milliseconds(), Failure: r.Failure, Invalidated: r.Invalidated, Dropped: r.Dropped}
	if !r.Finished.IsZero() {
		out.Finished = &r.Finished
	}
	if r.Status == state.Stopped && r.Command != nil && r.Command.Kind == state.CommandStop {
		out.Stopped = &r.Command.Mark
	}
	working := false
	for _, n := range r.Nodes {
		out.Rows, out.Bytes = out.Rows+n.RowsOut, out.Bytes+n.BytesOut
		working = working || n.Status == state.Running
		if n.Status == state.Waiting {
			out.WaitsFor = append(out.WaitsFor, n.Name)
		}
	}
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

// alone says of a run that nobody works on how it is then.
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
