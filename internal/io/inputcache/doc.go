// Package inputcache keeps copies of input files as batches read them: of files of other
// machines, and of texts that are compressed or in other character sets, in UTF-8. A run
// has one copy of one version of each.
//
// It promises that a copy is there whole or not at all, is of the version that the run
// was planned with, and serves all batches of a process; a later process of the run uses
// it again. The batches of several processes may have a directory each.
//
// What can fail: servers and the network as in package remote, texts as in package
// unpack, the disk of the copies (fault.Environment), and files that have changed since
// the run was planned with them (fault.UserData). It starts goroutines only inside calls,
// which wait for them.
package inputcache
