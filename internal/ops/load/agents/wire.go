package agents

import (
	"encoding/json"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/load"
)

// Limits of what crosses the network.
const (
	askBytesMax    = 1 << 20
	resultBytesMax = 256 << 20
)

// States of a load at an agent.
type state string

const (
	preparing state = "preparing" // opens the target
	ready     state = "ready"
	begun     state = "begun" // waits for its instant, or is at work
	done      state = "done"
	failed    state = "failed"
)

// clockAnswer is an agent's clock.
type clockAnswer struct {
	Now int64 `json:"now_ns"` // since 1970
}

// prepareAsk tells an agent what it is to do.
type prepareAsk struct {
	Load    string          `json:"load"`    // names it in what follows
	Version string          `json:"version"` // of the coordinator's program
	Target  json.RawMessage `json:"target"`
	Share   share           `json:"share"`
}

// startAsk tells it when.
type startAsk struct {
	Load string `json:"load"`
	At   int64  `json:"at_ns"` // by the agent's clock
}

// statusAnswer says how far it is.
type statusAnswer struct {
	State    state         `json:"state"`
	Failure  failure       `json:"failure,omitzero"`
	Answered int64         `json:"answered"` // operations so far, with the warm-up
	Late     time.Duration `json:"late_ns"`  // from the asked instant to its first operation
}

// failure is what failed at an agent, with who has to act.
type failure struct {
	Kind    fault.Kind `json:"kind"`
	Message string     `json:"message"` // with its causes
	Hint    string     `json:"hint,omitempty"`
}

func failureOf(err error) failure {
	f := fault.Of(err)
	return failure{Kind: f.Kind, Message: err.Error(), Hint: f.Hint}
}

func (f failure) fault() error { return &fault.Error{Kind: f.Kind, Message: f.Message, Hint: f.Hint} }

// resultAnswer is what an agent has measured. Histograms are in HdrHistogram's own encoding: V2, compressed, in base 64.
type resultAnswer struct {
	// Result has its times by the agent's clock.
	Result load.Result `json:"result"`
	Moved  load.Moved  `json:"moved"` // with the warm-up
}
