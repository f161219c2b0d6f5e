package files

import (
	"bytes"
	"encoding/binary"
)

// csvChars says where each character that counts is among 64 bytes: bit i is
// byte i.
type csvChars struct{ quotes, separators, newlines, crs uint64 }

// charBytes is the number of bytes that one step examines.
const charBytes = 64

// charSearch looks for them. What is not there at all is not looked for:
// that is a quarter of the time of a scan for each.
type charSearch struct {
	separator   uint64 // in each byte
	quotes, crs bool   // there are some
}

// everyByte repeats an ASCII character, by a product.
const everyByte = 0x0101010101010101

func (s charSearch) in(b *[charBytes]byte) csvChars {
	c := csvChars{separators: placesOf(b, s.separator), newlines: placesOf(b, '\n'*everyByte)}
	if s.quotes {
		c.quotes = placesOf(b, '"'*everyByte)
	}
	if s.crs {
		c.crs = placesOf(b, '\r'*everyByte)
	}
	return c
}

// placesOf returns where an ASCII character is, which wide has in each byte.
func placesOf(b *[charBytes]byte, wide uint64) uint64 {
	others := otherBytes(b[0:8], wide) | otherBytes(b[8:16], wide)<<8 | otherBytes(b[16:24],
		wide)<<16 | otherBytes(b[24:32], wide)<<24 |
		otherBytes(b[32:40], wide)<<32 | otherBytes(b[40:48], wide)<<40 | otherBytes(b[48:56],
		wide)<<48 | otherBytes(b[56:64], wide)<<56
	return ^others
}

// otherBytes returns eight bits, one for each of eight bytes that is not the
// character.
func otherBytes(b []byte, wide uint64) uint64 {
	const lowBits, highBits = 0x7f * everyByte, 0x80 * everyByte
	word := binary.LittleEndian.Uint64(b)
	// Adding 0x7f sets the high bit of each byte that is not 0. The product
	// brings the high bits together in the highest byte.
	other := (word&lowBits ^ wide) + lowBits | word
	return (other & highBits) * 0x0002040810204081 >> 56
}

// below are the bits below the lowest one of x.
func below(x uint64) uint64 { return x&-x - 1 }

// betweenPairs sets the bits from each odd one of x to before the next.
func betweenPairs(x uint64) uint64 {
	x ^= x << 1
	x ^= x << 2
	x ^= x << 4
	x ^= x << 8
	x ^= x << 16
	return x ^ x<<32
}

// byteFinder remembers where a byte comes next, so that no byte is looked at twice.
type byteFinder struct {
	at, seen int64 // the byte, if at < seen; what is before seen has been looked at
}

// isIn reports whether the byte is in block, which begins at offset.
func (b *byteFinder) isIn(block []byte, offset int64, c byte) bool {
	end := offset + int64(len(block))
	if b.at < offset {
		b.at = max(b.seen, offset)
		b.seen = b.at
	}
	if b.at == b.seen && b.seen < end {
		i := bytes.IndexByte(block[b.seen-offset:], c)
		b.at, b.seen = b.seen+int64(i), b.seen+int64(i)+1
		if i < 0 {
			b.at, b.seen = end, end
		}
	}
	return b.at < min(b.seen, end)
}
