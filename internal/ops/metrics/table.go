package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Table is what a server of a table counts, since it began, and how it is now.
type Table struct {
	Clients, Accepted, Disconnected int64
	Commands, Received, Sent        int64
	Pending, Unsent                 int64
	Switches, Refused               int64
	Rows, Bytes                     int64
	CPU                             time.Duration
}

// NewTable makes the metrics of a server of a table, which is asked when somebody reads them.
func NewTable(version string, now func() Table) *Metrics {
	m := &Metrics{registry: prometheus.NewPedanticRegistry()}
	of := func(name string, kind Kind, unit, help string, value func(Table) int64) {
		m.list(name, kind, unit, help, nil)
		read := func() float64 { return float64(value(now())) }
		if kind == Counter {
			m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
			return
		}
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
	}
	of("thalweg_table_clients", Gauge, "connections", "Clients that are connected.",
		func(t Table) int64 { return t.Clients })
	of("thalweg_table_clients_accepted_total", Counter, "connections", "Clients that were admitted.",
		func(t Table) int64 { return t.Accepted })
	of("thalweg_table_clients_disconnected_total", Counter, "connections",
		"Clients that were disconnected: they fetched no answers, sent too much, or had gone.",
		func(t Table) int64 { return t.Disconnected })
	of("thalweg_table_commands_total", Counter, "commands", "Commands that were carried out.",
		func(t Table) int64 { return t.Commands })
	of("thalweg_table_received_bytes_total", Counter, "bytes", "Bytes of commands.",
		func(t Table) int64 { return t.Received })
	of("thalweg_table_sent_bytes_total", Counter, "bytes", "Bytes of answers.",
		func(t Table) int64 { return t.Sent })
	of("thalweg_table_pending_bytes", Gauge, "bytes", "Bytes kept of commands that have not come whole.",
		func(t Table) int64 { return t.Pending })
	of("thalweg_table_unsent_bytes", Gauge, "bytes", "Bytes of answers that clients have not fetched, as of last second.",
		func(t Table) int64 { return t.Unsent })
	of("thalweg_table_switches_total", Counter, "files", "Files that were served, one behind the other.",
		func(t Table) int64 { return t.Switches })
	of("thalweg_table_refused_total", Counter, "files", "Files that were not served: damaged, or too large.",
		func(t Table) int64 { return t.Refused })
	of("thalweg_table_rows", Gauge, "rows", "Rows of the table that is served.",
		func(t Table) int64 { return t.Rows })
	of("thalweg_table_bytes", Gauge, "bytes", "Bytes of its file.",
		func(t Table) int64 { return t.Bytes })
	const cpu, cpuHelp = "thalweg_table_cpu_seconds_total", "Used processor time."
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: cpu, Help: cpuHelp},
		func() float64 { return now().CPU.Seconds() }))
	m.list(cpu, Counter, "seconds", cpuHelp, nil)
	const info = "thalweg_table_info"
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: info, Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": version}}, func() float64 { return 1 }))
	m.list(info, Gauge, "1", "Always 1.", []Label{{"version", "of the program"}})
	return m
}
