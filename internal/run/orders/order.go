package orders

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/store/state"
)

// errAtWork says that a run has to be stopped before something of it is done again.
var errAtWork = errors.New("the run may be worked on")

// GoOn lets a run go on, and does of it again what a wish leads to. What that
// is was decided on the run as it is when the order begins: a run that moves
// meanwhile is looked at again, and one that others may be at work on is
// stopped first, so that no node is planned behind the decision's back.
//
// change may change the command that lets the run go on; nil: it stays.
func GoOn(ctx context.Context, s state.Store, key state.RunKey, w RedoSelection, by state.Mark,
	change func(run state.Run, c *state.Command) error) (c RedoPlan, err error) {
	for {
		err := state.Decide(ctx, s, key, by.OrderToken(), by.Time, func(run state.Run) (state.Command, error) {
			o := state.Command{Kind: state.CommandReopen, Mark: by}
			if c, err = Close(ctx, s, run, w); err != nil {
				return o, err
			}
			switch {
			case len(c.Redo) > 0 && !run.Status.Terminal():
				return o, errAtWork
			case len(c.Redo) > 0:
				o.Kind, o.Nodes = state.CommandRedo, c.Redo
			case run.Status == state.Paused: // what is in flight is not disturbed
				o.Kind = state.CommandUnpause
			}
			if change != nil {
				return o, change(run, &o)
			}
			return o, nil
		})
		if !errors.Is(err, errAtWork) {
			return c, err
		}
		stop := by
		stop.Reason = state.ReasonAgain
		if _, err := Stop(ctx, s, key, stop); err != nil {
			return c, fmt.Errorf("do parts of run %d again: %w", key.Run, err)
		}
	}
}
