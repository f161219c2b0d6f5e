package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/lang/script"
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

// askOf asks for what a run may take.
func askOf(l *state.Limit) (a Ask) {
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

// on returns a limit with what is asked.
func (a Ask) on(before *state.Limit) (state.Limit, error) {
	var l state.Limit
	if before != nil {
		l = *before
		l.Foreseen = false
	}
	switch a.Elapsed {
	case "":
	case limit.None:
		l.Elapsed = 0
	default:
		d, err := time.ParseDuration(a.Elapsed)
		if err != nil || d < time.Millisecond {
			return l, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q is no time that a run may take", a.Elapsed),
				Hint: "write a time such as 2h or 90m, or none"}
		}
		l.Elapsed = d
	}
	switch a.Cost {
	case "":
	case limit.None:
		l.Cost = 0
	default:
		m, err := price.Parse(a.Cost)
		if err != nil || m == 0 {
			return l, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q is nothing that a run may cost", a.Cost),
				Hint: "write US dollars such as 12.50, or none"}
		}
		l.Cost = state.Money(m)
	}
	return l, nil
}

// Prospect is what a new run is expected to take, and the prices of that.
type Prospect struct {
	// Low is the lower end of what is expected, and Of the number of earlier runs that it rests on; 0: nothing is expected.
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

// Limiter knows what runs are expected to take, and what their time costs.
type Limiter interface {
	Prospect(ctx context.Context, s *script.Script, o Options) (Prospect, error)
	Rates(ctx context.Context) (Rates, error)
}

// limitNew returns the limit of a new run; nil: it has none. One that is expected to be exceeded in any case is refused.
func (r *runner) limitNew(ctx context.Context) (*state.Limit, error) {
	l, err := r.opts.Most.on(nil)
	if err != nil || l.None() {
		return nil, err
	}
	if r.opts.Limiter == nil {
		return nil, fault.New(fault.Bug, "a limit of a run, and nothing that knows what it is expected to take")
	}
	if err := r.priced(ctx, &l); err != nil {
		return nil, err
	}
	o := r.opts
	o.Limiter, o.Most = nil, Ask{}
	p, err := r.opts.Limiter.Prospect(ctx, r.script, o)
	if err != nil {
		return nil, fmt.Errorf("see what the run is expected to take: %w", err)
	}
	if p.Of == 0 {
		return &l, nil
	}
	l.Expected, l.ExpectedElapsed = p.Nodes, p.Elapsed
	low := p.Low.Plus(l, 0, 0)
	if name, figures := low.Exceeds(l); name != "" {
		return nil, &fault.Error{Kind: fault.Script,
			Message: "nothing was begun: the run would reach its limit. At least " + figures + ", by " +
				format.Counted(int64(p.Of), "earlier run", "earlier runs"),
			Hint: fmt.Sprintf("give a higher {{set %s=%s}}, or none; {{set dry-run}} shows what is expected", name, unit(name))}
	}
	return &l, nil
}

// priced gives a limit of cost the prices of now.
func (r *runner) priced(ctx context.Context, l *state.Limit) error {
	if l.Cost == 0 {
		return nil
	}
	rates, err := r.opts.Limiter.Rates(ctx)
	if err != nil {
		return fmt.Errorf("see what the run's time costs: %w", err)
	}
	if rates.Unpriced != "" {
		return &fault.Error{Kind: fault.Script,
			Message: "{{set max-cost}} needs the price of what the run works on: " + rates.Unpriced,
			Hint: "THALWEG_MACHINE, or worker.machine of the cluster, names the type of machine; THALWEG_PRICES, or cost.prices, " +
				"a file of prices; {{set max-elapsed=DURATION}} needs neither"}
	}
	l.PerHour, l.PerSlotHour = state.Money(rates.PerHour), state.Money(rates.PerSlotHour)
	return nil
}

// limitAgain gives the command by which a run goes on its limit. A run that has reached its limit needs another one.
func (r *runner) limitAgain(ctx context.Context) func(state.Run, *state.Command) error {
	return func(run state.Run, c *state.Command) error {
		l, err := r.opts.Most.on(run.Limit)
		if err != nil {
			return err
		}
		if !r.opts.Most.Empty() {
			if r.opts.Most.Cost != "" && l.Cost > 0 {
				if err := r.priced(ctx, &l); err != nil {
					return err
				}
			}
			c.Limit = &l
		}
		if run.Status == state.Running && !r.joined {
			if c.Left, err = lastSign(ctx, r.Store, run, c.Time); err != nil {
				return err
			}
		}
		return spendable(ctx, r.Store, run, l, cmp.Or(c.Left, &c.Time))
	}
}

// spendable refuses a run that has taken all that it may.
func spendable(ctx context.Context, s state.Store, run state.Run, l state.Limit, now *time.Time) error {
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
	return &fault.Error{Kind: fault.Script, Code: fault.Conflict,
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

// lastSign returns when anything last happened in a run that nobody works on, if that was before now.
func lastSign(ctx context.Context, s state.Store, run state.Run, now time.Time) (*time.Time, error) {
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
