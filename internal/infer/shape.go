package infer

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/fault"
)

// headBytes of a file decide on its separator and header; types are decided
// by all of it.
const headBytes = 1 << 20

// shape is how a CSV file is to be cut.
type shape struct {
	separator byte
	header    bool
	names     []string // of the columns; numbers without a header
	notes     []string
}

func shapeOf(path string, o Options) (shape, error) {
	head, whole, err := readHead(path)
	if err != nil {
		return shape{}, err
	}
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	if !utf8.Valid(head[:lastLine(head)]) {
		return shape{}, &fault.Error{Kind: fault.UserData, Place: fault.Place{File: path}, Message: "the file is not UTF-8 text", Hint: "convert it first, for example with iconv -f latin1 -t utf-8"}
	}
	candidates := []byte(",;\t|")
	if o.Separator != "" {
		if len(o.Separator) != 1 || o.Separator[0] >= 0x80 {
			return shape{}, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("the separator %q is not one ASCII character", o.Separator)}
		}
		candidates = []byte(o.Separator)
	}
	s, records, why := evenest(head, candidates, whole)
	if len(records) == 0 {
		f := fault.New(fault.UserData, "%s", why)
		f.Place.File = path
		if len(bytes.TrimSpace(head)) > 0 {
			f.Hint = "correct that line, or say how the fields are separated with --separator; bad_rows: quarantine on the node in a script puts such lines aside"
		}
		return s, f
	}
	if len(records[0]) > ColumnsMax {
		return s, &fault.Error{Kind: fault.UserData, Place: fault.Place{File: path}, Message: fmt.Sprintf("the file has %d columns; the limit is %d", len(records[0]), ColumnsMax)}
	}
	s.names = records[0]
	s.header = o.Header == HeaderYes || o.Header == HeaderGuess && looksLikeHeader(records)
	if o.Header == HeaderGuess {
		if s.header {
			s.notes = append(s.notes, "the first record was taken for a header (--no-header if it is data)")
		} else {
			s.notes = append(s.notes, "the first record was taken for data (--header if it is a header)")
		}
	}
	return s, nil
}

func readHead(path string) (head []byte, whole bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, openFault(path, err)
	}
	defer f.Close()
	head, err = io.ReadAll(io.LimitReader(f, headBytes+1))
	if err != nil {
		return nil, false, openFault(path, err)
	}
	if len(head) > headBytes {
		return head[:headBytes], false, nil
	}
	return head, true, nil
}

func openFault(path string, err error) error {
	kind := fault.Environment
	if errors.Is(err, fs.ErrNotExist) {
		kind = fault.UserData
	}
	return &fault.Error{Kind: kind, Place: fault.Place{File: path}, Message: "cannot read the file", Err: err}
}

// lastLine is where the last whole line ends, or the end.
func lastLine(head []byte) int {
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		return i + 1
	}
	return len(head)
}

// evenest finds the separator that cuts all records into the most fields of
// an equal number. why says what is wrong if there is none.
func evenest(head []byte, candidates []byte, whole bool) (s shape, records [][]string, why string) {
	if len(bytes.TrimSpace(head)) == 0 {
		return s, nil, "the file is empty"
	}
	for _, c := range candidates {
		cut, first, err := recordsOf(head, c, whole)
		if err != nil {
			// A separator that cuts the first record but not the others alike
			// is likely to be the one meant.
			if why == "" && (first > 1 || len(candidates) == 1) {
				why = err.Error()
			}
			continue
		}
		if records == nil || len(cut[0]) > len(records[0]) {
			s.separator, records = c, cut
		}
	}
	if why != "" && len(candidates) > 1 && (records == nil || len(records[0]) == 1) {
		return s, nil, why
	}
	return s, records, why
}

// recordsOf cuts a head, whose last record may be half. first is the number
// of fields of the first record, also beside an error.
func recordsOf(head []byte, separator byte, whole bool) (out [][]string, first int, err error) {
	r := csv.NewReader(bytes.NewReader(head))
	r.Comma, r.LazyQuotes = rune(separator), true
	var failed error
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if failed != nil {
			return nil, first, failed // it was not the last
		}
		if err != nil && !errors.Is(err, csv.ErrFieldCount) {
			return nil, first, err
		}
		if err != nil {
			line, _ := r.FieldPos(0)
			failed = fmt.Errorf("line %d has %d fields, not %d as the first record", line, len(record), len(out[0]))
			continue
		}
		out = append(out, record)
		first = len(out[0])
	}
	if failed != nil && whole {
		return nil, first, failed
	}
	if !whole && failed == nil && len(out) > 1 {
		out = out[:len(out)-1] // perhaps half a record with a whole number of fields
	}
	if len(out) == 0 {
		return nil, 0, errors.New("the file has no records")
	}
	return out, first, nil
}

// looksLikeHeader: names are there, different, and no numbers or dates.
func looksLikeHeader(records [][]string) bool {
	seen := map[string]bool{}
	for _, name := range records[0] {
		name = strings.TrimSpace(name)
		if name == "" || seen[name] || looksLikeValue(name) {
			return false
		}
		seen[name] = true
	}
	if len(records) == 1 || len(records[0]) > 1 {
		return true
	}
	// One column of texts: the first is a header only if something differs.
	for _, r := range records[1:] {
		if looksLikeValue(strings.TrimSpace(r[0])) {
			return true
		}
	}
	return false
}

// looksLikeValue tells numbers, dates and truth values from names.
func looksLikeValue(s string) bool {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return true
	}
	if _, err := strconv.ParseBool(s); err == nil && len(s) > 1 {
		return true
	}
	digits := 0
	for _, r := range s {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case !strings.ContainsRune("-/.: TZ+", r):
			return false
		}
	}
	return digits >= 4
}
