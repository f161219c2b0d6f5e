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

// thriftDepthMax limits how deep structures may nest; Parquet's own go to about 6.
const thriftDepthMax = 32

var (
	errThriftShort = errors.New("it ends too early")
	errThriftType  = errors.New("a field has an unexpected type")
	errThriftDepth = errors.New("it nests too deep")

	errThriftOrder   = errors.New("its fields are out of order")
	errThriftMissing = errors.New("a field is missing that the format requires")
	errThriftStrange = errors.New("it has a field that the format does not know")
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
// the value or returns false to have it passed over. It returns which fields
// with ids below 64 there were, a bit for each.
//
// Nothing but the shape of the bytes tells a damaged footer from another one,
// so the only shape taken is what all writers give them: ids that rise, in
// their short form where there is one.
func (r *thriftReader) structure(field func(id int64, t thriftType) bool) (seen uint64) {
	const shortMax = 15
	if r.depth++; r.depth > thriftDepthMax {
		r.fail(errThriftDepth)
	}
	defer func() { r.depth-- }()
	for id := int64(0); r.err == nil; {
		head := r.byte()
		t := thriftType(head & 0x0F)
		if t == thriftStop {
			if head != 0 {
				r.fail(errThriftType)
			}
			return seen
		}
		last := id
		if delta := head >> 4; delta != 0 {
			id += int64(delta)
		} else {
			id = r.varint()
			if id <= last+shortMax {
				r.fail(errThriftOrder)
			}
		}
		if id > math.MaxInt16 {
			r.fail(errThriftOrder)
		}
		if r.err != nil {
			return seen
		}
		if id < 64 {
			seen |= 1 << id
		}
		if !field(id, t) {
			r.skip(t)
		}
	}
	return seen
}

// fields is the set of ids that structure returns.
func fields(ids ...int) (set uint64) {
	for _, id := range ids {
		set |= 1 << id
	}
	return set
}

// need fails if one of the ids of want was not seen.
func (r *thriftReader) need(seen, want uint64) {
	if r.err == nil && seen&want != want {
		r.fail(errThriftMissing)
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

// integer reads an integer of 64 bits. A field of another type than the format
// gives it is an error: other readers would pass over it.
func (r *thriftReader) integer(t thriftType) int64 {
	if t != thriftI64 {
		r.fail(errThriftType)
		return 0
	}
	return r.varint()
}

// int reads an integer of 32 bits.
func (r *thriftReader) int(t thriftType) int {
	if t != thriftI32 {
		r.fail(errThriftType)
		return 0
	}
	v := r.varint()
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.fail(errThriftType)
		return 0
	}
	return int(v)
}

// small reads an integer of 8 bits.
func (r *thriftReader) small(t thriftType) int {
	if t != thriftByte {
		r.fail(errThriftType)
		return 0
	}
	return int(int8(r.byte()))
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
