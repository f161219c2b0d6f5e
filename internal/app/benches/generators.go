package benches

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/load"
	"thalweg/internal/ops/load/agents"
)

// Generators are processes of other machines that send the loads of a bench.
type Generators struct {
	Agents  []string // HOST:PORT; none: there are no generators
	Token   string
	Version string // of this program
	// CA is the file with the authorities of their certificates: they are asked over TLS; "": they are not.
	CA string
}

// agentTarget is what generators are told of a target.
type agentTarget struct {
	At    string       `json:"at"`
	Name  string       `json:"name"`
	Value int          `json:"value_bytes"`
	CQL   CQLOptions   `json:"cql"`
	Redis RedisOptions `json:"redis"`
}

// fleet returns the generators of a target; nil: there are none. It talks to nobody yet.
func (g Generators) fleet(o TargetOptions) (*agents.Fleet, error) {
	if len(g.Agents) == 0 {
		return nil, nil
	}
	if !strings.Contains(o.At, "://") {
		return nil, &fault.Error{Kind: fault.Script, Message: "generators cannot open " + o.At,
			Hint: "name the address of servers that they reach: cql://HOST:PORT or redis://HOST:PORT"}
	}
	text, err := json.Marshal(agentTarget{o.At, o.Name, o.Value, o.CQL, o.Redis})
	if err != nil {
		return nil, err
	}
	config := agents.Config{Agents: g.Agents, Token: g.Token, Version: g.Version, Target: text}
	if g.CA != "" {
		if config.TLS, err = instance.TLSOf(&clusterconfig.TLS{CA: g.CA}); err != nil {
			return nil, err
		}
	}
	fleet, err := agents.New(config)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: "the generators cannot be asked", Err: err}
	}
	return fleet, nil
}

// ServeLoads sends loads for those who know the token, until ctx ends. It closes the listener.
func ServeLoads(ctx context.Context, ln net.Listener, g Generators, log *slog.Logger) error {
	return agents.Serve(ctx, ln, g.Token, agents.Does{Version: g.Version,
		Open: openForGenerator}, log)
}

// openForGenerator opens what a generator is told of. Who asks has made what is measured, and removes it.
func openForGenerator(ctx context.Context, text json.RawMessage) (load.Target, error) {
	var t agentTarget
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, err
	}
	opened, err := OpenTarget(ctx, TargetOptions{At: t.At, Name: t.Name, Keep: true, Value: t.Value, CQL: t.CQL,
		Redis: t.Redis})
	if err != nil {
		return nil, err
	}
	return unobserved{opened, opened.(load.Meter)}, nil
}

// unobserved is a target of a generator: who asks looks at the servers, once for all generators.
type unobserved struct {
	load.Target
	load.Meter
}
