package jobtest

import (
	"context"
	"time"

	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// Orders is a store that passes a checkpoint behind each step of an order.
func Orders(s state.Store, passed func(job.CrashPoint)) state.Store { return &orders{s, passed} }

type orders struct {
	state.Store
	passed func(job.CrashPoint)
}

// BeginCommand implements state.Store.
func (o *orders) BeginCommand(ctx context.Context, key state.RunKey, order state.Command) error {
	err := o.Store.BeginCommand(ctx, key, order)
	if err == nil {
		o.passed(job.OrderBegun)
	}
	return err
}

// ApplyCommand implements state.Store.
func (o *orders) ApplyCommand(ctx context.Context, key state.NodeKey, order state.Command) error {
	err := o.Store.ApplyCommand(ctx, key, order)
	if err == nil {
		o.passed(job.OrderHeard)
	}
	return err
}

// CommitCommand implements state.Store.
func (o *orders) CommitCommand(ctx context.Context, key state.RunKey, epoch int64, now time.Time) error {
	err := o.Store.CommitCommand(ctx, key, epoch, now)
	if err == nil {
		o.passed(job.OrderCarried)
	}
	return err
}
