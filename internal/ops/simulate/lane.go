package simulate

import (
	"slices"

	"thalweg/internal/store/state"
	"thalweg/internal/store/state/backoff"
)

// lane is the way of one process to a partition of the state, as that of package
// state/cassandra: what comes while a call is under way is decided together and
// written at once, and tries are spaced by package backoff.
type lane struct {
	busy    bool
	waiting []*pending
	pace    backoff.Tries
}

// groupCalls limits the calls that one conditional write answers, as in package state/cassandra.
const groupCalls = 64

// manner says whether a call may share a write with others.
type manner int

const (
	beside manner = iota // with others
	urgent               // likewise, and before others
	alone
)

// pending is a call that waits for its answer.
type pending struct {
	manner manner
	can    func() bool // as what is read before says; false: it comes too late
	write  func() error
	who    *waiter // nil: it leads
	err    error
	done   bool
}

// change is a conditional write of a partition, with what others of this process
// change there, as often as it loses against other processes.
func (t *timed) change(partition string, how manner, can func() bool, write func() error) error {
	l := t.lanes[partition]
	if l == nil {
		l = &lane{}
		t.lanes[partition] = l
	}
	me := &pending{manner: how, can: can, write: write, err: errOver}
	if !t.enter(l, me) {
		return me.err
	}
	for !me.done && t.round(partition, l, me) {
		continue
	}
	t.leave(l)
	return me.err
}

// enter waits until a call is answered, or has to lead: true then.
func (t *timed) enter(l *lane, me *pending) (leads bool) {
	w := t.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	at := len(l.waiting)
	if me.manner == urgent {
		at = max(0, slices.IndexFunc(l.waiting, func(p *pending) bool { return p.manner != urgent }))
	}
	l.waiting = slices.Insert(l.waiting, at, me)
	if !l.busy {
		l.busy = true
		return true
	}
	me.who = newWaiter(&t.process)
	w.wait(me.who)
	return !me.done && !w.over
}

// leave has another call lead, if one waits.
func (t *timed) leave(l *lane) {
	w := t.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.busy = len(l.waiting) > 0; l.busy {
		w.resume(l.waiting[0].who)
	}
}

// admit takes calls that wait into a group.
func (t *timed) admit(l *lane, group []*pending) []*pending {
	w := t.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(l.waiting) > 0 && len(group) < groupCalls {
		if len(group) > 0 && (group[0].manner == alone || l.waiting[0].manner == alone) {
			break
		}
		group, l.waiting = append(group, l.waiting[0]), l.waiting[1:]
	}
	return group
}

// round answers a group; false if the simulation is over.
func (t *timed) round(partition string, l *lane, me *pending) bool {
	for group := t.admit(l, nil); len(group) > 0; {
		if d := l.pace.Wait(t.random); d > 0 && !t.fleet.world.sleep(&t.process, d) {
			return false
		}
		group = t.admit(l, group)
		if t.costs().Kind == SQLite {
			return t.oneWriter(group, me)
		}
		if t.read(1) != nil {
			return false
		}
		group = slices.DeleteFunc(group, func(p *pending) bool {
			late := !p.can()
			if late {
				t.answer(p, me, state.ErrNotClaimable)
			}
			return late
		})
		if len(group) == 0 {
			return true
		}
		revision := t.fleet.revisions[partition]
		if t.sleep(t.costs().Write) != nil {
			return false
		}
		t.fleet.writes++
		if t.fleet.revisions[partition] == revision {
			l.pace.Won()
			t.fleet.revisions[partition]++
			for _, p := range group {
				t.answer(p, me, p.write())
			}
			return true
		}
		t.fleet.lost++
		l.pace.Lost()
	}
	return true
}

func (t *timed) costs() State { return t.fleet.costs.State }

// oneWriter writes and answers calls one by one, in a store with one writer.
func (t *timed) oneWriter(group []*pending, me *pending) bool {
	for _, p := range group {
		err := t.queued(p.write)
		t.answer(p, me, err)
		if err == errOver { //nolint:errorlint // it is never wrapped
			return false
		}
	}
	return true
}

// answer lets a call go on with its answer.
func (t *timed) answer(p, me *pending, err error) {
	w := t.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	p.err, p.done = err, true
	if p != me && p.who != nil {
		w.resume(p.who)
	}
}
