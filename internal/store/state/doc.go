// Package state owns the truth about work: runs, nodes, batches, attempts,
// leases, and the manifest of each table. It holds the states and their legal
// transitions (status.go, drawn in docs/state-machine.md) and the interface
// of the store that keeps them (store.go), which is made of partitions that
// cannot see each other; what concerns a whole run is made of its calls here
// (orders.go, plans.go, lists.go). Around decorates a store. state/sqlite is the
// embedded store and test/statetest the suite that every store passes.
//
// It promises, through that suite: run numbers without gaps or doubles, one
// winner of each claim, fencing (an attempt that is no longer the latest, or
// was claimed before an order, cannot publish anything), a manifest that shows
// committed parts only, and counters of a node that agree with its batches; and
// all of it although calls are lost, doubled or late, if those whose outcome is
// not known are repeated. A queue is only a hint beside it.
//
// What can fail: the sentinel errors of state.go, on which callers decide;
// *fault.Error of kind Environment when the store itself cannot work (disk
// full, locked for too long, not a state file), with what to do about it; and
// the context's error.
package state
