package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/app/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/ops/doctor"
	"thalweg/internal/store/state"
)

// Limits of a look at open runs: each has its Python code imported.
const (
	runsMost   = 20               // that are looked at
	runTimeout = 10 * time.Second // of each
)

// openRuns says which runs that are not over this machine could not work on: those that a
// worker here would refuse.
func (d *examination) openRuns(ctx context.Context, home *instance.Instance) (found doctor.OpenRuns, err error) {
	would, err := d.worker(home)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, would.GiveBack()) }()
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
	for _, r := range open[:min(len(open), runsMost)] {
		if enough.Err() != nil {
			break
		}
		found.Looked++
		if why := refuses(enough, would, r.RunKey); why != "" {
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
func refuses(ctx context.Context, s *worker.Server, key state.RunKey) string {
	limited, stop := context.WithTimeout(ctx, runTimeout)
	defer stop()
	err := s.Could(limited, key)
	switch {
	case err == nil:
		return ""
	case limited.Err() != nil:
		return "whether it can be worked on was not found out in time"
	}
	return worker.WhyNot(err)
}

// worker returns a worker as this machine would have it, with one interpreter. It takes no share of
// the memory and no run.
func (d *examination) worker(home *instance.Instance) (*worker.Server, error) {
	b, err := runtime.ShareOf(0, 1, true)
	if err != nil {
		return nil, err
	}
	opts := runtime.Process{Interpreter: d.Interpreter, Keeper: d.Keeper, Remote: d.Remote, Known: d.Known,
		StateWithin: cluster.LookPatience}
	return worker.NewIdle(home, opts, d.tmp, b), nil
}
