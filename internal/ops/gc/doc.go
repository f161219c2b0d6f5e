// Package gc removes what nobody needs any more of a workspace: parts that
// no attempt can commit and no manifest lists, outputs that dead attempts announced and
// did not publish, and the parts of dropped runs. It also drops runs that are
// over the limits of a retention.
//
// It never removes a part
//
//   - that the manifest of a run lists, unless the run is dropped,
//   - that an attempt may still commit,
//   - of a dropped run from which another run that is not dropped has taken over or read rows,
//   - that was withdrawn from a table which a run that is not over was planned to read,
//   - that state does not know.
//
// It may be killed at any point and repeated, and any number may run at once.
//
// It decides on state alone. The order of its reads makes the promise hold: first a part is seen, then the status
// of its attempt is read, then the manifest. Plans are read after drops were carried out. Whoever plans looks at the
// source once more behind its own step (pipeline.Settle, and before each commit).
//
// Memory: 200 bytes for each run, and for each node of another run that a plan
// names; with limits, 300 bytes more for each run, and 50 for each output file;
// 1,000 keys of parts, and the attempts and parts of 100 batches of one node.
//
// What can fail: *fault.Error for limits that are none, and the errors of the stores.
package gc
