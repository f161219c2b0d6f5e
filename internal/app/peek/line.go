package peek

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"thalweg/internal/base/fault"
)

// line is where questions wait for a child. Callers are served in turn, however many questions each has: every
// question gets a number when it comes, by its weight behind the caller's question before it, and the least number is
// next. Pages weigh less than what may take long, so they go before it, and nothing waits behind them for ever. What
// may take long has all children but one at most of one caller.
type line struct {
	mu      sync.Mutex
	places  int
	now     int64 // the number that was served last
	waiting []*asked
	working []*asked
}

// asked is a question in a line.
type asked struct {
	by     string
	heavy  bool
	number int64
	ready  chan struct{} // closed when it is its turn
	begun  time.Time     // when it got its memory; zero: it waits
	yield  func()        // ends it, because runs need the memory
}

// Weights of questions, and how many of a caller wait at most.
const (
	pageWeight  = 1
	heavyWeight = 8
	waitingMax  = 16
)

// enter waits until a question may have a child, and holds its place until leave is called.
func (l *line) enter(ctx context.Context, q question) (a *asked, leave func(), err error) {
	a = &asked{by: q.by, heavy: q.heavy, ready: make(chan struct{})}
	if err := l.join(a, q.doing); err != nil {
		return nil, nil, err
	}
	leave = sync.OnceFunc(func() { l.leave(a) })
	select {
	case <-a.ready:
		return a, leave, nil
	case <-ctx.Done():
		leave()
		return nil, nil, ctx.Err()
	}
}

func (l *line) join(a *asked, doing string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := 0
	a.number = l.now
	for _, other := range l.waiting {
		if other.by != a.by {
			continue
		}
		if waits++; other.heavy == a.heavy {
			a.number = max(a.number, other.number)
		}
	}
	if waits >= waitingMax {
		return &fault.Error{Kind: fault.Script, Code: fault.TooMany, Retryable: true,
			Message: fmt.Sprintf("%s was not begun: %d questions of yours wait already", doing, waits),
			Hint:    "wait until some are answered, or cancel them"}
	}
	if a.number += pageWeight; a.heavy {
		a.number += heavyWeight - pageWeight
	}
	l.waiting = append(l.waiting, a)
	l.serve()
	return nil
}

func (l *line) leave(a *asked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	is := func(other *asked) bool { return other == a }
	l.waiting, l.working = slices.DeleteFunc(l.waiting, is), slices.DeleteFunc(l.working, is)
	l.serve()
}

// resize makes it so many places. Who has one keeps it.
func (l *line) resize(places int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places = max(places, 1) // who has it tells the ledger that somebody waits
	l.serve()
}

// serve lets questions begin as long as there are places; mu is held.
func (l *line) serve() {
	for len(l.working) < l.places {
		next := -1
		for i, a := range l.waiting {
			if (next < 0 || a.number < l.waiting[next].number) && l.may(a) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		a := l.waiting[next]
		l.waiting = slices.Delete(l.waiting, next, next+1)
		l.working = append(l.working, a)
		l.now = max(l.now, a.number)
		close(a.ready)
	}
}

// may reports whether a question leaves others a child; mu is held.
func (l *line) may(a *asked) bool {
	if !a.heavy {
		return true
	}
	has := 0
	for _, other := range l.working {
		if other.heavy && other.by == a.by {
			has++
		}
	}
	return has < max(l.places-1, 1)
}

// begin says that a question has its memory, and how it is ended.
func (l *line) begin(a *asked, yield func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.begun, a.yield = time.Now(), yield
}

// yield ends the questions that have had their memory for so long.
func (l *line) yield(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.working {
		if a.yield != nil && time.Since(a.begun) >= after {
			a.yield()
		}
	}
}
