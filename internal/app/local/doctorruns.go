package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/ops/doctor"
	"thalweg/internal/store/state"
)

// Limits of a look at open runs: each has its Python code imported.
const (
	doctorRuns = 20               // that are looked at
	doctorRun  = 10 * time.Second // of each
)

// openRuns says which runs that are not over this machine could not work on: those that a
// worker here would refuse.
func (d *examination) openRuns(ctx context.Context, home *Instance) (found doctor.OpenRuns, err error) {
	would, err := d.worker(home)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, would.giveBack()) }()
	workspaces, err := home.State.Workspaces(ctx)
	if err != nil {
		return found, err
	}
	var open []state.Run
	for _, w := range workspaces {
		runs, err := state.OpenRuns(ctx, home.State, w, nil)
		if err != nil {
			return found, err
		}
		open = append(open, runs...)
	}
	found.Open = len(open)
	enough, stop := lookUntil(ctx)
	defer stop()
	for _, r := range open[:min(len(open), doctorRuns)] {
		if enough.Err() != nil {
			break
		}
		found.Looked++
		if why := would.refuses(enough, r.RunKey); why != "" {
			found.Why = append(found.Why, fmt.Sprintf("%s/%d: %s", r.Workspace, r.Run, why))
		}
	}
	return found, ctx.Err()
}

// lookUntil ends so long before ctx does that what was found can still be said.
func lookUntil(ctx context.Context) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-time.Until(end)/3))
}

// refuses says why a run would be refused here; "": it would be worked on.
func (s *server) refuses(ctx context.Context, key state.RunKey) string {
	limited, stop := context.WithTimeout(ctx, doctorRun)
	defer stop()
	err := s.could(limited, key)
	switch {
	case err == nil:
		return ""
	case limited.Err() != nil:
		return "whether it can be worked on was not found out in time"
	}
	return whyNot(err)
}

// worker is what a worker of this machine would be, with one interpreter. It takes no
// share of the memory and no run.
func (d *examination) worker(home *Instance) (*server, error) {
	b, err := share(0, 1, true)
	if err != nil {
		return nil, err
	}
	opts := Process{Interpreter: d.Interpreter, Keeper: d.Keeper, Remote: d.Remote, Known: d.Known,
		stateWithin: doctorPatience}
	return &server{tools: &tools{home: home, opts: opts, work: d.tmp, store: newStore(home, opts), budget: b}}, nil
}

// could says why a run would be refused here; nil: it would be worked on.
func (s *server) could(ctx context.Context, key state.RunKey) error {
	rec, err := s.recall(ctx, key)
	if err != nil {
		return err
	}
	if err := s.compatible(rec.run); err != nil {
		return err
	}
	_, err = s.likePython(ctx, rec)
	return err
}
