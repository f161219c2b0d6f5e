// Package fleet tests clusters as they are run: several worker processes over
// real services, and what happens to both. It has no code of its own beside its
// tests.
//
// A fleet (fleet_test.go) is a cluster.yaml, workers (worker_test.go: this
// binary again, each in a network of its own and under a host name of its own
// where the system lets us, so that one does not see the others die), and runs
// of scripts made from seeds (script_test.go). Whatever happens to workers and
// services, each run ends, its files have the bytes that an undisturbed local run
// of the same script writes, and its events are what state promises. The faults
// are a table (faults_test.go); each prints what it did and met.
//
// `make test` has a small form with one node; `make chaos-cluster` has the table,
// with CHAOS_MINUTES=10 so long for each fault, and CHAOS_FAULT=REGEXP for some.
package fleet
