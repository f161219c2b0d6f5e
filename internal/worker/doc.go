// Package worker drives a run: it claims batches, keeps their leases alive,
// has them executed, commits what they wrote, plans the nodes that become
// ready, and says when the run is over.
//
// State is the truth, the queue a hint: everything that a message could have
// said is found again by reconcile, which every worker repeats. What a batch
// is and does is the Job's business; this package imports no backend and no
// engine.
//
// It promises that only the holder of a batch's lease publishes and commits,
// that a shutdown gives claimed batches back without using up an attempt, and
// that Run returns only when every goroutine it started has ended.
package worker
