// Package sandbox executes a worker's batches in child processes of the same
// program, one a compute slot, so that what ends a process ends one attempt.
//
// It owns both sides and what they say to each other. The parent (Slots)
// starts a child for each slot and wraps a run's Job so that Execute happens
// there; planning, claims, heartbeats and commits stay in the parent. The child
// (Serve) executes one batch at a time. It has no connection to anything but its
// parent: state, parts, memory and copies of remote inputs are asked for over
// one socket, as length-limited frames with JSON in them, so there is one
// session, one cache and one set of credentials a worker, however many slots.
//
// It promises:
//
//   - An error keeps its kind, place, hint, detail, whether it may be retried, and what errors.Is says of it.
//   - A child that dies costs the attempt that it was at: a failure of the environment that may pass and says how it
//     died. Between two batches it costs nothing.
//   - A cancelled execution that does not come back in Config.Grace ends with its process, and Execute returns. So
//     does one whose process stands still for Config.Silence.
//   - What a child holds (stages, copies, memory, open parts) is given back when it ends, however it does.
//   - A child ends when its parent does: its socket is closed, and Linux kills it.
//
// What can fail: starting children, which is tried again with pauses before an
// attempt fails for it.
package sandbox
