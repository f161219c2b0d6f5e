package files

import "math/bits"

// This file is the quick way over records in which nothing is out of place:
// quotes stand only around whole fields or doubled inside of them, a CR only
// before an LF or inside quotes, and there are as many fields as there should
// be. It looks at 64 bytes at a time. It never says what a record is: it stops
// before the first that it does not take, which is then for csvShape.

// soundRecords are records that a block begins with.
type soundRecords struct {
	size  int   // bytes, up to the end of the last one
	rows  int64 // records
	blank int64 // blank lines
	lines int64 // line ends, those inside quotes too
	marks csvMarks

	wanted int  // separators of each record; -1: any number
	until  int  // stop at the first record end from this byte on, counted from those that come next
	stop   bool // take no more

	// Of the byte before those that come next, in bit 0.
	opens  uint64 // a quote behind it opens a field or is doubled
	closed uint64 // it closes a field, or the first part of one
	cr     uint64 // it is a CR outside of quotes
	ended  uint64 // in bit 1: it ends a record or a blank line; in bit 0: the byte before it does
	inside uint64 // it is inside quotes: in all bits

	// Of the record that goes on in the bytes that come next.
	separators, openLines int
	openMarks             csvMarks
}

// csvMarks have bits set if there is any of these.
type csvMarks struct {
	newline  uint64 // a line end inside quotes
	quotedCR uint64 // a CR inside quotes
	cr       uint64 // a line that ends in CRLF
}

// takeSound takes records from the start of block, where a record begins. fields is the number of fields of
// each record, 0 for any. fields is what each has, 0 for any number.
func takeSound(block []byte, search charSearch, fields, until int) soundRecords {
	s := soundRecords{wanted: fields - 1, until: until, opens: 1, ended: 2}
	for at := 0; at < len(block) && !s.stop; at += charBytes {
		if rest := block[at:]; len(rest) >= charBytes {
			s.take(at, search.in((*[charBytes]byte)(rest)))
			continue
		}
		var last [charBytes]byte // filled up with NUL, which is no character that counts
		copy(last[:], block[at:])
		s.take(at, search.in(&last))
	}
	return s
}

// take goes on with the 64 bytes at at.
func (s *soundRecords) take(at int, c csvChars) {
	inside := s.inside ^ betweenPairs(c.quotes) // from an opening quote to before the closing one
	opening, closing := c.quotes&inside, c.quotes&^inside
	separators, ends, crs := c.separators&^inside, c.newlines&^inside, c.crs&^inside
	before := separators | ends | closing // of a quote that opens
	behindCR := crs<<1 | s.cr

	wrong := opening &^ (before<<1 | s.opens)
	wrong |= (closing<<1 | s.closed) &^ (separators | ends | opening | crs)
	wrong |= behindCR &^ ends
	if wrong != 0 {
		ends &= below(wrong)
		s.stop = true
	}
	blank := ends & (ends<<1 | s.ended>>1 | behindCR&(ends<<2|s.ended))

	const last = charBytes - 1
	s.inside = uint64(int64(inside) >> last)
	s.opens, s.closed, s.cr = before>>last, closing>>last, crs>>last
	s.ended = ends >> (last - 1)

	ends = s.untilCut(ends)
	ends = s.countFields(ends, ends&^blank, separators)
	s.pass(at, ends, blank, c.newlines, csvMarks{newline: c.newlines & inside, quotedCR: c.crs & inside, cr: crs})
}

// untilCut returns the record ends up to the one to stop at.
func (s *soundRecords) untilCut(ends uint64) uint64 {
	if s.until < charBytes {
		if from := ends &^ (1<<max(s.until, 0) - 1); from != 0 {
			ends &= below(from) | from&-from
			s.stop = true
		}
	}
	s.until -= charBytes
	return ends
}

// countFields returns the ends before the first record with another number of
// fields.
func (s *soundRecords) countFields(ends, records, separators uint64) uint64 {
	if s.wanted < 0 {
		return ends
	}
	for ; records != 0; records &= records - 1 {
		n := s.separators + bits.OnesCount64(separators&below(records))
		if n != s.wanted {
			s.stop = true
			return ends & below(records)
		}
		s.separators -= n
	}
	s.separators += bits.OnesCount64(separators)
	return ends
}

// pass takes what lies before the last of ends into the account.
func (s *soundRecords) pass(at int, ends, blank, newlines uint64, now csvMarks) {
	n := bits.Len64(ends)
	if n == 0 {
		s.openLines += bits.OnesCount64(newlines)
		s.openMarks.add(now, ^uint64(0))
		return
	}
	done := uint64(1)<<n - 1
	s.size = at + n
	s.lines += int64(s.openLines + bits.OnesCount64(newlines&done))
	s.blank += int64(bits.OnesCount64(blank & ends))
	s.rows += int64(bits.OnesCount64(ends &^ blank))
	s.openMarks.add(now, done)
	s.marks.add(s.openMarks, ^uint64(0))
	s.openLines, s.openMarks = bits.OnesCount64(newlines&^done), csvMarks{}
	s.openMarks.add(now, ^done)
}

// add takes the bits of other that are among where.
func (m *csvMarks) add(other csvMarks, where uint64) {
	m.newline |= other.newline & where
	m.quotedCR |= other.quotedCR & where
	m.cr |= other.cr & where
}
