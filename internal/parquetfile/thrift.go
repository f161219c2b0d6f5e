package parquetfile

import (
	"encoding/binary"
	"errors"
	"math"
)

// thriftReader decodes Thrift's compact protocol as far as Parquet footers
// need it. We have our own because the footer of a damaged file may claim a
// list of billions of elements: here nothing is believed that does not fit
// the bytes that are left, so memory stays in proportion to the footer. The
// first problem sticks in err; after it every read returns zero.
type thriftReader struct {
	data  []byte
	depth int
	err   error
}

// thriftType is a compact protocol wire type.
type thriftType byte

const (
	thriftStop   thriftType = 0
	thriftTrue   thriftType = 1
	thriftFalse  thriftType = 2
	thriftByte   thriftType = 3
	thriftI16    thriftType = 4
	thriftI32    thriftType = 5
	thriftI64    thriftType = 6
	thriftDouble thriftType = 7
	thriftBinary thriftType = 8
	thriftList   thriftType = 9
	thriftSet    thriftType = 10
	thriftMap    thriftType = 11
	thriftStruct thriftType = 12
	thriftUUID   thriftType = 13
)

// thriftDepthMax is how deep structures may nest; Parquet's own go to about 6.
const thriftDepthMax = 32

var (
	errThriftShort = errors.New("it ends too early")
	errThriftType  = errors.New("a field has an unexpected type")
	errThriftDepth = errors.New("it nests too deep")
)

func (r *thriftReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.data = nil
}

// check takes what a caller found wrong with the values.
func (r *thriftReader) check(err error) {
	if err != nil {
		r.fail(err)
	}
}

func (r *thriftReader) take(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.fail(errThriftShort)
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

func (r *thriftReader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fail(errThriftShort)
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *thriftReader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// structure calls field for each field of a structure; field either reads
// the value or returns false to have it passed over.
func (r *thriftReader) structure(field func(id int64, t thriftType) bool) {
	if r.depth++; r.depth > thriftDepthMax {
		r.fail(errThriftDepth)
	}
	defer func() { r.depth-- }()
	for id := int64(0); r.err == nil; {
		head := r.byte()
		t := thriftType(head & 0x0F)
		if t == thriftStop {
			return
		}
		if delta := head >> 4; delta != 0 {
			id += int64(delta)
		} else {
			id = r.varint()
		}
		if r.err == nil && !field(id, t) {
			r.skip(t)
		}
	}
}

// list calls element as often as the list says; every element must read at
// least one byte, which bounds the size by what is left.
func (r *thriftReader) list(t thriftType, want thriftType, element func()) {
	if t != thriftList {
		r.fail(errThriftType)
		return
	}
	n, of := r.listHead()
	if n > 0 && of != want {
		r.fail(errThriftType)
	}
	for range n {
		if r.err != nil {
			return
		}
		element()
	}
}

func (r *thriftReader) listHead() (n uint64, of thriftType) {
	head := r.byte()
	n = uint64(head >> 4)
	if n == 15 {
		n = r.uvarint()
	}
	if n > uint64(len(r.data)) {
		r.fail(errThriftShort)
		return 0, 0
	}
	return n, thriftType(head & 0x0F)
}

// integer reads any of the integer types.
func (r *thriftReader) integer(t thriftType) int64 {
	switch t {
	case thriftByte:
		return int64(int8(r.byte()))
	case thriftI16, thriftI32, thriftI64:
		return r.varint()
	}
	r.fail(errThriftType)
	return 0
}

// int reads an integer of at most 32 bits.
func (r *thriftReader) int(t thriftType) int {
	v := r.integer(t)
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.fail(errThriftType)
		return 0
	}
	return int(v)
}

func (r *thriftReader) bool(t thriftType) bool {
	if t != thriftTrue && t != thriftFalse {
		r.fail(errThriftType)
	}
	return t == thriftTrue
}

func (r *thriftReader) text(t thriftType) string {
	if t != thriftBinary {
		r.fail(errThriftType)
		return ""
	}
	return string(r.take(r.uvarint()))
}

// skip passes over the value of a field.
func (r *thriftReader) skip(t thriftType) {
	if r.err != nil {
		return
	}
	switch t {
	case thriftTrue, thriftFalse: // the value is the type
	case thriftByte:
		r.byte()
	case thriftI16, thriftI32, thriftI64:
		r.uvarint()
	case thriftDouble:
		r.take(8)
	case thriftUUID:
		r.take(16)
	case thriftBinary:
		r.take(r.uvarint())
	case thriftList, thriftSet:
		n, of := r.listHead()
		r.skipElements(n, of)
	case thriftMap:
		r.skipMap()
	case thriftStruct:
		r.structure(func(int64, thriftType) bool { return false })
	default:
		r.fail(errThriftType)
	}
}

func (r *thriftReader) skipElements(n uint64, types ...thriftType) {
	if r.depth++; r.depth > thriftDepthMax {
		r.fail(errThriftDepth)
	}
	defer func() { r.depth-- }()
	for range n {
		for _, t := range types {
			if t == thriftTrue || t == thriftFalse {
				t = thriftByte // inside a collection a bool takes a byte
			}
			r.skip(t)
		}
		if r.err != nil {
			return
		}
	}
}

func (r *thriftReader) skipMap() {
	n := r.uvarint()
	if n == 0 || r.err != nil {
		return
	}
	kinds := r.byte()
	if n > uint64(len(r.data)) {
		r.fail(errThriftShort)
		return
	}
	r.skipElements(n, thriftType(kinds>>4), thriftType(kinds&0x0F))
}
