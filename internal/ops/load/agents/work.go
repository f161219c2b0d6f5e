package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/load"
)

// Does is what an agent does by itself.
type Does struct {
	Version string // of the program: agents and coordinators of others do not go together
	Open    func(ctx context.Context, target json.RawMessage) (load.Target, error)
	Run     func(ctx context.Context, target load.Target, plan load.Plan) (load.Result, error) // nil: load.Run
	Ahead   time.Duration                                                                      // its clock, of tests
}

func (d Does) now() time.Time { return time.Now().Add(d.Ahead) }

// What ends a load from outside.
var (
	errForgotten   = fault.New(fault.Environment, "the coordinator has not asked for it for a while")
	errInterrupted = fault.New(fault.Environment, "the agent was told to end")
)

// work is a load at an agent.
type work struct {
	name   string
	does   Does
	cancel context.CancelCauseFunc
	start  chan time.Time // when, once
	opened chan struct{}  // closed when it is ready, or has failed
	ended  chan struct{}
	lease  *time.Timer // ends the load

	mu     sync.Mutex
	state  state
	target *prepared // nil: it is not ready yet
	err    error
	late   time.Duration
	result resultAnswer
}

// begin opens the target, and waits for the start.
func begin(ctx context.Context, does Does, ask prepareAsk, lease time.Duration) *work {
	agent := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(agent))
	w := &work{name: ask.Load, does: does, cancel: cancel, start: make(chan time.Time, 1),
		opened: make(chan struct{}), ended: make(chan struct{}), state: preparing}
	w.lease = time.AfterFunc(lease, func() { cancel(errForgotten) })
	go func() {
		defer close(w.ended)
		defer cancel(nil)
		defer context.AfterFunc(agent, func() { cancel(errInterrupted) })()
		defer w.lease.Stop()
		result, err := w.do(ctx, ask)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.state == preparing {
			close(w.opened)
		}
		if w.state, w.result = done, result; err != nil {
			w.state, w.err = failed, err
		}
	}()
	return w
}

func (w *work) do(ctx context.Context, ask prepareAsk) (out resultAnswer, err error) {
	opened, err := w.does.Open(ctx, ask.Target)
	if err != nil {
		return out, fmt.Errorf("open the target: %w", err)
	}
	target, err := prepare(ctx, opened, ask.Share)
	if err != nil {
		return out, err
	}
	defer func() {
		if e := target.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("close the target: %w", e))
		}
	}()
	w.isReady(target)
	select {
	case <-ctx.Done():
		return out, context.Cause(ctx)
	case at := <-w.start:
		plan := ask.Share.Plan
		plan.Start = at.Add(-w.does.Ahead)
		return w.measure(ctx, target, plan)
	}
}

func (w *work) measure(ctx context.Context, target *prepared, p load.Plan) (out resultAnswer, err error) {
	out.Result, err = w.does.Run(ctx, target.load(), p)
	w.began(target.first(), p.Start)
	out.Result.Began = out.Result.Began.Add(w.does.Ahead)
	if m, ok := target.target.(load.Meter); ok {
		out.Moved = m.Moved()
	}
	return out, err
}

// began notes how late the first operation was.
func (w *work) began(first, start time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = first.Sub(start)
}

func (w *work) isReady(target *prepared) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state, w.target = ready, target
	close(w.opened)
}

// startAt says when it is to begin; an error: it cannot.
func (w *work) startAt(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch left := at.Sub(w.does.now()); {
	case w.err != nil:
		return w.err
	case w.state != ready:
		return fmt.Errorf("the load is %s, and cannot be started", w.state)
	case left < 0:
		return fault.New(fault.Environment, "it was asked to begin %v after it should have", -left)
	case left > startMost:
		return fmt.Errorf("it was asked to begin in %v; the most is %v", left, startMost)
	}
	w.state = begun
	w.start <- at
	return nil
}

func (w *work) status() statusAnswer {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := statusAnswer{State: w.state, Late: w.late}
	if w.target != nil {
		out.Answered = w.target.answered()
	}
	if w.err != nil {
		out.Failure = failureOf(w.err)
	}
	return out
}

// outcome is what it has measured.
func (w *work) outcome() (resultAnswer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != done {
		return resultAnswer{}, fmt.Errorf("the load is %s, and has no result", w.state)
	}
	return w.result, nil
}
