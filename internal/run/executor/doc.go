// Package executor does the work of many runs: it takes hints from a queue,
// claims the batches, keeps their leases alive, has them executed, and commits
// what they wrote. Which batches there are is a coordinator's business, what
// they are and do the run's own (Run); this package imports no backend and no
// engine.
//
// It promises:
//
//   - A batch is executed with its own run's content.
//   - Only the holder of a batch's lease publishes and commits.
//   - A panic costs one attempt and not the process.
//   - A failure that may pass is tried again, later, a limited number of times; any other is not.
//   - A batch which ends its workers is given up at last. Being shut down uses up no try.
//   - Work and Leave return in Config.Grace, whatever an execution does.
package executor
