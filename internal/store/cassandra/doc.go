// Package cassandra connects to a Cassandra cluster: what the state store and
// the part store on it have in common.
//
// It owns the driver's configuration (policies, consistency, timeouts, TLS),
// the classification of its errors, and the keyspace with its replication.
// Tables belong to those who use them.
//
// It promises that nothing is tried again behind the caller's back, that reads
// and writes are quorums unless the caller says otherwise, of the own
// datacenter where one is named, and that no password is in an error or a log.
//
// What can fail is a *fault.Error of kind Environment, Retryable where it may
// pass by itself, or the context's error.
package cassandra
