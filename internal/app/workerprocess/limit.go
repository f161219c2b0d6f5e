package workerprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/base/allowance"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/ops/price"
	"thalweg/internal/run/limit"
	"thalweg/internal/store/state"
)

// Ask says what a run may take, as people write it: "" says nothing, and limit.None takes a limit away.
type Ask struct {
	Elapsed string // 2h, 90m
	Cost    string // US dollars: 12.50
}

// Empty reports whether nothing is said.
func (a Ask) Empty() bool { return a == Ask{} }

// Over returns what is asked, and of b what is not said here.
func (a Ask) Over(b Ask) Ask {
	return Ask{Elapsed: cmp.Or(a.Elapsed, b.Elapsed), Cost: cmp.Or(a.Cost, b.Cost)}
}

// AskOf asks for what a run may take.
func AskOf(l *state.Limit) (a Ask) {
	if l == nil {
		return a
	}
	if l.Elapsed > 0 {
		a.Elapsed = l.Elapsed.String()
	}
	if l.Cost > 0 {
		a.Cost = strings.TrimPrefix(price.Money(l.Cost).Text(6), "$")
	}
	return a
}

// On returns a limit with what is asked.
func (a Ask) On(before *state.Limit) (state.Limit, error) {
	var l state.Limit
	if before != nil {
		l = *before
		l.Foreseen = false
	}
	var err error
	if a.Elapsed != "" {
		if l.Elapsed, err = allowance.Elapsed(a.Elapsed); err != nil {
			return l, &fault.Error{Kind: fault.Script, Message: err.Error(), Hint: allowance.ElapsedHint}
		}
	}
	if a.Cost != "" {
		cost, err := allowance.Cost(a.Cost)
		if err != nil {
			return l, &fault.Error{Kind: fault.Script, Message: err.Error(), Hint: allowance.CostHint}
		}
		l.Cost = state.Money(cost)
	}
	return l, nil
}

// Prospect is what a new run is expected to take, and the prices of that.
type Prospect struct {
	// Low is the lower end of what is expected, and Of the number of earlier runs that it rests on; 0: nothing is
	// expected.
	Low   limit.Used
	Of    int
	Nodes map[string]time.Duration // of slots, by node
	// Elapsed is the middle of what it is expected to take.
	Elapsed time.Duration
}

// Rates are the prices of a run's time.
type Rates struct {
	PerHour     price.Money // of the run
	PerSlotHour price.Money // of a slot at its batches
	Unpriced    string      // why there are none; "": there are
}

// Spendable refuses a run that has taken all that it may.
func Spendable(ctx context.Context, s state.Store, run state.Run, l state.Limit, now *time.Time) error {
	if l.None() {
		return nil
	}
	elapsed, err := limit.Elapsed(ctx, s, run, *now)
	if err != nil {
		return err
	}
	nodes, err := s.Nodes(ctx, run.RunKey)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	name, figures := limit.Of(l, elapsed, nodes).Reached(l)
	if name == "" {
		return nil
	}
	return &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("run %d has reached its limit: %s", run.Run, figures),
		Hint: fmt.Sprintf("%s goes on with a higher one; {{set %s=none}} takes it away",
			run.Do("resume", name, unit(name)), name)}
}

// unit is what a limit is given in.
func unit(name string) string {
	if name == limit.MaxElapsed {
		return "DURATION"
	}
	return "USD"
}

// LastSign returns when anything last happened in a run that nobody works on, if that was before now.
func LastSign(ctx context.Context, s state.Store, run state.Run, now time.Time) (*time.Time, error) {
	nodes, err := s.Nodes(ctx, run.RunKey)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	last := run.Created
	if run.Command != nil && run.Command.Time.After(last) {
		last = run.Command.Time
	}
	for _, n := range nodes {
		if n.Revision == 0 {
			continue
		}
		events, err := s.Events(ctx, n.NodeKey, n.Revision-1, 1)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return nil, fmt.Errorf("read the latest event of node %s of run %d: %w", n.Name, run.Run, err)
		}
		for _, e := range events {
			if e.Time.After(last) {
				last = e.Time
			}
		}
	}
	if !last.Before(now) {
		return nil, nil
	}
	return &last, nil
}

// Foreseen refuses a run that is expected to exceed its limit in any case.
func Foreseen(l state.Limit, p Prospect) error {
	low := p.Low.Plus(l, 0, 0)
	if name, figures := low.Exceeds(l); name != "" {
		return &fault.Error{Kind: fault.Script,
			Message: "nothing was begun: the run would reach its limit. At least " + figures + ", by " +
				format.Counted(int64(p.Of), "earlier run", "earlier runs"),
			Hint: fmt.Sprintf("give a higher {{set %s=%s}}, or none; {{set dry-run}} shows what is expected", name, unit(name))}
	}
	return nil
}
