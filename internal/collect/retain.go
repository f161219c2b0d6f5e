package collect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"thalweg/internal/fault"
	"thalweg/internal/state"
	"thalweg/internal/supervise"
	"thalweg/internal/worker"
)

// retain drops the runs that are over the limits. Those that are not over, the
// latest good run of each script, and what a run that stays has read or taken
// over, stay.
func (c *collector) retain(ctx context.Context) error {
	if !c.Limits.given() {
		return nil
	}
	over, err := c.over(ctx)
	if err != nil {
		return err
	}
	if over, err = c.unread(ctx, over); err != nil {
		return err
	}
	if c.DryRun {
		c.report.Drops = append(c.report.Drops, over...)
		for _, run := range over {
			c.dropped[run] = true
		}
		return nil
	}
	return c.drop(ctx, over)
}

// over lists the runs that are over the limits, the latest first.
func (c *collector) over(ctx context.Context) (over []int64, err error) {
	place := 0
	good := map[string]bool{} // scripts whose latest good run was found
	err = c.eachRun(ctx, func(run state.Run) error {
		if c.dropped[run.Run] {
			return nil
		}
		place++
		if run.Status == state.Complete && !slices.ContainsFunc(run.Nodes, func(n state.NodeBrief) bool { return n.Status == state.Invalidated }) {
			if script := c.Script(run); !good[script] {
				good[script] = true
				return nil
			}
		}
		live := !run.Status.Terminal() || run.GoesOn()
		many := c.Limits.Keep == 0 || place > c.Limits.Keep
		old := c.Limits.OlderThan == 0 || !run.Finished.IsZero() && c.By.Time.Sub(run.Finished) > c.Limits.OlderThan
		if live || !many || !old {
			return nil
		}
		release, alone, err := c.Alone(run.RunKey)
		if alone {
			release()
			over = append(over, run.Run)
		}
		return err
	})
	return over, err
}

// unread takes out of runs what others have read that stay.
func (c *collector) unread(ctx context.Context, over []int64) ([]int64, error) {
	r, err := c.readPlans(ctx)
	if err != nil {
		return nil, err
	}
	goes := map[int64]bool{}
	for _, run := range over {
		goes[run] = true
	}
	var stays []int64
	for run := range r.open {
		if !goes[run] {
			stays = append(stays, run)
		}
	}
	settle := func() {
		for len(stays) > 0 {
			one := stays[len(stays)-1]
			stays = stays[:len(stays)-1]
			for of := range r.runs[one] {
				if goes[of] {
					delete(goes, of)
					stays = append(stays, of)
				}
			}
		}
	}
	// Plans say who has read; notes, who is about to.
	for settle(); ; settle() {
		with := c.keys(slices.Sorted(maps.Keys(goes)))
		for _, key := range with {
			refused, err := c.refused(ctx, key, with)
			if err != nil {
				return nil, err
			}
			if refused {
				delete(goes, key.Run)
				stays = append(stays, key.Run)
			}
		}
		if len(stays) == 0 {
			break
		}
	}
	return slices.DeleteFunc(over, func(run int64) bool { return !goes[run] }), nil
}

func (c *collector) keys(runs []int64) []state.RunKey {
	keys := make([]state.RunKey, len(runs))
	for i, run := range runs {
		keys[i] = state.RunKey{Workspace: c.Workspace, Run: run}
	}
	return keys
}

// refused reports whether a run cannot be dropped together with others.
func (c *collector) refused(ctx context.Context, key state.RunKey, with []state.RunKey) (bool, error) {
	_, err := supervise.MayDrop(ctx, c.Store, key, with)
	return refusal(err)
}

// refusal tells why a run is not dropped, which is fine here, from other failures.
func refusal(err error) (bool, error) {
	var f *fault.Error
	if errors.As(err, &f) && f.Kind == fault.Script || errors.Is(err, state.ErrConflict) {
		return true, nil
	}
	return false, err
}

// drop drops runs, each when none has its rows that is not dropped: those are
// tried again after others.
func (c *collector) drop(ctx context.Context, runs []int64) error {
	for again := true; again; {
		again = false
		for _, run := range runs {
			if c.dropped[run] {
				continue
			}
			by := c.By
			by.Time = time.Now()
			_, err := supervise.DropRuns(ctx, c.Store, c.keys([]int64{run}), by)
			refused, err := refusal(err)
			if err != nil {
				return fmt.Errorf("drop run %d: %w", run, err)
			}
			if refused {
				continue
			}
			c.dropped[run], again = true, true
			c.report.Drops = append(c.report.Drops, run)
			c.Checkpoint(worker.RunDropped)
		}
	}
	return nil
}
