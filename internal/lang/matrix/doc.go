// Package matrix reads the values over which a script is run: axes such as
// month=2026-01..2026-12 and region=eu,us, and the cells that are their product.
// It knows texts only; what runs there are is package local's.
//
// Failures are *fault.Error of kind Script: they name the axis and the way out.
package matrix
