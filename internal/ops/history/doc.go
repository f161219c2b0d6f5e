// Package history reports on runs from their state:
//
//   - List lists the runs of a workspace.
//   - ShowRun, ShowNode and ShowBatch describe one run, node or batch.
//   - Facts.Why explains why a run is not further.
//   - Audit lists people's orders.
//   - Stream follows the events of a run.
//
// What it reads does not grow with the number of batches: sums come from the
// tallies of nodes, single batches from the few that are under way or in the
// way. Everything that it gives has a form in JSON, which is a promise
// (docs/commands.md, docs/events.md): members are added, never changed.
//
// What can fail: the sentinel errors of package state, and the store's own.
package history
