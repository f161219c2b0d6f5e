// Package history reports on runs from their state:
//
//   - List lists the runs of a workspace.
//   - ShowRun, ShowNode and ShowBatch describe one run, node or batch.
//   - Facts.Why explains why a run is not further.
//   - Audit lists people's orders.
//   - Stream follows the events of a run.
//
// What it reads does not grow with the number of batches. Sums come from the
// tallies of nodes. Of single batches it reads only those that are claimed, have
// failed, or wait to be tried again. All results have a stable form in JSON
// (docs/commands.md, docs/events.md): members are added, never changed.
//
// What can fail: the sentinel errors of package state, and the store's own.
package history
