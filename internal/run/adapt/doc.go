// Package adapt decides how much a worker does at once: batches in flight, threads,
// writers to a database, for each class of work, by the throughput that was
// measured and within the memory that there is. It is a pure core: it reads no clock
// and measures nothing. Whoever has it gives Samples in the order of their times, and
// sets what it is told (docs/decisions/0049-adaptive-concurrency.md).
//
// It promises:
//
//   - A knob never leaves its bounds, and never exceeds the memory, as far as that is known.
//   - A trial changes one knob, by half at most. If it brings no gain, or memory forbids it, it is undone at once.
//   - Noise alone moves nothing up.
//   - A knob that has settled is tried again ever more rarely, and never while it could have no effect.
//   - Each decision has a reason for people, and the same samples give the same decisions.
//
// Nothing can fail: samples that make no sense are left out.
package adapt
