// Package pipeline is a run's content: it gives the worker each node's plan
// and each batch's execution, by means of the planner, the engine, the part
// store and the Python pool. It is where the core's parts meet.
//
// It promises that Execute leaves nothing behind unless the worker commits:
// parts are staged or under keys that no manifest names, output files are
// under temporary names next to their final ones.
package pipeline
