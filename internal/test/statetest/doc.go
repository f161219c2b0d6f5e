// Package statetest is the conformance suite of state stores: Run holds a
// store to everything that package state promises. It assumes nothing else of
// a backend: no order that the interface does not give, no time finer than a
// millisecond, no clock but the one that the tests pass in.
//
// Random sequences of operations are compared with package hostile's store,
// the plainest one that could be right.
package statetest
