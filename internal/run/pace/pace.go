package pace

import (
	"container/list"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"thalweg/internal/run/adapt"
	"thalweg/internal/store/parts"
)

// What a pace goes by.
const (
	// sampleEvery is the interval at which a pace tries to complete a sample.
	sampleEvery = 3 * time.Second
	// batchesEach is the least number of batches in a sample, for each in flight. With fewer, a sample would
	// depend on its beginning and end rather than on the work.
	batchesEach = 2
	// sampleLongest ends a sample of fewer.
	sampleLongest = 2 * time.Minute
	// ownShare is the part of the work that a class has to be for a sample of it.
	ownShare = 0.9
	// idleShare is the part of the time in which there may be less to do than could be done.
	idleShare = 0.1
	// fullShare of the processors in use are all of them.
	fullShare = 0.9
	// writesShare is the part of its time that a batch writes at least for writers to matter.
	writesShare = 0.1
	// memoryShare of the budget is what batches may take as they were seen: the
	// share of a slot is divided off already, and what is seen counts pages that are shared.
	memoryShare = 1.2
	// writersMost limits the concurrent requests that write parts.
	writersMost = 32
	// decisionsKept is the number of recent decisions that are kept for people.
	decisionsKept = 8
)

// Config of a Pace.
type Config struct {
	Cores int
	Slots int // batches that are computed at once
	Start int // batches in flight, at the beginning
	Most  int // batches in flight
	Fixed Fixed
	// Writers are the turns of requests that write parts; nil: they have none.
	Writers *parts.ResizableSemaphore
	// Memory returns the bytes that batches may take, 0 if that is unknown. nil: it always is. nil: it never
	// is.
	Memory func() int64
	// Busy returns the processors in use since the call before, less than 0 if that is unknown. nil: it
	// always is. nil: it never is.
	Busy    func() float64
	Decided func(adapt.Decision) // may be nil
	Logger  *slog.Logger
	Now     func() time.Time // nil: the clock's
}

// Pace limits how much a worker does at once. Its methods may be called by any number of goroutines.
type Pace struct {
	cfg    Config
	writes int  // writers, at the beginning
	apart  bool // batches in flight are forced for some class: each has its own bound before it is claimed

	mu       sync.Mutex
	tuner    *adapt.Tuner
	admitted int // that may claim, or have claimed
	// who waits to be admitted, in the order in which they came: else a class could keep out another
	asking    list.List
	inFlight  map[string]int
	taken     map[string]int  // that Room has let claim
	held      int             // claimed batches that wait for their class
	latest    string          // class
	seen      map[string]bool // classes
	changed   chan struct{}
	classes   map[string]*window
	peaks     map[string]int64 // of memory of a batch, by class
	moved     time.Time        // up to when windows are measured
	decisions []adapt.Decision
}

// window sums up the measurements of a class since its last sample.
type window struct {
	since              time.Time
	own, all, idle     time.Duration // of batches of the class, of all, and of time with too little to do
	batches            int
	done               float64
	peak               int64
	writing, executing time.Duration
	busy               float64 // sum over looks
	looks              int
}

// Done holds the figures of a finished batch.
type Done struct {
	Bytes          int64 // read and written
	Rows           int64
	Peak           int64 // of memory; 0: it is not known
	Write, Elapsed time.Duration
}

// New returns a pace.
func New(cfg Config) *Pace {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Decided == nil {
		cfg.Decided = func(adapt.Decision) {}
	}
	cfg.Slots = max(cfg.Slots, 1)
	p := &Pace{cfg: cfg, inFlight: map[string]int{}, taken: map[string]int{}, seen: map[string]bool{},
		peaks: map[string]int64{}, changed: make(chan struct{}), classes: map[string]*window{}, moved: cfg.Now()}
	if cfg.Writers != nil {
		p.writes = cfg.Writers.Most()
	}
	var classes []adapt.Class
	for _, name := range Classes() {
		p.apart = p.apart || cfg.Fixed[Of{name, Batches}] != cfg.Fixed[Of{Load, Batches}]
		classes = append(classes, adapt.Class{Name: name, Knobs: p.knobs(name)})
		p.classes[name] = &window{since: p.moved}
	}
	p.tuner = adapt.New(classes)
	p.write(Load)
	return p
}

func (p *Pace) knobs(class string) (knobs []adapt.Knob) {
	for _, name := range KnobsOf(class) {
		k := adapt.Knob{Name: name, Fixed: p.cfg.Fixed[Of{class, name}]}
		switch name {
		case Batches:
			k.Start, k.Max, k.Memory = p.cfg.Start, p.cfg.Most, true
		case Threads:
			k.Start, k.Max = max(1, p.cfg.Cores/p.cfg.Slots), p.cfg.Cores
		case Writers:
			if p.writes == 0 {
				continue
			}
			k.Start, k.Max = p.writes, writersMost
		}
		knobs = append(knobs, k)
	}
	return knobs
}

// Admit waits until one more batch may be claimed, until release is called.
func (p *Pace) Admit(ctx context.Context) (release func(), err error) {
	p.mu.Lock()
	turn := p.asking.PushBack(nil)
	p.mu.Unlock()
	err = p.wait(ctx, func() bool {
		if p.held > 0 || p.admitted >= p.limit() || p.asking.Front() != turn {
			return false
		}
		p.asking.Remove(turn)
		p.admitted++
		return true
	})
	if err != nil {
		p.change(func() { p.asking.Remove(turn) })
		return nil, err
	}
	return sync.OnceFunc(func() { p.change(func() { p.admitted-- }) }), nil
}

// Room reports whether a batch of a class may be claimed now, beside those of its class that
// are, until leave is called: else it is for somebody who has room. Where nothing is
// forced all classes are bounded by one number or nearly so, and a batch is claimed and waits.
func (p *Pace) Room(class string) (leave func(), ok bool) {
	if !p.apart {
		return func() {}, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[class] >= p.tuner.Value(class, Batches) {
		return nil, false
	}
	p.taken[class]++
	return sync.OnceFunc(func() { p.change(func() { p.taken[class]-- }) }), true
}

// limit returns how many batches may be in flight; mu is held. The class of the next one is not known.
func (p *Pace) limit() (most int) {
	for _, class := range Classes() {
		if p.inFlight[class] > 0 || p.latest == "" || p.apart {
			most = max(most, p.tuner.Value(class, Batches))
		}
	}
	if most == 0 {
		most = p.tuner.Value(p.latest, Batches)
	}
	return most
}

// Enter waits until a claimed batch of a class may be executed, and gives how many
// threads its engine shall have (0: as many as others leave it) and what is to be called
// with what it did: nil if it did not succeed.
func (p *Pace) Enter(ctx context.Context, class string) (threads int, exact bool, end func(*Done), err error) {
	p.change(func() { p.held++ })
	err = p.wait(ctx, func() bool {
		if p.inFlight[class] >= p.tuner.Value(class, Batches) {
			return false
		}
		p.held--
		p.inFlight[class]++
		p.latest, p.seen[class] = class, true
		return true
	})
	if err != nil {
		p.change(func() { p.held-- })
		return 0, false, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	threads, exact = p.threads(class)
	var once sync.Once
	return threads, exact, func(d *Done) { once.Do(func() { p.end(class, d) }) }, nil
}

// threads is 0 while the knob is as it was at the beginning; mu is held.
func (p *Pace) threads(class string) (n int, exact bool) {
	if n := p.cfg.Fixed[Of{class, Threads}]; n > 0 {
		return n, true
	}
	if n := p.tuner.Value(class, Threads); n > max(1, p.cfg.Cores/p.cfg.Slots) {
		return n, false
	}
	return 0, false
}

func (p *Pace) end(class string, d *Done) {
	p.change(func() {
		p.inFlight[class]--
		if d == nil {
			return
		}
		w := p.classes[class]
		w.batches++
		w.done += float64(max(d.Bytes, d.Rows, 1))
		w.peak = max(w.peak, d.Peak)
		w.writing, w.executing = w.writing+d.Write, w.executing+d.Elapsed
	})
}

// wait waits until may says so, which is asked under mu.
func (p *Pace) wait(ctx context.Context, may func() bool) error {
	for {
		p.mu.Lock()
		p.measure()
		ok := may()
		if ok {
			p.wake()
		}
		changed := p.changed
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// change does something under mu, and has those who wait look again.
func (p *Pace) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.measure()
	do()
	p.wake()
}

func (p *Pace) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// measure takes in how things were since something changed; mu is held.
func (p *Pace) measure() {
	now := p.cfg.Now()
	d := now.Sub(p.moved)
	p.moved = now
	if d <= 0 {
		return
	}
	all := 0
	for _, n := range p.inFlight {
		all += n
	}
	idle := all+p.held < p.limit()
	for class, w := range p.classes {
		w.own += d * time.Duration(p.inFlight[class])
		w.all += d * time.Duration(all)
		if idle {
			w.idle += d
		}
	}
}

// Settings lists all knobs as they stand.
func (p *Pace) Settings() []adapt.Setting {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tuner.Settings()
}

// Told lists the knobs of classes that there has been work of, and those that are
// forced, and the latest decisions, the oldest first.
func (p *Pace) Told() (knobs []adapt.Setting, decisions []adapt.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.tuner.Settings() {
		if p.seen[k.Class] || p.cfg.Fixed[Of{k.Class, k.Knob}] > 0 {
			knobs = append(knobs, k)
		}
	}
	return knobs, slices.Clone(p.decisions)
}
