package files

import (
	"bytes"
	"unicode/utf8"
)

// This file is the grammar of CSV: the one place that says where a record
// ends and whether it can be one. Whoever walks over records asks it, so that
// planning, preparing, diagnosis and the reading around bad records agree.
//
// A record is a line, or several where line ends are in quotes. A quote out of
// place (bare in a field without quotes, or inside quotes neither doubled nor
// before a separator or a line end) is text, as encoding/csv with LazyQuotes
// has it, but only in a record of one line. Blanks behind the first such quote
// that lead to a separator or a line end are padding: the quote closes its
// field, and they belong to no value. In a record that goes on in the
// next line such a quote, no closing quote before the end of the range, or
// none within MaxRecordBytes mean that its quotes cannot be trusted: the
// record is broken, and ends with its first line (and what csvWalker.absorb
// adds).
//
// Whether a record is broken depends on nothing but the bytes from its start
// to the end of the range, and on where the range ends only if they lead there
// inside quotes, which makes it broken. A range that ends where a record of a
// longer one ends has therefore the same records: cuts change nothing.

// csvFlaw names what is wrong with a record's text, whatever its values.
type csvFlaw int

const (
	flawNone   csvFlaw = iota
	flawRagged         // another number of fields
	flawLong           // a line longer than MaxRecordBytes
	flawQuotes         // a line ends inside quotes that are not closed, or with a quote out of place in the record
)

// broken reports whether the quotes do not say where the record ends.
func (f csvFlaw) broken() bool { return f == flawQuotes }

// csvField is the place of a field in its record's text, without its quotes.
type csvField struct {
	from, to int
	quoted   bool
	escaped  bool // has doubled quotes
}

// csvShape describes the fields and line ends of one record.
type csvShape struct {
	fields   []csvField // of a broken record those before the one in which its first line ends
	size     int        // bytes, the line end included
	body     int        // of them without the line end
	lines    int        // line ends passed
	flaw     csvFlaw
	odd      bool // a quote out of place
	padded   bool // blanks between a closing quote and what follows it
	newline  bool // a line end inside quotes
	opened   int  // the field with the first of these
	quotedCR bool // a CR inside quotes
	strayCR  bool // a CR outside of quotes that belongs to no line end
}

// split takes the record that text begins with, which is no blank line. whole
// says that the range ends with text; otherwise more is true where more of it
// is needed to tell.
func (s *csvShape) split(text []byte, separator byte, whole bool) (more bool) {
	*s = csvShape{fields: s.fields[:0]}
	if !s.line(text, 0, whole) {
		if len(text) <= MaxRecordBytes {
			return true
		}
		s.flaw = flawLong
		return false
	}
	if s.size > MaxRecordBytes {
		s.flaw = flawLong
		return false
	}
	first := s.size
	for at := 0; at <= s.body && s.flaw == flawNone; {
		if at == s.body || text[at] != '"' {
			at = s.bare(text, at, separator)
			continue
		}
		if at, more = s.quoted(text, at+1, separator, whole); more {
			return true
		}
	}
	if s.flaw.broken() {
		s.size, s.lines, s.fields = first, min(s.lines, 1), s.fields[:s.opened]
		body, _ := splitLineEnd(text[:first])
		s.body = len(body)
	}
	return false
}

// line goes on with the line that starts at from; false if more of it is needed.
func (s *csvShape) line(text []byte, from int, whole bool) bool {
	i := bytes.IndexByte(text[from:], '\n')
	switch {
	case i >= 0:
		s.size = from + i + 1
		s.lines++
	case whole:
		s.size = len(text)
	default:
		return false
	}
	body, _ := splitLineEnd(text[from:s.size])
	s.body = from + len(body)
	return true
}

// bare takes a field without quotes. It returns where the next one begins,
// behind the body if there is none.
func (s *csvShape) bare(text []byte, at int, separator byte) int {
	field, next := text[at:s.body], s.body+1
	if i := bytes.IndexByte(field, separator); i >= 0 {
		field, next = field[:i], at+i+1
	}
	if bytes.IndexByte(field, '"') >= 0 {
		s.outOfPlace()
	}
	if bytes.IndexByte(field, '\r') >= 0 {
		s.strayCR = true
	}
	if s.flaw == flawNone {
		s.fields = append(s.fields, csvField{from: at, to: at + len(field)})
	}
	return next
}

// quoted takes a field whose text begins at from, in the same way.
func (s *csvShape) quoted(text []byte, from int, separator byte, whole bool) (next int, more bool) {
	field, bare := csvField{from: from, quoted: true}, false
	for at := from; ; {
		i := bytes.IndexByte(text[at:s.body], '"')
		if i < 0 {
			if at, more = s.nextLine(text, whole); more || s.flaw != flawNone {
				return 0, more
			}
			continue
		}
		at += i + 1
		end := at
		if !bare {
			end = padding(text[:s.body], at, separator)
		}
		switch {
		case end == s.body || text[end] == separator:
			field.to, s.padded = at-1, s.padded || end > at
			if bytes.IndexByte(text[from:field.to], '\r') >= 0 {
				s.quotedCR = true
			}
			s.fields = append(s.fields, field)
			return end + 1, false
		case text[at] == '"':
			field.escaped = true
			at++
		default:
			bare = true
			if s.outOfPlace(); s.flaw != flawNone {
				return 0, false
			}
		}
	}
}

// padding returns where the blanks end that begin at at.
func padding(text []byte, at int, separator byte) int {
	for at < len(text) && text[at] != separator && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	return at
}

// nextLine goes on in the next line, inside quotes.
func (s *csvShape) nextLine(text []byte, whole bool) (at int, more bool) {
	if !s.newline {
		s.newline, s.opened = true, len(s.fields)
	}
	from := s.size
	switch {
	case s.odd, from == len(text) && whole, from > MaxRecordBytes:
		s.flaw = flawQuotes
	case !s.line(text, from, whole):
		if len(text) <= MaxRecordBytes {
			return 0, true
		}
		s.flaw = flawQuotes
	case s.size > MaxRecordBytes:
		s.flaw = flawQuotes
	}
	return from, false
}

// outOfPlace notes a quote where RFC 4180 has none.
func (s *csvShape) outOfPlace() {
	s.odd = true
	if s.newline {
		s.flaw = flawQuotes
	}
}

// value is field i of the record with this text.
func (s *csvShape) value(text []byte, i int) []byte {
	f := s.fields[i]
	if !f.escaped {
		return text[f.from:f.to]
	}
	return bytes.ReplaceAll(text[f.from:f.to], doubledQuote, quote)
}

// values are all fields, as texts of their own.
func (s *csvShape) values(text []byte) []string {
	out := make([]string, len(s.fields))
	for i := range out {
		out[i] = string(s.value(text, i))
	}
	return out
}

// place returns the beginning of field i: the number of lines behind the record's first, and the 1-based
// character of that line.
func (s *csvShape) place(text []byte, i int) (lines int64, column int) {
	at := s.fields[i].from
	if s.fields[i].quoted {
		at--
	}
	before := text[:at]
	return int64(bytes.Count(before, newline)), utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

var (
	quote        = []byte{'"'}
	doubledQuote = []byte(`""`)
	newline      = []byte{'\n'}
	crlfBytes    = []byte("\r\n")
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
