// Package gate holds what a run asks people at a gate, and what they decide. It makes
// the record of the question and its digest, and takes the steps of a decision in
// state.Store. It knows no script and no files.
//
// A gate is a node of its own in a run. Its kind is Kind, and its name begins with
// Prefix. Nobody can pass it without a valid decision:
//
//   - It waits with a Record. The record's Digest covers the tables that are shown, by
//     the checksums and rows of their parts. An order to approve names that digest,
//     and a gate with another digest ignores the order.
//   - When an approved gate is planned, the record is made again and compared. If the
//     tables have changed since, the gate fails.
//   - A record has a deadline (Until) if the script says so. The first process that
//     looks after the deadline rejects the gate. A later decision is not valid.
//
// A note in the workspace (state.TopicWaiting) says that a gate waits, so that Waiting
// finds it without reading all runs. A note is a hint: it is put before the gate
// waits, and a reader removes it if the gate does not wait.
package gate
