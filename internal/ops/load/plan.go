package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Distribution says which keys are asked for.
type Distribution string

// The distributions.
const (
	Uniform    Distribution = "uniform"
	Zipf       Distribution = "zipf"
	Sequential Distribution = "sequential"
)

// Plan is a load.
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
}

// Result is what a load has measured.
type Result struct {
	Plan    Plan             `json:"plan"`
	Began   time.Time        `json:"began"` // behind the warm-up
	Took    time.Duration    `json:"took_ns"`
	Of      [2]Measured      `json:"of"` // by Kind
	Seconds []Second         `json:"seconds"`
	CPU     time.Duration    `json:"cpu_ns"`           // of this process, behind the warm-up
	Errors  map[string]int64 `json:"errors,omitempty"` // texts and how often
}

// Measured is what was measured of operations of one kind. Times are in microseconds.
type Measured struct {
	Ops      int64
	Failed   int64
	Response *hdrhistogram.Histogram // from when it was meant to begin
	Service  *hdrhistogram.Histogram // from when it was sent
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
