package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Kind is the type of a metric.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric describes one of the inventory.
type Metric struct {
	Name   string
	Kind   Kind
	Unit   string // seconds, bytes, or what is counted
	Labels []Label
	Help   string
}

// Label is one of a metric's labels, with the values that it may have.
type Label struct{ Name, Values string }

// Bounds of histograms, in seconds.
var (
	requestBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	batchBounds   = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600}
)

// Values of labels that several metrics have.
const (
	stateOutcomes   = "done, lost (its condition did not hold: somebody else was first), unknown (perhaps done), failed"
	requestOutcomes = "done, failed"
	classes         = "load, join, python, write"
	knobs           = "batches (in flight), threads (of DuckDB, a batch), writers (of parts, requests at once)"
	processes       = "self, children (interpreters, slots and what else it started)"
)

// makeAll makes the metrics. This is the inventory: what is not made here is not shown.
func (m *Metrics) makeAll() {
	m.batches = m.counter("thalweg_batches_total", "attempts at batches", "Attempts at batches that ended here.",
		Label{"outcome", "succeeded, failed, retried (failed and will be tried again), released (given back untried)"})
	m.batchSeconds = m.histogram("thalweg_batch_seconds", batchBounds,
		"Time of attempts that succeeded or failed, from claim to commit.",
		Label{"outcome", "succeeded, failed, retried"})
	m.stageSeconds = m.histogram("thalweg_batch_stage_seconds", batchBounds,
		"How long batches spent in a stage. Stages overlap; Python is summed over interpreters.",
		Label{"stage", "slot (waiting for a free one), wait (for memory), read (inputs), engine (DuckDB), python, " +
			"write (results), commit (files under their names)"})
	m.rows = m.counter("thalweg_rows_total", "rows", "Rows that batches have read and made.",
		Label{"direction", "in, out"})
	m.bytes = m.counter("thalweg_bytes_total", "bytes", "Bytes of inputs and results of batches, as stored.",
		Label{"direction", "in, out"})
	m.runs = m.counter("thalweg_runs_finished_total", "runs", "Runs that this worker has seen end.",
		Label{"status", "complete, failed, stopped, paused, waiting"})
	m.inFlight = m.gauge("thalweg_batches_in_flight", "batches", "Batches that this worker has claimed now.")
	m.leasesLost = m.counter("thalweg_leases_lost_total", "claims",
		"Claims that this worker lost while it executed the batch; it dropped the work.")

	m.stateCalls = m.counter("thalweg_state_calls_total", "calls",
		"Calls of the state. Claims are operation=\"claim\".",
		Label{"operation", "a method of state.Store, in snake case"}, Label{"outcome", stateOutcomes})
	m.stateSeconds = m.histogram("thalweg_state_seconds", requestBounds, "How long calls of the state took.",
		Label{"operation", "as above"})
	m.partsCalls = m.counter("thalweg_parts_calls_total", "calls", "Calls of the part store.",
		Label{"operation", "put, open, fetch, delete, list"}, Label{"outcome", requestOutcomes})
	m.partsSeconds = m.histogram("thalweg_parts_seconds", requestBounds,
		"How long calls of the part store took; open ends before the bytes are read.", Label{"operation", "as above"})
	m.partsBytes = m.counter("thalweg_parts_bytes_total", "bytes", "Bytes of parts that were put and read.",
		Label{"operation", "put, open"})

	m.copies = m.counter("thalweg_part_copies_total", "parts",
		"Parts that this machine needed, and parts that it put where other machines find them.",
		Label{"outcome", "found (its copy was here), copied, failed, written (put), unwritten (could not be put)"})
	m.copiesBytes = m.counter("thalweg_part_copies_bytes_total", "bytes",
		"Bytes of the parts that thalweg_part_copies_total counts.", Label{"outcome", "found, copied, written"})

	m.requests = m.counter("thalweg_requests_total", "requests", "Requests to services of the fleet.",
		Label{"service", "cassandra, s3, rabbitmq"}, Label{"request", "what was asked, as the backend names it"},
		Label{"outcome", "done, lost (a conditional write: somebody else was first; it is tried again), failed"})
	m.requestSeconds = m.histogram("thalweg_request_seconds", requestBounds,
		"How long requests to services took, retries apart.",
		Label{"service", "as above"}, Label{"request", "as above"})

	m.conditionals = m.counter("thalweg_conditional_writes_total", "requests",
		"Conditional writes to the state's service; thalweg_requests_total counts them, too.",
		Label{"service", "cassandra"}, Label{"outcome", "done, lost (somebody else was first), failed"})

	m.deliveries = m.counter("thalweg_queue_deliveries_total", "hints",
		"Hints of batches that were taken from the queue. A used hint led to a claim; a handed one was passed on, "+
			"because its class is at a fixed number here; all others were useless.",
		Label{"fate", "used (its batch was claimed), refused (it could not be claimed any more), handed (given to " +
			"others), unknown (of no run that is worked on, or of what is not there), broken (state did not answer)"})
	m.slotEnds = m.counter("thalweg_slot_ends_total", "processes",
		"Processes of slots that ended without being told to.",
		Label{"why", "memory (the system had none for it), killed (it stood still, or did not stop), died"})
	m.batchCPU = m.counter("thalweg_batch_cpu_seconds_total", "seconds",
		"Processor time of batches that succeeded, in slots that are processes, too.",
		Label{"stage", "engine (DuckDB, and the process around it while it works), python"})
	m.hints = m.sampled("thalweg_queue_hints", Gauge, "hints", "Hints of batches that wait in the queue, of all runs.",
		Label{"priority", "high, normal, low"})
	m.slots = m.sampled("thalweg_slots", Gauge, "batches",
		"Batches that may be in flight at once, by memory and cores.")
	m.concurrency = m.sampled("thalweg_concurrency", Gauge, "at once",
		"How much of each class of work is done at once, at the moment.",
		Label{"class", classes}, Label{"knob", knobs})
	m.decisions = m.counter("thalweg_concurrency_changes_total", "changes",
		"How often a number of thalweg_concurrency was changed. The log says why.",
		Label{"class", classes}, Label{"knob", knobs})
	m.budget = m.sampled("thalweg_memory_budget_bytes", Gauge, "bytes",
		"Memory that this worker may use, by share; nothing while it works on no run.",
		Label{"share", "total, engine (DuckDB's limits), interpreters, go"})
	m.resident = m.sampled("thalweg_memory_resident_bytes", Gauge, "bytes", "Resident memory.",
		Label{"process", processes})
	m.cpu = m.sampled("thalweg_cpu_seconds_total", Counter, "seconds",
		"Used processor time. Interpreters and slots are children.", Label{"process", processes})
	m.info = m.sampled("thalweg_worker_info", Gauge, "1", "Always 1.", Label{"version", "of the program"})
}

// counter makes one that begins at nothing.
func (m *Metrics) counter(name, unit, help string, labels ...Label) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
		m.list(name, Counter, unit, help, labels))
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) gauge(name, unit, help string) prometheus.Gauge {
	v := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	m.list(name, Gauge, unit, help, nil)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name string, bounds []float64, help string, labels ...Label) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds},
		m.list(name, Histogram, "seconds", help, labels))
	m.registry.MustRegister(v)
	return v
}

// sampled is looked at when somebody reads: see sampler.
func (m *Metrics) sampled(name string, kind Kind, unit, help string, labels ...Label) sampled {
	valueType := prometheus.GaugeValue
	if kind == Counter {
		valueType = prometheus.CounterValue
	}
	return sampled{prometheus.NewDesc(name, help, m.list(name, kind, unit, help, labels), nil), valueType}
}

// list enters a metric into the inventory and gives its labels' names.
func (m *Metrics) list(name string, kind Kind, unit, help string, labels []Label) []string {
	m.inventory = append(m.inventory, Metric{Name: name, Kind: kind, Unit: unit, Labels: labels, Help: help})
	var names []string
	for _, l := range labels {
		names = append(names, l.Name)
	}
	return names
}
