package files

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// refRecord is a record as the plain reader of the tests sees it.
type refRecord struct {
	fields  []string
	line    int  // 1-based, at which it starts
	at      int  // byte at which it starts
	broken  bool // its quotes do not say where it ends
	padded  bool // blanks follow a closing quote
	lastRow int  // line of its last field
}

// sound reports whether the record can be a row of so many fields.
func (r refRecord) sound(fields int) bool { return !r.broken && len(r.fields) == fields }

// refRecords reads text as the documentation has it, character by character:
// docs/nodes/file_table.md, "Quotes". fields is the number of fields of
// each record, 0 if the first sound one says it.
func refRecords(text string, separator byte, fields int) (out []refRecord) {
	start := 0
	if strings.HasPrefix(text, string(utf8BOM)) {
		start = len(utf8BOM)
	}
	if fields == 0 {
		for _, r := range refRecords(text, separator, -1) {
			if !r.broken {
				fields = len(r.fields)
				break
			}
		}
	}
	line := func(at int) int { return strings.Count(text[:at], "\n") + 1 }
	behind := func(at int) int { // the start of the next line
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			return at + i + 1
		}
		return len(text)
	}
	blank := func(at int) bool {
		return strings.Trim(text[at:behind(at)], "\r\n") == "" && strings.Count(text[at:behind(at)], "\r") <= 1
	}
	for at := start; at < len(text); {
		if blank(at) {
			at = behind(at)
			continue
		}
		r, end := refRecordAt(text, at, separator)
		r.line, r.at = line(at), at
		r.lastRow += r.line
		if r.broken {
			end = behind(at)
			for end < len(text) {
				next, to := refRecordAt(text, end, separator)
				oneLine := !next.broken && to == behind(end)
				if !blank(end) && (!oneLine || fields < 0 || len(next.fields) == fields) {
					break
				}
				end = behind(end)
			}
		}
		out = append(out, r)
		at = end
	}
	return out
}

// refRecordAt reads the record at a place, and where the next line begins.
func refRecordAt(text string, at int, separator byte) (r refRecord, end int) {
	odd, lines := false, 0
	atLineEnd := func(i int) int { // the size of a line end, 0 if there is none, -1 at the end of the text
		switch rest := text[i:]; {
		case rest == "":
			return -1
		case rest[0] == '\n':
			return 1
		case strings.HasPrefix(rest, "\r\n"):
			return 2
		case rest == "\r":
			return 1
		}
		return 0
	}
	for i := at; ; {
		var field strings.Builder
		fieldLine := lines
		if i < len(text) && text[i] == '"' {
			bare := false
			for i++; ; {
				if i >= len(text) {
					return refRecord{broken: true}, len(text)
				}
				c := text[i]
				i++
				if c == '\n' {
					lines++
				}
				if c != '"' {
					field.WriteByte(c)
					continue
				}
				if i < len(text) && text[i] == '"' {
					field.WriteByte('"')
					i++
					continue
				}
				if i >= len(text) || text[i] == separator || atLineEnd(i) != 0 {
					break
				}
				blanks := i
				for blanks < len(text) && text[blanks] != separator && strings.ContainsRune(" \t", rune(text[blanks])) {
					blanks++
				}
				if !bare && (blanks >= len(text) || text[blanks] == separator || atLineEnd(blanks) != 0) {
					r.padded, i = true, blanks
					break
				}
				field.WriteByte('"')
				odd, bare = true, true
			}
		} else {
			for i < len(text) && text[i] != separator && atLineEnd(i) == 0 {
				odd = odd || text[i] == '"'
				field.WriteByte(text[i])
				i++
			}
		}
		r.fields, r.lastRow = append(r.fields, field.String()), fieldLine
		if n := atLineEnd(i); n != 0 {
			r.broken = odd && lines > 0
			return r, i + max(n, 0)
		}
		i++ // the separator
	}
}

// refAll gives the texts of all records if each is one of the first one's length.
func refAll(text string, separator byte) (rows [][]string, fields int, padded, ok bool) {
	all := refRecords(text, separator, 0)
	for _, r := range all {
		if !r.broken {
			fields = len(r.fields)
			break
		}
	}
	for _, r := range all {
		if !r.sound(fields) {
			return nil, fields, false, false
		}
		rows, padded = append(rows, r.fields), padded || r.padded
	}
	return rows, fields, padded, true
}

// oldLines reports whether text is refused for its line ends.
func oldLines(text string, separator byte) bool {
	body := strings.TrimPrefix(text, string(utf8BOM))
	for strings.HasPrefix(body, "\n") || strings.HasPrefix(body, "\r\n") { // blank lines before the first record
		body = body[strings.IndexByte(body, '\n')+1:]
	}
	body = strings.TrimSuffix(body, "\r")
	if strings.Contains(body, "\n") || !strings.Contains(strings.TrimRight(body, "\r"), "\r") {
		return false
	}
	r, _ := refRecordAt(body, 0, separator)
	if r.broken {
		return true
	}
	outside, odd, quoted := false, false, false
	for i := range len(body) { // good enough: a CR outside of quotes, or any quote out of place
		switch {
		case body[i] == '"':
			quoted = !quoted
		case body[i] == '\r' && !quoted:
			outside = true
		}
	}
	c := csv.NewReader(strings.NewReader(body))
	c.Comma = rune(separator)
	_, err := c.Read()
	odd = err != nil && !errors.Is(err, io.EOF)
	return outside || odd
}

// valid reports whether all fields are UTF-8.
func valid(fields []string) bool { return utf8.ValidString(strings.Join(fields, "")) }
