// Package tableindex writes a finished table as one immutable file that answers reads
// by key, and reads it.
//
// A file has a page of header, the rows, a hash table of 8-byte slots (16 bits of the
// key's hash, 48 of the row's place), what the file says of itself, and a checksum for
// each block. A row holds its key, and each value as a RESP2 client gets it, so that an
// answer is copied and never put together.
//
// The same rows in the same order give the same bytes. A key that two rows have is a
// failure that names it. A file is whole or is refused when it is opened: every byte of
// it is under a checksum. Whoever changes a file in its place while it is open gets no
// promise; replace it instead.
package tableindex
