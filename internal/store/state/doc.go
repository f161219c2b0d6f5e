// Package state defines how the state of work is kept: runs, nodes, batches,
// attempts, leases, and the manifest of each table. status.go holds the statuses
// and their legal transitions, drawn in docs/state-machine.md. store.go holds the
// interface of a store. A store is made of partitions, and a method changes one of
// them. Steps that concern a whole run combine several calls (orders.go, plans.go,
// lists.go). Around decorates a store. state/sqlite is the embedded store, and
// test/statetest the suite that every store passes.
//
// It promises, through that suite:
//
//   - Run numbers have no gaps and no doubles.
//   - Each claim has one winner.
//   - Fencing: an attempt that is no longer the latest, or was claimed before an order, cannot publish anything.
//   - A manifest shows committed parts only.
//   - The counters of a node agree with its batches.
//
// All of this holds although calls are lost, doubled or late, if callers repeat those whose outcome is not known.
// A queue only holds hints; the state decides.
//
// What can fail: callers decide on the sentinel errors of state.go. If the store
// itself cannot work (disk full, locked for too long, not a state file), the error is a
// *fault.Error of kind Environment that says what to do. A call whose context has
// ended fails with the context's error.
package state
