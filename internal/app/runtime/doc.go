// Package runtime holds what a process executes batches with: its share of the
// machine's memory, DuckDB instances, Python interpreters, the state as runs
// write it, and the executor and coordinators of the runs that it works on.
//
// A Runtime belongs to one caller; its methods are not for several goroutines
// but where they say so. It fails with *fault.Error for whatever the user can
// mend; what passes by itself says so (see fault.Passes).
package runtime
