// Package loadtest is the conformance suite of targets of loads: Run holds one to everything that package load wants of
// a load.Target, and of the Observer and the Meter that it is.
package loadtest
