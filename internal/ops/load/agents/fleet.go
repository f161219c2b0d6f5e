package agents

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/ops/load"
)

// Fleet tells agents what to do. One load at a time.
type Fleet struct {
	agents  []*remote
	version string
	target  json.RawMessage
	lead    time.Duration // from telling the start to it
}

// Config says who the agents are.
type Config struct {
	Agents  []string // HOST:PORT
	Token   string
	Version string          // of this program
	TLS     *tls.Config     // nil: without
	Target  json.RawMessage // what each of them opens
}

// Times of a coordinator.
const (
	askTime     = 10 * time.Second // for an answer
	prepareTime = 5 * time.Minute  // for an agent to be ready
	resultTime  = 2 * time.Minute
	lateMost    = 2 * time.Minute // of a load by time, behind its time
	startLead   = time.Second
	agentsMost  = 256
)

// Generator is an agent's part in a load.
type Generator struct {
	Agent  string        `json:"agent"`
	Ops    int64         `json:"ops"`
	CPU    time.Duration `json:"cpu_ns"`
	Offset time.Duration `json:"clock_offset_ns" doc:"Its clock less the coordinator's."`
	// The offset is right but for so much: half of the quickest round trip.
	Unsure time.Duration `json:"clock_unsure_ns"`
	Late   time.Duration `json:"late_ns" doc:"From when all were to begin to its first operation."`
}

// Outcome is what all agents have measured, as one.
type Outcome struct {
	load.Result
	Generators []Generator   `json:"generators"`
	Spread     time.Duration `json:"start_spread_ns" doc:"Between the first operations of the first and the last to begin, by one clock."`
}

// New returns a fleet. It talks to nobody yet.
func New(c Config) (*Fleet, error) {
	if err := checkToken(c.Token); err != nil {
		return nil, err
	}
	if len(c.Agents) == 0 || len(c.Agents) > agentsMost {
		return nil, fmt.Errorf("there are %d agents; there must be 1 to %d", len(c.Agents), agentsMost)
	}
	f := &Fleet{target: c.Target, version: c.Version, lead: startLead}
	transport := &http.Transport{TLSClientConfig: c.TLS, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: askTime, DialContext: (&net.Dialer{Timeout: askTime}).DialContext}
	client := &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	scheme := "http://"
	if c.TLS != nil {
		scheme = "https://"
	}
	for i, address := range c.Agents {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("agent %q is no HOST:PORT: %w", address, err)
		}
		if slices.Contains(c.Agents[:i], address) {
			return nil, fmt.Errorf("agent %s is named twice", address)
		}
		f.agents = append(f.agents, &remote{name: address, base: scheme + address, token: c.Token, client: client,
			within: askTime, closing: closeTime + askTime})
	}
	return f, nil
}

// Close ends the connections.
func (f *Fleet) Close() { f.agents[0].client.CloseIdleConnections() }

// Run has all agents carry out a load, divided between them. Whatever happens, no agent goes on with it.
func (f *Fleet) Run(ctx context.Context, p load.Plan) (out Outcome, err error) {
	shares, err := divide(p, len(f.agents))
	if err != nil {
		return out, err
	}
	name := rand.Text()
	defer func() {
		if e := f.end(ctx, name); err == nil {
			err = e
		}
	}()
	if err := f.all(ctx, func(ctx context.Context, i int, a *remote) error {
		return a.prepare(ctx, prepareAsk{Load: name, Version: f.version, Target: f.target, Share: shares[i]})
	}); err != nil {
		return out, err
	}
	if err := f.all(ctx, func(ctx context.Context, _ int, a *remote) error { return a.readClock(ctx) }); err != nil {
		return out, err
	}
	at := time.Now().Add(f.lead)
	results := make([]load.Result, len(f.agents))
	generators := make([]Generator, len(f.agents))
	starts := make([]time.Time, len(f.agents))
	if err := f.all(ctx, func(ctx context.Context, i int, a *remote) error {
		late, result, err := a.run(ctx, name, at, shares[i].Plan)
		if err != nil {
			return err
		}
		results[i], starts[i] = result, at.Add(late)
		generators[i] = Generator{Agent: a.name, Ops: result.Of[load.Read].Ops + result.Of[load.Write].Ops, CPU: result.CPU,
			Offset: a.offset, Unsure: a.unsure, Late: late}
		return nil
	}); err != nil {
		return out, err
	}
	merged, err := load.Merge(results...)
	merged.Plan = p
	return Outcome{Result: merged, Generators: generators, Spread: spread(starts)}, err
}

// spread is the time between the first and the last of some instants.
func spread(starts []time.Time) time.Duration {
	first := slices.MinFunc(starts, time.Time.Compare)
	return slices.MaxFunc(starts, time.Time.Compare).Sub(first)
}

// all does something for all agents at once. The first failure, which names its agent, ends the others.
func (f *Fleet) all(ctx context.Context, do func(context.Context, int, *remote) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, a := range f.agents {
		group.Go(func() error {
			if err := do(ctx, i, a); err != nil {
				return fmt.Errorf("agent %s: %w", a.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// end has all agents forget a load, also if ctx has ended, and also those behind one that cannot be reached.
func (f *Fleet) end(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime+askTime)
	defer cancel()
	errs := make([]error, len(f.agents))
	group := errgroup.Group{}
	for i, a := range f.agents {
		group.Go(func() error {
			if !a.asked {
				return nil
			}
			if errs[i] = a.ask(ctx, a.closing, pathEnd, prepareAsk{Load: name}, nil); errs[i] != nil {
				errs[i] = fmt.Errorf("agent %s: end the load: %w", a.name, errs[i])
			}
			return nil
		})
	}
	return errors.Join(append(errs, group.Wait())...)
}
