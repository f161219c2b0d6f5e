package load

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thalweg/internal/base/fault"
)

// Distribution says which keys are asked for.
type Distribution string

// The distributions.
const (
	Uniform    Distribution = "uniform"
	Zipf       Distribution = "zipf"
	Sequential Distribution = "sequential" // one behind the other, by whichever client is next, round and round
)

// Limits of a plan.
const (
	ClientsMax = 16_384
	DepthMax   = 4096
	RateMax    = 1e8
	ForMax     = 24 * time.Hour
)

// Plan is a load. It ends with Ops or with For, whichever comes first. A sequence that has neither ends when each key
// was used once.
type Plan struct {
	Keys    uint64        `json:"keys"` // there are: 0 to Keys-1
	Of      Distribution  `json:"distribution"`
	Reads   float64       `json:"reads"`   // part of the operations: 0 to 1
	Clients int           `json:"clients"` // at once
	Depth   int           `json:"depth"`   // operations that a client sends together at most
	Rate    float64       `json:"rate"`    // operations a second that are meant to begin; 0: as many as clients can
	Ops     int64         `json:"ops"`     // that are measured; 0: For says when to end
	For     time.Duration `json:"for_ns"`
	WarmUp  time.Duration `json:"warm_up_ns"`
	Seed    uint64        `json:"seed"`
	// Start is when the warm-up begins, for generators that begin together; zero: once all clients are open.
	Start time.Time `json:"start,omitzero"`
}

// Check says what is wrong with a plan.
func (p Plan) Check() error {
	wrong := ""
	switch {
	case p.Keys < 1:
		wrong = "it has no keys"
	case p.Of != Uniform && p.Of != Zipf && p.Of != Sequential:
		wrong = fmt.Sprintf("%q is no distribution of keys", p.Of)
	case !(p.Reads >= 0 && p.Reads <= 1):
		wrong = "reads are a part of the operations: 0 to 1"
	case p.Clients < 1 || p.Clients > ClientsMax:
		wrong = fmt.Sprintf("there are 1 to %d clients", ClientsMax)
	case p.Depth < 1 || p.Depth > DepthMax:
		wrong = fmt.Sprintf("a client sends 1 to %d operations together", DepthMax)
	case !(p.Rate >= 0 && p.Rate <= RateMax):
		wrong = fmt.Sprintf("a rate is 0 to %g operations a second", RateMax)
	case p.Ops < 0 || p.For < 0 || p.For > ForMax || p.WarmUp < 0 || p.WarmUp > ForMax:
		wrong = "operations and times are not below 0, and times at most a day"
	case p.Ops == 0 && p.For == 0 && p.Of != Sequential:
		wrong = "it has no end: neither operations nor a time"
	}
	if wrong != "" {
		return fault.New(fault.Script, "the load cannot be: %s", wrong)
	}
	return nil
}

// ops is how many operations are measured at most; 0: For says when to end.
func (p Plan) ops() int64 {
	if p.Ops == 0 && p.For == 0 && p.Of == Sequential {
		return int64(min(p.Keys, math.MaxInt64))
	}
	return p.Ops
}

// intends returns when an operation of an open loop is meant to begin, behind the warm-up. Turns count from 0.
func (p Plan) intends(turn int64) time.Duration {
	return time.Duration(float64(turn)/p.Rate*float64(time.Second)) - p.WarmUp
}

// turnAt returns the first turn that is meant to begin at a time or later.
func (p Plan) turnAt(at time.Duration) int64 {
	turn := int64((at + p.WarmUp).Seconds() * p.Rate)
	for turn > 0 && p.intends(turn-1) >= at {
		turn--
	}
	for p.intends(turn) < at {
		turn++
	}
	return turn
}

// kinds are the kinds of operations that a plan has.
func (p Plan) kinds() (has [2]bool) { return [2]bool{Read: p.Reads > 0, Write: p.Reads < 1} }

// Result is what a load has measured.
type Result struct {
	Plan    Plan             `json:"plan"`
	Began   time.Time        `json:"began"` // behind the warm-up
	Took    time.Duration    `json:"took_ns"`
	Of      [2]Measured      `json:"of"`                       // by Kind
	Before  []Reading        `json:"servers_before,omitempty"` // what servers said when the window began
	Seconds []Second         `json:"seconds"`
	CPU     time.Duration    `json:"cpu_ns"` // of this process, behind the warm-up
	Cores   int              `json:"cores"`  // that this process may use
	Busy    float64          `json:"busy,omitempty" doc:"Part of their time in which clients waited for answers."`
	Unsent  int64            `json:"unsent,omitempty"` // were meant to begin, and no client came to them
	Errors  map[string]int64 `json:"errors,omitempty"` // texts and how often
	Notes   []string         `json:"notes,omitempty"`
}

// Measured is what was measured of operations of one kind. Times are in nanoseconds, of operations that succeeded.
type Measured struct {
	Ops      int64 // that succeeded
	Failed   int64
	Response *hdrhistogram.Histogram // from when it was meant to begin
	Service  *hdrhistogram.Histogram // from when it was sent; of a closed loop it is Response
	// Blocks are responses by parts of the window, each of equally many seconds: from how they differ follows how far a
	// quantile can be trusted.
	Blocks []*hdrhistogram.Histogram
}

// Second is a second of a load.
type Second struct {
	At        float64   `json:"at_s"` // its end, behind the warm-up
	Ops       [2]int64  `json:"ops"`
	Failed    int64     `json:"failed"`
	P99       float64   `json:"p99_us"`      // of responses
	Collector float64   `json:"collector_s"` // processor time of this process's own garbage collector
	CPU       float64   `json:"cpu_s"`       // of this process
	Servers   []Reading `json:"servers,omitempty"`
}

// Rate returns operations a second that succeeded.
func (r Result) Rate() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Of[Read].Ops+r.Of[Write].Ops) / r.Took.Seconds()
}

// Failed returns how many operations failed.
func (r Result) Failed() int64 { return r.Of[Read].Failed + r.Of[Write].Failed }

// Response returns responses of reads and writes together.
func (r Result) Response() *hdrhistogram.Histogram {
	all := newHistogram()
	for _, m := range r.Of {
		if m.Response != nil {
			all.Merge(m.Response)
		}
	}
	return all
}

// measuredJSON has histograms in HdrHistogram's own compressed encoding.
type measuredJSON struct {
	Ops      int64    `json:"ops"`
	Failed   int64    `json:"failed"`
	Response string   `json:"response,omitempty"`
	Service  string   `json:"service,omitempty"`
	Blocks   []string `json:"blocks,omitempty"`
}

// MarshalJSON writes histograms in their own encoding.
func (m Measured) MarshalJSON() ([]byte, error) {
	out := measuredJSON{Ops: m.Ops, Failed: m.Failed, Blocks: make([]string, len(m.Blocks))}
	to, from := []*string{&out.Response, &out.Service}, []*hdrhistogram.Histogram{m.Response, m.Service}
	if m.Service == m.Response {
		to, from = to[:1], from[:1]
	}
	for i := range m.Blocks {
		to, from = append(to, &out.Blocks[i]), append(from, m.Blocks[i])
	}
	for i, h := range from {
		if h == nil {
			continue
		}
		text, err := h.EncodeV2()
		if err != nil {
			return nil, fmt.Errorf("encode a histogram: %w", err)
		}
		*to[i] = string(text)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Measured) UnmarshalJSON(text []byte) error {
	var in measuredJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	out := Measured{Ops: in.Ops, Failed: in.Failed, Blocks: make([]*hdrhistogram.Histogram, len(in.Blocks))}
	to, from := []**hdrhistogram.Histogram{&out.Response, &out.Service}, []string{in.Response, in.Service}
	for i := range in.Blocks {
		to, from = append(to, &out.Blocks[i]), append(from, in.Blocks[i])
	}
	for i, text := range from {
		if text == "" {
			continue
		}
		h, err := hdrhistogram.Decode([]byte(text))
		if err != nil {
			return fmt.Errorf("decode a histogram: %w", err)
		}
		*to[i] = h
	}
	if out.Service == nil {
		out.Service = out.Response
	}
	*m = out
	return nil
}

// Merge returns the results of generators that sent parts of one load at the same time, as of one. Nothing of their
// histograms is lost, or it fails.
func Merge(results ...Result) (Result, error) {
	if len(results) == 0 {
		return Result{}, fault.New(fault.Script, "there are no results to merge")
	}
	out := results[0]
	out.Errors, out.Seconds = maps.Clone(out.Errors), nil
	for kind := range out.Of {
		out.Of[kind] = Measured{}
	}
	ends := out.Began.Add(out.Took)
	seconds := 0 // of the longest: blocks are as wide as its
	for _, r := range results {
		seconds = max(seconds, len(r.Seconds))
	}
	for i, r := range results {
		for kind, m := range r.Of {
			m.Blocks = widened(m.Blocks, len(r.Seconds), seconds)
			if err := out.Of[kind].add(m); err != nil {
				return Result{}, err
			}
		}
		out.Seconds = addSeconds(out.Seconds, r.Seconds)
		if r.Began.Before(out.Began) {
			out.Began = r.Began
		}
		if end := r.Began.Add(r.Took); end.After(ends) {
			ends = end
		}
		if i == 0 {
			continue
		}
		all := float64(max(out.Plan.Clients+r.Plan.Clients, 1))
		out.Busy = (out.Busy*float64(out.Plan.Clients) + r.Busy*float64(r.Plan.Clients)) / all
		out.Plan.Clients += r.Plan.Clients
		out.Plan.Rate += r.Plan.Rate
		out.Plan.Ops += r.Plan.Ops
		out.CPU, out.Cores, out.Unsent = out.CPU+r.CPU, out.Cores+r.Cores, out.Unsent+r.Unsent
		out.Notes = append(out.Notes[:len(out.Notes):len(out.Notes)], r.Notes...)
		for text, n := range r.Errors {
			if out.Errors == nil {
				out.Errors = map[string]int64{}
			}
			out.Errors[text] += n
		}
	}
	out.Took = ends.Sub(out.Began)
	return out, nil
}

func (m *Measured) add(from Measured) (err error) {
	m.Ops, m.Failed = m.Ops+from.Ops, m.Failed+from.Failed
	closed := from.Service == from.Response && m.Service == m.Response
	if m.Response, err = merged(m.Response, from.Response); err != nil {
		return err
	}
	if closed {
		m.Service = m.Response
	} else if m.Service, err = merged(m.Service, from.Service); err != nil {
		return err
	}
	for i, b := range from.Blocks {
		if i == len(m.Blocks) {
			m.Blocks = append(m.Blocks, nil)
		}
		if m.Blocks[i], err = merged(m.Blocks[i], b); err != nil {
			return err
		}
	}
	return nil
}

// merged returns both histograms as one; to may be changed.
func merged(to, from *hdrhistogram.Histogram) (*hdrhistogram.Histogram, error) {
	switch {
	case from == nil:
		return to, nil
	case to == nil:
		return from.Clone(), nil
	}
	if lost := to.Merge(from); lost > 0 {
		return nil, fmt.Errorf("merge histograms: %d values have no place", lost)
	}
	return to, nil
}

// addSeconds adds what several generators did in the same seconds. The highest p99 of them stands for all.
func addSeconds(to, from []Second) []Second {
	for i, s := range from {
		if i == len(to) {
			to = append(to, Second{})
		}
		t := &to[i]
		t.At, t.P99, t.Failed = max(t.At, s.At), max(t.P99, s.P99), t.Failed+s.Failed
		t.Collector, t.CPU = t.Collector+s.Collector, t.CPU+s.CPU
		for kind := range s.Ops {
			t.Ops[kind] += s.Ops[kind]
		}
		if t.Servers == nil {
			t.Servers = s.Servers
		}
	}
	return to
}
