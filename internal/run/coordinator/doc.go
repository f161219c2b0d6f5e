// Package coordinator drives one run: it plans nodes whose inputs are
// complete, and settles nodes whose batches are done. It gives a queue hints of the
// batches that can be claimed, carries out orders, and ends the run.
//
// Any number of coordinators may drive one run, in several processes. One of
// them holds the run's role and decides; the others follow, offer batches to
// their own executors, and take over when it is gone. Each decision is a
// conditional step of the state, so one that comes late or twice changes
// nothing. A planner that loses uses the plan that was stored first.
//
// Where processes share the queue, only the leader publishes hints, one for each
// batch. It publishes a hint again if the batch can still be claimed although its
// hint has been missing in the queue for a grace. Followers learn of batches by
// these hints. They signal the leader when their commit may have ended a node.
// While the queue is not shared, each coordinator offers batches to its own process.
//
// The cost of a look at the run grows with what has changed since the last look,
// not with the size of the run. A look lists offers page by page, never all batches.
package coordinator
