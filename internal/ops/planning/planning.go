package planning

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/price"
	"thalweg/internal/ops/simulate"
)

const (
	// CountMost is how many machines of a type are tried at most.
	CountMost = 64
	// atOnce is how many of the cheapest deployments are simulated. If none of them does, as many others are, so often
	// at most.
	atOnce, roundsMost = 20, 6
	// batchesMost bounds the batches of a run that is simulated that often. Once simulatedMost are, no more deployments are
	// begun: that is about a minute.
	batchesMost, simulatedMost = 50_000, 1_000_000
	// machinesMost is how many types a plan takes.
	machinesMost = 64
)

// Machine is a type that may be taken.
type Machine struct {
	price.Line
	Speed    float64 // of a core, times one of the run's
	Measured bool    // by a benchmark of it; false: it is taken to be as fast as the run's own
}

// Question is what a plan answers. Either a deadline or a budget is above 0.
type Question struct {
	Model       forecast.Model
	Record      forecast.Record // that the model was learnt from
	Alone, Many forecast.Load   // of one machine, and of several
	Machines    []Machine
	Deadline    time.Duration
	Budget      price.Money
	BringUp     time.Duration // of each machine and of services: it is paid
	Beside      price.Money   // an hour of services, which are paid as long as the machines
	Most        int           // machines of a type; 0: CountMost
	Seeds       int           // how many runs of a deployment are simulated at most; 0: nine
}

// Choice is a deployment as it is foreseen.
type Choice struct {
	Machine string      `json:"machine"`
	Count   int         `json:"count"`
	Cores   int         `json:"cores" doc:"Of each machine."`
	Slots   int         `json:"slots" doc:"Of each machine."`
	Bound   float64     `json:"bound_s" doc:"It takes no less, however well the work is spread."`
	Low     float64     `json:"low_s"`
	Middle  float64     `json:"middle_s"`
	High    float64     `json:"high_s" doc:"Nine of ten runs take no longer."`
	Cost    price.Money `json:"usd" doc:"Of the middle, with the bring-up."`
	Most    price.Money `json:"usd_high" doc:"Nine of ten runs cost no more."`
	Limit   string      `json:"limit" doc:"What takes most of the slots' time that is no work."`
	Fits    bool        `json:"fits" doc:"Nine of ten runs are within the deadline or the budget."`
}

// Plan is the answer.
type Plan struct {
	Answer     *Choice  `json:"answer,omitempty" doc:"Cheapest in time, or quickest within the budget; none: there is none."`
	Frontier   []Choice `json:"frontier" doc:"Of those simulated: none is both quicker and cheaper."`
	Simulated  []Choice `json:"simulated"`
	Up         *Choice  `json:"up,omitempty" doc:"Half as many machines as the answer, twice as large."`
	Out        *Choice  `json:"out,omitempty" doc:"Twice as many machines as the answer, half as large."`
	Considered int      `json:"considered"`
	Unsearched int      `json:"unsearched,omitempty" doc:"Could do, and were not simulated: there were too many."`
	// Without says how many deployments are out without a simulation, by why.
	Without map[string]int `json:"without"`
}

// Why deployments are out without a simulation.
const (
	TooMuchWork  = "work"
	TooLongChain = "chain"
	TooLittle    = "memory"
	TooDear      = "cost"
)

// candidate is a deployment.
type candidate struct {
	Choice
	machine Machine
	load    forecast.Load
	least   price.Money // of its bound
	batches int
}

// planner answers a question.
type planner struct {
	Question
	rest   float64
	out    Plan
	failed map[string]float64 // machines of a type: counts of at least (deadline) or below (budget) may do

	batches int // that were simulated
}

// Answer plans.
func Answer(ctx context.Context, q Question) (Plan, error) {
	if (q.Deadline > 0) == (q.Budget > 0) {
		return Plan{}, fault.New(fault.Script, "a plan has either a deadline or a budget")
	}
	if q.Record.Workers == 0 {
		return Plan{}, fault.New(fault.Script, "run %d has no time sheets: nobody knows on what it took its time",
			q.Record.Run.Run)
	}
	p := planner{Question: q, out: Plan{Without: map[string]int{}}, failed: map[string]float64{}}
	var err error
	if p.rest, err = q.Model.Rest(ctx, q.Alone); err != nil {
		return Plan{}, err
	}
	remain, err := p.bounded()
	if err != nil {
		return Plan{}, err
	}
	for rounds := 0; p.out.Answer == nil; rounds++ {
		round := p.next(&remain)
		if len(round) == 0 {
			break
		}
		if rounds == roundsMost || p.batches >= simulatedMost {
			p.out.Unsearched = len(round) + len(remain)
			break
		}
		if err := p.simulate(ctx, round); err != nil {
			return Plan{}, err
		}
		p.choose()
	}
	p.out.Frontier = frontier(p.out.Simulated)
	return p.out, p.upAndOut(ctx)
}

// bounded lists the deployments that no bound rules out, those to be simulated first before others.
func (p *planner) bounded() (out []candidate, err error) {
	for _, m := range p.Machines {
		for count := 1; count <= cmp.Or(p.Most, CountMost); count++ {
			p.out.Considered++
			c, why := p.candidate(m, count)
			if c.batches > batchesMost {
				f := fault.New(fault.Script, "the run would have %d batches on %d × %s, and plans are made for at most %d",
					c.batches, count, m.Machine, batchesMost)
				f.Hint = "plan with fewer by {{set batches}}: 0.1x"
				return nil, f
			}
			if why != "" {
				p.out.Without[why]++
				continue
			}
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		byCost := cmp.Or(cmp.Compare(a.least, b.least), cmp.Compare(a.Count, b.Count))
		if p.Budget > 0 {
			return cmp.Or(cmp.Compare(a.Bound, b.Bound), byCost)
		}
		return byCost
	})
	return out, nil
}

// load returns the load of so many machines, and the slots of each; false: a slot would have too little memory.
func (p *planner) load(m Machine, count int) (l forecast.Load, slots int, ok bool) {
	l = p.Alone
	if count > 1 {
		l = p.Many
	}
	r := p.Record
	memory := int64(float64(m.MemoryBytes) * budget.DefaultShare)
	if m.MemoryBytes == 0 { // not known: as much for a core as there was
		memory = r.Memory / int64(r.Cores) * int64(m.Cores)
	}
	slots = max(int(math.Round(float64(m.Cores*r.Slots)/float64(r.Cores))), 1)
	b, err := budget.Split(memory, m.Cores, m.Cores)
	if err != nil || b.Slots < min(slots, m.Cores) || memory/int64(slots) < r.Peak {
		return l, slots, false
	}
	l.Budget, l.Speed, l.Rest = b, m.Speed, &p.rest
	l.Workers, l.Slots = count, slots
	l.Beyond = max(l.Scale, float64(m.Cores*count)/float64(r.Cores*r.Workers))
	return l, slots, true
}

// candidate bounds a deployment, or says why it is out.
func (p *planner) candidate(m Machine, count int) (c candidate, why string) {
	load, slots, ok := p.load(m, count)
	if !ok {
		return c, TooLittle
	}
	costs := p.Model.Costs(load)
	work, chain := bounds(costs, count*slots)
	c = candidate{machine: m, load: load}
	c.Choice = Choice{Machine: m.Machine, Count: count, Cores: m.Cores, Slots: slots, Bound: max(work, chain) + p.rest}
	c.least, c.batches = p.cost(c, c.Bound), forecast.BatchesOf(costs)
	late := math.Exp(p.Model.Spread(load)) // nine of ten take so many times as long, or more than that
	if p.Deadline > 0 && c.Bound*late > p.Deadline.Seconds() {
		if (chain+p.rest)*late > p.Deadline.Seconds() {
			return c, TooLongChain
		}
		return c, TooMuchWork
	}
	if p.Budget > 0 && p.cost(c, c.Bound*late) > p.Budget {
		return c, TooDear
	}
	return c, ""
}

func (p *planner) cost(c candidate, seconds float64) price.Money {
	return (c.machine.PerHour.Times(c.Count) + p.Beside).For(time.Duration(seconds*float64(time.Second)) + p.BringUp)
}

// bounds returns the least seconds that a run takes on so many slots: by its work, and by the longest chain of nodes
// that wait for each other, of each the longest batch.
func bounds(costs simulate.Costs, slots int) (work, chain float64) {
	ends, chains := map[string]float64{}, map[string]float64{}
	inTurn := 0.0
	for _, n := range costs.Nodes {
		begins, alone := 0.0, 0.0
		for _, in := range n.Inputs {
			begins, alone = max(begins, ends[in]), max(alone, chains[in])
		}
		longest := 1.0
		if points := len(n.Spread); points > 0 { // the shortest come first: of so many batches, one is as long at least
			longest = n.Spread[min(n.Batches, points)-1]
		}
		all := n.Seconds * float64(n.Batches) / float64(slots)
		ends[n.Name] = begins + max(n.Seconds*longest, all)
		chains[n.Name] = alone + n.Seconds*longest
		work, inTurn, chain = work+all, max(inTurn, ends[n.Name]), max(chain, chains[n.Name])
	}
	return max(work, inTurn), chain
}

// next takes the next deployments to be simulated, without those that cannot do as others of their machines did not.
func (p *planner) next(remain *[]candidate) (out []candidate) {
	for len(*remain) > 0 && len(out) < atOnce {
		c := (*remain)[0]
		*remain = (*remain)[1:]
		limit, known := p.failed[c.Machine]
		switch {
		case known && p.Deadline > 0 && float64(c.Count) < limit:
			p.out.Without[TooMuchWork]++
		case known && p.Budget > 0 && float64(c.Count) >= limit:
			p.out.Without[TooDear]++
		default:
			out = append(out, c)
		}
	}
	return out
}

// simulate simulates deployments.
func (p *planner) simulate(ctx context.Context, all []candidate) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(budget.Cores())
	for i := range all {
		g.Go(func() (err error) {
			all[i].Choice, err = p.foresee(inner, all[i])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, c := range all {
		p.batches += c.batches * forecast.SeedsOf(c.batches, p.Seeds)
		p.out.Simulated = append(p.out.Simulated, c.Choice)
		if c.Fits {
			continue
		}
		if p.Deadline > 0 { // more machines shorten a run by as much as they are more at most
			least := float64(c.Count) * c.High / p.Deadline.Seconds()
			p.failed[c.Machine] = max(p.failed[c.Machine], least)
		} else if p.Beside == 0 { // else more machines may cost less: services are paid for a shorter time
			p.failed[c.Machine] = min(cmp.Or(p.failed[c.Machine], CountMost), float64(c.Count))
		}
	}
	return nil
}

// foresee simulates a deployment.
func (p *planner) foresee(ctx context.Context, c candidate) (Choice, error) {
	f, err := p.Model.Forecast(ctx, c.load, forecast.Fleet{Workers: c.Count, Slots: c.Slots, Seeds: p.Seeds})
	if err != nil {
		return c.Choice, fmt.Errorf("simulate %d × %s: %w", c.Count, c.Machine, err)
	}
	out := c.Choice
	e := f.Elapsed
	out.Low, out.Middle, out.High, out.Limit = e.Low.Seconds(), e.Middle.Seconds(), e.High.Seconds(), f.Limit
	out.Cost, out.Most = p.cost(c, out.Middle), p.cost(c, out.High)
	out.Fits = p.Deadline > 0 && e.High <= p.Deadline || p.Budget > 0 && out.Most <= p.Budget
	return out, nil
}

// choose picks the answer among those simulated.
func (p *planner) choose() {
	for _, c := range p.out.Simulated {
		better := p.out.Answer == nil || p.less(c, *p.out.Answer)
		if c.Fits && better {
			p.out.Answer = &c
		}
	}
}

// less reports whether a deployment that does is to be taken before another one.
func (p *planner) less(a, b Choice) bool {
	if p.Budget > 0 {
		return cmp.Or(cmp.Compare(a.Middle, b.Middle), cmp.Compare(a.Cost, b.Cost)) < 0
	}
	return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.Middle, b.Middle)) < 0
}

// frontier lists the deployments of which none other is as quick and cheaper, or quicker and as cheap; the quickest
// first.
func frontier(all []Choice) []Choice {
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b Choice) int {
		return cmp.Or(cmp.Compare(a.Middle, b.Middle), cmp.Compare(a.Cost, b.Cost))
	})
	out := []Choice{}
	for _, c := range sorted {
		if n := len(out); n == 0 || c.Cost < out[n-1].Cost {
			out = append(out, c)
		}
	}
	return out
}

// upAndOut sets shapes of as many cores as the answer has beside it.
func (p *planner) upAndOut(ctx context.Context) error {
	a := p.out.Answer
	if a == nil {
		return nil
	}
	for _, beside := range []struct {
		cores, count int
		of           **Choice
	}{{2 * a.Cores, a.Count / 2, &p.out.Up}, {a.Cores / 2, 2 * a.Count, &p.out.Out}} {
		if beside.cores*beside.count != a.Cores*a.Count || beside.count > cmp.Or(p.Most, CountMost) {
			continue
		}
		i := slices.IndexFunc(p.Machines, func(m Machine) bool {
			return m.Cores == beside.cores && Family(m.Machine) == Family(a.Machine)
		})
		if i < 0 {
			continue
		}
		m := p.Machines[i]
		load, slots, ok := p.load(m, beside.count)
		if !ok {
			continue
		}
		work, chain := bounds(p.Model.Costs(load), beside.count*slots)
		c, err := p.foresee(ctx, candidate{machine: m, load: load, Choice: Choice{Machine: m.Machine, Count: beside.count,
			Cores: m.Cores, Slots: slots, Bound: max(work, chain) + p.rest}})
		if err != nil {
			return err
		}
		*beside.of = &c
	}
	return nil
}
