// Package control carries out people's orders to runs: stop and pause, decisions at
// gates, invalidation, dropping, and the collection of data that nobody needs. It
// records an order in the state, and processes at work on the run follow it.
//
// An order that cannot be given, or has no effect, is a *fault.Error.
package control
