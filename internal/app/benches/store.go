package benches

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/ops/load"
	"thalweg/internal/ops/load/agents"
	"thalweg/internal/ops/load/around"
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
	Target     TargetOptions
	Fill       bool   // all keys are written first
	Plans      []Plan // loads, one behind the other
	Peak       bool   // the most that closed loops reach is found
	Bound      time.Duration
	Search     Plan       // a load of the searches, with the clients of an open loop
	Generators Generators // that send the loads; none: this process does
	Count      []int      // processes whose events are counted
	Beside     string     // command line of a second load: each load is measured alone, and beside it
	Self       string     // this program, which starts others
	PerHour    Money      // of the servers; 0: not known
	Cores      int        // that they have together; 0: not known
	Others     Money      // an hour, of the machines of generators; 0: not known, or none
	BringUp    time.Duration
	// Told hears what is being done; nil: nobody does.
	Told func(text string)
}

// ReportVersion is of the JSON of reports.
const ReportVersion = 1

// kindStore is what the JSON of a report says it is.
const kindStore = "store"

// Report is what was measured of a store.
type Report struct {
	Version   int               `json:"version"`
	Kind      string            `json:"kind"`
	Target    string            `json:"target"`
	Kept      string            `json:"kept,omitempty" doc:"The keyspace, directory or prefix that stays."`
	Host      around.Settings   `json:"host" doc:"Settings of the host that measured."`
	Copies    int               `json:"copies,omitempty" doc:"That servers keep of each row."`
	PerHour   *Money            `json:"usd_per_hour,omitempty"`
	Loads     []Load            `json:"loads"`
	Peak      *Search           `json:"peak,omitempty"`
	Sustained *Search           `json:"sustained,omitempty"`
	Served    []Served          `json:"served"`
	Figures   map[string]Figure `json:"figures" doc:"What two reports are compared by; repeats are parts of a window."`
	Took      time.Duration     `json:"took_ns" doc:"All of it."`
	BringUp   time.Duration     `json:"bring_up_ns"`
	Cost      *Money            `json:"usd,omitempty" doc:"Of all machines for that time and for bringing them up."`
	Failed    string            `json:"failed,omitempty" doc:"Why something was not measured, or not removed."`
}

// Search is what a search has found, and what it could not send.
type Search struct {
	load.Found
	Load  Load     `json:"result"`           // the one that was found, in place of its figures alone
	Wrong []string `json:"failed,omitempty"` // loads that failed: they are not kept
}

// Measured reports whether there is anything in the report.
func (r Report) Measured() bool { return len(r.all()) > 0 }

// all are the loads, and those that were found.
func (r Report) all() []Load {
	out := slices.Clone(r.Loads)
	for _, s := range []*Search{r.Peak, r.Sustained} {
		if s != nil {
			out = append(out, s.Load)
		}
	}
	return out
}

// Load is a load with what follows from it.
type Load struct {
	Name string `json:"name"`
	load.Result
	Rows       []Row              `json:"rows"`
	Dips       []load.Dip         `json:"dips,omitempty"`
	Nodes      []load.NodeUse     `json:"nodes,omitempty"`
	Moved      *load.Moved        `json:"moved,omitempty"` // with its warm-up
	Generators []agents.Generator `json:"generators,omitempty"`
	Counted    []around.Counted   `json:"perf,omitempty"`
	Second     *around.Second     `json:"beside,omitempty"`
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
	Replicated float64 `json:"replicated,omitempty"`      // writes a second with all copies of them
	PerMillion *Money  `json:"usd_per_million,omitempty"` // of all operations of the load
}

// kindNames are what people call operations, by kind.
var kindNames = [2]string{load.Read: "reads", load.Write: "writes"}

// Store measures a store. With an error the report has what was measured before it.
func Store(ctx context.Context, o StoreOptions) (r Report, err error) {
	o.Target.named()
	if o.Told == nil {
		o.Told = func(string) {}
	}
	fleet, err := o.Generators.fleet(o.Target)
	if err != nil {
		return r, err
	}
	o.Target.Shared = fleet != nil
	target, err := OpenTarget(ctx, o.Target)
	if err != nil {
		return r, err
	}
	defer func() {
		if err = errors.Join(err, target.Close()); err != nil {
			r.Failed = err.Error()
		}
	}()
	s := sender{StoreOptions: o, target: target, copies: copiesOf(target)}
	if fleet != nil {
		s.fleet = fleet
		defer fleet.Close()
	}
	r = s.report()
	began := time.Now()
	err = s.measure(ctx, &r)
	r.Served = s.served(r)
	r.Figures = r.figures()
	r.Took = time.Since(began)
	if perHour := s.PerHour + s.Others; perHour > 0 {
		cost := perHour.For(r.Took + r.BringUp)
		r.Cost = &cost
	}
	return r, err
}

// sender sends loads to a target, from here or from a fleet of generators.
type sender struct {
	StoreOptions
	target load.Target
	fleet  *agents.Fleet // nil: from here
	copies int
}

// report is one in which nothing is measured yet.
func (s sender) report() Report {
	r := Report{Version: ReportVersion, Kind: kindStore, Target: shown(s.Target.At), Copies: s.copies, Loads: []Load{},
		Host: around.SettingsHere(ofCassandra(s.target)), BringUp: s.BringUp}
	if s.PerHour > 0 {
		r.PerHour = &s.PerHour
	}
	if stays(s.target) {
		r.Kept = s.Target.Name
	}
	return r
}

func (s sender) measure(ctx context.Context, r *Report) error {
	if s.Fill {
		plan := filling(s.Search)
		if err := s.add(ctx, r, nameOfPlan(plan, true), plan, ""); err != nil {
			return err
		}
	}
	for _, plan := range s.Plans {
		for _, command := range slices.Compact([]string{"", s.Beside}) {
			name := nameOfPlan(plan, false)
			if command != "" {
				name += ", beside a second load"
			}
			if err := s.add(ctx, r, name, plan, command); err != nil {
				return err
			}
		}
	}
	return s.searches(ctx, r)
}

// add measures a load, and adds it to a report.
func (s sender) add(ctx context.Context, r *Report, name string, plan Plan, command string) error {
	s.Told("measuring: " + name)
	l, err := s.load(ctx, plan, command)
	if err != nil {
		return fmt.Errorf("measure %s, %s: %w", r.Target, name, err)
	}
	r.Loads = append(r.Loads, s.named(l, name))
	return nil
}

// named is a load with its name, and with what follows from its figures.
func (s sender) named(l Load, name string) Load {
	l.Name, l.Rows, l.Dips, l.Nodes = name, s.rows(l.Result), l.Result.Dips(), load.Nodes(l.Seconds)
	return l
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

// load sends a load, with what is to stand around it.
func (s sender) load(ctx context.Context, plan Plan, command string) (l Load, err error) {
	send := func(ctx context.Context) (Load, error) { return s.send(ctx, plan) }
	if command != "" {
		alone := send
		send = func(ctx context.Context) (Load, error) {
			l, second, err := around.Beside(ctx, s.Self, command, alone)
			l.Second = &second
			return l, err
		}
	}
	if len(s.Count) == 0 {
		return send(ctx)
	}
	l, counted, err := around.Counts(ctx, s.Self, s.Count, plan.WarmUp, send)
	l.Counted = counted
	return l, err
}

// send sends a load, and notes the bytes that it has moved.
func (s sender) send(ctx context.Context, plan Plan) (l Load, err error) {
	var moved load.Moved
	if s.fleet != nil {
		var watched func(*load.Result)
		if o, ok := s.target.(load.Observer); ok { // generators do not: each would ask all servers
			watched = load.Observe(ctx, o)
		}
		out, err := s.fleet.Run(ctx, plan)
		if watched != nil {
			watched(&out.Result)
		}
		if err != nil {
			return l, err
		}
		l.Result, l.Generators, moved = out.Result, out.Generators, out.Moved
	} else {
		meter, metered := s.target.(load.Meter)
		if metered {
			moved = meter.Moved()
		}
		if l.Result, err = load.Run(ctx, s.target, plan); err != nil {
			return l, err
		}
		if metered {
			before := moved
			moved = meter.Moved()
			moved.Payload, moved.Sent, moved.Received = moved.Payload-before.Payload, moved.Sent-before.Sent,
				moved.Received-before.Received
		}
	}
	if moved != (load.Moved{}) {
		l.Moved = &moved
	}
	return l, nil
}

func (s sender) rows(r load.Result) (rows []Row) {
	for kind, m := range r.Of {
		if m.Response == nil || m.Ops+m.Failed == 0 {
			continue
		}
		row := Row{Of: kindNames[kind], Time: "response", Ops: m.Ops, Failed: m.Failed,
			Rate: float64(m.Ops) / r.Took.Seconds(), PerMillion: perMillion(s.PerHour, r.Rate())}
		if kind == int(load.Write) {
			row.Replicated = row.Rate * float64(s.copies)
		}
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

// searches finds the peak, and the rate that is sustained.
func (s sender) searches(ctx context.Context, r *Report) (err error) {
	plan := s.Search
	if s.Peak {
		r.Peak, err = s.search(ctx, "peak", func(run load.Runner, told func(Step)) (load.Found, error) {
			return load.Peak(ctx, run, plan, told)
		})
		if err != nil {
			return fmt.Errorf("find the peak of %s: %w", r.Target, err)
		}
		plan.Rate, plan.Clients = r.Peak.Rate, max(plan.Clients, r.Peak.Clients)
	}
	if s.Bound <= 0 {
		return nil
	}
	if plan.Rate == 0 {
		plan.Rate = firstRate
	}
	r.Sustained, err = s.search(ctx, "sustained", func(run load.Runner, told func(Step)) (load.Found, error) {
		return load.Sustained(ctx, run, plan, s.Bound, told)
	})
	if err != nil {
		return fmt.Errorf("find the rate that %s sustains: %w", r.Target, err)
	}
	return nil
}

// search carries out a search. A load of it that fails is not kept: too many clients are more than a server lets in.
// What was found before the end of a search that failed is there with the error; nil: nothing was.
func (s sender) search(ctx context.Context, name string,
	find func(load.Runner, func(Step)) (load.Found, error)) (*Search, error) {
	var out Search
	var last Load
	var failed error
	run := func(ctx context.Context, plan Plan) (load.Result, error) {
		l, err := s.load(ctx, plan, "")
		switch {
		case err != nil && (ctx.Err() != nil || fault.Of(err).Kind == fault.Script):
			return l.Result, err
		case err != nil:
			failed = fmt.Errorf("with %s: %w", loadText(plan.Clients, plan.Rate), err)
			out.Wrong = append(out.Wrong, failed.Error())
			l = Load{Result: load.Result{Plan: plan}}
		}
		last = l
		return l.Result, nil
	}
	found, err := find(run, func(t Step) {
		s.Told(fmt.Sprintf("%s: %d clients, %s/s, p99 %s", name, t.Clients, format.Count(int64(t.Reached)), timeText(t.P99)))
		if t.Kept {
			out.Load = last
		}
	})
	out.Found = found
	if found.Rate == 0 {
		if failed != nil && ctx.Err() == nil && len(out.Wrong) == len(found.Steps) {
			err = failed
		}
		return nil, err
	}
	out.Load = s.named(out.Load, name)
	return &out, err
}

// loadText names the numbers that a search varies.
func loadText(clients int, rate float64) string {
	text := format.Counted(int64(clients), "client", "clients")
	if rate > 0 {
		text += fmt.Sprintf(" at %.4g/s", rate)
	}
	return text
}

// firstRate is where the search for a sustained rate begins if no other is known.
const firstRate = 1000
