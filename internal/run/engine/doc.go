// Package engine executes one batch in DuckDB.
//
// It owns the embedded database: every batch gets an in-memory instance
// with its own memory limit, thread count and private, capped spill directory,
// which may touch nothing but the directories that tasks have named. Instances
// go from batch to batch (Instances); one that executes SQL of a user is fresh,
// used by nobody else, and may touch the paths of its task only. A task is a
// SELECT and a destination; rows of relational tasks never cross into Go. A
// Python task streams its input columns through an interpreter pool and joins
// the results back by position.
//
// It promises that a task's output files exist and are complete when Execute
// returns nil, that nothing but those files and the spill directory was
// written, and that the task's memory, its spill files and all else that it has
// made in the instance are gone when Execute returns, however it returns.
//
// Every failure is a *fault.Error; DuckDB's own errors become our kinds in
// faults.go and nowhere else.
package engine
