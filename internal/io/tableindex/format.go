package tableindex

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// The limits of a file.
const (
	MaxKeyBytes  = 64 << 10
	MaxRowBytes  = 64 << 20 // of all values of a row, as they are stored
	MaxColumns   = 4096
	MaxMetaBytes = 4 << 20
	MaxRows      = 1 << 40
)

const (
	headerBytes = 4096
	blockBytes  = 64 << 10
	slotBytes   = 8
	sumBytes    = 4
	placeBits   = 48
	maxPlace    = 1<<placeBits - 1
	version     = 1
)

var magic = [8]byte{'T', 'W', 'I', 'N', 'D', 'E', 'X', '\n'}

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the first page of a file. Its sections follow each other in this order.
type header struct {
	rows  int64 // their number
	slots int64 // their number
	// sections in bytes; the rows begin behind the header
	rowsBytes, slotsBytes, metaBytes, sumsBytes int64
	sums                                        uint32 // checksum of the checksums
}

func (h header) slotsAt() int64 { return headerBytes + h.rowsBytes }
func (h header) metaAt() int64  { return h.slotsAt() + h.slotsBytes }
func (h header) sumsAt() int64  { return h.metaAt() + h.metaBytes }
func (h header) end() int64     { return h.sumsAt() + h.sumsBytes }

// blocks is the number of blocks between the header and the checksums.
func (h header) blocks() int64 { return (h.sumsAt() - headerBytes + blockBytes - 1) / blockBytes }

func (h header) encode() []byte {
	page := make([]byte, headerBytes)
	copy(page, magic[:])
	binary.LittleEndian.PutUint32(page[8:], version)
	binary.LittleEndian.PutUint32(page[12:], blockBytes)
	for i, v := range []int64{h.rows, h.slots, h.rowsBytes, h.slotsBytes, h.metaBytes, h.sumsBytes} {
		binary.LittleEndian.PutUint64(page[16+8*i:], uint64(v))
	}
	binary.LittleEndian.PutUint32(page[64:], h.sums)
	binary.LittleEndian.PutUint32(page[headerBytes-4:], crc32.Checksum(page[:headerBytes-4], castagnoli))
	return page
}

// decodeHeader reads the header of a file of a size.
func decodeHeader(page []byte, size int64) (h header, err error) {
	switch {
	case len(page) < headerBytes || [8]byte(page[:8]) != magic:
		return h, fmt.Errorf("it is no index of a table")
	case binary.LittleEndian.Uint32(page[headerBytes-4:]) != crc32.Checksum(page[:headerBytes-4], castagnoli):
		return h, fmt.Errorf("its header is damaged")
	case binary.LittleEndian.Uint32(page[8:]) != version || binary.LittleEndian.Uint32(page[12:]) != blockBytes:
		return h, fmt.Errorf("its form %d is of another program than this", binary.LittleEndian.Uint32(page[8:]))
	}
	for i, v := range []*int64{&h.rows, &h.slots, &h.rowsBytes, &h.slotsBytes, &h.metaBytes, &h.sumsBytes} {
		n := binary.LittleEndian.Uint64(page[16+8*i:])
		if n > maxPlace {
			return h, fmt.Errorf("its header says %d", n)
		}
		*v = int64(n)
	}
	h.sums = binary.LittleEndian.Uint32(page[64:])
	if h.slotsBytes != h.slots*slotBytes || h.slots <= h.rows || h.metaBytes > MaxMetaBytes ||
		h.sumsBytes != h.blocks()*sumBytes {
		return h, fmt.Errorf("its header contradicts itself")
	}
	if h.end() != size {
		return h, fmt.Errorf("it has %d bytes where its header says %d", size, h.end())
	}
	return h, nil
}

// slotsFor is the number of slots for a number of rows: three quarters are used.
func slotsFor(rows int64) int64 { return rows + rows/3 + 1 }

// firstSlot is where the search for a hash begins: its high bits choose.
func firstSlot(hash uint64, slots int64) int64 {
	hi, _ := bits.Mul64(hash, uint64(slots))
	return int64(hi)
}

// tag is what a slot keeps of a hash: its low bits, which do not choose the slot.
func tag(hash uint64) uint64 { return hash << placeBits }

func hashOf(key []byte) uint64 { return xxhash.Sum64(key) }
