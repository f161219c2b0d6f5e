// Package scheduler begins runs when the schedules and watches of scripts say
// so, and works on them, in one process, until it is told to end. What a
// schedule does is package schedule's; this package gives it runs and records.
package scheduler
