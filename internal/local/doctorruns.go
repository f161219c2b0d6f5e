package local

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/doctor"
	"thalweg/internal/state"
)

// doctorRuns is how many open runs are looked at: each has its Python code imported.
const doctorRuns = 20

// openRuns says which runs that are not over this machine could not work on: those that a
// worker here would refuse.
func (d *examination) openRuns(ctx context.Context, home *Home) (found doctor.OpenRuns, err error) {
	would, err := d.worker(home)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, would.giveBack()) }()
	workspaces, err := home.State.Workspaces(ctx)
	if err != nil {
		return found, err
	}
	for _, w := range workspaces {
		runs, err := state.OpenRuns(ctx, home.State, w, nil)
		if err != nil {
			return found, err
		}
		for _, r := range runs {
			if found.Open++; found.Looked == doctorRuns {
				continue
			}
			found.Looked++
			refused := would.could(ctx, r.RunKey)
			if ctx.Err() != nil {
				return found, ctx.Err()
			}
			if refused != nil {
				found.Why = append(found.Why, fmt.Sprintf("%s/%d: %s", w, r.Run, whyNot(refused)))
			}
		}
	}
	return found, nil
}

// worker is what a worker of this machine would be, with one interpreter. It takes no
// share of the memory and no run.
func (d *examination) worker(home *Home) (*server, error) {
	b, err := share(0, 1, true)
	if err != nil {
		return nil, err
	}
	opts := Options{Interpreter: d.Interpreter, Keeper: d.Keeper, Remote: d.Remote, Known: d.Known, stateWithin: doctorPatience}
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
