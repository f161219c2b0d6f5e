// Package hub tells any number of listeners what happens to runs, and reads it once: one follower for each run that
// is listened to, with the latest lines in a ring.
//
// It promises:
//   - A listener gets each line of a run's stream of events once, in their order, from the line on that it names.
//     What is older than the ring comes from the state.
//   - A slow listener keeps nobody waiting. If the ring passes it, it gets ErrPassed, and can begin again where it was.
//   - A run's sequence is extended at most LooksASecond times a second, however many listen.
//   - Nothing depends on being woken: a follower also looks by itself.
//
// What can fail: the state; then listeners get its error and a follower goes on looking.
package hub
