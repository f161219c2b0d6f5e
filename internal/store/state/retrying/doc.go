// Package retrying has a store that repeats calls which failed for reasons that
// pass: a lock that was held for too long, a connection that broke, an answer
// that was lost. The calls of a store may be repeated with the same arguments
// (package state), so whoever works on a run need not know.
//
// It promises to pass on at once what will not pass: the errors that callers
// decide on, failures that are not marked as retryable, the context's end. A
// call that has failed for as long as Config.Within fails with its last error; with
// Forever it does so only when its context ends, or when something else is wrong than that
// the state cannot be reached.
package retrying
