package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/base/budget"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// attend keeps this worker's note fresh, in a cluster, until what it answers with
// is called, which removes it.
func (s *Server) registerWorker(ctx context.Context) (done func()) {
	if s.Instance.ClusterConfig == nil {
		return func() {}
	}
	a := registry.WorkerEntry{Owner: s.work.Owner, PID: os.Getpid(), Version: s.opts.Program, Engine: s.engineVersion(),
		Hash: plan.KeyHash, Slots: slotsOf(s.opts.Cores), Cores: slotsOf(s.opts.Cores),
		Memory: cmp.Or(s.opts.MemoryBytes, budget.Default()), Scratch: s.Instance.Dir,
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
		_ = registry.SayWhole(ctx, say) // it is said again
		s.tellNeighbours(ctx, a)
		s.keepSaying(ctx, say)
		limited, stop := context.WithTimeout(context.WithoutCancel(ctx), instance.PresenceTimeout)
		defer stop()
		for _, n := range notes {
			if err := s.Instance.State.RemoveNote(limited, registry.FleetWorkspace, n); err != nil {
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
func (s *Server) keepSaying(ctx context.Context, say func(context.Context) error) {
	tick := time.NewTicker(registry.AttendEvery)
	defer tick.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.changed:
		}
		err := registry.SayWhole(ctx, say)
		if err == nil {
			failed = 0
			tick.Reset(registry.AttendEvery)
			continue
		}
		if failed++; failed == registry.AttendTries && ctx.Err() == nil {
			s.opts.Logger.Warn("others may not see that this worker is there", "error", err)
		}
		tick.Reset(registry.AttendPause)
	}
}

// say writes the worker's note as things are now.
func (s *Server) say(ctx context.Context, a *registry.WorkerEntry, notes *[]state.Note) error {
	s.mu.Lock()
	a.Runs, a.Refused, a.Draining = nil, nil, s.draining()
	a.Python, a.Cannot, a.Notices = s.able.told()
	a.Concurrency, a.Decisions = s.limiter.Told()
	for key := range s.joined {
		a.Runs = append(a.Runs, registry.RunAt{Workspace: key.Workspace, Run: key.Run})
	}
	for _, r := range s.refused {
		if r.why != "" && !s.joined[r.run] && time.Now().Before(r.until.Add(r.wait)) {
			a.Refused = append(a.Refused, registry.RunAt{Workspace: r.run.Workspace, Run: r.run.Run,
				Why: registry.Shorten(s.opts.Known.Text(r.why)), Passes: r.passes})
		}
	}
	s.mu.Unlock()
	byRun := func(a, b registry.RunAt) int {
		return cmp.Or(strings.Compare(a.Workspace, b.Workspace), cmp.Compare(b.Run, a.Run))
	}
	slices.SortFunc(a.Runs, byRun)
	slices.SortFunc(a.Refused, byRun)
	a.Runs, a.Refused = a.Runs[:min(len(a.Runs), registry.AttendRunsMost)],
		a.Refused[:min(len(a.Refused), registry.AttendRunsMost/4)]
	a.Clock = time.Now()
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode what this worker says of itself: %w", err)
	}
	next := state.Note{Topic: registry.TopicWorkers, Name: a.Owner, Data: data, Time: s.Instance.Clock.Now()}
	err = s.Instance.State.PutNote(ctx, registry.FleetWorkspace, next)
	switch {
	case err == nil:
		*notes = []state.Note{next}
	case errors.Is(err, state.ErrUnknown): // the one before, or this one
		*notes = append((*notes)[max(0, len(*notes)-registry.NotesMost):], next)
	}
	return err
}
