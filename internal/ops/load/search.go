package load

import (
	"context"
	"fmt"
	"math"
	"time"

	"thalweg/internal/base/fault"
)

// What searches go by.
const (
	// peakGain is how much more a doubling must bring, or the ramp is over.
	peakGain = 0.05
	// rampMost bounds the doublings of a ramp.
	rampMost = 24
	// refinements are how often the step around the best one is halved.
	refinements = 2
	// sustainedWithin is the ratio of the lowest rate that is too high to the highest that is not, at the end.
	sustainedWithin = 1.02
	// sustainedReached is the part of the rate that is asked for that must be carried out.
	sustainedReached = 0.99
	// sustainedFailed is the part of the operations that may fail.
	sustainedFailed = 0.001
	// busyAlways is the part of their time that clients wait for answers when there are too few of them.
	busyAlways = 0.9
	// probesMost bounds the loads of a bisection.
	probesMost = 24
)

// Step is one load of a search.
type Step struct {
	Clients int     `json:"clients"`
	Asked   float64 `json:"asked,omitempty"` // operations a second that were meant to begin; 0: as many as clients can
	Reached float64 `json:"reached"`
	P99     float64 `json:"p99_us" doc:"Of responses: the highest of reads, of writes, and of each part of the window."`
	Kept    bool    `json:"kept"` // the bound, or it is the best so far
	// The bound was not kept although what was sent was answered under it: all clients were busy, and operations waited
	// for one.
	ByClients bool `json:"by_clients,omitempty" doc:"More clients, or a greater depth, may keep the bound."`
}

// Found is what a search has found.
type Found struct {
	Rate    float64 `json:"rate"` // operations a second
	Clients int     `json:"clients"`
	Bound   float64 `json:"bound_us,omitempty"` // that p99 of responses stays under
	// The lowest rate that was not kept was so by clients, not by the store.
	ByClients bool   `json:"by_clients,omitempty" doc:"More clients, or a greater depth, may sustain more."`
	Steps     []Step `json:"steps"`
	Result    Result `json:"result"`
}

// Runner sends one load: Run does it from here, others from several hosts.
type Runner func(ctx context.Context, plan Plan) (Result, error)

// search sends loads one behind the other.
type search struct {
	run   Runner
	found Found
	note  func(Step)
}

func (s *search) try(ctx context.Context, plan Plan, seed int, judge func(*Step, Result)) (Step, error) {
	plan.Start, plan.Seed = time.Time{}, plan.Seed+uint64(seed)
	r, err := s.run(ctx, plan)
	if err != nil {
		return Step{}, fmt.Errorf("with %d clients at %g/s: %w", plan.Clients, plan.Rate, err)
	}
	step := Step{Clients: plan.Clients, Asked: plan.Rate, Reached: r.Rate(), P99: r.worst()}
	if usual := time.Duration(r.Response().ValueAtQuantile(50)); plan.Rate > 0 && r.Took-usual > plan.For {
		step.Reached *= r.Took.Seconds() / (r.Took - usual).Seconds() // the last answers take their time, too
	} else if plan.Rate > 0 && r.Took > 0 {
		step.Reached *= r.Took.Seconds() / plan.For.Seconds()
	}
	if judge(&step, r); step.Kept {
		s.found.Rate, s.found.Clients, s.found.Result = step.Reached, step.Clients, r
	}
	s.found.Steps = append(s.found.Steps, step)
	if s.note != nil {
		s.note(step)
	}
	return step, nil
}

func (p Plan) searchable() error {
	if p.For == 0 || p.Ops > 0 {
		return fault.New(fault.Script, "a search sends loads for a time")
	}
	return nil
}

// Peak finds the most operations a second that closed loops reach: clients are doubled until that brings less than 5 %,
// then numbers between are tried. Each load is one of the plan. note is told of each; nil: nobody is.
func Peak(ctx context.Context, run Runner, plan Plan, note func(Step)) (Found, error) {
	if err := plan.searchable(); err != nil {
		return Found{}, err
	}
	s := &search{run: run, note: note}
	plan.Rate = 0
	better := func(step *Step, _ Result) { step.Kept = step.Reached > s.found.Rate }
	try := func(clients int) (bool, error) {
		before := s.found.Rate
		plan.Clients = clients
		step, err := s.try(ctx, plan, len(s.found.Steps), better)
		return step.Reached > before*(1+peakGain), err
	}
	clients := 1
	for range rampMost {
		more, err := try(clients)
		if err != nil {
			return s.found, err
		}
		if !more || 2*clients > ClientsMax {
			break
		}
		clients *= 2
	}
	step := s.found.Clients
	for range refinements {
		best := s.found.Clients
		if step /= 2; step < 1 {
			break
		}
		for _, clients := range []int{best - step/2, best + step} {
			if clients < 1 || clients > ClientsMax || s.tried(clients) {
				continue
			}
			if _, err := try(clients); err != nil {
				return s.found, err
			}
		}
	}
	return s.found, nil
}

func (s *search) tried(clients int) bool {
	for _, step := range s.found.Steps {
		if step.Clients == clients {
			return true
		}
	}
	return false
}

// Sustained finds the highest rate of an open loop at which p99 of the responses stays under a bound, at least 99 % of
// the rate is carried out, and hardly any operation fails. Reads and writes keep the bound each, in the window and in
// each of its parts. It begins with the rate of the plan, as one that may be the most, and bisects until the rates that
// are kept and not kept are within 2 %.
func Sustained(ctx context.Context, run Runner, plan Plan, bound time.Duration, note func(Step)) (Found, error) {
	if err := plan.searchable(); err != nil {
		return Found{}, err
	}
	if plan.Rate <= 0 || bound <= 0 {
		return Found{}, fault.New(fault.Script, "a sustained rate is found from a rate that may be the most, and for a bound")
	}
	s := &search{run: run, note: note, found: Found{Bound: float64(bound) / float64(time.Microsecond)}}
	judge := func(step *Step, r Result) {
		all := r.Of[Read].Ops + r.Of[Write].Ops + r.Failed()
		works := float64(r.Failed()) <= sustainedFailed*float64(all)
		step.Kept = works && step.P99 <= s.found.Bound && r.Unsent == 0 && step.Reached >= sustainedReached*step.Asked
		step.ByClients = works && !step.Kept && r.Busy >= busyAlways && r.service() <= s.found.Bound
	}
	low, high := 0.0, math.Inf(1)
	for range probesMost {
		step, err := s.try(ctx, plan, len(s.found.Steps), judge)
		switch {
		case err != nil:
			return s.found, err
		case step.Kept:
			low = plan.Rate
		default:
			high, s.found.ByClients = plan.Rate, step.ByClients
		}
		switch {
		case high <= low*sustainedWithin, plan.Rate < 1:
			return s.found, s.over(low)
		case math.IsInf(high, 1) && 2*low > RateMax:
			return s.found, nil
		case math.IsInf(high, 1):
			plan.Rate = 2 * low
		case low == 0:
			plan.Rate = high / 2
		default:
			plan.Rate = (low + high) / 2
		}
	}
	return s.found, s.over(low)
}

// over ends a bisection.
func (s *search) over(low float64) error {
	if low > 0 {
		return nil
	}
	last := s.found.Steps[len(s.found.Steps)-1]
	f := fault.New(fault.Environment, "no rate keeps p99 under %v: at %.3g/s it is %v",
		time.Duration(s.found.Bound)*time.Microsecond, last.Asked, time.Duration(last.P99)*time.Microsecond)
	if last.ByClients {
		f.Hint = "the store answers under the bound what it is sent: use more clients, or send more together"
	}
	return f
}

// worst returns the highest p99 in µs of responses: of reads and of writes, in the window and in each part of it.
func (r Result) worst() (us float64) {
	for _, m := range r.Of {
		for _, part := range append(m.parts(), m.Response) {
			if part != nil {
				us = max(us, micros(part.ValueAtQuantile(99)))
			}
		}
	}
	return us
}

// service returns the higher p99 in µs of what reads and what writes took from when they were sent.
func (r Result) service() (us float64) {
	for _, m := range r.Of {
		if m.Service != nil {
			us = max(us, micros(m.Service.ValueAtQuantile(99)))
		}
	}
	return us
}
