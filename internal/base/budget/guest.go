package budget

import (
	"context"
	"slices"
	"sync"
)

// Guest is a member that works on no run: it looks at tables for people. It takes at most so much, and its own figure
// does not lower that of others. It gets its share in the line of all others (see Ledger), and keeps it until it
// leaves, because what it does cannot become smaller. So it gets at most half of the figure, and those who come with a
// smaller figure are withheld at most half of theirs.
//
// One that stays (of a server) gets at most a quarter, and gives its share back between two requests when it is the
// turn of others. While a run waits, Member.Wanted says that it is to end them. Beside it, processes have as many slots
// as without it, each somewhat smaller.
type Guest struct {
	LeastBytes int64 // below which it does not begin
	MostBytes  int64
	Slots      int // requests at once; 0: 1
	Stays      bool
}

// Shares of the figure that guests have at most.
const (
	guestShare = 2 // one of so many
	stayShare  = 4
)

// Whole is what the guest has at most.
func (g Guest) Whole() Budget { return g.budget(g.MostBytes) }

// budget divides bytes into equal slots, as many as there is the least for. All of a slot's bytes are its
// SlotEngineBytes.
func (g Guest) budget(bytes int64) Budget {
	b := Budget{TotalBytes: bytes, Cores: max(g.Slots, 1)}
	if bytes > 0 {
		b.Slots = int(max(min(int64(b.Cores), bytes/max(g.LeastBytes, 1)), 1))
		b.SlotEngineBytes = bytes / int64(b.Slots)
	}
	return b
}

// Visit waits for the share of a guest that does not stay, and holds it until leave is called. failed is told if
// others cannot be seen meanwhile, which is tried again.
func Visit(ctx context.Context, dir string, m Member, failed func(error)) (bytes int64, leave func() error, err error) {
	l, err := Enter(ctx, dir, m, m.Guest.Whole())
	if err != nil {
		return 0, nil, err
	}
	reviewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var review sync.WaitGroup
	review.Go(func() { l.Review(reviewing, failed) }) // so that it does not count as absent
	return l.Room().Budget().TotalBytes, sync.OnceValue(func() error {
		stop()
		review.Wait()
		return l.Leave()
	}), nil
}

// lasting reports whether a guest has a share that it keeps until it leaves.
func (e entry) lasting() bool { return e.Most > 0 && !e.Stays && e.Held > 0 }

// most returns the bytes that a member has at most of a figure.
func (e entry) most(figure int64) int64 {
	switch {
	case e.Most == 0:
		return figure
	case e.Stays:
		return min(e.Most, max(figure/stayShare, e.Floor))
	}
	return min(e.Most, max(figure/guestShare, e.Floor))
}

// counted returns the bytes that each member withholds from others. An absent one counts with its resident memory at
// most. Guests that came under a larger figure count with half of the present one at most: it is not theirs.
func counted(all []entry) []int64 {
	out, now := make([]int64, len(all)), figure(all)
	older := now / guestShare
	for i, e := range all {
		out[i] = e.Held
		switch {
		case e.absent:
			out[i] = min(e.Held, residentOf(e.PID, e.Started))
		case e.lasting() && e.Under > now:
			out[i] = min(e.Held, older)
			older -= out[i]
		}
	}
	return out
}

// heldByStaying returns the bytes that guests that stay hold, and are to go on holding.
func heldByStaying(all []entry) (bytes int64) {
	for _, e := range all {
		if e.Stays && !e.absent {
			bytes += min(e.Held, e.most(figure(all)))
		}
	}
	return bytes
}

// runWaits reports whether a process that works on runs is in the line.
func runWaits(all []entry) bool {
	return slices.ContainsFunc(line(all), func(p place) bool { return all[p.who].Most == 0 })
}

// smallestBeside is the share of a slot, in quarters, that is left beside guests that stay: where it would be less,
// there are fewer slots instead.
const smallestBeside = 3

// beside returns what b becomes while others hold so many bytes all the time: as many slots, each somewhat smaller.
func (b Budget) beside(bytes int64) Budget {
	if bytes == 0 || b.Slots == 0 {
		return b
	}
	slot := int64(float64(b.SlotEngineBytes) / engineShare)
	left := (b.TotalBytes - bytes - b.fixed(b.Slots)) / int64(b.Slots)
	if left < slotBytesMin || left < slot/4*smallestBeside {
		return b
	}
	b.TotalBytes -= bytes
	b.SlotEngineBytes = int64(float64(min(left, slot)) * engineShare)
	b.GoBytes = baseBytes + left/8*int64(b.Slots)
	return b
}
