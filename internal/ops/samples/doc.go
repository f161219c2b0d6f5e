// Package samples keeps what each process that works used of its machine: of processors, memory and disk, every 10 s
// for 24 h, as notes in the state. A process that is killed leaves what it has told.
//
// A note has the samples of a worker over 20 minutes, and the runs that it worked on then. Notes of one time share a
// topic, and topics are used again in turn, so that whoever takes one clears what was there a day ago. A failure to
// keep samples is nobody's but of who looks at them later; it is logged.
package samples
