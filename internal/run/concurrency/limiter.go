package concurrency

import (
	"container/list"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"thalweg/internal/store/parts"
)

// What a limiter goes by.
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

// Config of a Limiter.
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
	Decided func(Decision) // may be nil
	Logger  *slog.Logger
	Now     func() time.Time // nil: the clock's
}

// Limiter bounds how much a worker does at once. Its methods may be called by any number
// of goroutines.
type Limiter struct {
	cfg    Config
	writes int  // writers, at the beginning
	apart  bool // batches in flight are forced for some class: each has its own bound before it is claimed

	mu        sync.Mutex
	tuner     *tuner
	admitted  int       // that may claim, or have claimed
	asking    list.List // who waits to be admitted, in the order in which they came: else a class could keep out another
	inFlight  map[string]int
	taken     map[string]int  // that Room has let claim
	held      int             // claimed batches that wait for their class
	latest    string          // class
	seen      map[string]bool // classes
	changed   chan struct{}
	classes   map[string]*window
	peaks     map[string]int64 // of memory of a batch, by class
	moved     time.Time        // up to when windows are measured
	decisions []Decision
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

// New returns a limiter.
func New(cfg Config) *Limiter {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Decided == nil {
		cfg.Decided = func(Decision) {}
	}
	cfg.Slots = max(cfg.Slots, 1)
	l := &Limiter{cfg: cfg, inFlight: map[string]int{}, taken: map[string]int{}, seen: map[string]bool{},
		peaks: map[string]int64{}, changed: make(chan struct{}), classes: map[string]*window{}, moved: cfg.Now()}
	if cfg.Writers != nil {
		l.writes = cfg.Writers.Most()
	}
	classes := map[string][]knob{}
	for _, name := range Classes() {
		l.apart = l.apart || cfg.Fixed[Of{name, Batches}] != cfg.Fixed[Of{Load, Batches}]
		classes[name] = l.knobs(name)
		l.classes[name] = &window{since: l.moved}
	}
	l.tuner = newTuner(classes)
	l.write(Load)
	return l
}

func (l *Limiter) knobs(class string) (knobs []knob) {
	for _, name := range KnobsOf(class) {
		k := knob{Name: name, Fixed: l.cfg.Fixed[Of{class, name}]}
		switch name {
		case Batches:
			k.Start, k.Max, k.Memory = l.cfg.Start, l.cfg.Most, true
		case Threads:
			k.Start, k.Max = max(1, l.cfg.Cores/l.cfg.Slots), l.cfg.Cores
		case Writers:
			if l.writes == 0 {
				continue
			}
			k.Start, k.Max = l.writes, writersMost
		}
		knobs = append(knobs, k)
	}
	return knobs
}

// Admit waits until one more batch may be claimed, until release is called.
func (l *Limiter) Admit(ctx context.Context) (release func(), err error) {
	l.mu.Lock()
	turn := l.asking.PushBack(nil)
	l.mu.Unlock()
	err = l.wait(ctx, func() bool {
		if l.held > 0 || l.admitted >= l.limit() || l.asking.Front() != turn {
			return false
		}
		l.asking.Remove(turn)
		l.admitted++
		return true
	})
	if err != nil {
		l.change(func() { l.asking.Remove(turn) })
		return nil, err
	}
	return sync.OnceFunc(func() { l.change(func() { l.admitted-- }) }), nil
}

// Room reports whether a batch of a class may be claimed now, beside those of its class that
// are, until leave is called: else it is for somebody who has room. Where nothing is
// forced all classes are bounded by one number or nearly so, and a batch is claimed and waits.
func (l *Limiter) Room(class string) (leave func(), ok bool) {
	if !l.apart {
		return func() {}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[class] >= l.tuner.value(class, Batches) {
		return nil, false
	}
	l.taken[class]++
	return sync.OnceFunc(func() { l.change(func() { l.taken[class]-- }) }), true
}

// limit returns the most batches that may be in flight; mu is held. Of what class the next one will
// be nobody knows.
func (l *Limiter) limit() (most int) {
	for _, class := range Classes() {
		if l.inFlight[class] > 0 || l.latest == "" || l.apart {
			most = max(most, l.tuner.value(class, Batches))
		}
	}
	if most == 0 {
		most = l.tuner.value(l.latest, Batches)
	}
	return most
}

// Enter waits until a claimed batch of a class may be executed, and gives how many
// threads its engine shall have (0: as many as others leave it) and what is to be called
// with what it did: nil if it did not succeed.
func (l *Limiter) Enter(ctx context.Context, class string) (threads int, exact bool, end func(*Done), err error) {
	l.change(func() { l.held++ })
	err = l.wait(ctx, func() bool {
		if l.inFlight[class] >= l.tuner.value(class, Batches) {
			return false
		}
		l.held--
		l.inFlight[class]++
		l.latest, l.seen[class] = class, true
		return true
	})
	if err != nil {
		l.change(func() { l.held-- })
		return 0, false, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	threads, exact = l.threads(class)
	var once sync.Once
	return threads, exact, func(d *Done) { once.Do(func() { l.end(class, d) }) }, nil
}

// threads is 0 while the knob is as it was at the beginning; mu is held.
func (l *Limiter) threads(class string) (n int, exact bool) {
	if n := l.cfg.Fixed[Of{class, Threads}]; n > 0 {
		return n, true
	}
	if n := l.tuner.value(class, Threads); n > max(1, l.cfg.Cores/l.cfg.Slots) {
		return n, false
	}
	return 0, false
}

func (l *Limiter) end(class string, d *Done) {
	l.change(func() {
		l.inFlight[class]--
		if d == nil {
			return
		}
		w := l.classes[class]
		w.batches++
		w.done += float64(max(d.Bytes, d.Rows, 1))
		w.peak = max(w.peak, d.Peak)
		w.writing, w.executing = w.writing+d.Write, w.executing+d.Elapsed
	})
}

// wait waits until may says so, which is asked under mu.
func (l *Limiter) wait(ctx context.Context, may func() bool) error {
	for {
		l.mu.Lock()
		l.measure()
		ok := may()
		if ok {
			l.wake()
		}
		changed := l.changed
		l.mu.Unlock()
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
func (l *Limiter) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.measure()
	do()
	l.wake()
}

func (l *Limiter) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// measure takes in how things were since something changed; mu is held.
func (l *Limiter) measure() {
	now := l.cfg.Now()
	d := now.Sub(l.moved)
	l.moved = now
	if d <= 0 {
		return
	}
	all := 0
	for _, n := range l.inFlight {
		all += n
	}
	idle := all+l.held < l.limit()
	for class, w := range l.classes {
		w.own += d * time.Duration(l.inFlight[class])
		w.all += d * time.Duration(all)
		if idle {
			w.idle += d
		}
	}
}

// Settings lists all knobs as they stand.
func (l *Limiter) Settings() []Setting {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tuner.settings()
}

// Told lists the knobs of classes that there has been work of, and those that are
// forced, and the latest decisions, the oldest first.
func (l *Limiter) Told() (knobs []Setting, decisions []Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.tuner.settings() {
		if l.seen[k.Class] || l.cfg.Fixed[Of{k.Class, k.Knob}] > 0 {
			knobs = append(knobs, k)
		}
	}
	return knobs, slices.Clone(l.decisions)
}
