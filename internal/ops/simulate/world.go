package simulate

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// errOver ends the calls that still wait when a simulation is over.
var errOver = context.Canceled

// world runs one goroutine at a time. Each tells the world that it waits. Once all wait, the world takes the next
// event, and sets its clock to the time of that event.
type world struct {
	mu      sync.Mutex
	resting *sync.Cond // nobody is at work
	working int        // goroutines that are
	waiting map[*waiter]struct{}
	now     time.Duration
	events  events
	made    uint64 // events so far
	over    bool
	all     sync.WaitGroup // goroutines that were started
	passing func(d time.Duration)
}

// waiter is a goroutine that waits, of a process that may die meanwhile.
type waiter struct {
	of    *process
	wake  chan struct{}
	woken bool
}

// process groups goroutines that die together: if one of a dead process waits, it waits for ever.
type process struct{ dead bool }

// event is that somebody goes on, or something begins.
type event struct {
	at    time.Duration
	order uint64
	of    *process
	who   *waiter // goes on
	do    func()  // or this is begun, on a goroutine of its own
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = event{}
	*e = (*e)[:len(*e)-1]
	return last
}

func newWorld(passing func(time.Duration)) *world {
	w := &world{waiting: map[*waiter]struct{}{}, passing: passing}
	w.resting = sync.NewCond(&w.mu)
	return w
}

// schedule adds an event; mu is held.
func (w *world) schedule(in time.Duration, e event) {
	w.made++
	e.at, e.order = w.now+max(in, 0), w.made
	heap.Push(&w.events, e)
}

// begin starts something at a later time.
func (w *world) begin(in time.Duration, of *process, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.schedule(in, event{of: of, do: do})
	}
}

// rest says that a goroutine is not at work any more; mu is held.
func (w *world) rest() {
	if w.working--; w.working == 0 {
		w.resting.Signal()
	}
}

// wait waits until somebody calls resume; mu is held before and behind.
func (w *world) wait(who *waiter) {
	w.waiting[who] = struct{}{}
	w.rest()
	w.mu.Unlock()
	<-who.wake
	w.mu.Lock()
}

// resume lets a waiter go on at this time, once; mu is held.
func (w *world) resume(who *waiter) { w.schedule(0, event{of: who.of, who: who}) }

// sleep waits for a time; false if the simulation is over.
func (w *world) sleep(of *process, d time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	who := newWaiter(of)
	w.schedule(d, event{of: of, who: who})
	w.wait(who)
	return !w.over
}

func (w *world) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

func newWaiter(of *process) *waiter { return &waiter{of: of, wake: make(chan struct{})} }

// run takes events until done, then ends what still waits. It returns when every
// goroutine that was started has ended.
func (w *world) run(ctx context.Context, done func() bool, end func()) error {
	w.mu.Lock()
	for !done() && ctx.Err() == nil && len(w.events) > 0 {
		w.step(heap.Pop(&w.events).(event))
		for w.working > 0 {
			w.resting.Wait()
		}
	}
	w.over = true
	end()
	for who := range w.waiting {
		close(who.wake)
	}
	clear(w.waiting)
	w.mu.Unlock()
	w.all.Wait()
	return ctx.Err()
}

// step lets an event happen; mu is held.
func (w *world) step(e event) {
	if e.at > w.now {
		w.passing(e.at - w.now)
		w.now = e.at
	}
	switch {
	case e.of.dead, e.who != nil && e.who.woken:
	case e.who != nil:
		w.working++
		e.who.woken = true
		delete(w.waiting, e.who)
		close(e.who.wake)
	default:
		w.working++
		w.all.Go(func() {
			e.do()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.rest()
		})
	}
}
