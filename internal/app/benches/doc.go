// Package benches measures stores, hosts and pipelines, for the edges: it opens what is measured, and has packages of
// the wing ops measure it.
//
// It promises that whatever it makes to measure is removed again, unless it is asked to keep it. Errors name what was
// measured.
package benches
