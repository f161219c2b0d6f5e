package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// Verdict is the decision on a run under the limits, and its reason.
type Verdict struct {
	Run   int64  `json:"run"`
	Drops bool   `json:"drops"`
	Why   string `json:"why"`
	// Others are the later runs of its script that take no place of it: with other parameters, or of other nodes.
	Others int `json:"others,omitempty"`
}

// retain drops the runs that are over the limits. Those that are not over, the
// latest complete run of each kind, the last that wrote an output that is there,
// and what a run that stays has read or taken over, stay.
func (c *collector) retain(ctx context.Context) error {
	if !c.Limits.given() {
		return nil
	}
	c.report.Runs = []Verdict{}
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

// kind returns a text that is the same for runs of which later ones replace earlier ones: script, inputs, and
// the nodes that were run.
func (c *collector) kind(run state.Run) string {
	names := make([]string, len(run.Nodes))
	for i, n := range run.Nodes {
		names[i] = n.Name
	}
	slices.Sort(names)
	return strings.Join(append([]string{c.Script(run), c.given[run.Run]}, names...), "\x00")
}

// over lists the runs that are over the limits, the latest first, and judges all.
func (c *collector) over(ctx context.Context) (over []int64, err error) {
	w, err := c.writers(ctx)
	if err != nil {
		return nil, err
	}
	later := map[string]int{}  // runs of a kind that were met
	whole := map[string]bool{} // kinds whose latest complete run was met
	of := map[string]int{}     // runs of a script that were met
	err = c.eachRun(ctx, func(run state.Run) error {
		if c.dropped[run.Run] {
			return nil
		}
		kind := c.kind(run)
		before, complete := later[kind], isComplete(run)
		latest := complete && !whole[kind]
		others := of[c.Script(run)] - before
		later[kind]++
		of[c.Script(run)]++
		whole[kind] = whole[kind] || complete
		v, err := c.verdict(ctx, run, before, latest, w)
		if err != nil {
			return err
		}
		if v.Others = others; latest && others > 0 {
			v.Why += fmt.Sprintf("; %s other ones, and %s drops it", laterRuns(others),
				run.Do("drop", "reason", "retention"))
		}
		if c.report.Runs = append(c.report.Runs, v); v.Drops {
			over = append(over, run.Run)
		}
		return nil
	})
	return over, err
}

func laterRuns(n int) string {
	if n == 1 {
		return "a later run of it has"
	}
	return fmt.Sprintf("%d later runs of it have", n)
}

func isComplete(run state.Run) bool {
	return run.Status == state.Complete &&
		!slices.ContainsFunc(run.Nodes, func(n state.NodeBrief) bool { return n.Status == state.Invalidated })
}

// verdict says of a run by itself whether it goes: later is how many of its kind are
// later, latest whether it is the latest complete one.
func (c *collector) verdict(ctx context.Context, run state.Run, later int, latest bool, w writers) (Verdict, error) {
	const kind = "of its script with the same parameters and nodes"
	stays := func(why string, args ...any) (Verdict, error) {
		return Verdict{Run: run.Run, Why: fmt.Sprintf(why, args...)}, nil
	}
	l := c.Limits
	switch {
	case !run.Status.Terminal() || run.GoesOn():
		return stays("it is not over")
	case latest:
		return stays("the latest complete run %s", kind)
	case l.Keep != 0 && later < l.Keep:
		return stays("one of the latest %d %s", l.Keep, kind)
	case l.OlderThan != 0 && (run.Finished.IsZero() || c.By.Time.Sub(run.Finished) <= l.OlderThan):
		return stays("it has not ended longer ago than {{set older-than}}")
	}
	file, err := c.current(ctx, run, w)
	if err != nil {
		return Verdict{}, err
	}
	if file != "" {
		return stays("the last run that wrote %s, which is there", file)
	}
	release, alone, err := c.Alone(run.RunKey)
	if err != nil {
		return Verdict{}, err
	}
	if !alone {
		return stays("somebody works on it")
	}
	release()
	v := Verdict{Run: run.Run, Drops: true, Why: "it ended longer ago than {{set older-than}}"}
	if l.Keep != 0 {
		v.Why = fmt.Sprintf("there are %d later runs %s", later, kind)
		if later == 1 {
			v.Why = "there is a later run " + kind
		}
	}
	return v, nil
}

// stay takes back that a run goes.
func (c *collector) stay(run int64, why string) {
	i, ok := slices.BinarySearchFunc(c.report.Runs, run, func(v Verdict, run int64) int {
		return cmp.Compare(run, v.Run)
	})
	if ok {
		c.report.Runs[i].Drops, c.report.Runs[i].Why = false, why
	}
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
	for _, run := range slices.Sorted(maps.Keys(r.open)) {
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
					c.stay(of, fmt.Sprintf("run %d, which stays, has read its tables or taken them over", one))
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
				c.stay(key.Run, readersStay)
				stays = append(stays, key.Run)
			}
		}
		if len(stays) == 0 {
			break
		}
	}
	return slices.DeleteFunc(over, func(run int64) bool { return !goes[run] }), nil
}

// readersStay is the reason for keeping a run whose tables are about to be read.
const readersStay = "another run is at work on its tables, or about to be"

func (c *collector) keys(runs []int64) []state.RunKey {
	keys := make([]state.RunKey, len(runs))
	for i, run := range runs {
		keys[i] = state.RunKey{Workspace: c.Workspace, Run: run}
	}
	return keys
}

// refused reports whether a run cannot be dropped together with others.
func (c *collector) refused(ctx context.Context, key state.RunKey, with []state.RunKey) (bool, error) {
	_, err := orders.MayDrop(ctx, c.Store, key, with)
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
			_, err := orders.DropRuns(ctx, c.Store, c.keys([]int64{run}), by)
			refused, err := refusal(err)
			if err != nil {
				return fmt.Errorf("drop run %d: %w", run, err)
			}
			if refused {
				continue
			}
			c.dropped[run], again = true, true
			c.report.Drops = append(c.report.Drops, run)
			c.Checkpoint(job.RunDropped)
		}
	}
	for _, run := range runs {
		if !c.dropped[run] {
			c.stay(run, readersStay)
		}
	}
	return nil
}
