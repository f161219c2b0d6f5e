// Package queuetest is the conformance suite of queues: Run holds a queue to
// everything that package queue promises. Hints may come twice and in any
// order, so it asks for neither.
package queuetest
