package gc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// Config selects the garbage to collect.
type Config struct {
	Store     state.Store
	Parts     parts.Backend
	Leavings  pipeline.Leavings // with Store; Dead is decided here
	Workspace string
	Limits    Limits
	Script    func(state.Run) string // which script a run is of
	// Given says by what a run differs from others of its script: its parameters.
	Given func(context.Context, state.Run) (string, error)
	// There reports whether an output is there, or may be.
	There func(ctx context.Context, url string) bool
	// Alone keeps others from working on a run until release is called; ok is
	// false if somebody does.
	Alone      func(state.RunKey) (release func(), ok bool, err error)
	DryRun     bool // only find out
	By         state.Mark
	Checkpoint func(job.CrashPoint) // for tests that die there; may be nil
}

// Amount is a number of things, and their bytes if those are known.
type Amount struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

func (a *Amount) add(bytes int64) { a.Count, a.Bytes = a.Count+1, a.Bytes+bytes }

// Report lists what was, or would be, removed and what was left.
type Report struct {
	Drops []int64 `json:"dropped_now"` // runs that are over the limits
	// what becomes of each run that is not dropped yet, the latest first; nil: no limits are given
	Runs        []Verdict `json:"runs,omitempty"`
	Dead        Amount    `json:"dead_parts"`      // of attempts that cannot commit
	Withdrawn   Amount    `json:"withdrawn_parts"` // of attempts whose batch was done again
	Dropped     Amount    `json:"dropped_parts"`   // of dropped runs
	Unpublished Amount    `json:"unpublished"`     // temporary files and uploads that dead attempts announced
	Purged      int64     `json:"purged_nodes"`    // of dropped runs: their records of work
	// of dropped runs, and withdrawn ones: others read them, or are at it
	Held    Amount `json:"held_parts"`
	Unknown Amount `json:"unknown_parts"` // that state does not know: they stay
}

// collector is one call of Collect.
type collector struct {
	Config
	report  Report
	dropped map[int64]bool   // runs
	given   map[int64]string // by run; see Config
	reads   reads
}

// Collect removes what is not needed, or finds out what that would be.
func Collect(ctx context.Context, cfg Config) (Report, error) {
	c := &collector{Config: cfg, dropped: map[int64]bool{}, given: map[int64]string{}}
	if c.Checkpoint == nil {
		c.Checkpoint = func(job.CrashPoint) {}
	}
	c.report.Drops = []int64{}
	if err := c.Limits.check(); err != nil {
		return c.report, err
	}
	for _, step := range []func(context.Context) error{c.carry, c.retain, c.scan, c.leavings, c.waste, c.purge} {
		if err := step(ctx); err != nil {
			return c.report, err
		}
	}
	return c.report, nil
}

// eachRun calls do for each run of the workspace, as lists give it.
func (c *collector) eachRun(ctx context.Context, do func(state.Run) error) error {
	for page := (state.Page{}); ; {
		runs, next, err := c.Store.Runs(ctx, c.Workspace, page)
		if err != nil {
			return fmt.Errorf("list the runs of workspace %s: %w", c.Workspace, err)
		}
		for _, run := range runs {
			if err := do(run); err != nil {
				return err
			}
		}
		if page.From = next; next == 0 {
			return nil
		}
	}
}

// carry notes which runs are dropped, and carries out drops that were begun.
func (c *collector) carry(ctx context.Context) error {
	return c.eachRun(ctx, func(listed state.Run) error {
		run, err := c.Store.Run(ctx, listed.RunKey)
		if err != nil {
			return fmt.Errorf("read run %d: %w", listed.Run, err)
		}
		dropping := run.Command.Pending() && run.Command.Kind == state.CommandDrop
		if dropping && !c.DryRun {
			if err := state.Carry(ctx, c.Store, run, time.Now()); err != nil {
				return fmt.Errorf("drop run %d: %w", run.Run, err)
			}
		}
		if dropping || run.Dropped != nil {
			c.dropped[run.Run] = true
			return nil
		}
		if c.Limits.given() {
			c.given[run.Run], err = c.Given(ctx, run)
		}
		return err
	})
}

// leavings removes what attempts announced that cannot commit any more.
func (c *collector) leavings(ctx context.Context) error {
	return c.eachRun(ctx, func(run state.Run) error {
		nodes, err := c.Store.Nodes(ctx, run.RunKey)
		if err != nil {
			return fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
		}
		for _, n := range nodes {
			if n.Status == state.Succeeded || n.Status == state.Pending && n.PlanDigest == "" {
				continue
			}
			if err := c.leavingsOf(ctx, n.NodeKey); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *collector) leavingsOf(ctx context.Context, key state.NodeKey) (err error) {
	some, _, err := c.Store.Publications(ctx, key, state.Page{Limit: 1})
	if err != nil || len(some) == 0 {
		return err
	}
	release, alone, err := c.Alone(key.RunKey)
	if err != nil {
		return err
	}
	if alone {
		defer release()
	}
	l := c.Leavings
	l.Dead = alone
	before, bytes, err := l.Left(ctx, key)
	if err != nil || c.DryRun {
		c.report.Unpublished.Count += int64(len(before))
		c.report.Unpublished.Bytes += bytes
		return err
	}
	failed := l.Clear(ctx, key)
	after, left, err := l.Left(ctx, key)
	c.report.Unpublished.Count += int64(len(before) - len(after))
	c.report.Unpublished.Bytes += bytes - left
	c.Checkpoint(job.Cleared)
	return errors.Join(failed, err)
}

// purge lets state forget the work of nodes of dropped runs whose parts are gone.
func (c *collector) purge(ctx context.Context) error {
	for number := range c.dropped {
		key := state.RunKey{Workspace: c.Workspace, Run: number}
		if !c.DryRun {
			if err := sheet.Drop(ctx, c.Store, key); err != nil {
				return err
			}
		}
		nodes, err := c.Store.Nodes(ctx, key)
		if err != nil {
			return fmt.Errorf("read the nodes of run %d: %w", number, err)
		}
		for _, n := range nodes {
			if n.PlanDigest == "" || c.reads.holds(n.NodeKey) {
				continue
			}
			left, _, err := c.Store.Publications(ctx, n.NodeKey, state.Page{Limit: 1})
			if err != nil {
				return fmt.Errorf("look for what dead attempts left: %w", err)
			}
			if len(left) > 0 && !c.DryRun { // a server is away: its name must not be forgotten
				continue
			}
			c.report.Purged++
			if c.DryRun {
				continue
			}
			if err := c.Store.Purge(ctx, n.NodeKey); err != nil {
				return fmt.Errorf("forget the work of node %s of run %d: %w", n.Name, n.Run, err)
			}
			c.Checkpoint(job.Purged)
		}
	}
	return nil
}

// Limits are a workspace's retention: a run is dropped that is over each of those that are given.
type Limits struct {
	Keep      int           // so many of the latest runs stay of each script, parameters and nodes; 0: no such limit
	OlderThan time.Duration // only runs that ended longer ago are dropped; 0: no such limit
}

func (l Limits) given() bool { return l.Keep != 0 || l.OlderThan != 0 }

func (l Limits) check() error {
	if l.Keep < 0 || l.OlderThan < 0 {
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("a retention of %d runs, or of %s",
			l.Keep, l.OlderThan),
			Hint: "{{set keep}} is a number of runs from 1 on, {{set older-than}} a time such as 30d"}
	}
	return nil
}
