// Package concurrency settles how much a worker does at once (docs/decisions/0049-adaptive-concurrency.md). A Limiter
// measures what batches do, has a tuner judge it, and sees to it that what was decided is in force.
// For each class of work it has three knobs: batches in flight, threads of the engine a batch, and requests at once
// that write parts.
//
// It promises that no more batches of a class are executed at once than the knob says, and that no more are claimed
// than that (but for one that is waiting when another class's turn is). A number that was forced stays. While all
// processors are in use nothing is tried out. Without a call of Watch nothing changes.
//
// The tuner promises that a knob never leaves its bounds, and never has more than the memory allows for as far as is
// known. It tries half as much again at most at a time; what was no better is undone at once, and so is what memory
// does not allow. Noise alone moves nothing up. One knob is tried out at a time; one that has settled is tried again
// ever more rarely, and none is while that could do nothing. Each decision has a reason for people.
//
// What can fail: only ParseFixed, with a *fault.Error of kind Script. Samples that make no sense are left out.
package concurrency
