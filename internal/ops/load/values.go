package load

import (
	"encoding/binary"
	"errors"
)

// Why an operation of a store that answered is an error all the same.
var (
	ErrMissing = errors.New("the store has nothing under a key")
	ErrWrong   = errors.New("the store has another value under a key than was written")
)

// Mix scrambles a number; no two become the same. It is the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
func Mix(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// Fill writes the value of a key: bytes that do not compress, and that are known again. It allocates nothing.
func Fill(value []byte, key uint64) {
	const step = 0x9e3779b97f4a7c15
	n := Mix(key + step)
	for len(value) >= 8 {
		binary.LittleEndian.PutUint64(value, Mix(n))
		n, value = n+step, value[8:]
	}
	if len(value) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], Mix(n))
		copy(value, last[:])
	}
}
