// Package hub is a broker in memory for tests of those who share a queue, with
// the faults that one may have. It passes the suite of package queuetest. It
// promises what package queue asks for unless it is told to misbehave.
package hub
