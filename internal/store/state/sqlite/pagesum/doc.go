// Package pagesum stands between SQLite and a database file and keeps a
// checksum of each page beside it, in FILE-sums. SQLite itself checks its
// write-ahead log, but gives out what it finds in the file: a flipped bit
// would become another number, or make a row disappear.
//
// Each page that SQLite writes to the file has its CRC-32C written to
// FILE-sums; each page that it reads is compared. One that differs, is cut
// short, or has another size is SQLITE_IOERR_DATA, which fails the statement.
// A page without an entry is believed: files of earlier versions have none
// until they are written again.
//
// A process may die between the two writes. SQLite writes pages to the file
// only from its log or under a journal; both stay until the file has been
// synced, and Sync makes the checksums durable before the file. So such a page
// is written again before it is read. Nothing but SQLite through this package
// may write the file: the checksums would not be those of its pages.
//
// CheckLog finds damage in a log that SQLite would take for its end.
package pagesum
