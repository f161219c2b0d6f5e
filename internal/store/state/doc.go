// Package state owns the truth about work: runs, nodes, batches, attempts,
// leases, and the manifest of each table. It holds the states and their legal
// transitions (status.go, drawn in docs/state-machine.md) and the interface
// of the store that keeps them (store.go), which is made of partitions that
// cannot see each other; what concerns a whole run is made of its calls here
// (orders.go, plans.go, lists.go). Around decorates a store. state/sqlite is the
// embedded store and test/statetest the suite that every store passes.
//
// It promises, through that suite:
//
//   - Run numbers have no gaps and no doubles.
//   - Each claim has one winner.
//   - Fencing: an attempt that is no longer the latest, or was claimed before an order, cannot publish anything.
//   - A manifest shows committed parts only.
//   - The counters of a node agree with its batches.
//
// All of this holds although calls are lost, doubled or late, if those whose outcome is not known are repeated.
// A queue is only a hint beside it.
//
// What can fail: the sentinel errors of state.go, on which callers decide;
// *fault.Error of kind Environment when the store itself cannot work (disk
// full, locked for too long, not a state file), with what to do about it; and
// the context's error.
package state
