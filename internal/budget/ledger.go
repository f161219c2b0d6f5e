package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// reviewEvery is how often a member looks whether others have come or gone.
	reviewEvery = 200 * time.Millisecond
	// sayAfter is how long a process waits before it says for whom.
	sayAfter    = 500 * time.Millisecond
	shareSuffix = ".share"
	guardName   = "guard"
)

// Ledger divides one memory figure between the processes that work in a
// directory. Each has a file there that says what it holds and is locked as
// long as it lives, so that the share of one that dies is free at once.
//
// They share in equal parts. Where they were told different figures, the least
// counts: whoever says 1 GB means all of them together. Changes are made under
// one lock, and nobody takes what others have not given back: what all hold
// together is never more than the figure. Nobody waits for one who does not end
// its batches in turn: those who hold more than their part give the rest back
// as soon as batches end; only if the figure is too small for all (Floor) does
// a process wait until another one ends.
type Ledger struct {
	dir   string
	room  *Room
	split func(total int64) (Budget, error)
	me    *os.File
	entry entry
}

// entry is what a process's file says.
type entry struct {
	Owner string `json:"owner"`
	Total int64  `json:"total"`   // that it was told
	Floor int64  `json:"floor"`   // that it cannot do without
	Held  int64  `json:"granted"` // 0: it waits
}

// Member says who enters a ledger.
type Member struct {
	Owner string // for those who wait for it
	Total int64  // that it was told
	// Waiting is told what is waited for, when that is something else; may be nil.
	Waiting func(text string)
}

// Enter waits for a share of the figure. The room is made as split divides it,
// and follows as others come and go: see Review.
func Enter(ctx context.Context, dir string, m Member, split func(total int64) (Budget, error)) (_ *Ledger, err error) {
	if _, err := split(m.Total); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of memory shares: %w", err)
	}
	l := &Ledger{dir: dir, split: split, entry: entry{Owner: m.Owner, Total: m.Total, Floor: MemoryBytesMin}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Leave())
		}
	}()
	said, began := "", time.Now()
	for {
		share, holders, err := l.ask()
		if err != nil {
			return nil, err
		}
		if share > 0 {
			b, err := l.first(share)
			if err != nil {
				return nil, err
			}
			l.room = NewRoom(b)
			return l, nil
		}
		if text := strings.Join(holders, "; "); m.Waiting != nil && text != said && time.Since(began) > sayAfter {
			said = text
			m.Waiting(text)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(reviewEvery / 4):
		}
	}
}

// first divides the share that a process begins with.
func (l *Ledger) first(share int64) (Budget, error) {
	b, err := l.split(share)
	if err != nil || share == l.entry.Total {
		return b, err
	}
	whole, err := l.split(l.entry.Total)
	if err != nil {
		return b, err
	}
	return b.resized(share, whole), nil
}

// Room is the memory of this process.
func (l *Ledger) Room() *Room { return l.room }

// Leave gives the share back.
func (l *Ledger) Leave() error {
	if l.me == nil {
		return nil // it never wrote one
	}
	name := l.me.Name()
	return errors.Join(os.Remove(name), l.me.Close())
}

// Review follows those who come and go until ctx ends.
func (l *Ledger) Review(ctx context.Context) error {
	tick := time.NewTicker(reviewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := l.review(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// review makes the room smaller before others are told, and larger after.
func (l *Ledger) review(ctx context.Context) error {
	want := int64(0)
	err := l.locked(func(others []entry) error {
		part, free := l.part(others)
		want = max(part, l.room.Budget().floor())
		if want > l.entry.Held {
			want = min(want, l.entry.Held+max(free, 0))
		}
		return l.write(max(want, l.entry.Held)) // what is to become smaller is held until it is
	})
	if err != nil || want == l.room.Budget().TotalBytes {
		return err
	}
	b, err := l.shrunk(want)
	if err != nil {
		return err
	}
	if err := l.room.Become(ctx, b); err != nil {
		return err
	}
	return l.locked(func([]entry) error { return l.write(want) })
}

// shrunk divides a total as the room is divided that has more or less: the
// interpreters stay what they are, slots go before they become smaller.
func (l *Ledger) shrunk(total int64) (Budget, error) {
	whole, err := l.split(l.entry.Total)
	if err != nil {
		return whole, err
	}
	now := l.room.Budget()
	return now.resized(total, whole), nil
}

// ask takes this process's part if all others have come down to theirs; else it
// says who holds what.
func (l *Ledger) ask() (share int64, holders []string, err error) {
	err = l.locked(func(others []entry) error {
		part, free := l.part(others)
		total, settled := l.entry.Total, true
		for _, o := range others {
			total = min(total, o.Total)
			settled = settled && o.Held <= max(part, o.Floor)
			if o.Held > 0 {
				holders = append(holders, fmt.Sprintf("%s holds %d MiB", o.Owner, o.Held>>20))
			}
		}
		slices.Sort(holders)
		holders = append(holders, fmt.Sprintf("%d MiB for all", total>>20))
		if part = min(part, free); !settled && free < max(part, l.entry.Floor) || part < l.entry.Floor {
			return l.write(0)
		}
		share = part
		return l.write(share)
	})
	return share, holders, err
}

// part is what each may have, this process among them, and what nobody holds.
func (l *Ledger) part(others []entry) (part, free int64) {
	total := l.entry.Total
	for _, o := range others {
		total = min(total, o.Total)
	}
	free = total - l.entry.Held
	for _, o := range others {
		free -= o.Held
	}
	// Those whose part would be less than they cannot do without wait outside.
	members := min(int64(len(others)+1), max(total/MemoryBytesMin, 1))
	return total / members, free
}

// locked calls fn with what the others' files say; nobody else changes any meanwhile.
func (l *Ledger) locked(fn func(others []entry) error) (err error) {
	g, err := os.OpenFile(filepath.Join(l.dir, guardName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open the ledger of memory shares: %w", err)
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if err := unix.Flock(int(g.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock the ledger of memory shares: %w", err)
	}
	others, err := l.others()
	if err != nil {
		return fmt.Errorf("read the ledger of memory shares: %w", err)
	}
	return fn(others)
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
			out = append(out, e)
		}
	}
	return out, nil
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
	if err != nil {
		return e, true, err
	}
	return e, true, json.Unmarshal(data, &e)
}

// write says in this process's file what it holds. The first time it makes the
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
	if l.entry.Held = held; l.room != nil {
		l.entry.Floor = l.room.Budget().floor()
	}
	data, err := json.Marshal(l.entry)
	if err != nil {
		return fmt.Errorf("encode a memory share: %w", err)
	}
	if err := l.me.Truncate(0); err != nil {
		return fmt.Errorf("write a memory share: %w", err)
	}
	if _, err := l.me.WriteAt(data, 0); err != nil {
		return fmt.Errorf("write a memory share: %w", err)
	}
	return nil
}

// Waiters says of each process that waits for a share of a directory's memory
// for whom; nobody waits where there is no ledger.
func Waiters(dir string) (texts []string, err error) {
	if _, err := os.Stat(filepath.Join(dir, guardName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	l := &Ledger{dir: dir}
	err = l.locked(func(all []entry) error {
		var holders, waiting []string
		for _, e := range all {
			if e.Held > 0 {
				holders = append(holders, fmt.Sprintf("%s holds %d MiB", e.Owner, e.Held>>20))
			} else {
				waiting = append(waiting, fmt.Sprintf("%s has none of %d MiB for all", e.Owner, e.Total>>20))
			}
		}
		slices.Sort(holders)
		slices.Sort(waiting)
		if len(waiting) > 0 {
			texts = append(waiting, holders...)
		}
		return nil
	})
	return texts, err
}
