package agents

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thalweg/internal/ops/load"
)

// merge makes one result of those of all agents, whose times are by the coordinator's clock.
func merge(p load.Plan, all []load.Result) (out load.Result, err error) {
	out = load.Result{Plan: p, Began: all[0].Began}
	end := all[0].Began
	for _, r := range all {
		if r.Began.Before(out.Began) {
			out.Began = r.Began
		}
		if e := r.Began.Add(r.Took); e.After(end) {
			end = e
		}
		out.CPU += r.CPU
		for kind := range r.Of {
			if err := add(&out.Of[kind], r.Of[kind]); err != nil {
				return out, err
			}
		}
		out.Seconds = addSeconds(out.Seconds, r.Seconds)
		out.Errors = addErrors(out.Errors, r.Errors)
	}
	out.Took = end.Sub(out.Began)
	return out, nil
}

func add(to *load.Measured, m load.Measured) (err error) {
	to.Ops += m.Ops
	to.Failed += m.Failed
	if to.Response, err = addHistogram(to.Response, m.Response); err != nil {
		return fmt.Errorf("merge times of responses: %w", err)
	}
	if to.Service, err = addHistogram(to.Service, m.Service); err != nil {
		return fmt.Errorf("merge times of service: %w", err)
	}
	return nil
}

// addHistogram adds counts to counts. Those of another precision would be put into wrong places: they are refused.
func addHistogram(to, from *hdrhistogram.Histogram) (*hdrhistogram.Histogram, error) {
	if from == nil || to == nil {
		if to == nil {
			to = from
		}
		return to, nil
	}
	if to.LowestTrackableValue() != from.LowestTrackableValue() || to.SignificantFigures() != from.SignificantFigures() ||
		to.HighestTrackableValue() != from.HighestTrackableValue() {
		return nil, fmt.Errorf("histograms are of different precision: the agents are of different versions")
	}
	if dropped := to.Merge(from); dropped > 0 {
		return nil, fmt.Errorf("%d counts are beyond the histogram", dropped)
	}
	return to, nil
}

// addSeconds adds what agents did in the same seconds, which begin and end at the same time for all. Their p99 is the
// worst one's: a bound. All of them watch the same servers, so the readings are those of the first that has some.
func addSeconds(to, from []load.Second) []load.Second {
	for i, s := range from {
		if i == len(to) {
			to = append(to, s)
			continue
		}
		t := &to[i]
		t.At = max(t.At, s.At)
		for kind := range s.Ops {
			t.Ops[kind] += s.Ops[kind]
		}
		t.Failed += s.Failed
		t.P99 = max(t.P99, s.P99)
		t.Collector += s.Collector
		t.CPU += s.CPU
		if len(t.Servers) == 0 {
			t.Servers = s.Servers
		}
	}
	return to
}

// otherErrors counts failures for which there are too many different texts.
const otherErrors = "others"

func addErrors(to, from map[string]int64) map[string]int64 {
	if to == nil && len(from) > 0 {
		to = make(map[string]int64, len(from))
	}
	for text, n := range from {
		if _, known := to[text]; !known && len(to) >= errorTextsMost {
			text = otherErrors
		}
		to[text] += n
	}
	return to
}

// spread is the time between the first and the last of some instants.
func spread(starts []time.Time) time.Duration {
	first, last := starts[0], starts[0]
	for _, s := range starts {
		if s.Before(first) {
			first = s
		}
		if s.After(last) {
			last = s
		}
	}
	return last.Sub(first)
}
