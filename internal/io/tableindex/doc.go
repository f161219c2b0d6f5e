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
// it is under a checksum. A file is copied into memory, so that whoever changes it in its
// place later changes no answer; of one that is opened cold there is no such promise.
package tableindex
