// Package remotetest starts real servers inside a test (HTTPS, S3-compatible,
// SFTP) and a proxy that breaks their connections. It is for tests of whoever
// reads or writes remote files, and of nothing else.
//
// It promises that every server listens on loopback only and ends with its
// test. What cannot be started fails the test.
package remotetest
