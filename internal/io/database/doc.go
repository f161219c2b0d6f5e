// Package database reads and writes tables of databases on other machines: PostgreSQL,
// MySQL and MariaDB, and files of SQLite. It publishes tables to Redis and Valkey.
//
// What is read of one becomes CSV as package files reads it: a header, NULL as nothing
// between separators, an empty text as "". A Snapshot promises that all that is copied
// through it is of one moment. Each session ends with the call or the value that began it;
// nothing is kept open between them, and no goroutine is left.
//
// What can fail: connections, logins and certificates (fault.Environment; some of it may
// pass), tables and queries that the server does not know or refuses (fault.Script), and
// rows that do not fit a table (fault.UserData). Errors name the database and never a password.
package database
