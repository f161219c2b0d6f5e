// Package job holds what the parts of a worker say to each other: a run's
// content (Job), what an execution gives back (Result), what happened (Event),
// who a worker is (Owner), and the places at which one may die (CrashPoint).
//
// A worker has three parts. A coordinator (package coordinator) looks at one
// run: it plans nodes, settles them, and offers what can be claimed. An
// executor (package executor) claims and executes batches of many runs. Whoever
// puts them together (package local) keeps the runs that are open. State is the
// truth; what these parts tell each other are hints.
package job
