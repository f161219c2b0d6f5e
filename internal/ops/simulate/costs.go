package simulate

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/fault"
)

// Costs holds the measurements of a script, its state and its parts.
type Costs struct {
	Name  string  `json:"name"`
	Nodes []Node  `json:"nodes"`
	Skew  float64 `json:"skew"` // spread of batches' times within a node: sigma of their logarithm
	State State   `json:"state"`
	Parts Parts   `json:"parts"`
	Queue Latency `json:"queue"` // until a hint or signal is there; none: there is no broker, and state is polled
}

// Node is one of the script.
type Node struct {
	Name    string   `json:"name"`
	Class   string   `json:"class"` // load, join, python, write
	Inputs  []string `json:"inputs"`
	Batches int      `json:"batches"`  // in the measured run
	Single  bool     `json:"single"`   // one batch whatever the size: it takes longer
	Seconds float64  `json:"seconds"`  // of one slot for one batch
	ReadMB  float64  `json:"read_mb"`  // of parts, by one batch
	WriteMB float64  `json:"write_mb"` // likewise
	// Spread is what batches took over their mean, at even quantiles; none: they spread by Skew.
	Spread []float64 `json:"spread,omitempty"`
}

// State holds the costs of calls of the state.
type State struct {
	// cassandra: conditional writes that may lose against others of one partition; sqlite: one writer at a time
	Kind  string  `json:"kind"`
	Read  Latency `json:"read"`
	Write Latency `json:"write"`
}

// Latency is the distribution of a call's time.
type Latency struct {
	Median float64 `json:"p50_ms"`
	Slow   float64 `json:"p90_ms"`
}

// Parts holds the speed at which parts move.
type Parts struct {
	WorkerMB float64 `json:"worker_mb_s"` // to or from one worker; 0: no limit
	StoreMB  float64 `json:"store_mb_s"`  // of all workers; 0: no limit
	Overlap  bool    `json:"overlap"`     // the next batch's are fetched while one is computed
}

// The kinds of state.
const (
	Cassandra = "cassandra"
	SQLite    = "sqlite"
)

// normalP90 is where nine tenths of a normal distribution lie below.
const normalP90 = 1.2816

// sample draws a latency.
func (l Latency) sample(r *rand.Rand) time.Duration {
	if l.Median <= 0 {
		return 0
	}
	return time.Duration(l.Median * math.Exp(l.sigma()*r.NormFloat64()) * float64(time.Millisecond))
}

// sigma is the spread of the logarithm.
func (l Latency) sigma() float64 { return math.Log(max(l.Slow, l.Median)/l.Median) / normalP90 }

// Mean returns the mean in milliseconds.
func (l Latency) Mean() float64 {
	if l.Median <= 0 {
		return 0
	}
	return l.Median * math.Exp(l.sigma()*l.sigma()/2)
}

// Times returns the latency of calls that take so many times as long.
func (l Latency) Times(by float64) Latency { return Latency{Median: by * l.Median, Slow: by * l.Slow} }

// ReadCosts reads them from JSON.
func ReadCosts(name string, text []byte) (Costs, error) {
	var c Costs
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		f := fault.New(fault.Script, "the costs cannot be read: %v", err)
		f.Place.File, f.Hint = name, "{{do simulate print-costs=}} prints costs to begin with"
		return c, f
	}
	if err := c.check(); err != nil {
		err.Place.File = name
		return c, err
	}
	return c, nil
}

func (c Costs) check() *fault.Error {
	seen := map[string]bool{}
	for _, n := range c.Nodes {
		for _, in := range n.Inputs {
			if !seen[in] {
				return fault.New(fault.Script, "node %s reads %s, which is no node before it", n.Name, in)
			}
		}
		if n.Name == "" || seen[n.Name] || n.Batches < 1 || n.Seconds < 0 || n.ReadMB < 0 || n.WriteMB < 0 {
			return fault.New(fault.Script, "node %q has no name of its own, no batches, or a cost below 0", n.Name)
		}
		if slices.ContainsFunc(n.Spread, func(x float64) bool { return !(x >= 0 && x <= spreadMax) }) {
			return fault.New(fault.Script, "node %s: spread has what is below 0 or above %d", n.Name, int(spreadMax))
		}
		seen[n.Name] = true
	}
	switch {
	case len(c.Nodes) == 0:
		return fault.New(fault.Script, "there are no nodes")
	case c.State.Kind != Cassandra && c.State.Kind != SQLite:
		return fault.New(fault.Script, "the kind of state is %q; it is cassandra or sqlite", c.State.Kind)
	case c.Skew < 0 || c.Parts.WorkerMB < 0 || c.Parts.StoreMB < 0:
		return fault.New(fault.Script, "a cost is below 0")
	}
	return nil
}

// spreadMax limits how many times the mean a batch may take.
const spreadMax = 1e6

// scaled gives the nodes so many batches in all, or a little more: each has one at least. 0 leaves them as they are.
func (c Costs) scaled(batches int) []Node {
	if batches == 0 {
		return c.Nodes
	}
	measured := 0
	for _, n := range c.Nodes {
		measured += n.Batches
	}
	factor := float64(batches) / float64(measured)
	nodes := append([]Node{}, c.Nodes...)
	for i, n := range nodes {
		if n.Single {
			nodes[i].Seconds *= float64(n.Batches) * factor
			nodes[i].ReadMB *= float64(n.Batches) * factor
			nodes[i].WriteMB *= float64(n.Batches) * factor
			nodes[i].Batches = 1
			continue
		}
		nodes[i].Batches = max(1, int(math.Round(float64(n.Batches)*factor)))
	}
	return nodes
}

// PortfolioName is the name of the built-in costs.
const PortfolioName = "portfolio"

// Directory returns the costs of calls of a state directory, whose SQLite database has one writer at a time. They
// were measured on two cores by
//
//	THALWEG_CHAOS=1 go test -count=1 -v -run 'TestMeasure$' ./internal/store/state/sqlite
func Directory() State {
	return State{Kind: SQLite, Read: Latency{Median: 0.10, Slow: 0.19}, Write: Latency{Median: 0.37, Slow: 0.66}}
}

// Portfolio is the portfolio example with 1,000 accounts on two slots: times and
// batches of bench/results/2026-11-22-portfolio-3.json, a node's time on both slots
// divided by its batches; bytes of parts of a run of the same data; the state's
// latencies from one Cassandra 5.0 node on this machine (docs/simulate.md).
func Portfolio() Costs {
	return Costs{
		Name: PortfolioName, Skew: 0.25,
		Nodes: []Node{
			{Name: "1_read_accounts", Class: "load", Batches: 1, Seconds: 0.029},
			{Name: "1_read_txns", Class: "load", Batches: 8, Seconds: 0.767, WriteMB: 8.2},
			{Name: "1_read_period_holdings", Class: "load", Batches: 8, Seconds: 0.055, WriteMB: 0.5},
			{Name: "2_account_txns_outer", Class: "join", Inputs: []string{"1_read_accounts", "1_read_txns"},
				Batches: 4, Seconds: 1.703, ReadMB: 16.3, WriteMB: 59.1},
			{Name: "2_account_period_holdings_outer", Class: "join",
				Inputs:  []string{"1_read_accounts", "1_read_period_holdings"},
				Batches: 2, Seconds: 0.142, ReadMB: 2, WriteMB: 4.1},
			{Name: "3_build_account_period_activity", Class: "join", Inputs: []string{"2_account_txns_outer",
				"2_account_period_holdings_outer"},
				Batches: 4, Seconds: 0.767, ReadMB: 61.2, WriteMB: 61.2},
			{Name: "4_calc_account_period_perf", Class: "python", Inputs: []string{"3_build_account_period_activity"},
				Batches: 4, Seconds: 7.782, ReadMB: 61.2},
			{Name: "5_tag_by_period", Class: "join", Inputs: []string{"4_calc_account_period_perf"}, Batches: 1,
				Seconds: 0.028},
			{Name: "5_tag_by_sector", Class: "join", Inputs: []string{"5_tag_by_period"}, Batches: 1, Seconds: 0.153},
			{Name: "6_perf_json_to_columns", Class: "python", Inputs: []string{"5_tag_by_sector"},
				Batches: 5, Seconds: 0.27},
			{Name: "7_file_account_period_sector_perf", Class: "write", Inputs: []string{"6_perf_json_to_columns"},
				Batches: 1, Seconds: 0.122},
			{Name: "7_file_account_year_perf", Class: "write", Inputs: []string{"6_perf_json_to_columns"}, Batches: 1,
				Seconds: 0.066},
		},
		State: State{Kind: Cassandra, Read: Latency{Median: 0.76, Slow: 1.71},
			Write: Latency{Median: 1.55, Slow: 3.16}},
		Parts: Parts{WorkerMB: 146, Overlap: true},
		Queue: Latency{Median: 2, Slow: 5},
	}
}
