// Package workerprocess owns the work of one process on runs, whatever each is
// made of: an executor that takes batches of all of them, and a coordinator for
// each run that is open. Hints and signals of the queue reach both through it.
//
// It says in its errors which run could not be opened, and leaves such hints to
// others. Stop and Drain return when nothing is in flight any more, or in time.
package workerprocess
