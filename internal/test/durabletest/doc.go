// Package durabletest is a disk that can be failed and cut off from its power.
//
// A Disk stands behind a durable.FS and a directory tree on the real file
// system. It counts the steps, fails one of them, or takes a picture of the tree
// as it may be after a power cut at that step. The picture has the content of each file's
// last Sync, and the names of each directory's last SyncDir. Of later changes it has
// some, at random. A file that was never synced is empty, cut short,
// full of zeros or as it was written. A rename is two changes of names, of which
// one may be there without the other.
//
// What is not written through the FS (SQLite's files, by Trusted) is taken as it
// is. Only tests use it.
package durabletest
