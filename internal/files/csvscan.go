package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// csvScan walks over a byte range of a CSV file by the rules of encoding/csv
// with LazyQuotes, without building values: it finds where records end, and
// what would make DuckDB's reader understand the range differently.
//
// Blocks without a quote, the common case, are handled by searches over the
// whole block (several GB/s); lines with a quote go field by field.
type csvScan struct {
	separator byte
	fields    int     // fields of each record; 0: do not check
	targets   []int64 // ascending offsets near which cuts are wanted
	stopAtCut bool    // the rest behind the last cut does not matter
	block     []byte  // to read into; made or grown as needed

	offset  int64 // of the next byte to look at, in the file
	lines   int64 // line ends passed
	records int64 // complete records passed; blank lines are none

	inQuotes bool // the record goes on in the next line, inside quotes
	count    int  // fields of the record so far

	recordBytes int64 // of the record so far, in lines with quotes
	recordLine  int64 // lines passed at its start

	found csvFindings
	cuts  []csvCut
}

// csvFindings are the properties of a range that decide how DuckDB may read it.
type csvFindings struct {
	oddQuotes     bool // a quote where RFC 4180 has none, or not closed
	quotedNewline bool // a line end inside quotes
	blankLines    int64
	lf, crlf      int64 // line ends: bare, and with CR
	strayCR       bool  // CR that does not belong to a line end
	long          bool  // a record beyond MaxRecordBytes; the scan may have stopped there
	ragged        *csvRagged
}

// csvRagged is the first record found with a wrong number of fields. Only
// records that DuckDB would let pass are sure to be noticed here: it accepts
// extra empty fields at the end of a record, and reports the others itself.
type csvRagged struct {
	Record, Line int64 // counted from the start of the scan, from 0
	Fields       int
}

// csvCut is a position where a record starts.
type csvCut struct {
	Offset  int64
	Records int64 // records before it, counted from the start of the scan
	Lines   int64 // line ends before it
}

// scanUntilCut is scanRange that ends at the last wanted cut.
func (s *csvScan) scanUntilCut(ctx context.Context, f io.ReaderAt, offset, length int64) error {
	s.stopAtCut = true
	return s.scanRange(ctx, f, offset, length)
}

// scanRange runs the scanner over [offset, offset+length) of f. The range
// starts at the start of a record.
func (s *csvScan) scanRange(ctx context.Context, f io.ReaderAt, offset, length int64) error {
	s.offset = offset
	end := offset + length
	if len(s.block) == 0 {
		s.block = make([]byte, min(scanBlockBytes, max(length, 1)))
	}
	buf := s.block
	have := 0
	for read := offset; read < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.stopAtCut && len(s.targets) == 0 {
			return nil
		}
		if have == len(buf) {
			if have >= MaxRecordBytes {
				s.found.long = true
				return nil
			}
			s.block = append(buf, make([]byte, len(buf))...)
			buf = s.block
		}
		n, err := f.ReadAt(buf[have:min(int64(len(buf)), int64(have)+end-read)], read)
		if n == 0 && err != nil {
			return fmt.Errorf("read at byte %d: %w", read, err)
		}
		read += int64(n)
		have += n
		whole := bytes.LastIndexByte(buf[:have], '\n') + 1
		s.feed(buf[:whole])
		have = copy(buf, buf[whole:have])
	}
	s.feed(buf[:have])
	s.finish()
	return nil
}

// feed takes whole lines, or the last line without its line end.
func (s *csvScan) feed(block []byte) {
	for len(block) > 0 {
		part := block
		if !s.inQuotes {
			// Cut at the wanted places: a line end outside quotes ends a record.
			if want, ok := s.nextTarget(); ok && want < s.offset+int64(len(block)) {
				if i := bytes.IndexByte(block[max(want-s.offset-1, 0):], '\n'); i >= 0 {
					part = block[:int(max(want-s.offset-1, 0))+i+1]
				}
			}
		}
		// DuckDB lets a surplus field of one NUL pass: such lines are counted one by one.
		if !s.inQuotes && bytes.IndexByte(part, '"') < 0 && bytes.IndexByte(part, 0) < 0 {
			s.plain(part)
		} else {
			s.quotedLines(part)
		}
		block = block[len(part):]
		s.cutHere()
	}
}

func (s *csvScan) nextTarget() (int64, bool) {
	if len(s.targets) == 0 {
		return 0, false
	}
	return s.targets[0], true
}

// cutHere records a cut if one is due and the position is between records.
func (s *csvScan) cutHere() {
	due := false
	for len(s.targets) > 0 && s.targets[0] <= s.offset && !s.inQuotes {
		s.targets = s.targets[1:]
		due = true
	}
	if due {
		s.cuts = append(s.cuts, csvCut{Offset: s.offset, Records: s.records, Lines: s.lines})
	}
}

// plain takes lines without any quote, outside quotes.
func (s *csvScan) plain(block []byte) {
	newlines := int64(bytes.Count(block, newline))
	crlf := int64(0)
	if bytes.IndexByte(block, '\r') >= 0 {
		crlf = countCRLF(block)
		if int64(bytes.Count(block, carriageReturn)) != crlf {
			s.found.strayCR = true
		}
	}
	blank := countBlank(block, crlf > 0)
	lines := newlines
	if last := block[len(block)-1]; last != '\n' {
		// The last line of the file has no end; encoding/csv drops a CR there.
		if len(bytes.TrimSuffix(block[bytes.LastIndexByte(block, '\n')+1:], carriageReturn)) == 0 {
			blank++
		}
		lines++
	}
	s.checkEndings(block)
	s.found.crlf += crlf
	s.found.lf += newlines - crlf
	s.found.blankLines += blank
	s.records += lines - blank
	s.lines += newlines
	s.offset += int64(len(block))
}

// checkEndings counts the fields of the lines that end in a separator: DuckDB
// lets such lines pass with too many of them.
func (s *csvScan) checkEndings(block []byte) {
	if s.fields == 0 || s.found.ragged != nil {
		return
	}
	sep := []byte{s.separator}
	for _, ending := range []string{"\n", "\r\n", ""} {
		if ending == "\r\n" && bytes.IndexByte(block, '\r') < 0 {
			continue
		}
		pattern := append([]byte{s.separator}, ending...)
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
			if n := bytes.Count(block[start:at+1], sep) + 1; n != s.fields {
				s.raggedAt(block[:start], n)
			}
			from = at + len(pattern)
		}
	}
}

// raggedAt notes a ragged record that starts behind before, lines without quotes.
func (s *csvScan) raggedAt(before []byte, fields int) {
	lines := int64(bytes.Count(before, newline))
	r := &csvRagged{Record: s.records + lines - countBlank(before, true), Line: s.lines + lines, Fields: fields}
	if s.found.ragged == nil || r.Line < s.found.ragged.Line {
		s.found.ragged = r
	}
}

// quotedLines takes lines of which some have quotes, one by one.
func (s *csvScan) quotedLines(block []byte) {
	for len(block) > 0 {
		line := block
		if i := bytes.IndexByte(block, '\n'); i >= 0 {
			line = block[:i+1]
		}
		s.line(line)
		block = block[len(line):]
		s.offset += int64(len(line))
		if !s.inQuotes {
			s.cutHere()
		}
	}
}

// line takes one physical line.
func (s *csvScan) line(line []byte) {
	body, end := splitLineEnd(line)
	if bytes.IndexByte(body, '\r') >= 0 {
		s.found.strayCR = true
	}
	if !s.inQuotes {
		s.recordBytes, s.recordLine = 0, s.lines
	}
	s.recordBytes += int64(len(line))
	switch string(end) {
	case "\n":
		s.found.lf++
	case "\r\n":
		s.found.crlf++
	case "\r": // encoding/csv drops it at the end of a file, DuckDB stumbles over it
		s.found.strayCR = true
	}
	ended := true
	if !s.inQuotes && len(body) == 0 {
		s.found.blankLines++
		ended = false
	} else {
		ended = s.walk(body)
	}
	if ended {
		s.endRecord()
	}
	if len(end) > 0 && end[len(end)-1] == '\n' {
		s.lines++
	}
}

// walk goes over the fields of one line's body; false if the record goes on
// in the next line.
func (s *csvScan) walk(body []byte) bool {
	for {
		if !s.inQuotes {
			if len(body) == 0 || body[0] != '"' {
				i := bytes.IndexByte(body, s.separator)
				field := body
				if i >= 0 {
					field = body[:i]
				}
				if bytes.IndexByte(field, '"') >= 0 {
					s.found.oddQuotes = true
				}
				s.count++
				if i < 0 {
					return true
				}
				body = body[i+1:]
				continue
			}
			s.inQuotes = true
			body = body[1:]
		}
		rest, more := s.insideQuotes(body)
		if s.inQuotes {
			s.found.quotedNewline = true
			return false
		}
		if !more {
			return true
		}
		body = rest
	}
}

// insideQuotes goes on to the end of the open field: s.inQuotes stays true if
// it does not end in this line; more means that another field follows in rest.
func (s *csvScan) insideQuotes(body []byte) (rest []byte, more bool) {
	for {
		i := bytes.IndexByte(body, '"')
		if i < 0 {
			return nil, false
		}
		body = body[i+1:]
		switch {
		case len(body) == 0 || body[0] == s.separator:
			s.inQuotes = false
			s.count++
			if len(body) == 0 {
				return nil, false
			}
			return body[1:], true
		case body[0] == '"':
			body = body[1:]
		default:
			s.found.oddQuotes = true // a quote that neither closes nor is doubled
		}
	}
}

func (s *csvScan) endRecord() {
	s.found.long = s.found.long || s.recordBytes > MaxRecordBytes
	if s.fields > 0 && s.count != s.fields && s.found.ragged == nil {
		s.found.ragged = &csvRagged{Record: s.records, Line: s.recordLine, Fields: s.count}
	}
	s.records++
	s.count = 0
}

// finish closes a field whose quotes are never closed: it takes all the rest.
func (s *csvScan) finish() {
	if s.inQuotes {
		s.inQuotes = false
		s.found.oddQuotes = true
		s.count++
		s.endRecord()
	}
}

var (
	newline        = []byte{'\n'}
	carriageReturn = []byte{'\r'}
	crlfBytes      = []byte("\r\n")
	blankLF        = []byte("\n\n")
	blankCRLF      = []byte("\n\r\n")
)

// splitLineEnd parts a line from its end: LF, CRLF, or a CR before the end of
// the file, which encoding/csv drops as well.
func splitLineEnd(line []byte) (body, end []byte) {
	n := len(line)
	if n > 0 && line[n-1] == '\n' {
		n--
		if n > 0 && line[n-1] == '\r' {
			n--
		}
	} else if n > 0 && line[n-1] == '\r' {
		n--
	}
	return line[:n], line[n:]
}

func countCRLF(block []byte) int64 {
	n := int64(0)
	for {
		i := bytes.Index(block, crlfBytes)
		if i < 0 {
			return n
		}
		n++
		block = block[i+2:]
	}
}

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
