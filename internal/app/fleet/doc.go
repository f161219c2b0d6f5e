// Package fleet makes what a cluster needs and examines machines and services:
// it initialises keyspace, bucket and queues, and says what is wrong with a
// machine, a state directory or a cluster.
package fleet
