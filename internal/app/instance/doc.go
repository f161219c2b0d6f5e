// Package instance opens a state directory or a cluster: its stores of state
// and parts, its queue, the locks that say who works on which run, and the
// directories of this machine.
//
// A state directory holds everything that Thalweg remembers: state.db, parts/,
// tmp/ (private to live processes), remote/ (copies of remote inputs, for as
// long as their run may go on), locks/ and shares/ (of the memory that the
// processes at work use together). Several processes may use one directory at
// once, and work on one run: each holds the run's lock together with the others,
// and a run whose status is running without anybody holding its lock was
// interrupted. Who does what is decided in state.
//
// It fails with *fault.Error for whatever the user can mend.
package instance
