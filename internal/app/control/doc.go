// Package control carries out what people order of runs: stop and pause,
// decisions at gates, invalidation, dropping and the collection of what nobody
// needs. An order is recorded in the state; whoever works on the run follows it.
//
// An order that cannot be given, or does not stand, is a *fault.Error.
package control
