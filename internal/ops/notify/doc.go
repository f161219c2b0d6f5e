// Package notify tells people and programs what happens to runs: it posts
// messages to webhooks and starts commands.
//
// What is to be told follows from the events of a run, which state keeps. For
// each run with hooks there is a record (see Registry) that says up to which event
// it has been looked at, and which messages of those are still owed. The record
// is written before a message is sent, and after. So
//
//   - each event is told at least once, also if processes die at any moment: the
//     next one that has a Notifier goes on with the record;
//   - a message that is sent twice has the same id;
//   - a run never waits for its messages, and never fails by them: what cannot be
//     sent is tried again, at growing distances, for at most GiveUpAfter.
//
// Of several processes that look at a run's record the one with a role of the
// run tells; roles save messages and decide nothing.
//
// Secrets of hooks are references in all that is stored. They become values
// while a request is made (Environment), and are taken out of what is logged.
//
// What can fail is told to the log, for nobody waits for it; Tell, which sends
// one message, gives the failure to its caller.
package notify
