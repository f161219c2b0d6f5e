// Package cache makes a part store of a backend that has no paths: parts are
// copied to a directory of this machine when they are read, and stay until their
// room is needed, the one that nobody has read for longest going first.
//
// It promises:
//   - the copies have no more bytes than the limit, unless one reader alone
//     needs more. Who has reserved room does not wait for more, so readers do not
//     wait for one another for ever;
//   - a copy that is being read stays;
//   - nobody is given a copy whose bytes are not those of the checksum, or
//     half of one; reading that breaks goes on where it stopped;
//   - one copy of a part is made, however many want it at once;
//   - what this Store has put stays as a copy, too, as long as there is room, so
//     that a worker does not read back what it has written.
//
// A directory belongs to one process; who makes it removes it after a crash.
// With Config.Keep the copies stay, and the next Store in the directory has them:
// each is read and compared with its checksum when somebody first wants it.
//
// What can fail: the sentinels of package parts, what the backend says, and
// *fault.Error of kind Environment for what the disk refuses.
package cache
