// Package gate is what a run asks people at a gate, and what they decide: the
// record of what is asked, its digest, and the steps of a decision over
// state.Store. It knows no script and no files.
//
// A gate is a node of its own in a run, of Kind and with a name that begins with
// Prefix. What keeps it from being passed without its decision:
//
//   - It waits with a Record, whose Digest is of the tables that are shown: of
//     their parts' checksums and rows. An order to approve names that digest, and
//     a gate that waits with another one ignores it.
//   - Who plans the gate after it was approved makes the record again and compares:
//     if the tables have changed since, the gate fails.
//   - A record has an end (Until) if the script says so. Whoever looks first after
//     that rejects; a decision that was given later than that counts as none.
//
// That a gate waits is noted in the workspace (Topic), so that Waiting finds it
// without looking at runs. A note is a hint: it is there before the gate waits, and
// removed by who finds that it does not.
package gate
