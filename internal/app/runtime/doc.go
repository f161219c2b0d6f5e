// Package runtime holds what a process executes batches with: its share of the
// machine's memory, DuckDB instances, Python interpreters, and the state as runs
// write it. It makes the content of runs from what was recorded of them.
//
// A Runtime belongs to one caller; its methods are not for several goroutines
// but where they say so. It fails with *fault.Error for whatever the user can
// mend; what passes by itself says so (see fault.Passes).
package runtime
