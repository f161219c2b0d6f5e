// Package runtest has what tests of a run's coordinator and executors share: a run in a store, a job that is made
// of functions, and processes that work at runs, alone or over a queue that they share.
//
// A process is a real executor with real coordinators. Whatever a test has begun ends with it, or fails it: what a
// store or a queue refuses is an error of the test.
package runtest
