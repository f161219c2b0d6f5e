package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/action"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// Workers of a cluster leave notes in a workspace of their own, which no run can have.
const (
	FleetWorkspace = "_fleet"
	TopicWorkers   = "workers"

	AttendEvery    = 6 * time.Second
	attendLease    = 20 * time.Second // that a note counts
	attendTimeout  = 5 * time.Second  // of one renewal; one that fails is tried again after attendPause
	AttendPause    = time.Second
	AttendTries    = 3              // that fail before somebody is told
	attendForget   = 24 * time.Hour // that one of a worker that has died is kept
	NotesMost      = 10             // of which one may be the one that is there
	AttendRunsMost = 20             // runs that a note names
)

// WorkerEntry holds the description that a worker publishes of itself.
type WorkerEntry struct {
	Owner    string    `json:"owner"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Version  string    `json:"version"`
	Engine   string    `json:"engine"`
	Hash     string    `json:"bucket_hash"`
	Python   string    `json:"python"`
	Slots    int       `json:"slots"`
	Cores    int       `json:"cores"`
	Memory   int64     `json:"memory_bytes"`
	Scratch  string    `json:"scratch,omitempty"` // workers of a machine that have the same divide the memory
	Since    time.Time `json:"since"`
	Seen     time.Time `json:"seen"`  // by the clock of the state
	Clock    time.Time `json:"clock"` // the same moment by its machine's
	Draining bool      `json:"draining,omitempty"`
	Runs     []RunAt   `json:"runs,omitempty"`    // that it works on
	Refused  []RunAt   `json:"refused,omitempty"` // that it cannot work on
	Cannot   []string  `json:"cannot,omitempty"`  // why it takes no work at all now
	Notices  []string  `json:"notices,omitempty"` // what somebody should look at
	Gone     bool      `json:"gone,omitempty"`    // nothing was heard of it for a while
	// How much it does at once, and what it has decided of that lately.
	Concurrency []concurrency.Setting  `json:"concurrency,omitempty"`
	Decisions   []concurrency.Decision `json:"decisions,omitempty"`
}

// RunAt is a run as a worker sees it.
type RunAt struct {
	Workspace string `json:"workspace"`
	Run       int64  `json:"run"`
	Why       string `json:"why,omitempty"`
	Passes    bool   `json:"passes,omitempty"` // that may be otherwise soon, by itself
}

// Workers lists the workers of a cluster, by host and number. Notes of those that
// died long ago are removed.
func Workers(ctx context.Context, home *instance.Instance) ([]WorkerEntry, error) {
	return workersOf(ctx, home, home.State)
}

func workersOf(ctx context.Context, home *instance.Instance, store state.Store) (out []WorkerEntry, err error) {
	notes, err := state.AllNotes(ctx, store, FleetWorkspace, TopicWorkers)
	if err != nil {
		return nil, err
	}
	now := home.Clock.Now()
	for _, n := range notes {
		var a WorkerEntry
		age := now.Sub(n.Time)
		if err := json.Unmarshal(n.Data, &a); err != nil || age > attendForget {
			if err := store.RemoveNote(ctx, FleetWorkspace, n); err != nil {
				return nil, fmt.Errorf("remove the note of worker %s: %w", n.Name, err)
			}
			continue
		}
		a.Seen, a.Gone = n.Time, age > attendLease || job.Gone(a.Owner)
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b WorkerEntry) int { return cmp.Or(strings.Compare(a.Host, b.Host), a.PID-b.PID) })
	return out, nil
}

// SayWhole lets the writing of a note end that has begun: one that is cut off may arrive
// after the note was removed, and say for a day that a worker has died.
func SayWhole(ctx context.Context, say func(context.Context) error) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), attendTimeout)
	defer cancel()
	return say(limited)
}

const whyMostChars = 300

func Shorten(text string) string {
	if r := []rune(text); len(r) > whyMostChars {
		return string(r[:whyMostChars]) + "…"
	}
	return text
}

// Refusal says why a worker cannot work on a run.
type Refusal struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
	Why  string `json:"why"`
}

// Text says it for people.
func (r Refusal) Text() string { return fmt.Sprintf("%s (process %d): %s", r.Host, r.PID, r.Why) }

// Candidates are the workers of a cluster as they look at a run.
type Candidates struct {
	There   int       // workers that take runs
	Leaving int       // workers that were asked to end, and take none
	Taken   bool      // one of them works on it, and can
	Refused []Refusal // by those of them that cannot
	Delayed []Refusal // by those that may be able to soon
}

// None reports whether there are workers, and none of them can take the run.
func (c Candidates) None() bool { return !c.Taken && c.There > 0 && len(c.Refused) == c.There }

// Stuck reports whether there are workers, and none of them can take the run now.
func (c Candidates) Stuck() bool {
	return !c.Taken && c.There > 0 && len(c.Refused)+len(c.Delayed) == c.There
}

// Reasons returns why they cannot.
func (c Candidates) Reasons() (all []string) {
	for _, r := range slices.Concat(c.Refused, c.Delayed) {
		all = append(all, r.Text())
	}
	return all
}

// candidatesOf says how the workers look at a run now.
func candidatesOf(ctx context.Context, home *instance.Instance, store state.Store, key state.RunKey) (out Candidates,
	err error) {
	workers, err := workersOf(ctx, home, store)
	if err != nil {
		return out, err
	}
	same := func(r RunAt) bool { return r.Workspace == key.Workspace && r.Run == key.Run }
	for _, w := range workers {
		i := slices.IndexFunc(w.Refused, same)
		switch {
		case w.Gone:
			continue
		case w.Draining:
			out.Leaving++
			continue
		case len(w.Cannot) > 0:
			out.Delayed = append(out.Delayed, Refusal{w.Host, w.PID, strings.Join(w.Cannot, "; ")})
		case slices.ContainsFunc(w.Runs, same):
			out.Taken = true
		case i >= 0 && w.Refused[i].Passes:
			out.Delayed = append(out.Delayed, Refusal{w.Host, w.PID, w.Refused[i].Why})
		case i >= 0:
			out.Refused = append(out.Refused, Refusal{w.Host, w.PID, w.Refused[i].Why})
		}
		out.There++
	}
	return out, nil
}

// candidatesPatience is the longest time that workers may take to look at a new run: they import
// its Python code. CandidatesLook is the time between two looks whether they have.
const (
	candidatesPatience = 20 * time.Second
	CandidatesLook     = 100 * time.Millisecond
)

// AwaitCandidates waits until a worker has taken a new run of a cluster, or each
// that is there has said why it cannot, now or ever, or for so long as that may take. The state is
// waited for.
func AwaitCandidates(ctx context.Context, home *instance.Instance, key state.RunKey,
	logger *slog.Logger) (out Candidates,
	err error) {
	store := home.Waiting(logger)
	patience := time.NewTimer(candidatesPatience)
	defer patience.Stop()
	tick := time.NewTicker(CandidatesLook)
	defer tick.Stop()
	for {
		if out, err = candidatesOf(ctx, home, store, key); err != nil || out.Taken || out.Stuck() || out.There == 0 {
			return out, err
		}
		nodes, err := store.Nodes(ctx, key)
		if err != nil {
			return out, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
		}
		if slices.ContainsFunc(nodes,
			func(n state.Node) bool { return n.Status != state.Pending || n.PlanDigest != "" }) {
			out.Taken = true // its worker has not said so yet
			return out, nil
		}
		select {
		case <-ctx.Done():
			return out, context.Cause(ctx)
		case <-patience.C:
			return out, nil
		case <-tick.C:
		}
	}
}

// NobodyTakes says why no worker takes a run of a cluster, or goes on with it; "" if one works on
// it, or will.
func NobodyTakes(ctx context.Context, home *instance.Instance, key state.RunKey) (text, hint string, err error) {
	if home.ClusterConfig == nil {
		return "", "", nil
	}
	c, err := candidatesOf(ctx, home, home.State, key)
	switch {
	case err != nil:
		return "", "", err
	case c.There == 0 && home.AtWork(key): // it has not said so, or was asked to end
		return "", "", nil
	case c.There == 0 && c.Leaving > 0:
		return "the workers that are there were asked to end, and take no more runs",
			"start another: " + action.Do("worker", "cluster", home.ClusterConfig.Path).String(), nil
	case c.There == 0:
		return "no worker is there", "start one: " + action.Do("worker", "cluster", home.ClusterConfig.Path).String(),
			nil
	case c.Stuck() && !c.None():
		return "no worker that is there can work on it now: " + strings.Join(c.Reasons(), "; "),
			"mend these, and it goes on by itself, or start another worker: {{do cluster-status}} lists them", nil
	case c.None():
		return "no worker that is there can take it: " + strings.Join(c.Reasons(), "; "),
			"start a worker that can, or mend these: {{do cluster-status}} lists them", nil
	}
	return "", "", nil
}
