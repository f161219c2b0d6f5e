// Package partstest is the conformance suite of part stores: Run holds a
// store to everything that package parts promises, and to no more than that.
package partstest
