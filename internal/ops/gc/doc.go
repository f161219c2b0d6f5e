// Package gc removes what nobody needs any more of a workspace: parts that
// no attempt can commit and no manifest lists, what dead attempts announced and
// did not publish, and what dropped runs have written; and it drops runs that are
// over the limits of a retention.
//
// It promises that it never removes a part that the manifest of a run lists
// that is not dropped, one that an attempt may still commit, one of a dropped
// run from which a run that is not dropped has taken over or read rows, or one
// that was withdrawn from a table that a run which is not over was planned to
// read. What it does not know, it leaves. It may be killed at any point and
// repeated, and any number may run at once.
//
// It decides on state alone, in an order that makes that hold: an attempt's
// status is read after its part was seen, and a manifest after that; plans are
// read after drops were carried out, while whoever plans looks at the source
// once more behind its own step (pipeline.Settle, and before each commit).
//
// Memory: 200 bytes for each run, and for each node of another run that a plan
// names; with limits, 300 bytes more for each run, and 50 for each output file;
// 1,000 keys of parts, and the attempts and parts of 100 batches of one node.
//
// What can fail: *fault.Error for limits that are none, and the errors of the stores.
package gc
