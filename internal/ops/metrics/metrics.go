package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/state"
)

// Metrics are those of one worker.
type Metrics struct {
	registry  *prometheus.Registry
	inventory []Metric
	sources   sources

	batches, rows, bytes, runs, leasesLost    *prometheus.CounterVec
	stateCalls, partsCalls, partsBytes        *prometheus.CounterVec
	requests                                  *prometheus.CounterVec
	batchSeconds, stageSeconds                *prometheus.HistogramVec
	stateSeconds, partsSeconds                *prometheus.HistogramVec
	requestSeconds                            *prometheus.HistogramVec
	conditionals, deliveries, slotEnds        *prometheus.CounterVec
	copies, copiesBytes, batchCPU, decisions  *prometheus.CounterVec
	inFlight                                  prometheus.Gauge
	hints, slots, budget, resident, cpu, info sampled
	concurrency                               sampled
}

// New makes the metrics of a worker.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewPedanticRegistry()}
	m.makeAll()
	m.sources.version = version
	m.registry.MustRegister(sampler{m})
	// Who asks how fast something grows has to see that it was nothing before.
	m.leasesLost.WithLabelValues()
	for _, outcome := range []string{succeeded, failed, retried, released} {
		m.batches.WithLabelValues(outcome)
	}
	for _, why := range []string{string(sandbox.Memory), string(sandbox.Killed), string(sandbox.Died)} {
		m.slotEnds.WithLabelValues(why)
	}
	return m
}

// Inventory lists what there is.
func (m *Metrics) Inventory() []Metric { return slices.Clone(m.inventory) }

// Outcomes of attempts.
const (
	succeeded = "succeeded"
	failed    = "failed"
	retried   = "retried"
	released  = "released"
)

// Observe counts an event of a worker.
func (m *Metrics) Observe(e job.Event) {
	switch e.Kind {
	case job.BatchFinished:
		m.ended(succeeded, e.Stats)
	case job.BatchFailed:
		m.ended(failed, e.Stats)
	case job.BatchRetried:
		m.ended(retried, e.Stats)
	case job.BatchReleased:
		m.batches.WithLabelValues(released).Inc()
	case job.RunFinished:
		m.runs.WithLabelValues(string(e.Status)).Inc()
	}
}

func (m *Metrics) ended(outcome string, s state.Stats) {
	m.batches.WithLabelValues(outcome).Inc()
	m.batchSeconds.WithLabelValues(outcome).Observe(s.Elapsed.Seconds())
	for stage, took := range map[string]time.Duration{"slot": s.Turn, "wait": s.Wait, "read": s.Read,
		"engine": s.Engine, "python": s.Python, "write": s.Write, "commit": s.Commit} {
		if took > 0 {
			m.stageSeconds.WithLabelValues(stage).Observe(took.Seconds())
		}
	}
	if outcome != succeeded {
		return
	}
	m.rows.WithLabelValues("in").Add(float64(s.RowsIn))
	m.rows.WithLabelValues("out").Add(float64(s.RowsOut))
	m.bytes.WithLabelValues("in").Add(float64(s.BytesIn))
	m.bytes.WithLabelValues("out").Add(float64(s.BytesOut))
	for stage, counter := range map[string]string{"engine": state.CounterEngineCPU, "python": state.CounterPythonCPU} {
		m.batchCPU.WithLabelValues(stage).Add((time.Duration(s.Counters[counter]) * time.Microsecond).Seconds())
	}
}

// Requests counts requests to a service: it is what its backend's observer is to be.
type Requests struct {
	m       *Metrics
	service string
}

// Requests are those to cassandra, s3 or rabbitmq.
func (m *Metrics) Requests(service string) Requests { return Requests{m, service} }

// Request counts one.
func (r Requests) Request(name string, took time.Duration, err error) {
	r.count(name, took, outcomeOf(err))
}

// Conditional counts a conditional write, which somebody else may have come before.
func (r Requests) Conditional(name string, took time.Duration, late bool, err error) {
	outcome := outcomeOf(err)
	if late && err == nil {
		outcome = lost
	}
	r.m.conditionals.WithLabelValues(r.service, outcome).Inc()
	r.count(name, took, outcome)
}

func (r Requests) count(name string, took time.Duration, outcome string) {
	r.m.requests.WithLabelValues(r.service, name, outcome).Inc()
	r.m.requestSeconds.WithLabelValues(r.service, name).Observe(took.Seconds())
}

func outcomeOf(err error) string {
	if err != nil {
		return failed
	}
	return done
}

// Hinted counts what has become of a hint.
func (m *Metrics) Hinted(f executor.Fate) { m.deliveries.WithLabelValues(string(f)).Inc() }

// SlotEnded counts a slot's process that was not told to end.
func (m *Metrics) SlotEnded(why sandbox.End) { m.slotEnds.WithLabelValues(string(why)).Inc() }

// Decided counts a change of how much is done at once.
func (m *Metrics) Decided(d concurrency.Decision) { m.decisions.WithLabelValues(d.Class, d.Knob).Inc() }

// claims knows the batches in flight.
type claims struct {
	mu sync.Mutex
	up map[claimed]bool
}

type claimed struct {
	state.BatchKey
	attempt int
}

// claimed and landed say that a claim was won, and that it has ended.
func (s *stateStore) claimed(c state.Claim) {
	s.claims.mu.Lock()
	defer s.claims.mu.Unlock()
	if key := (claimed{c.BatchKey, c.Attempt}); !s.claims.up[key] { // a claim may be repeated
		s.claims.up[key] = true
		s.m.inFlight.Inc()
	}
}

func (s *stateStore) landed(c state.Claim, late bool) {
	s.claims.mu.Lock()
	defer s.claims.mu.Unlock()
	key := claimed{c.BatchKey, c.Attempt}
	if !s.claims.up[key] {
		return
	}
	delete(s.claims.up, key)
	s.m.inFlight.Dec()
	if late {
		s.m.leasesLost.WithLabelValues().Inc()
	}
}
