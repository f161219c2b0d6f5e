package runs

import (
	"context"
	"time"

	"thalweg/internal/app/sizing"
	"thalweg/internal/base/budget"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/planning"
	"thalweg/internal/ops/simulate"
	"thalweg/internal/store/state"
)

// Types of plans.
type (
	Wanted  = sizing.Wanted
	Planned = sizing.Planned
)

// PlanFor chooses machines for a complete run, or a larger one of its script. here cuts the batches where its time
// sheets do not say how much memory there was.
func (s *Service) PlanFor(ctx context.Context, key state.RunKey, w sizing.Wanted, here budget.Budget) (sizing.Planned,
	error) {
	model, record, err := s.learnt(ctx, key)
	if err != nil {
		return sizing.Planned{}, err
	}
	machines, err := planning.MachinesOf(w.Prices, w.Machines, record.Machine, w.Speeds)
	if err != nil {
		return sizing.Planned{}, err
	}
	was := s.load(here)
	if b, err := budget.Split(record.Memory, record.Cores, record.Cores); err == nil {
		was.Budget = b
	}
	alone := was
	alone.Was = &forecast.Place{Budget: was.Budget, State: was.State, Queue: was.Queue}
	alone.Scale, alone.Batches = w.Scale, w.Batches
	many := alone
	if portfolio := simulate.Portfolio(); alone.State.Kind != portfolio.State.Kind {
		many.State, many.Queue, many.Parts = portfolio.State, portfolio.Queue, portfolio.Parts
	}
	q := planning.Question{Model: model, Record: record, Alone: alone, Many: many, Machines: machines,
		Deadline: w.Deadline, Budget: w.Budget, BringUp: w.BringUp}
	plan, err := planning.Answer(ctx, q)
	if err != nil {
		return sizing.Planned{}, err
	}
	out := sizing.Planned{Run: key.Run, Scale: w.Scale, Deadline: w.Deadline.Seconds(), BringUp: w.BringUp.Seconds(),
		Measured: sizing.Measured{Machine: record.Machine, Workers: record.Workers, Cores: record.Cores,
			Slots: record.Slots, Elapsed: record.Elapsed.Round(time.Millisecond).Seconds()},
		Plan: plan, Notes: q.Notes(), Warnings: q.Warnings(plan)}
	if w.Budget > 0 {
		out.Budget = &w.Budget
	}
	return out, nil
}
