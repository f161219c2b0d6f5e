package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"thalweg/internal/base/budget"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/store/queue"
)

// readTimeout is the longest that a reader of metrics waits for a source.
const readTimeout = 2 * time.Second

// Sources are looked at when somebody reads the metrics. nil: there is none.
type Sources struct {
	Waiting func(ctx context.Context, p queue.Priority) (int, error) // of the queue
	Budget  func() (b budget.Budget, held bool)                      // that is in force
	AtOnce  func() []concurrency.Setting                             // how much is done at once
}

type sources struct {
	mu      sync.Mutex
	version string
	now     Sources
	budget.Processes
}

// Watch makes these the sources.
func (m *Metrics) Watch(s Sources) {
	m.sources.mu.Lock()
	defer m.sources.mu.Unlock()
	m.sources.now = s
}

// sampled is a metric of a sampler.
type sampled struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// sampler asks the sources. What cannot be known at a moment is not shown.
type sampler struct{ m *Metrics }

// Describe implements prometheus.Collector.
func (s sampler) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []sampled{s.m.hints, s.m.slots, s.m.concurrency, s.m.budget, s.m.resident, s.m.cpu, s.m.info} {
		to <- d.desc
	}
}

// Collect implements prometheus.Collector.
func (s sampler) Collect(to chan<- prometheus.Metric) {
	show := func(d sampled, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d.desc, d.kind, value, labels...)
	}
	s.m.sources.mu.Lock()
	from := s.m.sources.now
	s.m.sources.mu.Unlock()
	show(s.m.info, 1, s.m.sources.version)
	if from.Waiting != nil {
		s.queue(from, show)
	}
	if from.Budget != nil {
		if b, held := from.Budget(); held {
			show(s.m.slots, float64(b.Slots))
			show(s.m.budget, float64(b.TotalBytes), "total")
			show(s.m.budget, float64(b.SlotEngineBytes*int64(b.Slots)), "engine")
			show(s.m.budget, float64(b.InterpreterBytes*int64(b.Interpreters)), "interpreters")
			show(s.m.budget, float64(b.GoBytes), "go")
		}
	}
	if from.AtOnce != nil {
		for _, k := range from.AtOnce() {
			show(s.m.concurrency, float64(k.Value), k.Class, k.Knob)
		}
	}
	self, children, ok := s.m.sources.Use()
	if !ok {
		return
	}
	for name, u := range map[string]budget.Use{"self": self, "children": children} {
		show(s.m.resident, float64(u.Resident), name)
		show(s.m.cpu, u.CPU.Seconds(), name)
	}
}

func (s sampler) queue(from Sources, show func(d sampled, value float64, labels ...string)) {
	ctx, stop := context.WithTimeout(context.Background(), readTimeout)
	defer stop()
	for name, p := range map[string]queue.Priority{"high": queue.High, "normal": queue.Normal, "low": queue.Low} {
		if n, err := from.Waiting(ctx, p); err == nil {
			show(s.m.hints, float64(n), name)
		}
	}
}
