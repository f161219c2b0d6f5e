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
		return fmt.Errorf("ask for %s: %w", path, causeOf(ctx, err))
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, resultBytesMax+1))
	switch {
	case err != nil:
		return fmt.Errorf("read its answer to %s: %w", path, causeOf(ctx, err))
	case len(text) > resultBytesMax:
		return fmt.Errorf("its answer to %s is longer than %d bytes", path, resultBytesMax)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("it answers %d to %s: %s", answer.StatusCode, path,
			strings.TrimSpace(string(text[:min(len(text), sayBytesMax)])))
	case to == nil:
		return nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("read its answer to %s: %w", path, err)
	}
	return nil
}

// sayBytesMax is how much of a refusal is shown.
const sayBytesMax = 4 << 10

func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// prepare has it open the target, and waits until it has.
func (a *remote) prepare(ctx context.Context, what prepareAsk) error {
	a.asked = true
	if err := a.ask(ctx, a.within, pathPrepare, what, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, prepareTime, fmt.Errorf("it was not ready in %v", prepareTime))
	defer cancel()
	status, err := a.follow(ctx, what.Load, preparing)
	if err == nil && status.State != ready {
		err = fmt.Errorf("it is %s, and should be ready", status.State)
	}
	return err
}

// follow waits while the load is in a state.
func (a *remote) follow(ctx context.Context, name string, while state) (statusAnswer, error) {
	for {
		var s statusAnswer
		switch err := a.ask(ctx, a.within, pathStatus, prepareAsk{Load: name}, &s); {
		case err != nil:
			return s, err
		case s.State == failed:
			return s, errors.New(s.Error)
		case s.State != while:
			return s, nil
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
	follow, cancel := ctx, context.CancelFunc(func() {})
	if p.Ops == 0 {
		most := time.Until(at) + p.WarmUp + p.For + lateMost
		follow, cancel = context.WithTimeoutCause(ctx, most, fmt.Errorf("the load goes on %v behind its time", lateMost))
	}
	defer cancel()
	status, err := a.follow(follow, name, begun)
	if err != nil {
		return 0, out, err
	}
	if err := a.ask(ctx, resultTime, pathResult, prepareAsk{Load: name}, &out); err != nil {
		return 0, out, err
	}
	out.Result.Began = out.Result.Began.Add(-a.offset)
	return status.Late, out, nil
}
