// Package secure says what is wrong with a TLS connection that could not be
// made, and what its side or the other one has to change: the errors of the
// handshake name certificates, people have files and settings.
//
// It owns these words, and Asked knows of a connection whether its server asked for a
// certificate in vain; connections belong to those who make them. It
// cannot fail.
package secure
