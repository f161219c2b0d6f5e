// Package scripttest runs the tests that people write beside a script: rows
// in, rows out, for a node or a chain of nodes.
//
// It owns the form of test files (see docs/testing.md), making tables and
// files of given rows, and comparing what came out. A case runs the script's
// own nodes as a run does, with the tables that they read from outside
// replaced by the given rows, in a state directory of its own that is removed.
//
// What can fail: the test file, the script or a value in them (fault.Script,
// with the place in the test file), the machine (fault.Environment). A case
// that does not give what it expects is no error but a Result.
package scripttest
