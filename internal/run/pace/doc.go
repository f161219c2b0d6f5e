// Package pace settles how much a worker does at once: it measures what batches
// do, asks adapt, and sees to it that what was decided is in force
// (docs/decisions/0049-adaptive-concurrency.md). For each class of work it has three
// knobs: batches in flight, threads of the engine a batch, and requests at once that
// write parts.
//
// It promises that no more batches of a class are executed at once than the knob
// says, that no more are claimed than that (but for one that is waiting when another class's
// turn is), and that a number which was forced stays. While all processors are in use
// nothing is tried out. Without a call of Watch nothing changes.
//
// What can fail: only ParseFixed, with a *fault.Error of kind Script.
package pace
