// Package durable is the way to the file system for what has to outlast a power
// cut: parts, output files, and the directories that they and the state are in.
//
// It owns the order that makes a file last: its content is flushed before it
// gets its final name, the name before anybody is told of the file, and the
// name of a directory before what is put into it. It promises that what it has
// done without an error is on the disk, as far as the disk says the truth.
//
// An FS that is Watched lets tests see each step, fail it, or lose what was not
// flushed (package durabletest); any other calls the operating system and costs
// nothing. Failures are the system's own errors: the caller knows what for and
// for whom.
package durable
