// Package executor does the work of many runs: it takes hints from a queue,
// claims the batches, keeps their leases alive, has them executed, and commits
// what they wrote. Which batches there are is a coordinator's business, what
// they are and do the run's own (Run); this package imports no backend and no
// engine.
//
// It promises that a batch is executed with its own run's content; that only
// the holder of a batch's lease publishes and commits; that a panic costs one
// attempt and not the process; that what may pass is tried again, later, a
// limited number of times, and what cannot is not; that a batch which
// ends its workers is given up at last; that being shut down uses up no try;
// and that Work and Leave return in Config.Grace, whatever an execution does.
package executor
