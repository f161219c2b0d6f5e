package sizing

import (
	"context"
	"time"

	"thalweg/internal/base/budget"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/planning"
	"thalweg/internal/ops/simulate"
)

// Answer chooses machines for a run that a model has learnt from, or for a larger one of its script. was is what its
// record was made under; its budget cuts the batches where the time sheets do not say how much memory there was.
func (w Wanted) Answer(ctx context.Context, model forecast.Model, record forecast.Record, was forecast.Load) (Planned,
	error) {
	machines, err := planning.MachinesOf(w.Prices, w.Machines, record.Machine, w.Speeds)
	if err != nil {
		return Planned{}, err
	}
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
		return Planned{}, err
	}
	out := Planned{Run: record.Run.Run, Scale: w.Scale, Deadline: w.Deadline.Seconds(), BringUp: w.BringUp.Seconds(),
		Measured: Measured{Machine: record.Machine, Workers: record.Workers, Cores: record.Cores,
			Slots: record.Slots, Elapsed: record.Elapsed.Round(time.Millisecond).Seconds()},
		Plan: plan, Notes: q.Notes(), Warnings: q.Warnings(plan)}
	if w.Budget > 0 {
		out.Budget = &w.Budget
	}
	return out, nil
}
