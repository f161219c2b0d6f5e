// Package property tests the whole product against a reference: random small
// scripts over random inputs run in many ways, and what they write must be the
// same bytes each time and the rows that plain Go computes from the same
// values. It has no code of its own beside its tests.
//
// A script is made from a seed (generate_test.go): sources of typed rows, nodes
// of every relational kind over them, and files that they are written to. Each
// node knows how it is written in a script and what it makes of its rows
// (load, lookup, group … _test.go); the reference shares nothing with the
// product but the words of its language. Each source is written as CSV of a
// random dialect or as Parquet, twice in different ways, whole or in several
// files (csvinput_test.go, parquetinput_test.go). A variant (variant_test.go)
// is a way to run: which inputs, how much memory, how many threads and slots,
// how small the batches, whether the process is killed and the run resumed.
//
// A trial (trial_test.go) has a script with what people supervise
// (supervised_test.go) executed by processes (actor_test.go) to which things
// happen (process_test.go), and looks at all that is left (audit_test.go).
//
// A failure names the seed and how to run it again, and is made smaller first:
// nodes, conditions and rows are left out as long as it still fails
// (shrink_test.go). docs/decisions/0017-property-test.md says what is made,
// what is not, and what was found.
package property
