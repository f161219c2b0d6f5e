package simulate

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/coordinator"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// Config of one simulation.
type Config struct {
	Costs   Costs
	Workers int
	Slots   int // of each worker
	Batches int // in all, about; 0: as many as the costs say
	Seed    uint64
	Hot     float64   // how many times as long the first batch of the longest node takes; 0 or 1: as the others
	Deaths  float64   // that a worker suffers in an hour; another one comes for it after Replace
	Slow    float64   // how many times as long state and parts take; 0 is 1
	Trace   io.Writer // what happens, a line each; nil: nobody wants to know
}

const (
	// Replace is the delay after which another worker replaces one that has died.
	Replace = 10 * time.Second
	// startWithin is the time within which all workers have started.
	startWithin = 200 * time.Millisecond
	// WorkersMax and BatchesMax bound what is simulated.
	WorkersMax = 1024
	BatchesMax = 1_000_000
	mb         = 1e6
)

// fleet is one simulation. What it counts is changed by one goroutine at a time.
type fleet struct {
	Config
	world  *world
	broker broker
	store  state.Store
	run    state.RunKey
	costs  Costs
	nodes  []Node
	slow   float64

	revisions  map[string]int64
	latest     map[state.BatchKey]int // attempts that were claimed
	writerFree time.Duration
	partsFree  time.Duration
	trace      io.Writer

	slots, idle, working, open int // now: alive, without work, at work, and batches that can be taken
	capacity                   time.Duration
	spent                      sheet.Times
	reads, writes, lost        int
	refused, batches           int
	deaths, begun              int
	done                       bool
	failure                    error
	ctx                        context.Context
}

// fleetWorker is one process.
type fleetWorker struct {
	process
	name   string
	random *rand.Rand
	clock  *clock
	lead   *coordinator.Coordinator

	waits, works int // slots
}

// Run simulates a run over an empty store.
func Run(ctx context.Context, store state.Store, c Config) (Result, error) {
	if err := c.check(); err != nil {
		return Result{}, err
	}
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	f := &fleet{
		Config: c, store: store, costs: c.Costs, nodes: c.Costs.scaled(c.Batches), slow: max(c.Slow, 1),
		revisions: map[string]int64{}, latest: map[state.BatchKey]int{}, trace: c.Trace, ctx: inner,
	}
	f.world = newWorld(f.passing)
	specs := make([]state.NodeSpec, len(f.nodes))
	for i, n := range f.nodes {
		specs[i] = state.NodeSpec{Name: n.Name, Ordinal: i, Inputs: n.Inputs}
	}
	run, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "simulation"}, Created: epoch}, specs)
	if err != nil {
		return Result{}, fmt.Errorf("begin a simulated run: %w", err)
	}
	f.run = run
	for range c.Workers {
		f.hire(time.Duration(f.chance("start", uint64(f.begun)).Int64N(int64(startWithin))))
	}
	if err := f.world.run(ctx, func() bool { return f.done }, stop); err != nil {
		return Result{}, err
	}
	if !f.done {
		return Result{}, fault.New(fault.Bug, "a simulated run came to rest before its end")
	}
	return f.result(), f.failure
}

func (c Config) check() error {
	if err := c.Costs.check(); err != nil {
		return err
	}
	if c.Workers < 1 || c.Workers > WorkersMax || c.Slots < 1 || c.Batches < 0 || c.Batches > BatchesMax {
		return fault.New(fault.Script,
			"%d workers of %d slots with %d batches: there must be 1 to %d workers, a slot, and 1 to %d batches",
			c.Workers, c.Slots, c.Batches, WorkersMax, BatchesMax)
	}
	return nil
}

// chance gives what is drawn for one thing: the same whatever happens before.
func (f *fleet) chance(what string, number uint64) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, what)
	return rand.New(rand.NewPCG(f.Seed^h.Sum64(), number)) //nolint:gosec // a simulation's
}

// hire has a worker begin.
func (f *fleet) hire(in time.Duration) {
	f.begun++
	w := &fleetWorker{name: fmt.Sprintf("worker-%03d", f.begun), random: f.chance("latency", uint64(f.begun))}
	w.clock = &clock{world: f.world, of: &w.process, PCG: rand.NewPCG(f.Seed, uint64(f.begun))}
	f.world.begin(in, &w.process, func() { f.begin(w) })
	if f.Deaths > 0 {
		hours := f.chance("death", uint64(f.begun)).ExpFloat64() / f.Deaths
		if d := time.Duration(min(hours, 1e4) * float64(time.Hour)); d > in {
			f.world.begin(d, &process{}, func() { f.bury(w) })
		}
	}
}

// begin starts the executor and the coordinator of a worker.
func (f *fleet) begin(w *fleetWorker) {
	store := f.newStore(w)
	queue := &hints{fleet: f, worker: w}
	f.broker.ends = append(f.broker.ends, queue)
	w.lead = coordinator.New(f.ctx, coordinator.Config{
		Store: store, Queue: queue, Job: &simulatedJob{fleet: f, worker: w}, Owner: w.name,
		Slots: f.Slots, Clock: w.clock,
	}, f.run)
	work := executor.New(executor.Config{Store: store, Queue: queue, Runs: w, Owner: w.name, Slots: f.Slots,
		Clock: w.clock})
	w.clock.Go(&f.world.all, func() {
		for {
			s, err := queue.Signalled(f.ctx)
			if err != nil {
				return
			}
			w.lead.Signalled(s.Kind)
		}
	})
	f.world.begin(0, &w.process, func() {
		if _, err := w.lead.Run(); err != nil && f.ctx.Err() == nil {
			f.done, f.failure = true, err
		}
	})
	f.world.mu.Lock()
	f.slots += f.Slots
	f.world.working += f.Slots // until each asks for a hint
	f.world.mu.Unlock()
	f.world.all.Go(func() {
		_ = work.Work(f.ctx)
		f.world.mu.Lock()
		defer f.world.mu.Unlock()
		f.world.working -= f.Slots
	})
}

// Use implements executor.Runs.
func (w *fleetWorker) Use(context.Context, state.RunKey) (executor.Run, func(), error) {
	return w.lead, func() {}, nil
}

// bury is that a worker dies: nothing of it goes on.
func (f *fleet) bury(w *fleetWorker) {
	f.world.mu.Lock()
	w.dead = true
	f.slots -= f.Slots
	f.idle -= w.waits
	f.working -= w.works
	f.deaths++
	f.world.mu.Unlock()
	if f.trace != nil {
		fmt.Fprintf(f.trace, "%.6f %s dies\n", f.world.now.Seconds(), w.name)
	}
	f.hire(Replace)
}

// works counts slots of a worker that are at work.
func (f *fleet) works(w *fleetWorker, more int) {
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	w.works += more
	f.working += more
}

// job is the work of a run, as one worker does it.
type simulatedJob struct {
	fleet  *fleet
	worker *fleetWorker
}

var _ job.Job = (*simulatedJob)(nil)

// Plan implements job.Job.
func (j *simulatedJob) Plan(_ context.Context, n state.Node) (state.Plan, error) {
	node := j.fleet.node(n.Name)
	p := state.Plan{Record: []byte("{}"), Batches: make([]state.BatchSpec, node.Batches)}
	for i := range p.Batches {
		p.Batches[i] = state.BatchSpec{Batch: i, Class: node.Class, RowsIn: -1, BytesIn: int64(node.ReadMB * mb)}
	}
	return p, nil
}

// Settle implements job.Job.
func (j *simulatedJob) Settle(context.Context, state.Node) error { return nil }

// Execute implements job.Job.
func (j *simulatedJob) Execute(_ context.Context, c state.Claim) (job.Result, error) {
	f := j.fleet
	if f.world.isOver() {
		return job.Result{}, errOver
	}
	node := f.node(c.Node)
	work, moved := f.takes(node, c.Batch), f.moves(node)
	took := work + moved
	if f.costs.Parts.Overlap {
		took = max(work, moved)
	}
	f.works(j.worker, 1)
	ok := f.world.sleep(&j.worker.process, took)
	f.works(j.worker, -1)
	if !ok {
		return job.Result{}, errOver
	}
	return job.Result{Outcome: state.Outcome{Stats: state.Stats{Engine: work, Read: took - work}}}, nil
}

func (f *fleet) node(name string) Node {
	for _, n := range f.nodes {
		if n.Name == name {
			return n
		}
	}
	return Node{}
}

// takes returns the time for which a batch is computed: the same in each attempt.
func (f *fleet) takes(n Node, batch int) time.Duration {
	chance := f.chance("batch "+n.Name, uint64(batch))
	factor := 1.0
	if len(n.Spread) > 0 {
		// each as often as any other: the node takes as long in all as it did
		order := f.chance("order "+n.Name, uint64(batch/len(n.Spread))).Perm(len(n.Spread))
		factor = n.Spread[order[batch%len(n.Spread)]]
	} else {
		factor = math.Exp(f.costs.Skew*chance.NormFloat64() - f.costs.Skew*f.costs.Skew/2)
	}
	if batch == 0 && f.Hot > 1 && n.Name == f.longest() {
		factor = f.Hot
	}
	return time.Duration(n.Seconds * factor * float64(time.Second))
}

// longest is the node with the longest batches.
func (f *fleet) longest() string {
	long := f.nodes[0]
	for _, n := range f.nodes {
		if n.Seconds > long.Seconds {
			long = n
		}
	}
	return long.Name
}

// moves returns the time for which the parts of a batch are under way, including the wait for the store.
func (f *fleet) moves(n Node) time.Duration {
	size := (n.ReadMB + n.WriteMB) * f.slow
	var own, all time.Duration
	if f.costs.Parts.WorkerMB > 0 {
		own = time.Duration(size / f.costs.Parts.WorkerMB * float64(f.Slots) * float64(time.Second))
	}
	if f.costs.Parts.StoreMB > 0 {
		f.partsFree = max(f.partsFree, f.world.now) + time.Duration(size/f.costs.Parts.StoreMB*float64(time.Second))
		all = f.partsFree - f.world.now
	}
	return max(own, all)
}
