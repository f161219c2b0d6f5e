// Package hub tells any number of listeners what happens to runs, and reads it once: one follower for each run or
// workspace that is listened to, with the latest lines of a run in a ring.
//
// It promises:
//   - A listener gets each line of a run's stream of events once, in their order, from the line on that it names.
//     What is older than the ring comes from the state, so it can go on in any process.
//   - A slow listener keeps nobody waiting. If the ring passes it, it gets ErrPassed, and can begin again where it was.
//   - A run's sequence is extended by its follower, LooksASecond times a second at most, however many listen.
//   - Nothing depends on being woken. Writes of this process wake a follower, and so do those of others: in a directory
//     by versionEvery, in a cluster by signals of the queue. It also looks by itself: see Hub.every.
//   - All rings together have ringsBytes at most.
//
// What can fail: the state. Then listeners that have had all lines get its error, and the follower goes on looking.
package hub
