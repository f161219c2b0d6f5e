package sheet

import (
	"context"
	"sync"
	"time"

	"thalweg/internal/store/state"
)

// Config of a meter: what the sheets of its process say of it, and what it asks.
type Config struct {
	Worker  string // see job.Owner
	Host    string
	Machine string
	Cores   int
	Slots   int
	Memory  int64
	Now     func() time.Time     // that goes on evenly; nil: time.Now
	Stamp   func() time.Time     // the clock of the state; nil: Now
	Usage   func() (Usage, bool) // of this process so far; nil: it is not known
	Budget  func() int64         // that it holds now; nil: it is not known
}

// Usage is what a process has used so far, and what it has now.
type Usage struct {
	CPU, Children, GC time.Duration
	Resident          int64
}

// Meter measures the work of one process. Its methods may be called by any number of goroutines; those of nil do
// nothing.
type Meter struct {
	cfg Config

	looking sync.Mutex // what the process uses is asked for by one at a time

	mu     sync.Mutex
	moved  time.Time // up to when the slots' time is divided
	places map[*Place]bool
	open   map[state.RunKey]*account
	used   Usage // when it was asked last
	seen   bool  // it was asked
}

// account is a run that is open.
type account struct {
	from  time.Time // of the state's clock
	works bool      // a node has batches left, as far as is known
	nodes map[string]bool

	times     [Count]float64 // seconds, of what has ended
	elsewhere float64
	presence  float64
	own       float64 // seconds of slots since usage was divided last
	cpu       float64
	children  float64
	gc        float64
	childGC   float64

	peakBudget, peakResident int64
	read, written            int64
	calls, batches, lost     int64
}

// NewMeter returns a meter.
func NewMeter(cfg Config) *Meter {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Stamp == nil {
		cfg.Stamp = cfg.Now
	}
	cfg.Slots = max(cfg.Slots, 1)
	return &Meter{cfg: cfg, places: map[*Place]bool{}, open: map[state.RunKey]*account{}, moved: cfg.Now()}
}

// Open begins the sheet of a run.
func (m *Meter) Open(run state.RunKey) {
	if m == nil {
		return
	}
	m.Look()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	if m.open[run] == nil {
		m.open[run] = &account{from: m.cfg.Stamp(), nodes: map[string]bool{}}
	}
}

// Close ends the sheet of a run, and returns it; false if there is none.
func (m *Meter) Close(run state.RunKey) (Sheet, bool) {
	s, ok := m.Sheet(run)
	if ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.open, run)
		for p := range m.places {
			delete(p.waited, run)
			if p.run == run { // what is left behind is in the sheet
				p.had = [phases]float64{}
			}
		}
	}
	return s, ok
}

// Runs lists the runs that have a sheet now.
func (m *Meter) Runs() (runs []state.RunKey) {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for run := range m.open {
		runs = append(runs, run)
	}
	return runs
}

// Sheet returns the sheet of a run as it is now. What has not ended yet counts as lost, as it will be if nothing more
// is heard of the process.
func (m *Meter) Sheet(run state.RunKey) (Sheet, bool) {
	if m == nil {
		return Sheet{}, false
	}
	m.Look()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	a := m.open[run]
	if a == nil {
		return Sheet{}, false
	}
	times := a.times
	for p := range m.places {
		if p.run == run {
			for of, seconds := range p.ends() {
				times[of] += seconds
			}
		}
	}
	s := Sheet{Worker: m.cfg.Worker, Host: m.cfg.Host, Machine: m.cfg.Machine, Cores: m.cfg.Cores, Slots: m.cfg.Slots,
		Memory: m.cfg.Memory, From: a.from, To: m.cfg.Stamp(), Presence: round(a.presence), Shares: map[string]float64{},
		Elsewhere: round(a.elsewhere), CPU: round(a.cpu), ChildrenCPU: round(a.children), GC: round(a.gc),
		ChildrenGC: round(a.childGC),
		PeakBudget: a.peakBudget, PeakResident: a.peakResident, PartsRead: a.read, PartsWritten: a.written,
		Calls: a.calls, Batches: a.batches, Lost: a.lost}
	for of := range Count {
		s.Shares[of.String()] = round(times[of])
	}
	return s.ordered(), true
}

// advance divides the time of the slots since it was divided last; mu is held.
func (m *Meter) advance() {
	now := m.cfg.Now()
	d := now.Sub(m.moved).Seconds()
	if d <= 0 {
		return
	}
	m.moved = now
	if len(m.open) == 0 {
		return
	}
	var at [phases]int
	for p := range m.places {
		at[p.phase()]++
	}
	rest := float64(m.cfg.Slots)
	var each [phases]float64 // seconds that a place has
	for ph := computing; ph < idle; ph++ {
		if at[ph] > 0 {
			slots := min(float64(at[ph]), rest)
			each[ph] = slots * d / float64(at[ph])
			rest -= slots
		}
	}
	m.divideIdle(rest*d, at[idle])
	for p := range m.places {
		ph := p.phase()
		if a := m.open[p.run]; ph != idle && a != nil {
			p.had[ph] += each[ph]
			a.own += each[ph]
			a.elsewhere -= each[ph]
		}
	}
	for _, a := range m.open {
		a.presence += d
		a.elsewhere += d * float64(m.cfg.Slots)
	}
}

// divideIdle gives each open run an equal part of the time in which slots had nothing to do; mu is held. Places
// remember what each of them might have had.
func (m *Meter) divideIdle(seconds float64, places int) {
	if seconds <= 0 {
		return
	}
	seconds /= float64(len(m.open))
	for run, a := range m.open {
		a.own += seconds
		a.elsewhere -= seconds
		if !a.works {
			a.times[Handover] += seconds
			continue
		}
		a.times[Nothing] += seconds
		for p := range m.places {
			if p.phase() == idle {
				p.waited[run] += seconds / float64(places)
			}
		}
	}
}

// Look asks what the process uses, and divides it among the runs that are open.
func (m *Meter) Look() {
	if m == nil {
		return
	}
	m.looking.Lock()
	defer m.looking.Unlock()
	var budget int64
	if m.cfg.Budget != nil {
		budget = m.cfg.Budget()
	}
	var used Usage
	known := false
	if m.cfg.Usage != nil {
		used, known = m.cfg.Usage()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	before, seen := m.used, m.seen
	if known {
		m.used, m.seen = used, true
	}
	whole := 0.0
	for _, a := range m.open {
		whole += a.own
	}
	for _, a := range m.open {
		part := 1 / float64(len(m.open))
		if whole > 0 {
			part = a.own / whole
		}
		a.own = 0
		a.peakBudget = max(a.peakBudget, budget)
		if !known || !seen {
			continue
		}
		a.peakResident = max(a.peakResident, used.Resident)
		a.cpu += part * max(used.CPU-before.CPU, 0).Seconds()
		a.children += part * max(used.Children-before.Children, 0).Seconds()
		a.gc += part * max(used.GC-before.GC, 0).Seconds()
	}
}

// Store returns a store whose calls are counted. It also tells the meter which nodes have work.
func (m *Meter) Store(s state.Store) state.Store {
	if m == nil {
		return s
	}
	return state.Around(s, func(ctx context.Context, op state.Op, call func(context.Context) error) error {
		err := call(ctx)
		if run, ok := runOf(op); ok {
			m.called(run, op, err)
		}
		return err
	})
}

// called counts a call, and takes in what nodes are like.
func (m *Meter) called(run state.RunKey, op state.Op, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.open[run]
	if a == nil {
		return
	}
	a.calls++
	if op.Method != state.OpNodes || err != nil {
		return
	}
	works, fresh, now := false, false, map[string]bool{}
	for _, n := range *state.Pointer[[]state.Node](op.Results) {
		if n.Status == state.Running && n.BatchesDone < n.BatchesTotal {
			works, now[n.Name] = true, true
			fresh = fresh || !a.nodes[n.Name]
		}
	}
	if works == a.works && !fresh {
		a.nodes = now
		return
	}
	m.advance()
	a.works, a.nodes = works, now
	if fresh { // what was waited for before was no wait for batches that there are now
		for p := range m.places {
			delete(p.waited, run)
		}
	}
}

// runOf returns the run that a call is about.
func runOf(op state.Op) (run state.RunKey, ok bool) {
	for _, arg := range op.Args {
		switch of := arg.(type) {
		case *state.RunKey:
			return *of, true
		case *state.NodeKey:
			return of.RunKey, true
		case *state.BatchKey:
			return of.RunKey, true
		case *state.Claim:
			return of.RunKey, true
		case *state.ClaimRequest:
			return of.RunKey, true
		}
	}
	return run, false
}
