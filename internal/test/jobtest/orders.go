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

// BeginOrder implements state.Store.
func (o *orders) BeginOrder(ctx context.Context, key state.RunKey, order state.Order) error {
	err := o.Store.BeginOrder(ctx, key, order)
	if err == nil {
		o.passed(job.OrderBegun)
	}
	return err
}

// Hear implements state.Store.
func (o *orders) Hear(ctx context.Context, key state.NodeKey, order state.Order) error {
	err := o.Store.Hear(ctx, key, order)
	if err == nil {
		o.passed(job.OrderHeard)
	}
	return err
}

// EndOrder implements state.Store.
func (o *orders) EndOrder(ctx context.Context, key state.RunKey, epoch int64, now time.Time) error {
	err := o.Store.EndOrder(ctx, key, epoch, now)
	if err == nil {
		o.passed(job.OrderCarried)
	}
	return err
}
