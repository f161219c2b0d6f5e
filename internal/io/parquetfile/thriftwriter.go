package parquetfile

import "encoding/binary"

// thriftWriter encodes Thrift's compact protocol as far as views need it.
type thriftWriter struct{ data []byte }

func (w *thriftWriter) varint(v int64) { w.data = binary.AppendVarint(w.data, v) }

func (w *thriftWriter) text(s string) {
	w.data = binary.AppendUvarint(w.data, uint64(len(s)))
	w.data = append(w.data, s...)
}

// structure writes a structure with the fields that fill writes, in the order
// of their ids.
func (w *thriftWriter) structure(fill func(*thriftStructWriter)) {
	fill(&thriftStructWriter{w: w})
	w.data = append(w.data, byte(thriftStop))
}

// thriftStructWriter writes the fields of a structure.
type thriftStructWriter struct {
	w    *thriftWriter
	last int
}

// head writes the head of a field; ids grow by 15 at most in what we write.
func (s *thriftStructWriter) head(id int, t thriftType) {
	s.w.data = append(s.w.data, byte(id-s.last)<<4|byte(t))
	s.last = id
}

func (s *thriftStructWriter) integer(id int, t thriftType, v int64) {
	s.head(id, t)
	s.w.varint(v)
}

func (s *thriftStructWriter) text(id int, v string) {
	s.head(id, thriftBinary)
	s.w.text(v)
}

func (s *thriftStructWriter) structure(id int, fill func(*thriftStructWriter)) {
	s.head(id, thriftStruct)
	s.w.structure(fill)
}

func (s *thriftStructWriter) list(id int, of thriftType, n int, element func(i int)) {
	s.head(id, thriftList)
	const shortMax = 14
	if n <= shortMax {
		s.w.data = append(s.w.data, byte(n)<<4|byte(of))
	} else {
		s.w.data = append(s.w.data, 0xF0|byte(of))
		s.w.data = binary.AppendUvarint(s.w.data, uint64(n))
	}
	for i := range n {
		element(i)
	}
}
