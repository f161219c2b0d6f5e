// Package sqlite keeps state in one SQLite file: the embedded state store. It
// owns the file's schema and its migrations, and nothing else in the program
// touches the file.
//
// It promises what package state asks for. Each method is one transaction
// that holds the file's only write lock from its start, so a compare-and-set
// needs no retry; a commit is flushed to the disk before the method returns.
// Readers see one committed state and never block a writer. Any number of
// processes on one machine may share the file.
//
// Damage to the file is noticed: a checksum of each page is kept beside it
// (package pagesum), and Open looks through a log that a dead process has left.
// What is read is what was written, or an error. Two things look like a process
// that has died and are taken for it: damage to the log's last commit, and a
// log that has lost its end.
//
// Limits: the file must be on a local disk. SQLite's locks and its shared
// memory do not work over NFS, SMB and most FUSE file systems, where a second
// process would damage the file without any error. No other code of the same
// process may open and close the file, because on POSIX that drops SQLite's
// locks; copy it with every program stopped, or with SQLite's backup command.
// All writers share one disk flush after the other, which bears hundreds of
// commits a second: a fleet that needs more has state/cassandra.
//
// What can fail: the disk, the permissions, a file that is not ours or newer,
// another program that keeps the file locked. These are *fault.Error of kind
// Environment; the lock alone is retryable.
package sqlite
