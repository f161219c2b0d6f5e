// Package resp answers commands of the Redis protocol, in its versions 2 and 3, from a
// table that only is read. It is one function from bytes to bytes: who moves them is not
// its affair, and neither is when they come, whole or byte by byte.
//
// It knows GET, MGET, EXISTS, TYPE, HGET, HMGET, HGETALL and DBSIZE, and what clients ask
// when they begin. A command that would write is refused as by a read-only replica. All
// commands that one call of Answer carries out see the same table.
//
// Whoever sends is not trusted: arguments, commands and answers have limits, and before
// a password was given they are small.
package resp
