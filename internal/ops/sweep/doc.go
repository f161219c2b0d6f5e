// Package sweep says what doing more at once gains a pipeline: from rates that were measured at fixed numbers of
// batches, threads and writers, and at those that a worker has chosen by itself.
//
// It promises that every figure has its interval, that numbers are compared within rounds (what drifts from round to
// round favours none), and that a gain is one of a doubling. Nothing in it can fail but drawing.
package sweep
