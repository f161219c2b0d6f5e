// Package s3 keeps parts as objects of an S3-compatible service: a
// parts.Backend for the processes of several machines. A part's object is the
// key below the prefix of the store's address.
//
// A small part is one request; a larger one is sent in pieces, several at once,
// and appears when the service puts them together. Both carry If-None-Match, so
// that of two who put one key the second is refused by the service; where it
// does not know that (501), the Put looks first. Every request carries the MD5 of
// its bytes, and the object a random text, by which a Put whose answer was lost
// knows its own object. A service must show an object to those who ask for its key as soon as it
// has been acknowledged, as S3 does. Its lists may be late: what is missing in one is collected
// later, and what is gone is removed once more.
//
// Pieces of a Put that did not end do not show. They are found by Unfinished
// and removed by Abandon, or by a lifecycle rule of the bucket.
//
// Connections, credentials, certificates and what is tried again are those of
// package remote. At most 8 pieces (64 MiB) are being sent at once.
//
// What can fail: the sentinels of package parts, and *fault.Error of kind Environment.
package s3
