// Package conformance runs the cases of testdata/conformance: scripts with
// inputs, and the files, tables, warnings or failures that must come of them.
// It owns the format of a case (testdata/conformance/README.md) and nothing
// else: what the product does is in the packages that it calls.
//
// A case that is wrong in itself (a misspelled file name, an input that nobody
// uses, an output that nobody expects) fails like one whose results differ.
package conformance
