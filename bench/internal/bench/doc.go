// Package bench measures whole pipelines: Thalweg against others that do the
// same work, and against itself, on the same machine, one after the other.
//
// It owns the cases, which are data, the bars that they are held to, the
// programs that are measured, the sampling of process trees and the reports. It runs the released command through its
// documented contract (a command line and JSON events) and imports nothing of the product but the generator of its
// inputs, so that it measures what users get.
//
// It promises:
//   - never two measured processes at once, inputs read once before the first
//     measurement, dirty pages written back before each;
//   - every run is in the report with its command line, times, memory and a
//     hash of each result file; a figure is the median of its runs with their
//     range, and a run during which other processes used the machine is marked;
//   - a bar is judged only at the size that it was set for; results are
//     compared at every size, before a time counts.
//
// What can fail: a missing program, an input or an environment that cannot be
// made, the disk. A side that does not finish or breaks the contract, a missed
// bar, a differing result is no error: it is in the report. Sampling reads
// /proc and needs Linux.
package bench
