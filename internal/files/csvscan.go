package files

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// csvScan goes over a byte range of a CSV file without building values: it
// finds where records may be cut apart, what would make DuckDB's reader
// understand the range differently, and the first record that is bad.
//
// Lines without a quote, the common case, are handled by searches over whole
// blocks (several GB/s); the others record by record.
type csvScan struct {
	targets   []int64 // ascending offsets near which cuts are wanted
	stopAtCut bool    // the rest behind the last cut does not matter
	stopAtBad bool    // neither does what is behind a broken record

	w      csvWalker
	quotes byteFinder
	nuls   byteFinder

	found csvFindings
	cuts  []csvCut
}

// csvFindings are the properties of a range that decide how DuckDB may read it.
type csvFindings struct {
	odd        bool  // a quote where RFC 4180 has none
	newline    bool  // a line end inside quotes
	quotedCR   bool  // a CR inside quotes
	strayCR    bool  // a CR outside of quotes that belongs to no line end
	blankLines int64 // outside of quotes
	cr         bool  // lines that end in CRLF, or the file in CR
	bad        *csvBadRecord
}

// csvBadRecord is the first bad record. Of those with a wrong number of fields
// only the ones that DuckDB would let pass are sure to be noticed: it accepts
// extra empty fields at the end of a record, and reports the others itself.
type csvBadRecord struct {
	record, line int64 // counted from the start of the scan, from 0
	fields       int
	flaw         csvFlaw
}

// csvCut is a position where a record starts.
type csvCut struct {
	Offset  int64
	Records int64 // records before it, counted from the start of the scan
	Lines   int64 // line ends before it
}

// scanCSV makes a scan of [offset, offset+length) of f, which starts at the
// start of a record. The window is memory to be used, or nil.
func scanCSV(f io.ReaderAt, offset, length int64, separator byte, fields int, window []byte) *csvScan {
	return &csvScan{w: walkCSV(f, offset, length, separator, fields, window)}
}

// run goes over the range.
func (s *csvScan) run(ctx context.Context) error {
	for !s.stopAtCut || len(s.targets) > 0 {
		block, err := s.block(ctx)
		if err != nil {
			return err
		}
		if block == nil {
			return nil
		}
		if part := s.plainPart(block); len(part) > 0 {
			s.plain(part)
		} else if more, err := s.record(ctx); !more {
			return err
		}
		s.cutHere()
	}
	return nil
}

// block is the whole lines that have been read: more are if there are none. It
// is nil at the end of the range, and half a line if that is too long.
func (s *csvScan) block(ctx context.Context) ([]byte, error) {
	for {
		rest := s.w.rest()
		if s.w.whole() && len(rest) <= MaxRecordBytes {
			if len(rest) == 0 {
				return nil, nil
			}
			return rest, nil
		}
		some := rest[:min(len(rest), MaxRecordBytes)]
		if i := bytes.LastIndexByte(some, '\n'); i >= 0 {
			return some[:i+1], nil
		}
		if len(rest) > MaxRecordBytes {
			return some, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.w.fill(); err != nil {
			return nil, err
		}
	}
}

// plainPart is the lines that block begins with which have neither a quote nor
// a NUL: DuckDB lets a surplus field of one NUL pass, so those lines are
// counted one by one. It ends where a cut is wanted.
func (s *csvScan) plainPart(block []byte) []byte {
	n := min(s.quotes.in(block, s.w.offset, '"'), s.nuls.in(block, s.w.offset, 0))
	if n < len(block) {
		n = bytes.LastIndexByte(block[:n], '\n') + 1
	} else if len(block) < len(s.w.rest()) {
		n = bytes.LastIndexByte(block, '\n') + 1 // 0: it is half a line
	}
	part := block[:n]
	if len(s.targets) > 0 && s.targets[0] < s.w.offset+int64(n) {
		from := max(s.targets[0]-s.w.offset-1, 0)
		if i := bytes.IndexByte(part[from:], '\n'); i >= 0 {
			part = part[:int(from)+i+1]
		}
	}
	return part
}

// byteFinder remembers where a byte comes next, so that no byte is looked at twice.
type byteFinder struct {
	at, seen int64 // the byte, if at < seen; what is before seen has been looked at
}

// in returns where the byte is in block, which begins at offset, or its length.
func (b *byteFinder) in(block []byte, offset int64, c byte) int {
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
	return int(min(b.at, end) - offset)
}

// cutHere records a cut if one is due.
func (s *csvScan) cutHere() {
	due := false
	for len(s.targets) > 0 && s.targets[0] <= s.w.offset {
		s.targets = s.targets[1:]
		due = true
	}
	if due {
		s.cuts = append(s.cuts, csvCut{Offset: s.w.offset, Records: s.w.row, Lines: s.w.lines})
	}
}

// record takes one record, whatever its quotes; more is false at the end.
func (s *csvScan) record(ctx context.Context) (more bool, err error) {
	blank := s.w.blank
	rec, err := s.w.next(ctx)
	s.found.blankLines += s.w.blank - blank
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.bad(csvBadRecord{record: rec.row, line: rec.line, fields: len(rec.shape.fields), flaw: rec.flaw})
	if rec.flaw == flawLong || rec.flaw.broken() {
		return !s.stopAtBad, nil
	}
	shape := rec.shape
	s.found.odd = s.found.odd || shape.odd
	s.found.newline = s.found.newline || shape.newline
	s.found.quotedCR = s.found.quotedCR || shape.quotedCR
	s.found.strayCR = s.found.strayCR || shape.strayCR
	s.found.cr = s.found.cr || shape.body < shape.size && rec.text[shape.body] == '\r'
	return true, nil
}

// bad notes a bad record if it is the first.
func (s *csvScan) bad(r csvBadRecord) {
	if r.flaw != flawNone && (s.found.bad == nil || r.line < s.found.bad.line) {
		s.found.bad = &r
	}
}

// plain takes lines without any quote: each is a record, or blank.
func (s *csvScan) plain(block []byte) {
	newlines := bytes.Count(block, newline)
	crlf := 0
	if bytes.IndexByte(block, '\r') >= 0 {
		crlf = bytes.Count(block, crlfBytes)
		if bytes.Count(block, carriageReturn) != crlf {
			s.found.strayCR = true
		}
	}
	blank := countBlank(block, crlf > 0)
	lines := int64(newlines)
	if last := block[len(block)-1]; last != '\n' {
		// The last line of the file has no end; encoding/csv drops a CR there.
		if len(bytes.TrimSuffix(block[bytes.LastIndexByte(block, '\n')+1:], carriageReturn)) == 0 {
			blank++
		}
		lines++
	}
	s.checkEndings(block)
	s.found.cr = s.found.cr || crlf > 0
	s.found.blankLines += blank
	s.w.row += lines - blank
	s.w.skip(len(block), newlines)
}

// checkEndings counts the fields of the lines that end in a separator: DuckDB
// lets such lines pass with too many of them.
func (s *csvScan) checkEndings(block []byte) {
	if s.w.fields == 0 || s.found.bad != nil {
		return
	}
	sep := []byte{s.w.separator}
	for _, ending := range []string{"\n", "\r\n", ""} {
		if ending == "\r\n" && bytes.IndexByte(block, '\r') < 0 {
			continue
		}
		pattern := append([]byte{s.w.separator}, ending...)
		for from := 0; ; {
			at := -1
			if ending != "" {
				at = bytes.Index(block[from:], pattern)
			} else if from == 0 && bytes.HasSuffix(block, sep) {
				at = len(block) - 1 // the file ends in a separator
			}
			if at < 0 {
				break
			}
			at += from
			start := from // where the line starts; the usual answer first
			if bytes.IndexByte(block[from:at], '\n') >= 0 {
				start = bytes.LastIndexByte(block[:at], '\n') + 1
			}
			if n := bytes.Count(block[start:at+1], sep) + 1; n != s.w.fields {
				s.raggedAt(block[:start], n)
			}
			from = at + len(pattern)
		}
	}
}

// raggedAt notes a ragged record that starts behind before, lines without quotes.
func (s *csvScan) raggedAt(before []byte, fields int) {
	lines := int64(bytes.Count(before, newline))
	s.bad(csvBadRecord{record: s.w.row + lines - countBlank(before, true), line: s.w.lines + lines, fields: fields, flaw: flawRagged})
}

var (
	blankLF   = []byte("\n\n")
	blankCRLF = []byte("\n\r\n")
)

// countBlank counts the blank lines that end inside block, which starts at
// the start of a line.
func countBlank(block []byte, withCR bool) int64 {
	n := int64(0)
	if bytes.HasPrefix(block, newline) || bytes.HasPrefix(block, crlfBytes) {
		n++
	}
	n += countOverlapping(block, blankLF)
	if withCR {
		n += countOverlapping(block, blankCRLF)
	}
	return n
}

func countOverlapping(block, pattern []byte) int64 {
	n := int64(0)
	for {
		i := bytes.Index(block, pattern)
		if i < 0 {
			return n
		}
		n++
		block = block[i+len(pattern)-1:]
	}
}
