// Package python runs a script's Python formulas over rows, and its functions
// over columns of many rows (table.go), in a pool of long-lived interpreter processes: any CPython ≥ 3.9 or PyPy, with
// nothing but the standard library, unless a function wants its rows in a form of another library.
//
// It owns the processes, the protocol spoken with them (wire.go and worker.py),
// and how rows are cut into chunks and shared out. It promises:
//
//   - Values arrive exactly, both ways: 64-bit ints, doubles, decimals, booleans,
//     texts of any content, milliseconds, NULL. Values are never part of a
//     program's text.
//   - Results come in the order of the input, whichever process computed them,
//     and the failure that is reported is the first one in that order.
//   - The user's code is imported once by each process and program.
//   - Several Runs at a time share the processes evenly.
//   - A formula that raises, loops, exhausts its memory, crashes its interpreter,
//     or floods its output fails the Run that it belongs to, with row, field,
//     expression and traceback, and nothing else: its process is replaced.
//   - Memory held here by a Run is bounded (Config.MaxChunkBytes).
//   - Interpreters see the environment that Config names, and die with this process, and all that they have
//     started with them (package keeper).
//
// Failures are *fault.Error: a formula's own (kind user_data, script or, for files
// that it cannot open, environment), a missing or unusable interpreter
// (environment), cancellation (canceled), and misuse or a broken protocol (bug).
//
// One goroutine of the pool owns each process (slot.go); schedule.go decides which
// chunk goes to which; run.go is one Run: a goroutine that reads and cuts rows, and
// the caller's, which waits for chunks in order and emits.
package python
