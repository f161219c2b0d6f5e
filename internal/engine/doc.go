// Package engine executes one batch in DuckDB.
//
// It owns the embedded database: every batch gets a fresh in-memory instance
// with its own memory limit, thread count and private, capped spill directory,
// which may touch nothing but the paths that its task names. A task is a
// SELECT and a destination; rows of relational tasks never cross into Go. A
// Python task streams its input columns through an interpreter pool and joins
// the results back by position.
//
// It promises that a task's output files exist and are complete when Execute
// returns nil, that nothing but those files and the spill directory was
// written, and that the instance, its memory and its spill files are gone when
// Execute returns, however it returns.
//
// Every failure is a *fault.Error; DuckDB's own errors become our kinds in
// faults.go and nowhere else.
package engine
