package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"thalweg/internal/base/budget"
	"thalweg/internal/run/adapt"
	"thalweg/internal/run/job"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Workers of a cluster leave notes in a workspace of their own, which no run can have.
const (
	fleetWorkspace = "_fleet"
	topicWorkers   = "workers"

	attendEvery    = 6 * time.Second
	attendLease    = 20 * time.Second // that a note counts
	attendTimeout  = 5 * time.Second  // of one renewal; one that fails is tried again after attendPause
	attendPause    = time.Second
	attendTries    = 3              // that fail before somebody is told
	attendForget   = 24 * time.Hour // that one of a worker that has died is kept
	notesMost      = 10             // of which one may be the one that is there
	attendRunsMost = 20             // runs that a note names
)

// WorkerEntry is what a worker says of itself.
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
	Concurrency []adapt.Setting  `json:"concurrency,omitempty"`
	Decisions   []adapt.Decision `json:"decisions,omitempty"`
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
func Workers(ctx context.Context, home *Instance) ([]WorkerEntry, error) {
	return workersOf(ctx, home, home.State)
}

func workersOf(ctx context.Context, home *Instance, store state.Store) (out []WorkerEntry, err error) {
	notes, err := state.AllNotes(ctx, store, fleetWorkspace, topicWorkers)
	if err != nil {
		return nil, err
	}
	now := home.clock.Now()
	for _, n := range notes {
		var a WorkerEntry
		age := now.Sub(n.Time)
		if err := json.Unmarshal(n.Data, &a); err != nil || age > attendForget {
			if err := store.RemoveNote(ctx, fleetWorkspace, n); err != nil {
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

// attend keeps this worker's note fresh, in a cluster, until what it answers with
// is called, which removes it.
func (s *server) registerWorker(ctx context.Context) (done func()) {
	if s.home.cluster == nil {
		return func() {}
	}
	a := WorkerEntry{Owner: s.crew.owner, PID: os.Getpid(), Version: s.opts.Program, Engine: s.engineVersion(),
		Hash: plan.KeyHash, Slots: slotsOf(s.opts.Cores), Cores: slotsOf(s.opts.Cores),
		Memory: cmp.Or(s.opts.MemoryBytes, budget.Default()), Scratch: s.home.Dir,
		Since: time.Now().UTC().Truncate(time.Second)}
	a.Host, _, _ = strings.Cut(a.Owner, "/")
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var loop sync.WaitGroup
	loop.Go(func() { s.able.askPython(ctx, s.saysElse) })
	loop.Go(func() {
		select { // for who reads the first note
		case <-s.able.asked:
		case <-time.After(pythonFirst):
		}
		var notes []state.Note // one of which is there
		say := func(ctx context.Context) error { return s.say(ctx, &a, &notes) }
		_ = sayWhole(ctx, say) // it is said again
		s.tellNeighbours(ctx, a)
		s.keepSaying(ctx, say)
		limited, stop := context.WithTimeout(context.WithoutCancel(ctx), presenceTimeout)
		defer stop()
		for _, n := range notes {
			if err := s.home.State.RemoveNote(limited, fleetWorkspace, n); err != nil {
				s.opts.Logger.Warn("the note that this worker is there stays", "error", err)
			}
		}
	})
	return func() {
		cancel()
		loop.Wait()
	}
}

// keepSaying renews the worker's note, and at once where somebody waits for what it
// says, until ctx ends.
func (s *server) keepSaying(ctx context.Context, say func(context.Context) error) {
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.changed:
		}
		err := sayWhole(ctx, say)
		if err == nil {
			failed = 0
			tick.Reset(attendEvery)
			continue
		}
		if failed++; failed == attendTries && ctx.Err() == nil {
			s.opts.Logger.Warn("others may not see that this worker is there", "error", err)
		}
		tick.Reset(attendPause)
	}
}

// sayWhole lets the writing of a note end that has begun: one that is cut off may arrive
// after the note was removed, and say for a day that a worker has died.
func sayWhole(ctx context.Context, say func(context.Context) error) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), attendTimeout)
	defer cancel()
	return say(limited)
}

// say writes the worker's note as things are now.
func (s *server) say(ctx context.Context, a *WorkerEntry, notes *[]state.Note) error {
	s.mu.Lock()
	a.Runs, a.Refused, a.Draining = nil, nil, s.draining()
	a.Python, a.Cannot, a.Notices = s.able.told()
	a.Concurrency, a.Decisions = s.pace.Told()
	for key := range s.joined {
		a.Runs = append(a.Runs, RunAt{Workspace: key.Workspace, Run: key.Run})
	}
	for _, r := range s.refused {
		if r.why != "" && !s.joined[r.run] && time.Now().Before(r.until.Add(r.wait)) {
			a.Refused = append(a.Refused, RunAt{Workspace: r.run.Workspace, Run: r.run.Run,
				Why: shorten(s.opts.Known.Text(r.why)), Passes: r.passes})
		}
	}
	s.mu.Unlock()
	byRun := func(a, b RunAt) int {
		return cmp.Or(strings.Compare(a.Workspace, b.Workspace), cmp.Compare(b.Run, a.Run))
	}
	slices.SortFunc(a.Runs, byRun)
	slices.SortFunc(a.Refused, byRun)
	a.Runs, a.Refused = a.Runs[:min(len(a.Runs), attendRunsMost)], a.Refused[:min(len(a.Refused), attendRunsMost/4)]
	a.Clock = time.Now()
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode what this worker says of itself: %w", err)
	}
	next := state.Note{Topic: topicWorkers, Name: a.Owner, Data: data, Time: s.home.clock.Now()}
	err = s.home.State.PutNote(ctx, fleetWorkspace, next)
	switch {
	case err == nil:
		*notes = []state.Note{next}
	case errors.Is(err, state.ErrUnknown): // the one before, or this one
		*notes = append((*notes)[max(0, len(*notes)-notesMost):], next)
	}
	return err
}

const whyMostChars = 300

func shorten(text string) string {
	if r := []rune(text); len(r) > whyMostChars {
		return string(r[:whyMostChars]) + "…"
	}
	return text
}

// Refusal is why a worker cannot work on a run.
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

// Reasons are why they cannot.
func (c Candidates) Reasons() (all []string) {
	for _, r := range slices.Concat(c.Refused, c.Delayed) {
		all = append(all, r.Text())
	}
	return all
}

// candidatesOf says how the workers look at a run now.
func candidatesOf(ctx context.Context, home *Instance, store state.Store, key state.RunKey) (out Candidates,
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

// candidatesPatience is how long workers may take to look at a new run: they
// import its Python code.
const (
	candidatesPatience = 20 * time.Second
	candidatesLook     = 100 * time.Millisecond
)

// AwaitCandidates waits until a worker has taken a new run of a cluster, or each
// that is there has said why it cannot, now or ever, or for so long as that may take. The state is
// waited for.
func AwaitCandidates(ctx context.Context, home *Instance, key state.RunKey, logger *slog.Logger) (out Candidates,
	err error) {
	store := home.Waiting(logger)
	patience := time.NewTimer(candidatesPatience)
	defer patience.Stop()
	tick := time.NewTicker(candidatesLook)
	defer tick.Stop()
	for {
		if out, err = candidatesOf(ctx, home, store, key); err != nil || out.Taken || out.Stuck() || out.There == 0 {
			return out, err
		}
		nodes, err := store.Nodes(ctx, key)
		if err != nil {
			return out, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
		}
		if slices.ContainsFunc(nodes, func(n state.Node) bool { return n.Status != state.Pending || n.PlanDigest != "" }) {
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
func NobodyTakes(ctx context.Context, home *Instance, key state.RunKey) (text, hint string, err error) {
	if home.cluster == nil {
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
			"start another: `thalweg worker --cluster " + home.cluster.Path + "`", nil
	case c.There == 0:
		return "no worker is there", "start one: `thalweg worker --cluster " + home.cluster.Path + "`", nil
	case c.Stuck() && !c.None():
		return "no worker that is there can work on it now: " + strings.Join(c.Reasons(), "; "),
			"mend these, and it goes on by itself, or start another worker: `thalweg cluster status` lists them", nil
	case c.None():
		return "no worker that is there can take it: " + strings.Join(c.Reasons(), "; "),
			"start a worker that can, or mend these: `thalweg cluster status` lists them", nil
	}
	return "", "", nil
}

// errOther is why a run is left to other workers.
var errOther = errors.New("the run is left to workers that match it")
