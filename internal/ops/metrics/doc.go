// Package metrics measures what a worker does and shows it: in Prometheus'
// format, and the same as JSON. Inventory lists every metric with kind, unit,
// labels and meaning; docs/metrics.md is made from it.
//
// It is fed from outside: by job.Events, by decorators around the state
// (State) and the parts (Parts, Backend), by observers that the backends of a
// fleet call (Requests), and by Sources that are looked at when somebody
// reads the metrics. What is measured does not import this package.
//
// It promises that only what was measured is shown: a metric of the inventory
// without samples has not moved yet. Reading changes nothing and never waits
// longer than readTimeout for a source. No label holds a value of users' data
// or a name that they chose, so the number of series is bounded.
//
// What can fail: only Listen, with a *fault.Error of kind Environment.
package metrics
