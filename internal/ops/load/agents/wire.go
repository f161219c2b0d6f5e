package agents

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thalweg/internal/ops/load"
)

// Limits of what crosses the network.
const (
	askBytesMax    = 1 << 20
	resultBytesMax = 256 << 20
	errorTextsMost = 1000 // different texts of failures of a load
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
	Load   string          `json:"load"` // names it in what follows
	Target json.RawMessage `json:"target"`
	Share  share           `json:"share"`
}

// startAsk tells it when.
type startAsk struct {
	Load string `json:"load"`
	At   int64  `json:"at_ns"` // by the agent's clock
}

// statusAnswer says how far it is.
type statusAnswer struct {
	State state         `json:"state"`
	Error string        `json:"error,omitempty"`
	Late  time.Duration `json:"late_ns"` // how long behind the asked instant it began
}

// resultAnswer is a load.Result with histograms in HdrHistogram's own encoding: V2, compressed, in base 64.
type resultAnswer struct {
	Began   int64            `json:"began_ns"` // by the agent's clock
	Took    time.Duration    `json:"took_ns"`
	Of      [2]measured      `json:"of"`
	Seconds []load.Second    `json:"seconds"`
	CPU     time.Duration    `json:"cpu_ns"`
	Errors  map[string]int64 `json:"errors,omitempty"`
}

type measured struct {
	Ops      int64  `json:"ops"`
	Failed   int64  `json:"failed"`
	Response string `json:"response,omitempty"`
	Service  string `json:"service,omitempty"`
}

func encodeResult(r load.Result) (out resultAnswer, err error) {
	out = resultAnswer{Began: r.Began.UnixNano(), Took: r.Took, Seconds: r.Seconds, CPU: r.CPU, Errors: r.Errors}
	for kind, m := range r.Of {
		to := &out.Of[kind]
		to.Ops, to.Failed = m.Ops, m.Failed
		if to.Response, err = encodeHistogram(m.Response); err != nil {
			return out, err
		}
		if to.Service, err = encodeHistogram(m.Service); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (a resultAnswer) decode() (out load.Result, err error) {
	out = load.Result{Began: time.Unix(0, a.Began), Took: a.Took, Seconds: a.Seconds, CPU: a.CPU, Errors: a.Errors}
	for kind, m := range a.Of {
		to := &out.Of[kind]
		to.Ops, to.Failed = m.Ops, m.Failed
		if to.Response, err = decodeHistogram(m.Response); err != nil {
			return out, err
		}
		if to.Service, err = decodeHistogram(m.Service); err != nil {
			return out, err
		}
	}
	return out, nil
}

func encodeHistogram(h *hdrhistogram.Histogram) (string, error) {
	if h == nil {
		return "", nil
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode a histogram: %w", err)
	}
	return string(text), nil
}

func decodeHistogram(text string) (*hdrhistogram.Histogram, error) {
	if text == "" {
		return nil, nil
	}
	h, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("decode a histogram: %w", err)
	}
	return h, nil
}
