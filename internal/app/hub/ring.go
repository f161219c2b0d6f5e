package hub

import (
	"sync"
)

// Limits of rings.
const (
	ringLines = 10_000
	ringBytes = 16 << 20
	// ringsBytes limits all rings of a hub together: each has an equal share of it, if that is less than ringBytes.
	ringsBytes = 64 << 20
	// lineBytes is what a line takes beside its texts.
	lineBytes = 100
)

// Line is a line of a stream.
type Line struct {
	Number int64  // 1, 2, 3 … of a run; 0 of a workspace
	Event  string // the kind of event; "run" of a workspace
	JSON   []byte // as events are printed
	// Discreet is JSON without values of the data.
	Discreet []byte
}

func (l Line) bytes() int { return lineBytes + len(l.Event) + len(l.JSON) + len(l.Discreet) }

// ring holds the latest lines of a follower. Its methods may be called concurrently.
type ring struct {
	mu        sync.Mutex
	lines     []Line // numbered first, first+1, …
	first     int64
	bytes     int           // of lines
	mostLines int           // that are kept
	mostBytes int           // likewise, of more than one line
	moved     chan struct{} // closed when something changes
	err       error         // why the latest look failed
	ended     error         // why nothing comes any more
}

func newRing(lines, bytes int) *ring {
	return &ring{first: 1, mostLines: lines, mostBytes: bytes, moved: make(chan struct{})}
}

// move tells those who wait. r.mu is held.
func (r *ring) move() {
	close(r.moved)
	r.moved = make(chan struct{})
}

// begin sets the number before the first line. The ring has none yet.
func (r *ring) begin(after int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = after + 1
}

// add appends lines, and says how the look for them has ended.
func (r *ring) add(lines []Line, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(lines) == 0 && err == nil && r.err == nil {
		return
	}
	r.err = err
	for _, l := range lines {
		r.lines, r.bytes = append(r.lines, l), r.bytes+l.bytes()
	}
	r.trim()
	r.move()
}

// trim drops the oldest lines that are too many. r.mu is held.
func (r *ring) trim() {
	for len(r.lines) > r.mostLines || r.bytes > r.mostBytes && len(r.lines) > 1 {
		r.bytes -= r.lines[0].bytes()
		r.lines[0] = Line{} // the array behind it lives on
		r.lines, r.first = r.lines[1:], r.first+1
	}
}

// bound changes the bytes that are kept.
func (r *ring) bound(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mostBytes = bytes
	r.trim()
}

// close says why nothing comes any more, unless that has been said.
func (r *ring) close(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended == nil {
		r.ended = err
		r.move()
	}
}

// failed returns why nothing comes any more; nil: something may.
func (r *ring) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// before returns the number of the line before the first.
func (r *ring) before() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first - 1
}

// last returns the number of the last line.
func (r *ring) last() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first + int64(len(r.lines)) - 1
}

// read returns the lines behind a line, limit at most. Without any it returns what to wait for, or an error. old
// reports that they are older than the ring.
func (r *ring) read(after int64, limit int) (lines []Line, wait <-chan struct{}, old bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := after + 1 - r.first
	switch {
	case from < 0:
		return nil, nil, true, r.ended
	case from < int64(len(r.lines)):
		return append([]Line(nil), r.lines[from:min(from+int64(limit), int64(len(r.lines)))]...), nil, false, nil
	case r.ended != nil:
		return nil, nil, false, r.ended
	}
	return nil, r.moved, false, r.err
}
