// Package pipeline measures what real runs do at fixed numbers of batches, threads and writers, and at those that a
// worker chooses by itself.
//
// It promises that its runs are in a state directory of their own, which is removed, or in a workspace of a cluster of
// their own, from which they are dropped and collected; that one run is at work at a time; that nobody is told of
// them; and that nodes which write files of the user's are left out unless they are asked for. It fails with
// *fault.Error for what the user can mend, and as soon as a run does.
package pipeline
