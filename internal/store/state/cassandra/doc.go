// Package cassandra keeps state in Apache Cassandra: the store of a fleet.
// docs/decisions/0045-cassandra-state.md says why it is as it is.
//
// It promises what package state asks for. Each partition of the contract (a
// workspace, a run, a node) is one partition of one table, with a revision.
// A change reads what it is about, decides with the rules of package state, and
// writes all of it in one batch on the condition that the revision is still
// that one: so what was decided on is what was there, also for a write that
// arrives late or twice. Reads are of a quorum.
//
// What can fail: the sentinels of package state; state.ErrUnknown, if it could not be found out
// whether something was done; *fault.Error of kind Environment when
// the cluster cannot answer, or has no tables of this version (Init makes
// them); and the context's error.
package cassandra
