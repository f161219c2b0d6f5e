package sizing

import (
	"context"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/planning"
	"thalweg/internal/ops/price"
	"thalweg/internal/ops/simulate"
)

// Answer chooses machines for a run that a model has learnt from, or for a larger one of its script. was is what its
// record was made under; its budget cuts the batches where the time sheets do not say how much memory there was. basis
// is what is paid where the run was, with its prices.
func (w Wanted) Answer(ctx context.Context, model forecast.Model, record forecast.Record, was forecast.Load,
	basis bill.Basis) (Planned, error) {
	if w.Prices != nil {
		basis.Book = basis.Book.With(w.Prices)
	}
	machines, err := planning.MachinesOf(basis.Book, w.Machines, record.Machine, w.Speeds)
	if err != nil {
		return Planned{}, err
	}
	beside, without := basis.BesidePerHour()
	if len(without) > 0 && w.Budget > 0 {
		f := fault.New(fault.Script, "there is no price for %s of the cluster's services: no budget can be kept", without[0])
		f.Hint = "name prices with {{set prices}}"
		return Planned{}, f
	}
	bringUp, paid := w.paid(basis, was.State.Kind == simulate.Directory().Kind, beside)
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
		Deadline: w.Deadline, Budget: w.Budget, BringUp: bringUp, Beside: beside}
	plan, err := planning.Answer(ctx, q)
	if err != nil {
		return Planned{}, err
	}
	out := Planned{Run: record.Run.Run, Scale: w.Scale, Deadline: w.Deadline.Seconds(), BringUp: bringUp.Seconds(),
		Measured: Deployment{Machine: record.Machine, Workers: record.Workers, Cores: record.Cores,
			Slots: record.Slots, Elapsed: record.Elapsed.Round(time.Millisecond).Seconds()},
		Plan: plan, Notes: append(q.Notes(), paid), Warnings: q.Warnings(plan)}
	if w.Budget > 0 {
		out.Budget = &w.Budget
	}
	if basis.BesideText() != "" {
		out.Beside = &beside
	}
	if len(without) > 0 {
		out.Warnings = append(out.Warnings, "There is no price for "+strings.Join(without, ", ")+
			" of the cluster's services: costs are without them.")
	}
	return out, nil
}

// paid returns the time of bring-up, and says what costs are of. local is that the run was of a state directory.
func (w Wanted) paid(basis bill.Basis, local bool, beside price.Money) (bringUp time.Duration, text string) {
	bringUp, whose := DefaultBringUp, ""
	switch {
	case w.BringUp != nil:
		bringUp = *w.BringUp
	case basis.BringUp != nil:
		bringUp, whose = *basis.BringUp, ", as the cluster's file says"
	}
	text = fmt.Sprintf("Each machine is paid for the run and %s of bring-up%s, which is not in the times.",
		format.Span(bringUp), whose)
	if bringUp == 0 {
		text = "Each machine is paid for the run alone, without bring-up."
	}
	switch services := basis.BesideText(); {
	case services != "":
		text += fmt.Sprintf(" The cluster's services are paid as long: %s, %s an hour together.", services, beside)
	case local:
		text += " A state directory has no services; those that several machines need are not in the costs."
	default:
		text += " The cluster's file names no services under cost: they are not in the costs."
	}
	return bringUp, text
}
