// Package infersets tests that what infer proposes and run reads is what is in the files: sets of one to four files
// are made from a seed, with the table that each of them has. It has no code of its own beside its tests.
//
// A set may be refused with a place and a hint. Of what is read, no value is in another column, none is lost or
// changed without a word, and no row is missing that is not counted. `make chaos` takes thousands of sets, other
// runs some seconds of them. A failure prints its seed and the smallest set that still shows it.
package infersets
