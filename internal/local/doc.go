// Package local runs scripts on one machine: it owns the state directory and
// puts the embedded backends, the budget, the interpreters and the worker
// together.
//
// A state directory holds everything that Thalweg remembers: state.db, parts/,
// tmp/ (private to live processes), remote/ (copies of remote inputs, for as
// long as their run may go on) and locks/. Several processes may use one
// directory at once; a run belongs to the process that holds its lock, and a
// run whose status is running without anybody holding its lock was
// interrupted.
//
// It fails with *fault.Error for whatever the user can mend.
package local
