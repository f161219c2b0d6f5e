package cassandra

import "thalweg/internal/store/parts"

// Sizes. They are part of the format: chunks of other sizes could not be found.
const (
	chunkBytes    = 512 << 10
	sectionChunks = 128 // of a partition: 64 MiB
	shards        = 32
)

// Tables are the statements that make the tables, in the keyspace of the
// session. Parts are compressed already.
func Tables() []string {
	return []string{
		`CREATE TABLE IF NOT EXISTS part_index (root text, shard smallint, key text, put uuid, owner uuid, begun timestamp, bytes bigint, checksum text,
			PRIMARY KEY ((root, shard), key, put)) WITH gc_grace_seconds = 10800 AND compaction = {'class': 'LeveledCompactionStrategy'}`,
		`CREATE TABLE IF NOT EXISTS part_chunks (put uuid, section int, n int, sum bigint, data blob,
			PRIMARY KEY ((put, section), n)) WITH compression = {'enabled': 'false'}
			AND compaction = {'class': 'SizeTieredCompactionStrategy', 'unchecked_tombstone_compaction': 'true'}`,
	}
}

// Statements. Every one of them can be repeated.
const (
	insertIntent = `INSERT INTO part_index (root, shard, key, put, owner, begun, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)`
	insertDone   = `INSERT INTO part_index (root, shard, key, put, checksum) VALUES (?, ?, ?, ?, ?)`
	selectKey    = `SELECT put, owner, bytes, checksum, writetime(begun), writetime(checksum) FROM part_index WHERE root = ? AND shard = ? AND key = ?`
	selectIndex  = `SELECT key, put, bytes, checksum, begun FROM part_index WHERE root = ? AND shard = ? AND key >= ? AND key < ?`
	selectBehind = `SELECT key, put, bytes, checksum, begun FROM part_index WHERE root = ? AND shard = ? AND key > ? AND key < ?`
	selectRoots  = `SELECT DISTINCT root, shard FROM part_index`
	deleteIndex  = `DELETE FROM part_index WHERE root = ? AND shard = ? AND key = ? AND put = ?`
	insertChunk  = `INSERT INTO part_chunks (put, section, n, sum, data) VALUES (?, ?, ?, ?, ?)`
	selectChunk  = `SELECT sum, data FROM part_chunks WHERE put = ? AND section = ? AND n = ?`
	deleteChunks = `DELETE FROM part_chunks WHERE put = ? AND section = ?`
)

// chunksOf returns the number of chunks of a part of so many bytes.
func chunksOf(bytes int64) int { return int((bytes + chunkBytes - 1) / chunkBytes) }

var (
	_ parts.Backend  = (*Store)(nil)
	_ parts.Leavings = (*Store)(nil)
)
