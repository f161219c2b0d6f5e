package metrics

import (
	"fmt"
	"math"

	dto "github.com/prometheus/client_model/go"
)

// Family is a metric with its samples, as JSON shows it.
type Family struct {
	Name    string   `json:"name"`
	Kind    Kind     `json:"kind"`
	Unit    string   `json:"unit"`
	Help    string   `json:"help"`
	Samples []Sample `json:"samples"` // none: it has not moved yet
}

// Sample is a figure, or those of a histogram.
type Sample struct {
	Labels  map[string]string `json:"labels,omitempty"`
	Value   *float64          `json:"value,omitempty"`
	Count   *uint64           `json:"count,omitempty"`
	Sum     *float64          `json:"sum,omitempty"`
	Buckets []Bucket          `json:"buckets,omitempty"`
}

// Bucket counts the values up to a bound. The last one's bound is not written: it has all.
type Bucket struct {
	AtMost float64 `json:"at_most"`
	Count  uint64  `json:"count"`
}

// Gather gives every metric of the inventory as it is now, in its order.
func (m *Metrics) Gather() ([]Family, error) {
	gathered, err := m.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	byName := map[string]*dto.MetricFamily{}
	for _, f := range gathered {
		byName[f.GetName()] = f
	}
	var out []Family
	for _, i := range m.inventory {
		f := Family{Name: i.Name, Kind: i.Kind, Unit: i.Unit, Help: i.Help, Samples: []Sample{}}
		for _, s := range byName[i.Name].GetMetric() {
			f.Samples = append(f.Samples, sampleOf(s))
		}
		out = append(out, f)
	}
	return out, nil
}

func sampleOf(m *dto.Metric) Sample {
	s := Sample{Labels: map[string]string{}}
	for _, l := range m.GetLabel() {
		s.Labels[l.GetName()] = l.GetValue()
	}
	switch {
	case m.GetCounter() != nil:
		s.Value = m.GetCounter().Value
	case m.GetGauge() != nil:
		s.Value = m.GetGauge().Value
	case m.GetHistogram() != nil:
		h := m.GetHistogram()
		s.Count, s.Sum = h.SampleCount, h.SampleSum
		for _, b := range h.GetBucket() {
			if !math.IsInf(b.GetUpperBound(), 1) { // JSON has no infinity
				s.Buckets = append(s.Buckets, Bucket{b.GetUpperBound(), b.GetCumulativeCount()})
			}
		}
	}
	return s
}
