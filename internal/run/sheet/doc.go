// Package sheet keeps the time sheets of runs: a note of each worker that was there for a run, with what its slots'
// time went to, the processor time and the memory that it took, and what it moved.
//
// A Meter measures the work of one process. At each moment it divides the time of all its slots: first among batches
// that compute, then among calls of the state and transfers, then among batches that wait, and what is left is idle. So
// the shares of a worker add up to its presence times its slots, whatever happens. Of several runs that are open at
// once, each has what was done for it, and an equal part of the idle time; the rest of the time is Sheet.Elsewhere.
//
// A Keeper writes the sheets into the state. They decide nothing: a failure to keep one is nobody's but of who looks
// at it later. Of reads the sheets of a run; a run of an older program has none.
package sheet
