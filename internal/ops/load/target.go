package load

import "context"

// Kind says what an operation does.
type Kind uint8

// The kinds of operations.
const (
	Read Kind = iota
	Write
)

// Op is an operation on a key, which is a number: a target makes the name and the values of a row of it.
type Op struct {
	Kind Kind
	Key  uint64
}

// Target is a store under load.
type Target interface {
	// Client opens one of the clients. It is used by one goroutine at a time.
	Client(ctx context.Context, number int) (Client, error)
	Close() error
}

// Client carries out operations.
type Client interface {
	// Do carries out operations, sent together where the protocol can, and returns once all are answered. A read that
	// finds nothing, or another value than was written, is an error. errs has one for each operation; nil: it succeeded.
	Do(ctx context.Context, ops []Op, errs []error)
	Close() error
}

// Observer is a target whose servers say what they do.
type Observer interface {
	// Observe reads the counters and gauges of all servers.
	Observe(ctx context.Context) ([]Reading, error)
}

// Reading is what one server says of itself at a moment.
type Reading struct {
	Node     string             `json:"node"`
	Counters map[string]float64 `json:"counters,omitempty" doc:"Since it has begun: only their growth says something."`
	Gauges   map[string]float64 `json:"gauges,omitempty"`
}
