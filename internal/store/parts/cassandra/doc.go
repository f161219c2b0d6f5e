// Package cassandra keeps parts in Cassandra: a parts.Backend for the processes
// of several machines. It owns two tables:
//
//	part_index   one row for each Put: (root, shard) → key, put, begun, bytes, checksum
//	part_chunks  the bytes: (put, section) → n, data, sum
//
// A Put writes a row without a checksum (what it intends), then the chunks, then
// the checksum: that is when the part is there. Each Put has partitions of its
// own for its chunks, so two of them never mix. No statement is conditional: a
// Put that sees another's row for its key, be it only intended, gives way with
// ErrExists, and of two that are carried out at once at least one sees the other.
// So there are never two parts of one key; where two processes put one key at
// the same moment, it may happen that neither does. (The keys of attempts are
// put by one process; inside it the second waits for the first.)
//
// The index of a root (a key's first segment, which is the workspace) is spread
// over 32 partitions by a hash of the key. List merges them. The row of a removed part is a
// tombstone there for three hours (gc_grace; a row that comes back after that is
// removed by the next gc): Cassandra refuses to read over 100,000 of them in one
// partition, so three million parts of one workspace can be removed in that time. Chunks are only read by
// their keys; removing a part removes their partitions, each of 64 MiB, whole.
// Deletions are dated an hour ahead, so that a clock that is behind, or a writer that is given up and
// still writes, does not undo them: nothing is ever written again under the same put.
//
// It promises what package parts asks for. Bytes are compared with the sum of their chunk when
// they are read. All requests can be repeated and are, as long as the cause may
// pass, for a minute by default. At most 8 chunks (4 MiB) are being written and 16
// being read at once; a reader has 4 chunks ahead.
//
// What a Put leaves behind whose process dies is found by Unfinished and removed by Abandon.
//
// What can fail: the sentinels of package parts, and *fault.Error of kind Environment.
package cassandra
