package explore

import (
	"context"

	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest/hostile"
)

// Beside is shown a call that has been made, and what was answered, to make it of
// another store, too.
type Beside func(name string, do func(ctx context.Context, st state.Store) error, answer error) error

// Walk takes one way through the states, in a run that it begins in an empty
// workspace of the store: pick chooses among n steps. It ends when there is none, or after
// so many. A promise that is broken is an error, as in Explore.
func Walk(b Bounds, store *hostile.Store, workspace string, steps int, pick func(n int) int, beside Beside) error {
	w, err := newWorld(b, store, workspace)
	if err != nil {
		return err
	}
	w.beside = beside
	for range steps {
		all := w.steps()
		if len(all) == 0 {
			return nil
		}
		if err := all[pick(len(all))].do(w); err != nil {
			return err
		}
	}
	return nil
}
