// Package registry reads what processes say of themselves in the state: which
// workers there are, what each can do and refuses, and records by name that
// hooks, schedules and lineage keep between processes.
//
// What it says was true a moment ago; nothing is decided by it. It fails where
// the state cannot be read.
package registry
