package benches

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/ops/load"
	"thalweg/internal/ops/price"
)

// Types of loads and prices, for the edges.
type (
	Plan         = load.Plan
	Distribution = load.Distribution
	Step         = load.Step
	Money        = price.Money
)

// Distributions of keys.
const (
	Uniform    = load.Uniform
	Zipf       = load.Zipf
	Sequential = load.Sequential
)

// ParseMoney reads an amount in US dollars.
func ParseMoney(text string) (Money, error) { return price.Parse(text) }

// PerHour returns what machines cost an hour together, by how many there are of each type.
func PerHour(prices *price.Book, machines map[string]int) (sum Money, err error) {
	for machine, n := range machines {
		line, ok := prices.Find(machine)
		switch {
		case !ok:
			return 0, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q has no price", machine),
				Hint: "give it one in a file of prices, or a price an hour"}
		case n < 1:
			return 0, fault.New(fault.Script, "there are %d machines %s: at least one costs something", n, machine)
		}
		sum += line.PerHour.Times(n)
	}
	return sum, nil
}

// StoreOptions say how a store is measured.
type StoreOptions struct {
	Target  TargetOptions
	Fill    bool   // all keys are written first
	Plans   []Plan // loads, one behind the other
	Peak    bool   // the most that closed loops reach is found
	Bound   time.Duration
	Search  Plan        // a load of the searches, with the clients of an open loop
	PerHour Money       // of the servers; 0: not known
	Run     load.Runner // sends a load; nil: this process does
	// Told hears what is being done; nil: nobody does.
	Told func(text string)
}

// ReportVersion is of the JSON of reports.
const ReportVersion = 1

// kindStore is what the JSON of a report says it is.
const kindStore = "store"

// Report is what was measured of a store.
type Report struct {
	Version   int         `json:"version"`
	Kind      string      `json:"kind"`
	Target    string      `json:"target"`
	PerHour   *Money      `json:"usd_per_hour,omitempty"`
	Loads     []Load      `json:"loads"`
	Peak      *load.Found `json:"peak,omitempty"`
	Sustained *load.Found `json:"sustained,omitempty"`
}

// Load is a load with what follows from it.
type Load struct {
	Name string `json:"name"`
	load.Result
	Rows  []Row          `json:"rows"`
	Dips  []load.Dip     `json:"dips,omitempty"`
	Nodes []load.NodeUse `json:"nodes,omitempty"`
	Moved *load.Moved    `json:"moved,omitempty"` // with its warm-up
}

// Row has the figures of reads or of writes. Times are in microseconds.
type Row struct {
	Of         string  `json:"of"`   // reads or writes
	Time       string  `json:"time"` // response or service
	Ops        int64   `json:"ops"`
	Failed     int64   `json:"failed"`
	Rate       float64 `json:"rate"`
	Mean       float64 `json:"mean_us"`
	P50        float64 `json:"p50_us"`
	P90        float64 `json:"p90_us"`
	P99        float64 `json:"p99_us"`
	P999       float64 `json:"p999_us"`
	P9999      float64 `json:"p9999_us"`
	Max        float64 `json:"max_us"`
	PerMillion *Money  `json:"usd_per_million,omitempty"` // of all operations of the load
}

// kindNames are what people call operations, by kind.
var kindNames = [2]string{load.Read: "reads", load.Write: "writes"}

// Store measures a store.
func Store(ctx context.Context, o StoreOptions) (r Report, err error) {
	target, err := OpenTarget(ctx, o.Target)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return o.measure(ctx, target)
}

func (o StoreOptions) measure(ctx context.Context, target load.Target) (r Report, err error) {
	r = Report{Version: ReportVersion, Kind: kindStore, Target: shown(o.Target.At), Loads: []Load{}}
	if o.PerHour > 0 {
		r.PerHour = &o.PerHour
	}
	if o.Run == nil {
		o.Run = func(ctx context.Context, plan Plan) (load.Result, error) { return load.Run(ctx, target, plan) }
	}
	if o.Told == nil {
		o.Told = func(string) {}
	}
	plans := o.Plans
	if o.Fill {
		plans = append([]Plan{filling(o.Search)}, plans...)
	}
	for i, plan := range plans {
		name := nameOfPlan(plan, o.Fill && i == 0)
		o.Told("measuring: " + name)
		l, err := o.load(ctx, target, plan)
		if err != nil {
			return r, fmt.Errorf("measure %s, %s: %w", r.Target, name, err)
		}
		l.Name = name
		r.Loads = append(r.Loads, l)
	}
	return r, o.search(ctx, &r)
}

// filling is the load that writes each key.
func filling(of Plan) Plan {
	return Plan{Keys: of.Keys, Of: Sequential, Clients: of.Clients, Depth: of.Depth, Seed: of.Seed}
}

// nameOfPlan says what sets a load apart from others of a report, and is the same in the next one.
func nameOfPlan(p Plan, fills bool) string {
	if fills {
		return "fill " + format.Count(int64(p.Keys)) + " keys"
	}
	parts := []string{string(p.Of), fmt.Sprintf("%.4g %% reads", 100*p.Reads)}
	if p.Ops > 0 {
		parts = append(parts, format.Count(p.Ops)+" operations")
	}
	if p.For > 0 {
		parts = append(parts, p.For.String())
	}
	parts = append(parts, fmt.Sprintf("%d × %d clients", p.Clients, p.Depth))
	if p.Rate > 0 {
		parts = append(parts, fmt.Sprintf("at %s/s", format.Count(int64(p.Rate))))
	}
	return strings.Join(parts, ", ")
}

func (o StoreOptions) load(ctx context.Context, target load.Target, plan Plan) (l Load, err error) {
	meter, metered := target.(load.Meter)
	var before load.Moved
	if metered {
		before = meter.Moved()
	}
	if l.Result, err = o.Run(ctx, plan); err != nil {
		return l, err
	}
	if metered {
		moved := meter.Moved()
		moved.Payload, moved.Sent, moved.Received = moved.Payload-before.Payload, moved.Sent-before.Sent,
			moved.Received-before.Received
		if moved != (load.Moved{}) {
			l.Moved = &moved
		}
	}
	l.Rows, l.Dips, l.Nodes = o.rows(l.Result), l.Result.Dips(), load.Nodes(l.Seconds)
	return l, nil
}

func (o StoreOptions) rows(r load.Result) (rows []Row) {
	for kind, m := range r.Of {
		if m.Response == nil || m.Ops+m.Failed == 0 {
			continue
		}
		row := Row{Of: kindNames[kind], Time: "response", Ops: m.Ops, Failed: m.Failed,
			Rate: float64(m.Ops) / r.Took.Seconds(), PerMillion: perMillion(o.PerHour, r.Rate())}
		rows = append(rows, row.of(m.Response))
		if m.Service != m.Response {
			row.Time = "service"
			rows = append(rows, row.of(m.Service))
		}
	}
	return rows
}

// perMillion returns what a million operations cost at a rate.
func perMillion(perHour Money, rate float64) *Money {
	const million = 1e6
	seconds := million / rate
	if perHour <= 0 || !(rate > 0) || seconds > (100*365*24*time.Hour).Seconds() {
		return nil
	}
	cost := perHour.For(time.Duration(seconds * float64(time.Second)))
	return &cost
}

// search finds the peak, and the rate that is sustained.
func (o StoreOptions) search(ctx context.Context, r *Report) error {
	told := func(what string) func(Step) {
		return func(s Step) {
			o.Told(fmt.Sprintf("%s: %d clients, %s/s, p99 %s", what, s.Clients, format.Count(int64(s.Reached)), timeText(s.P99)))
		}
	}
	plan := o.Search
	if o.Peak {
		found, err := load.Peak(ctx, o.Run, plan, told("peak"))
		if err != nil {
			return fmt.Errorf("find the peak of %s: %w", r.Target, err)
		}
		r.Peak = &found
		plan.Rate, plan.Clients = found.Rate, max(plan.Clients, found.Clients)
	}
	if o.Bound <= 0 {
		return nil
	}
	if plan.Rate == 0 {
		plan.Rate = firstRate
	}
	found, err := load.Sustained(ctx, o.Run, plan, o.Bound, told("sustained"))
	if err != nil {
		return fmt.Errorf("find the rate that %s sustains: %w", r.Target, err)
	}
	r.Sustained = &found
	return nil
}

// firstRate is where the search for a sustained rate begins if no other is known.
const firstRate = 1000
