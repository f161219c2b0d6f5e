// Package causes says what limited a run: for each node a table of causes, each with the time of slots that it took and
// with what the run would gain at most without it.
//
// The time of slots is divided from the times of batches and from workers' time sheets. The rules are one table: a
// measurement, a threshold, and an advice. They are functions of Facts, which Gather reads once. What no sheet or
// counter has measured is said to be not measured, never guessed. Only reading can fail.
package causes
