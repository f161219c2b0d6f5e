package load

import (
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What histograms hold: nanoseconds to an hour, three digits, steps of 128 ns at the low end.
const (
	histogramLeast  = 250
	histogramMost   = int64(time.Hour)
	histogramDigits = 3
	secondDigits    = 2 // of those that a second's p99 and blocks are made of
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(histogramLeast, histogramMost, histogramDigits)
}

func newSmallHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(histogramLeast, histogramMost, secondDigits)
}

// record records a time n times; what is longer than an hour counts as one.
func record(h *hdrhistogram.Histogram, d time.Duration, n int64) {
	_ = h.RecordValues(min(max(int64(d), 0), histogramMost), n) // it is within the range
}

// inSecond is what happened in a second of the window.
type inSecond struct {
	ops    [2]int64
	failed int64
	of     [2]*hdrhistogram.Histogram // nil: nothing, or it is in a block already
}

func (s *inSecond) add(from *inSecond) {
	s.failed += from.failed
	for kind := range s.ops {
		s.ops[kind] += from.ops[kind]
		if from.ops[kind] == 0 {
			continue
		}
		if s.of[kind] == nil {
			s.of[kind] = newSmallHistogram()
		}
		s.of[kind].Merge(from.of[kind])
	}
}

func (s *inSecond) reset() {
	s.failed = 0
	for kind, h := range s.of {
		if s.ops[kind] > 0 {
			h.Reset()
		}
		s.ops[kind] = 0
	}
}

// recorder collects what a few clients measure: histograms of each client of thousands would not fit the caches.
type recorder struct {
	mu     sync.Mutex
	of     [2]Measured
	errors map[string]int64
	last   time.Duration // when the last answer came, behind the warm-up
	busy   time.Duration // that its clients waited for answers
	second int
	now    inSecond
	line   *timeline
}

// errorsMost bounds the different texts of failures that are kept.
const errorsMost = 20

func newRecorder(plan Plan, line *timeline) *recorder {
	r := &recorder{errors: map[string]int64{}, line: line}
	for kind, has := range plan.kinds() {
		if !has {
			continue
		}
		r.now.of[kind] = newSmallHistogram()
		r.of[kind].Response = newHistogram()
		if r.of[kind].Service = r.of[kind].Response; plan.Rate > 0 {
			r.of[kind].Service = newHistogram()
		}
	}
	return r
}

// add records operations that were answered together, at done. All times are behind the warm-up.
func (r *recorder) add(ops []Op, errs []error, intended []time.Duration, sent, done time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last, done)
	r.busy += done - max(sent, 0)
	if second := int(done / time.Second); second != r.second {
		r.line.add(r.second, &r.now)
		r.now.reset()
		r.second = second
	}
	for i, op := range ops {
		m := &r.of[op.Kind]
		if errs[i] != nil {
			m.Failed++
			r.now.failed++
			r.failed(errs[i])
			continue
		}
		m.Ops++
		r.now.ops[op.Kind]++
		response := done - intended[i]
		record(m.Response, response, 1)
		record(r.now.of[op.Kind], response, 1)
		if m.Service != m.Response {
			record(m.Service, done-sent, 1)
		}
	}
}

func (r *recorder) failed(err error) {
	text := err.Error()
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Source != nil { // each connection has another port
		text = strings.ReplaceAll(text, op.Source.String(), "here")
	}
	if _, known := r.errors[text]; !known && len(r.errors) >= errorsMost {
		text = "others"
	}
	r.errors[text]++
}

// flush hands what has been collected of the present second on.
func (r *recorder) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line.add(r.second, &r.now)
	r.now.reset()
}

// timeline collects seconds, and blocks of them.
type timeline struct {
	mu      sync.Mutex
	seconds []*inSecond
	p99     []float64 // µs, of seconds that are in a block
	closed  int       // so many seconds are in blocks
	blocks  [2][]*hdrhistogram.Histogram
	width   int // seconds of a block
}

// blocksMost bounds the blocks; twice as long ones follow when there are more.
const blocksMost = 60

// openSeconds are the seconds that late answers may still belong to.
const openSeconds = 5

func (t *timeline) add(second int, s *inSecond) {
	if second < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.seconds) <= second {
		t.seconds = append(t.seconds, &inSecond{})
		if old := len(t.seconds) - openSeconds; old > t.closed {
			t.close()
		}
	}
	if second < t.closed { // its histogram is gone: what is this late counts for p99 in the oldest one that is open
		late := *s
		t.seconds[second].ops[Read] += late.ops[Read]
		t.seconds[second].ops[Write] += late.ops[Write]
		t.seconds[second].failed += late.failed
		for kind, h := range late.of {
			if late.ops[kind] > 0 {
				t.blockOf(kind, second).Merge(h)
			}
		}
		return
	}
	t.seconds[second].add(s)
}

// close puts the oldest open second into its block.
func (t *timeline) close() {
	s := t.seconds[t.closed]
	for width := blockWidth(t.closed + 1); t.width < width; {
		if t.width == 0 {
			t.width = 1
			continue
		}
		for kind := range t.blocks {
			t.blocks[kind] = halves(t.blocks[kind])
		}
		t.width *= 2
	}
	all := newSmallHistogram()
	for kind, h := range s.of {
		if h != nil {
			all.Merge(h)
			t.blockOf(kind, t.closed).Merge(h)
		}
		s.of[kind] = nil
	}
	t.p99 = append(t.p99, micros(all.ValueAtQuantile(99)))
	t.closed++
}

func (t *timeline) blockOf(kind, second int) *hdrhistogram.Histogram {
	at := second / t.width
	for len(t.blocks[kind]) <= at {
		t.blocks[kind] = append(t.blocks[kind], newSmallHistogram())
	}
	return t.blocks[kind][at]
}

// end closes all seconds, and returns them.
func (t *timeline) end() []Second {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.closed < len(t.seconds) {
		t.close()
	}
	out := make([]Second, len(t.seconds))
	for i, s := range t.seconds {
		out[i] = Second{At: float64(i + 1), Ops: s.ops, Failed: s.failed, P99: t.p99[i]}
	}
	return out
}

func micros(ns int64) float64 { return float64(ns) / 1e3 }
