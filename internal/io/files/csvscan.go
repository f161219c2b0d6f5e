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
// Records in which nothing is out of place, the common case, are taken many at
// a time (soundRecords); the others one by one.
type csvScan struct {
	targets   []int64 // ascending offsets near which cuts are wanted
	stopAtCut bool    // the rest behind the last cut does not matter
	stopAtBad bool    // neither does what is behind a broken record

	w      csvWalker
	quotes byteFinder
	crs    byteFinder

	marks *markFinder // nil: no cell is marked

	found csvFindings
	cuts  []csvCut
}

// csvFindings are the properties of a range that decide how DuckDB may read it.
type csvFindings struct {
	odd        bool  // a quote where RFC 4180 has none
	padded     bool  // blanks between a closing quote and what follows it
	newline    bool  // a line end inside quotes
	quotedCR   bool  // a CR inside quotes
	strayCR    bool  // a CR outside of quotes that belongs to no line end
	blankLines int64 // outside of quotes
	cr         bool  // lines that end in CRLF, or the file in CR; unsaid of blank lines
	bad        *csvBadRecord
}

// csvBadRecord is a bad record.
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

// scan makes a scan of [offset, offset+length) of a text of the source, which starts at the
// start of a record. The window is memory to be used, or nil.
func (s source) scan(f io.ReaderAt, offset, length int64, separator byte, fields int, window []byte) *csvScan {
	return &csvScan{w: s.walk(f, offset, length, separator, fields, window)}
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
		s.marks.look(s.w.rest(), s.w.offset)
		if !s.sound(block) {
			if more, err := s.record(ctx); !more {
				return err
			}
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

// sound takes the records that block begins with in which nothing is out of
// place, up to where a cut is wanted; false if there are none.
func (s *csvScan) sound(block []byte) bool {
	fields, until := s.w.fields, int64(len(block))
	if s.found.bad != nil {
		fields = 0 // only the first bad record counts
	}
	if len(s.targets) > 0 {
		until = min(until, s.targets[0]-s.w.offset-1)
	}
	search := charSearch{
		separator: uint64(s.w.separator) * everyByte,
		quotes:    s.quotes.isIn(block, s.w.offset, '"'),
		crs:       s.crs.isIn(block, s.w.offset, '\r'),
	}
	r := takeSound(block, search, fields, int(until))
	s.found.newline = s.found.newline || r.marks.newline != 0
	s.found.quotedCR = s.found.quotedCR || r.marks.quotedCR != 0
	s.found.cr = s.found.cr || r.marks.cr != 0
	s.found.blankLines += r.blank
	s.w.row += r.rows
	s.w.skip(r.size, int(r.lines))
	return r.size > 0
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
	if rec.flaw != flawNone && s.found.bad == nil {
		bad := rec.bad()
		s.found.bad = &bad
	}
	s.marks.look(rec.text, rec.offset)
	if rec.flaw == flawLong || rec.flaw.broken() {
		return !s.stopAtBad, nil
	}
	shape := rec.shape
	s.found.odd = s.found.odd || shape.odd
	s.found.padded = s.found.padded || shape.padded
	s.found.newline = s.found.newline || shape.newline
	s.found.quotedCR = s.found.quotedCR || shape.quotedCR
	s.found.strayCR = s.found.strayCR || shape.strayCR
	s.found.cr = s.found.cr || shape.body < shape.size && rec.text[shape.body] == '\r'
	return true, nil
}
