// Package history says what runs did and what they wait for, from what their
// state keeps: the list of a workspace's runs (List), a run, a node or a batch
// (ShowRun, ShowNode, ShowBatch), why a run is not further (Facts.Why), what
// people have ordered (Audit), and the stream of a run's events (Stream).
//
// What it reads does not grow with the number of batches: sums come from the
// tallies of nodes, single batches from the few that are under way or in the
// way. Everything that it gives has a form in JSON, which is a promise
// (docs/commands.md, docs/events.md): members are added, never changed.
//
// What can fail: the sentinel errors of package state, and the store's own.
package history
