// Package statetest is the conformance suite of state stores: Run holds a
// store to everything that package state promises. It assumes nothing else of
// a backend: no order that the interface does not give, no time finer than a
// millisecond, no clock but the one that the tests pass in.
//
// It also owns the model: the plainest store that could be right, with which
// random sequences of operations are compared.
package statetest
