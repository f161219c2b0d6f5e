// Package tableserver serves the index of a finished table (package tableindex) to
// clients of the Redis protocol (package resp).
//
// Plain connections are served by an event loop, those of TLS by a goroutine each. The
// file can be replaced while clients ask: the next one is copied into memory and
// verified first, one command never sees two of them, and the old one is released behind its
// last reader. A file that is refused changes nothing.
//
// Connections, what they send before it is a command, and what they do not fetch have
// limits; who goes beyond is disconnected.
package tableserver
