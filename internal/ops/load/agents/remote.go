package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/load"
)

// remote is an agent as the coordinator sees it.
type remote struct {
	name    string // its address
	base    string
	token   string
	client  *http.Client
	within  time.Duration // for an answer to a short question
	closing time.Duration // for it to end a load
	stall   time.Duration // without an answered operation, until a load is given up
	asked   bool          // it may have a load of ours

	offset time.Duration // its clock less ours
	unsure time.Duration
}

// ask asks a question, and reads the answer into to, unless it is nil.
func (a *remote) ask(ctx context.Context, within time.Duration, path string, question, to any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer in %v", within))
	defer cancel()
	text, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("encode a question: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("ask for %s: %w", path, err)
	}
	r.Header.Set("Authorization", bearer+a.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := a.client.Do(r)
	if err != nil {
		return unreachable(ctx, "ask for "+path, err)
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, resultBytesMax+1))
	switch {
	case err != nil:
		return unreachable(ctx, "read its answer to "+path, err)
	case len(text) > resultBytesMax:
		return fault.New(fault.Environment, "its answer to %s is longer than %d bytes", path, resultBytesMax)
	case answer.StatusCode != http.StatusOK:
		return refused(path, answer.StatusCode, text)
	case to == nil:
		return nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return unreachable(ctx, "read its answer to "+path, err)
	}
	return nil
}

// refused is what an agent, or who else listens there, answers instead.
func refused(path string, status int, text []byte) error {
	var its failure
	if json.Unmarshal(text, &its) == nil && its.Kind != "" {
		return its.fault()
	}
	return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("it answers %d to %s: %s", status, path,
		strings.TrimSpace(string(text[:min(len(text), sayBytesMax)]))), Hint: reachHint}
}

// sayBytesMax is how much of a refusal is shown.
const sayBytesMax = 4 << 10

const reachHint = "see whether an agent listens there, whether it speaks TLS or not as it is asked, and whether this " +
	"machine reaches it"

// unreachable is what failed between here and an agent, or the reason for which it is asked no more.
func unreachable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var known *fault.Error
	if errors.Is(err, context.Canceled) || errors.As(err, &known) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &fault.Error{Kind: fault.Environment, Message: what, Err: err, Hint: reachHint}
}

// prepare has it open the target, and waits until it has.
func (a *remote) prepare(ctx context.Context, what prepareAsk) error {
	a.asked = true
	if err := a.ask(ctx, a.within, pathPrepare, what, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, prepareTime,
		fault.New(fault.Environment, "it was not ready in %v", prepareTime))
	defer cancel()
	status, err := a.follow(ctx, what.Load, preparing, 0)
	if err == nil && status.State != ready {
		err = fmt.Errorf("it is %s, and should be ready", status.State)
	}
	return err
}

// follow waits while the load is in a state, and not longer than stall without an answered operation; 0: it does.
func (a *remote) follow(ctx context.Context, name string, while state, stall time.Duration) (statusAnswer, error) {
	answered, since := int64(-1), time.Now()
	for {
		var s statusAnswer
		switch err := a.ask(ctx, a.within, pathStatus, prepareAsk{Load: name}, &s); {
		case err != nil:
			return s, err
		case s.State == failed:
			return s, s.Failure.fault()
		case s.State != while:
			return s, nil
		case s.Answered != answered:
			answered, since = s.Answered, time.Now()
		case stall > 0 && time.Since(since) > stall:
			return s, fault.New(fault.Environment, "no operation was answered in %v", stall)
		}
	}
}

// clockTrips are the round trips of which the quickest one says how its clock is off.
const clockTrips = 20

// readClock finds how much its clock is ahead of ours: as if an answer took as long as its question.
func (a *remote) readClock(ctx context.Context) error {
	a.unsure = -1
	for range clockTrips {
		var its clockAnswer
		before := time.Now()
		if err := a.ask(ctx, a.within, pathClock, struct{}{}, &its); err != nil {
			return err
		}
		half := time.Since(before) / 2
		if a.unsure < 0 || half < a.unsure {
			a.unsure, a.offset = half, time.Unix(0, its.Now).Sub(before.Add(half).Round(0))
		}
	}
	return nil
}

// run starts the load at an instant of our clock, and fetches what it has measured, with times of our clock.
func (a *remote) run(ctx context.Context, name string, at time.Time, p load.Plan) (late time.Duration, out resultAnswer,
	err error) {
	start := startAsk{Load: name, At: at.Add(a.offset).UnixNano()}
	if err := a.ask(ctx, a.within, pathStart, start, nil); err != nil {
		return 0, out, err
	}
	stall := a.stall
	if p.Rate > 0 { // as long as between two operations it is idle
		stall += time.Duration(min(1/p.Rate, load.ForMax.Seconds()) * float64(time.Second))
	}
	status, err := a.follow(ctx, name, begun, stall)
	if err != nil {
		return 0, out, err
	}
	if err := a.ask(ctx, resultTime, pathResult, prepareAsk{Load: name}, &out); err != nil {
		return 0, out, err
	}
	out.Result.Began = out.Result.Began.Add(-a.offset)
	return status.Late, out, nil
}
