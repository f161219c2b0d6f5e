// Package coordinator drives one run: it plans nodes whose inputs are
// complete, settles those whose batches are done, offers batches that can be
// claimed to a queue, finishes orders that somebody has begun, and ends the run.
//
// Any number of coordinators may drive one run, in several processes. One of
// them holds the run's role and decides; the others follow, offer batches to
// their own executors, and take over when it is gone. Each decision is a
// conditional step of the state, so one that comes late or twice changes
// nothing: a planner that loses takes the plan that stands.
//
// Where processes share the queue, the leader alone publishes, each batch once: what
// it has published and can still be claimed is published again only if the hint
// does not wait in the queue any more, for a grace. Those who follow hear of
// batches by hints, and ask the leader to look when their commit may have ended a
// node. While the queue is not shared, each offers batches to its own process.
//
// What a look at the run costs grows with what has changed since the one
// before, not with the run: batches are never listed, only offers, page by page.
package coordinator
