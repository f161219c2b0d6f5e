package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"thalweg/internal/app/workerprocess"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// Types of limits.
type (
	Ask      = workerprocess.Ask
	Prospect = workerprocess.Prospect
	Rates    = workerprocess.Rates
)

// Limiter knows what runs are expected to take, and what their time costs.
type Limiter interface {
	Prospect(ctx context.Context, s *script.Script, o Options) (workerprocess.Prospect, error)
	Rates(ctx context.Context) (workerprocess.Rates, error)
}

// LimitNew returns the limit of a new run; nil: it has none. One that is expected to be exceeded in any case is
// refused.
func LimitNew(ctx context.Context, s *script.Script, o Options) (*state.Limit, error) {
	l, err := o.Most.On(nil)
	if err != nil || l.None() {
		return nil, err
	}
	if o.Limiter == nil {
		return nil, fault.New(fault.Bug, "a limit of a run, and nothing that knows what it is expected to take")
	}
	if err := priced(ctx, o.Limiter, &l); err != nil {
		return nil, err
	}
	alone := o
	alone.Limiter, alone.Most = nil, workerprocess.Ask{}
	p, err := o.Limiter.Prospect(ctx, s, alone)
	if err != nil {
		return nil, fmt.Errorf("see what the run is expected to take: %w", err)
	}
	if p.Of == 0 {
		return &l, nil
	}
	l.Expected, l.ExpectedElapsed = p.Nodes, p.Elapsed
	if err := workerprocess.Foreseen(l, p); err != nil {
		return nil, err
	}
	return &l, nil
}

// priced gives a limit of cost the prices of now.
func priced(ctx context.Context, by Limiter, l *state.Limit) error {
	if l.Cost == 0 {
		return nil
	}
	rates, err := by.Rates(ctx)
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
		l, err := r.opts.Most.On(run.Limit)
		if err != nil {
			return err
		}
		if !r.opts.Most.Empty() {
			if r.opts.Most.Cost != "" && l.Cost > 0 {
				if err := priced(ctx, r.opts.Limiter, &l); err != nil {
					return err
				}
			}
			c.Limit = &l
		}
		if run.Status == state.Running && !r.joined {
			if c.Left, err = workerprocess.LastSign(ctx, r.Store, run, c.Time); err != nil {
				return err
			}
		}
		err = workerprocess.Spendable(ctx, r.Store, run, l, cmp.Or(c.Left, &c.Time))
		var f *fault.Error
		if r.opts.Most.Empty() && errors.As(err, &f) {
			f.Code = fault.Conflict // else it is what is asked that is wrong
		}
		return err
	}
}
