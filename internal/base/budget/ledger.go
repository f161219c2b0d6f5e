package budget

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/awake"
)

const (
	// reviewEvery is the interval at which a member checks whether others have come or gone.
	reviewEvery = 200 * time.Millisecond
	// waitEvery is the shorter interval while a member waits.
	waitEvery = reviewEvery / 4
	// turnDefault is the time for which a process with batches to do keeps its share although it is the turn
	// of others. idleAfter is the time without batches after which it gives its turn up: making interpreters
	// and caches again takes time.
	turnDefault = 3 * time.Second
	idleAfter   = 200 * time.Millisecond
	// sayAfter is the wait after which a process reports whom it waits for; sayAgain is the interval at which
	// it repeats that.
	sayAfter = 500 * time.Millisecond
	sayAgain = time.Minute
	// absentAfter is the time without a look after which a member counts with its resident memory instead of
	// its share.
	absentAfter = 30 * time.Second
	shareSuffix = ".share"
	shareBytes  = 1 << 10 // of such a file: no entry has as many
	guardName   = "guard"
)

// Ledger divides one memory figure between the processes that work in a
// directory. Each has a file there that says what it holds and is locked as
// long as it lives, so that the share of one that dies is free at once.
//
// They share in equal parts. Where they were told different figures, the least
// counts: whoever says 1 GB means all of them together. Changes are made under
// one lock, and nobody takes what others have not given back: what all hold
// together is never more than the figure. Those who hold more than their part
// give the rest back as soon as batches end.
//
// Where there is not enough for all, and where a batch needs everything, they
// take turns (see turns). A member that waits takes a place in one line. For the first in
// the line all others make room: they give all of theirs back as their batches end, and go to
// the end of the line. So nobody holds memory and waits for more of
// it, and everybody gets what it would have alone. See
// docs/decisions/0066-turns-of-memory.md.
//
// Who is stopped, or cannot look for other reasons, cannot give back anything:
// after absentAfter it counts for what it takes, and not where everything is wanted.
//
// Beside those who work there are guests, who only look: see Guest.
type Ledger struct {
	dir    string
	member Member
	whole  Budget // that this process has of its own figure
	room   *Room
	me     *os.File
	entry  entry
	in     bool      // it has had a share
	since  time.Time // of this turn
	idle   time.Time // since when no batch is at work
	said   time.Time // when somebody was told what is waited for
	told   bool      // and not yet that it is over
	waits  time.Time // since when it is
	clock  *awake.Clock
	beats  map[string]beat // of the others, by file
}

// entry is the content of a process's file.
type entry struct {
	Owner string `json:"owner"`
	Total int64  `json:"total"`   // that it was told
	Floor int64  `json:"floor"`   // that it cannot do without
	Held  int64  `json:"granted"` // 0: it waits
	// Turn is its place in the line that it waits in, or that it had when it got its share; 0: it has nothing to do.
	Turn int64 `json:"turn"`
	// All is its place in the line for everything; 0: it does not want that.
	All     int64  `json:"all,omitempty"`
	Most    int64  `json:"most,omitempty"`  // of a guest; 0: it is none
	Stays   bool   `json:"stays,omitempty"` // see Guest
	Under   int64  `json:"under,omitempty"` // of a guest: the figure when it got its share
	Beat    int64  `json:"beat"`            // counts its looks
	PID     int    `json:"pid"`
	Started string `json:"started"` // see startOf

	absent bool // it does not look any more
}

// beat holds the last look counted of a member, and the time when that was seen.
type beat struct {
	count int64
	at    time.Duration // of the ledger's clock
}

// Member describes a process that enters a ledger.
type Member struct {
	Owner string        // for those who wait for it
	Total int64         // that it was told
	Turn  time.Duration // that it has at least, if others wait; 0: turnDefault
	// Waiting is told what is waited for, when that takes a while, and "" when it is over; may be nil.
	Waiting func(text string)
	// Resized is told what the room has become, before others are told that it is
	// smaller, and reports whether what the room has no memory for has ended; may be nil.
	Resized func(Budget) bool
	// Wanted is told, again and again, while a run waits for memory that requests of this guest have; may be nil.
	Wanted func()
	Guest  *Guest // nil: it works on runs; else Total is the figure of a directory with nobody but guests
}

// Enter waits for a share of the figure, of which this process would have whole; a guest's is Guest.Whole.
// The room follows as others come and go: see Review.
func Enter(ctx context.Context, dir string, m Member, whole Budget) (_ *Ledger, err error) {
	l, err := Join(dir, m, whole)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Leave())
		}
	}()
	for {
		if err := l.review(ctx); err != nil {
			return nil, err
		}
		if l.entry.Held > 0 {
			return l, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(waitEvery):
		}
	}
}

// Join enters a process that has no share yet: Review gets it one when it is its turn.
func Join(dir string, m Member, whole Budget) (*Ledger, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of memory shares: %w", err)
	}
	return newLedger(dir, m, whole), nil
}

func newLedger(dir string, m Member, whole Budget) *Ledger {
	if m.Waiting == nil {
		m.Waiting = func(string) {}
	}
	m.Turn = cmp.Or(m.Turn, turnDefault)
	if m.Wanted == nil {
		m.Wanted = func() {}
	}
	if m.Resized == nil {
		m.Resized = func(Budget) bool { return true }
	}
	l := &Ledger{dir: dir, member: m, whole: whole, room: NewRoom(whole), clock: awake.New(reviewEvery, nil),
		beats: map[string]beat{},
		entry: entry{Owner: m.Owner, Total: m.Total, Floor: whole.floor(), PID: os.Getpid(),
			Started: startOf(os.Getpid())}}
	if g := m.Guest; g != nil {
		l.entry.Most, l.entry.Stays, l.entry.Floor = g.MostBytes, g.Stays, min(g.LeastBytes, g.MostBytes)
	}
	l.room.shared = true
	l.room.become(l.sized(0, 0))
	return l
}

// sized returns what this process has of so many bytes, while guests that stay hold others.
func (l *Ledger) sized(bytes, staying int64) Budget {
	switch {
	case l.member.Guest != nil:
		return l.member.Guest.budget(bytes)
	case bytes < l.whole.TotalBytes:
		return l.whole.beside(staying).resized(bytes)
	}
	return l.whole
}

// Room is the memory of this process.
func (l *Ledger) Room() *Room { return l.room }

// Leave gives the share back.
func (l *Ledger) Leave() error {
	l.sayOver()
	if l.me == nil {
		return nil // it never wrote one
	}
	err := os.Remove(l.me.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // somebody has cleaned up: there is nothing left to give back
	}
	return errors.Join(err, l.me.Close())
}

// Review follows those who come and go until ctx ends. What fails is tried again, because batches wait for what comes
// of it; failed is told of the first of several failures.
func (l *Ledger) Review(ctx context.Context, failed func(error)) {
	for fails := false; ; {
		every := reviewEvery
		if !l.waits.IsZero() || l.room.becoming() {
			every = waitEvery
		}
		pause := time.NewTimer(every)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		case <-l.room.changed:
			pause.Stop()
		}
		err := l.review(ctx)
		if err != nil && !fails && ctx.Err() == nil {
			failed(err)
		}
		fails = err != nil
	}
}

// review makes the room smaller before others are told, and larger after.
func (l *Ledger) review(ctx context.Context) error {
	d, want, staying, wanted := l.room.demand(), int64(0), int64(0), false
	if !d.idle {
		l.idle = time.Time{}
	} else if l.idle.IsZero() {
		l.idle = time.Now()
	}
	err := l.locked(ctx, func(others []entry) error {
		all := append(others, l.entry)
		mine := &all[len(all)-1]
		if !d.everything {
			mine.All = 0
		} else if mine.All == 0 || d.had { // also where another batch of this process is to be next
			mine.All = last(all) + 1
		}
		if needs := d.waiting || !l.in; mine.Held == 0 && needs != (mine.Turn > 0) {
			mine.Turn = 0
			if needs {
				mine.Turn = last(all) + 1
			}
		}
		l.entry = *mine
		want, staying, wanted = l.want(all), heldByStaying(all), l.entry.Most > 0 && runWaits(all)
		l.say(all, want, d)
		return l.write(max(want, l.entry.Held)) // what is to become smaller is held until it is
	})
	if err != nil {
		return err
	}
	if !l.room.become(l.sized(want, staying)) {
		if wanted {
			l.member.Wanted()
		}
		return nil
	}
	if !l.member.Resized(l.room.Budget()) || want == l.entry.Held {
		return nil
	}
	return l.locked(ctx, func(others []entry) error {
		if want == 0 { // to the end of the line, if it needs any
			l.entry.Turn = 0
			if d.waiting {
				l.entry.Turn = cmp.Or(l.entry.All, last(append(others, l.entry))+1)
			}
		}
		return l.write(want)
	})
}

// want returns the bytes that this process, the last of all, is to hold now.
func (l *Ledger) want(all []entry) int64 {
	me := len(all) - 1
	parts, everything := turns(all)
	part, held := parts[me], l.entry.Held
	switch free := free(all); {
	case l.entry.lasting():
		return held
	case everything && part > 0: // nobody else has anything, once they have given it back
		if held < l.entry.Total && !slices.ContainsFunc(all[:me],
			func(e entry) bool { return e.Held > 0 && !e.absent }) {
			l.in, l.since = true, time.Time{} // it was its turn
			return l.entry.Total
		}
		return held
	case part == 0 && l.turnOver():
		return 0
	case part == 0:
		return held
	case held == 0 && free < part && !(l.entry.Stays && free >= l.entry.Floor):
		return 0
	case held == 0:
		l.in, l.since, l.entry.Under = true, time.Now(), figure(all)
		return min(part, free)
	case part > held:
		return min(part, held+max(free, 0))
	}
	return part
}

// turnOver reports whether this process has had a turn, or has no use for one.
func (l *Ledger) turnOver() bool {
	return time.Since(l.since) >= l.member.Turn || !l.idle.IsZero() &&
		time.Since(l.idle) >= min(idleAfter, l.member.Turn)
}

// place is somebody's place in the line.
type place struct {
	number     int64
	who        int
	everything bool
}

// line lists what is waited for, in the order in which it was begun to be.
func line(all []entry) (places []place) {
	for i, e := range all {
		if e.Held == 0 && e.Turn > 0 && e.Turn != e.All && !e.absent {
			places = append(places, place{number: e.Turn, who: i})
		}
		if e.All > 0 && !e.absent {
			places = append(places, place{number: e.All, who: i, everything: true})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.number, b.number) })
	return places
}

// last is the last number of the line so far.
func last(all []entry) (number int64) {
	for _, e := range all {
		number = max(number, e.Turn, e.All)
	}
	return number
}

// figure returns the bytes that all members may hold together: the least that one was told, else the most that a
// guest was. free returns those of them that nobody holds.
func figure(all []entry) int64 {
	least, most := int64(0), int64(0)
	for _, e := range all {
		switch {
		case e.Most > 0:
			most = max(most, e.Total)
		case least == 0:
			least = e.Total
		default:
			least = min(least, e.Total)
		}
	}
	return cmp.Or(least, most)
}

func free(all []entry) int64 {
	left := figure(all)
	for _, bytes := range counted(all) {
		left -= bytes
	}
	return left
}

// turns returns the bytes of each member: equal parts, or 0 where it is the turn of others. everything: one
// has all of it. Members that wait come in as they stand in the line. Where there is not enough for them,
// those leave that have been in for longest.
func turns(all []entry) (parts []int64, everything bool) {
	parts = make([]int64, len(all))
	whole := figure(all)
	total, counts := whole, counted(all)
	var in []int
	for i, e := range all {
		switch {
		case e.absent:
			whole, total = whole-counts[i], total-counts[i]
		case e.lasting(): // until it leaves
			parts[i], total = counts[i], total-counts[i]
		case e.Held > 0:
			in = append(in, i)
		}
	}
	slices.SortStableFunc(in, func(a, b int) int { return cmp.Compare(all[a].Turn, all[b].Turn) })
	floor := func(i int) int64 { return max(min(all[i].Floor, whole), 0) }
	for len(in) > 1 && sumOf(in, floor) > total { // somebody has come with another figure
		in = in[1:]
	}
	staying := len(in) // of those who are in, at the front of it
	for first, p := range line(all) {
		if p.everything {
			if first == 0 {
				clear(parts)
				parts[p.who] = max(whole, 1)
				return parts, true
			}
			break
		}
		for sum := floor(p.who) + sumOf(in, floor); sum > total && staying > 0; staying-- {
			sum -= floor(in[0])
			in = in[1:]
		}
		if floor(p.who)+sumOf(in, floor) > total {
			break
		}
		in = append(in, p.who)
	}
	partAt := func(level int64, i int) int64 { return max(min(level, all[i].most(whole)), floor(i)) }
	for level, n := levelOf(in, partAt, total), 0; n < len(in); n++ {
		parts[in[n]] = partAt(level, in[n])
	}
	return parts, false
}

func sumOf(in []int, of func(int) int64) (sum int64) {
	for _, i := range in {
		sum += of(i)
	}
	return sum
}

// levelOf returns the bytes of each of those who are in, so that they have the total together: who needs more than that
// has more, and who may not have as many has less.
func levelOf(in []int, partAt func(level int64, i int) int64, total int64) int64 {
	return int64(sort.Search(int(max(total, 0)+1), func(level int) bool {
		return sumOf(in, func(i int) int64 { return partAt(int64(level), i) }) > total
	})) - 1
}

// say tells what is waited for, if anything of this process waits.
func (l *Ledger) say(all []entry, want int64, d demand) {
	outside := want == 0 && l.entry.Held == 0 && (d.waiting || !l.in)
	if !outside && (l.entry.All == 0 || want == l.entry.Total) {
		l.waits = time.Time{}
		l.sayOver()
		return
	}
	now := time.Now()
	if l.waits.IsZero() {
		l.waits = now
	}
	if now.Sub(l.waits) < sayAfter || now.Sub(l.said) < sayAgain {
		return
	}
	l.said, l.told = now, true
	l.member.Waiting(strings.Join(append(holders(all[:len(all)-1]), fmt.Sprintf("%d MiB for all", figure(all)>>20)),
		"; "))
}

// sayOver tells that nothing is waited for any more, if somebody was told what is.
func (l *Ledger) sayOver() {
	if l.told {
		l.told = false
		l.member.Waiting("")
	}
}

// holders returns texts that name each holder and its bytes.
func holders(all []entry) (texts []string) {
	for _, e := range all {
		if e.Held == 0 {
			continue
		}
		text := fmt.Sprintf("%s holds %d MiB", e.Owner, e.Held>>20)
		if e.absent {
			text += " and does not answer: it is stopped, or stands still"
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return texts
}

// locked calls fn with what the others' files say; nobody else changes any meanwhile.
func (l *Ledger) locked(ctx context.Context, fn func(others []entry) error) (err error) {
	g, err := lockGuard(ctx, filepath.Join(l.dir, guardName), nil)
	if err != nil {
		return fmt.Errorf("lock the ledger of memory shares: %w", err)
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	others, err := l.others()
	if err != nil {
		return fmt.Errorf("read the ledger of memory shares: %w", err)
	}
	return fn(others)
}

// lockGuard locks a ledger's guard. Nobody keeps it for longer than it takes to
// write a line, unless it is stopped just then: after absentAfter the others go on
// with another file under its name. What it then writes for itself they see.
func lockGuard(ctx context.Context, path string, now func() time.Time) (*os.File, error) {
	clock := awake.New(guardEvery, now)
	for began := clock.Look(); ; {
		g, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(g.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch current, gone := isAt(g, path); {
		case gone != nil:
			return nil, errors.Join(gone, g.Close())
		case !current: // the others have gone on
			began = clock.Look()
		case err == nil:
			return g, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(err, g.Close())
		case clock.Look()-began > absentAfter:
			if err := giveUp(g, path); err != nil {
				return nil, errors.Join(err, g.Close())
			}
		}
		if err := g.Close(); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(guardEvery):
		}
	}
}

// giveUp takes the name from a guard whose holder does not answer. One process at a time does, so that none takes it
// from the guard that has come in its place.
func giveUp(g *os.File, path string) (err error) {
	over, err := os.OpenFile(path+".over", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, over.Close()) }()
	if unix.Flock(int(over.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil // somebody does
	}
	if there, err := isAt(g, path); err != nil || !there {
		return err
	}
	return os.Remove(path)
}

// guardEvery is the interval at which a locked guard is tried again.
const guardEvery = 2 * time.Millisecond

// isAt reports whether an open file is the one of that name.
func isAt(f *os.File, path string) (bool, error) {
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	this, err := f.Stat()
	return err == nil && os.SameFile(there, this), err
}

// others reads the files of those who live, and removes those of the dead.
func (l *Ledger) others() ([]entry, error) {
	names, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, err
	}
	var out []entry
	for _, n := range names {
		path := filepath.Join(l.dir, n.Name())
		if !strings.HasSuffix(n.Name(), shareSuffix) || l.me != nil && l.me.Name() == path {
			continue
		}
		e, alive, err := readShare(path)
		if err != nil {
			return nil, err
		}
		if alive {
			e.absent = l.isAbsent(path, e.Beat)
			out = append(out, e)
		}
	}
	return out, nil
}

// isAbsent reports whether the process of a file has not looked for absentAfter,
// while this one did.
func (l *Ledger) isAbsent(path string, count int64) bool {
	now := l.clock.Look()
	seen, known := l.beats[path]
	if !known || seen.count != count {
		seen = beat{count: count, at: now}
		l.beats[path] = seen
	}
	return now-seen.at > absentAfter
}

func readShare(path string) (e entry, alive bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return e, false, nil // it has left
	}
	if err != nil {
		return e, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return e, false, err
		}
		return e, false, nil
	}
	data, err := io.ReadAll(f) // its owner may be about to leave: then the name is gone
	if err != nil || len(data) == 0 {
		return e, false, err // it has said nothing so far, and holds nothing
	}
	return e, true, json.Unmarshal(data, &e)
}

// write says in this process's file what it holds; what it could not say does not count. The first time it makes the
// file, under the ledger's lock, so that it is never seen without its own.
func (l *Ledger) write(held int64) (err error) {
	if l.me == nil {
		f, err := os.CreateTemp(l.dir, fmt.Sprintf("p%d-*%s", os.Getpid(), shareSuffix))
		if err != nil {
			return fmt.Errorf("make the file of a memory share: %w", err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return fmt.Errorf("lock the file of a memory share: %w", errors.Join(err, f.Close()))
		}
		l.me = f
	}
	says := l.entry
	says.Held = held
	says.Beat++
	data, err := json.Marshal(says)
	if err != nil {
		return fmt.Errorf("encode a memory share: %w", err)
	}
	// In one step, and of one size: it is read whole, whenever this process is stopped or the disk is full.
	data = append(data, bytes.Repeat([]byte{' '}, max(shareBytes-len(data), 0))...)
	if _, err := l.me.WriteAt(data, 0); err != nil {
		return fmt.Errorf("write a memory share: %w", err)
	}
	l.entry = says
	return nil
}

// Waiting describes the processes that wait for memory.
type Waiting struct {
	Texts []string // of each what it waits for, and then who holds what
	PIDs  []int
}

// Waiters says of each process that waits for a share of a directory's memory
// for whom; nobody waits where there is no ledger.
func Waiters(ctx context.Context, dir string) (w Waiting, err error) {
	if _, err := os.Stat(filepath.Join(dir, guardName)); errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	l := newLedger(dir, Member{}, Budget{})
	err = l.locked(ctx, func(all []entry) error {
		for _, e := range all {
			switch {
			case e.Held == 0 && e.Turn > 0:
				w.Texts = append(w.Texts, fmt.Sprintf("%s has none of %d MiB for all", e.Owner, figure(all)>>20))
			case e.All > 0 && e.Held < e.Total:
				w.Texts = append(w.Texts, fmt.Sprintf("a batch of %s needs all of the %d MiB", e.Owner, e.Total>>20))
			default:
				continue
			}
			w.PIDs = append(w.PIDs, e.PID)
		}
		slices.Sort(w.Texts)
		if len(w.Texts) > 0 {
			w.Texts = append(w.Texts, holders(all)...)
		}
		return nil
	})
	return w, err
}
