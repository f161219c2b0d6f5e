// Package adapt decides how much a worker does at once: batches in flight, threads,
// writers to a database, for each class of work, by the throughput that was
// measured and within the memory that there is. It is a pure core: it reads no clock
// and measures nothing. Whoever has it gives Samples in the order of their times, and
// sets what it is told (docs/decisions/0049-adaptive-concurrency.md).
//
// It promises that a knob never leaves its bounds, and never has more than the memory
// allows for as far as is known; that it is tried out by half as much again at most at a
// time (what was no better is undone at once, and so is what memory does not allow); that noise
// alone moves nothing up; that one knob is tried out at a time;
// that a knob which has settled is tried again ever more rarely, and none is while that
// could do nothing; and that each
// decision has a reason for people. The same samples give the same decisions.
//
// Nothing can fail: samples that make no sense are left out.
package adapt
