package agents

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/fault"
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
	stallTime   = 2 * time.Minute // without an answered operation, until a load is given up
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
	Moved      load.Moved    `json:"moved"` // with the warm-up
	Generators []Generator   `json:"generators"`
	Spread     time.Duration `json:"start_spread_ns" doc:"Between the first operations of the first and the last to begin, by one clock."`
}

// New returns a fleet. It talks to nobody yet.
func New(c Config) (*Fleet, error) {
	if err := checkToken(c.Token); err != nil {
		return nil, err
	}
	if len(c.Agents) == 0 || len(c.Agents) > agentsMost {
		return nil, fault.New(fault.Script, "there are %d agents; there must be 1 to %d", len(c.Agents), agentsMost)
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
			return nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("agent %q is no HOST:PORT", address), Err: err}
		}
		if slices.Contains(c.Agents[:i], address) {
			return nil, fault.New(fault.Script, "agent %s is named twice", address)
		}
		f.agents = append(f.agents, &remote{name: address, base: scheme + address, token: c.Token, client: client,
			within: askTime, closing: closeTime + askTime, stall: stallTime})
	}
	return f, nil
}

// Close ends the connections.
func (f *Fleet) Close() { f.agents[0].client.CloseIdleConnections() }

// Run has all agents carry out a load, divided between them: fewer agents, if it has fewer clients. Whatever happens,
// no agent goes on with it.
func (f *Fleet) Run(ctx context.Context, p load.Plan) (out Outcome, err error) {
	l := fleetLoad{agents: f.agents[:min(len(f.agents), max(p.Clients, 1))], name: rand.Text()}
	shares, err := divide(p, len(l.agents))
	if err != nil {
		return out, err
	}
	defer func() {
		if e := l.end(ctx); err == nil {
			err = e
		}
	}()
	err = l.prepare(ctx, prepareAsk{Load: l.name, Version: f.version, Target: f.target}, shares)
	if err != nil {
		return out, err
	}
	err = l.all(ctx, func(ctx context.Context, _ int, a *remote) error { return a.readClock(ctx) })
	if err != nil {
		return out, err
	}
	out, err = l.start(ctx, time.Now().Add(f.lead), shares)
	out.Plan = p
	return out, err
}

// fleetLoad is a load of some agents.
type fleetLoad struct {
	agents []*remote
	name   string
}

// prepare has all of them open the target. Those that are ready are asked on until all are: they would end otherwise.
func (l fleetLoad) prepare(ctx context.Context, what prepareAsk, shares []share) error {
	var left atomic.Int64
	left.Store(int64(len(l.agents)))
	all, allReady := context.WithCancel(ctx)
	defer allReady()
	return l.all(ctx, func(ctx context.Context, i int, a *remote) error {
		mine := what
		mine.Share = shares[i]
		if err := a.prepare(ctx, mine); err != nil {
			return err
		}
		if left.Add(-1) == 0 {
			allReady()
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(all, stop)()
		status, err := a.follow(ctx, l.name, ready, 0)
		if all.Err() != nil {
			return nil
		}
		return cmp.Or(err, fmt.Errorf("it is %s, and should be ready", status.State))
	})
}

// start has all of them begin at an instant, and waits for what they measure.
func (l fleetLoad) start(ctx context.Context, at time.Time, shares []share) (out Outcome, err error) {
	results := make([]load.Result, len(l.agents))
	moved := make([]load.Moved, len(l.agents))
	starts := make([]time.Time, len(l.agents))
	out.Generators = make([]Generator, len(l.agents))
	if err := l.all(ctx, func(ctx context.Context, i int, a *remote) error {
		late, r, err := a.run(ctx, l.name, at, shares[i].Plan)
		if err != nil {
			return err
		}
		results[i], moved[i], starts[i] = r.Result, r.Moved, at.Add(late)
		out.Generators[i] = Generator{Agent: a.name, Ops: r.Result.Of[load.Read].Ops + r.Result.Of[load.Write].Ops,
			CPU: r.Result.CPU, Offset: a.offset, Unsure: a.unsure, Late: late}
		return nil
	}); err != nil {
		return out, err
	}
	for _, m := range moved {
		out.Moved.Payload += m.Payload
		out.Moved.Sent += m.Sent
		out.Moved.Received += m.Received
	}
	out.Spread = spread(starts)
	out.Result, err = load.Merge(results...)
	return out, err
}

// spread is the time between the first and the last of some instants.
func spread(starts []time.Time) time.Duration {
	first := slices.MinFunc(starts, time.Time.Compare)
	return slices.MaxFunc(starts, time.Time.Compare).Sub(first)
}

// all does something for all agents at once. The first failure, which names its agent, ends the others.
func (l fleetLoad) all(ctx context.Context, do func(context.Context, int, *remote) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, a := range l.agents {
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
func (l fleetLoad) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime+askTime)
	defer cancel()
	errs := make([]error, len(l.agents))
	group := errgroup.Group{}
	for i, a := range l.agents {
		group.Go(func() error {
			if !a.asked {
				return nil
			}
			if errs[i] = a.ask(ctx, a.closing, pathEnd, prepareAsk{Load: l.name}, nil); errs[i] != nil {
				errs[i] = fmt.Errorf("agent %s: end the load: %w", a.name, errs[i])
			}
			return nil
		})
	}
	return errors.Join(append(errs, group.Wait())...)
}
