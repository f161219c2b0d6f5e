package access

import (
	"sync"
	"time"
)

// Delays after failed logins.
const (
	failuresFree    = 4 // that cost nothing
	delayFirst      = time.Second
	delayOfNameMax  = 30 * time.Second // nobody can lock a user out for longer
	delayOfHostMax  = 15 * time.Minute
	failuresKept    = time.Hour
	failuresMostKey = 10_000
)

// throttle refuses logins for a while after failures, by user and by address.
type throttle struct {
	mu   sync.Mutex
	seen map[string]failures
}

type failures struct {
	count int
	until time.Time // no login is tried before
	last  time.Time
}

// wait returns how long somebody has to wait; 0: they may try. A try counts as failed until won is called.
func (t *throttle) wait(now time.Time, name, from string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now)
	of := t.of(name, from)
	longest := time.Duration(0)
	for _, k := range of {
		longest = max(longest, t.seen[k.key].until.Sub(now))
	}
	if longest > 0 {
		return longest
	}
	for _, k := range of {
		f := t.seen[k.key]
		f.count, f.last = f.count+1, now
		if n := f.count - failuresFree; n > 0 {
			f.until = now.Add(min(delayFirst<<min(n-1, 20), k.most))
		}
		t.seen[k.key] = f
	}
	return 0
}

// won forgets the failures of a user who has come in.
func (t *throttle) won(name, from string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.of(name, from) {
		delete(t.seen, k.key)
	}
}

type throttled struct {
	key  string
	most time.Duration
}

func (t *throttle) of(name, from string) []throttled {
	return []throttled{{"name " + name, delayOfNameMax}, {"from " + from, delayOfHostMax}}
}

// forget removes what is old, and everything where that is too much.
func (t *throttle) forget(now time.Time) {
	if len(t.seen) < failuresMostKey {
		return
	}
	for k, f := range t.seen {
		if now.Sub(f.last) > failuresKept || now.After(f.until) {
			delete(t.seen, k)
		}
	}
}
