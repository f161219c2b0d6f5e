package orders

import (
	"context"
	"fmt"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Take records that somebody looks after the failure of a run, until it goes on. It
// returns who did before; nil: nobody. A run that has not failed is refused.
func Take(ctx context.Context, s state.Store, key state.RunKey, by state.Mark) (before *state.Mark, err error) {
	err = state.Decide(ctx, s, key, by.OrderToken(), by.Time, func(run state.Run) (state.Command, error) {
		before = run.Taken()
		c := state.Command{Kind: state.CommandTake, Mark: by}
		if _, ok := c.Leads(run); !ok {
			return c, notFailed(run)
		}
		return c, nil
	})
	return before, err
}

// notFailed says why nobody takes the failure of a run.
func notFailed(run state.Run) error {
	f := &fault.Error{Kind: fault.Script, Code: fault.Conflict,
		Message: fmt.Sprintf("run %d is %s: it has no failure to take", run.Run, run.Status),
		Hint:    run.Do("why").String() + " says how it is"}
	switch {
	case run.Dropped != nil:
		f.Message = fmt.Sprintf("run %d was dropped by %s: %s", run.Run, run.Dropped.Actor, run.Dropped.Reason)
	case run.Invalidated != nil:
		f.Message = fmt.Sprintf("run %d was invalidated by %s: %s", run.Run, run.Invalidated.Actor,
			run.Invalidated.Reason)
	}
	return f
}
