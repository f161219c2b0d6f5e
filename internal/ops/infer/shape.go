package infer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/base/similar"
	"thalweg/internal/io/files"
)

// headBytes of a file decide on its separator and header; types are decided
// by all of it.
const (
	headBytes   = 1 << 20
	headRecords = 10_000
)

// shape describes how a CSV file is cut into records and fields.
type shape struct {
	separator byte
	skip      int // records above the header or the first one of data, such as titles
	fields    int
	header    bool
	made      bool     // of records: the first field is their line
	only      bool     // there is one record, the header
	names     []string // the first record
	notes     []string
	guesses   []string
}

// shapeOf looks at the text at a path, which is that of the file of this name.
func shapeOf(ctx context.Context, path, name string, o Options) (shape, error) {
	f, err := openText(path, name)
	if err != nil {
		return shape{}, err
	}
	defer f.Close()
	if err := f.isText(); err != nil {
		return shape{}, err
	}
	candidates := []byte(",;\t|^~")
	if o.Separator != "" {
		if len(o.Separator) != 1 || o.Separator[0] >= 0x80 || strings.ContainsAny(o.Separator, "\"\r\n\x00") {
			return shape{}, &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("the separator %q is not one ASCII character other than a quote or a line end",
					o.Separator),
				Hint: "write {{set separator}} ';', or a tab as {{set separator}} $'\\t'"}
		}
		candidates = []byte(o.Separator)
	}
	s, records, err := cutOf(ctx, f, candidates, o)
	if err != nil {
		return s, err
	}
	if len(records[0]) > ColumnsMax {
		return s, &fault.Error{Kind: fault.UserData, Place: fault.Place{File: name},
			Message: fmt.Sprintf("the file has %d columns; the limit is %d", len(records[0]), ColumnsMax)}
	}
	s.names = records[0]
	s.header = o.Header == HeaderYes || o.Header == HeaderGuess && looksLikeHeader(records)
	if s.header && !utf8.ValidString(strings.Join(s.names, "\n")) {
		f := *files.NotUTF8(name)
		f.Message, f.Hint = "the header is not UTF-8 text", "correct it: the rest of the file is UTF-8"
		return s, &f
	}
	s.only = s.header && len(records) == 1
	return s, s.guess(ctx, f, candidates, records, o)
}

// isText refuses a file whose head is empty or no text.
func (f *text) isText() error {
	if err := files.CheckText(f, f.name); err != nil {
		return err
	}
	head, err := io.ReadAll(io.NewSectionReader(f, 0, headBytes))
	if err != nil {
		return openFault(f.name, err)
	}
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	if len(bytes.TrimSpace(head)) == 0 {
		return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: f.name}, Message: "the file is empty",
			Hint: "nothing is known of its columns: name another file, or write the script by hand"}
	}
	return nil
}

func openFault(path string, err error) error {
	f := &fault.Error{Kind: fault.Environment, Place: fault.Place{File: path},
		Message: "cannot read the file", Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Kind, f.Hint = fault.UserData, similar.FileHint(err, "check its name, and the directory the command runs in")
	case errors.Is(err, fs.ErrPermission):
		f.Hint = "check the file's permissions"
	}
	return f
}

// Of the records of a file's head so many may have another number of fields than the first.
const unevenMax = 10 // of 100

// evenest finds the separator that cuts all records but a few into the most fields of an
// equal number; if there is none, that which leaves the fewest uneven, as long as most are not.
func evenest(ctx context.Context, f *text, candidates []byte, o Options) (s shape, records [][]string, err error) {
	var likely, refused error // of a separator that is likely to be meant, and of any
	var likelySeparator byte
	var uneven struct {
		separator byte
		records   [][]string
		bad       int
	}
	for _, c := range candidates {
		cut, bad, err := recordsOf(ctx, f, c)
		if err != nil {
			if fault.Of(err).Kind != fault.UserData {
				return s, nil, err
			}
			// A separator that cuts the first record but not the others alike
			// is likely to be the one meant.
			if len(cut) > 0 && len(cut[0]) > 1 {
				if likely == nil {
					likely, likelySeparator = err, c
				}
				if !halfBroken(bad, bad+len(cut)-1) && (uneven.records == nil || bad < uneven.bad) {
					uneven.separator, uneven.records, uneven.bad = c, cut, bad
				}
			}
			if refused == nil {
				refused = err
			}
			continue
		}
		if records == nil || len(cut[0]) > len(records[0]) {
			s.separator, records = c, cut
		}
	}
	if records == nil || filledOf(records[0]) <= 1 || isComment(records[0]) {
		titled, below, err := untitled(ctx, f, candidates, o)
		if err != nil || below != nil {
			return titled, below, err
		}
	}
	switch none := records == nil; {
	case uneven.records != nil && (none || len(records[0]) == 1):
		s.separator, records = uneven.separator, uneven.records
	case none && likely == nil:
		return s, nil, badRecord(refused, nil)
	case likely != nil && (none || len(records[0]) == 1):
		all, err := loose(ctx, f, likelySeparator)
		if err != nil {
			return s, nil, err
		}
		return s, nil, badRecord(likely, all)
	}
	s.fields = len(records[0])
	return s, records, nil
}

// badRecord says what can be done about a record that fits no separator. all are those of the file's head, if it is
// known how they are cut.
func badRecord(err error, all [][]string) error {
	f := fault.Of(err)
	if f.Hint = otherThanHeader(all); f.Hint != "" {
		return f
	}
	f.Hint = "correct that line, or say how the fields are separated with {{set separator}}; " +
		"bad_rows: quarantine on the node in a script puts such lines aside, and hdr_line_idx there says how many " +
		"lines are above the header"
	return f
}

// otherThanHeader says what can be done if all records have a field more, or one less, than the header; "" if they have
// not.
func otherThanHeader(all [][]string) string {
	uneven := func(rec []string) bool { return len(rec) != len(all[1]) }
	if len(all) < 2 || len(all[1]) == 0 || slices.ContainsFunc(all[1:], uneven) {
		return ""
	}
	below := format.Counted(int64(len(all)-1), "record below has", "records below have")
	names, fields := len(all[0]), len(all[1])
	valued := slices.ContainsFunc(all[1:], func(rec []string) bool { return strings.TrimSpace(rec[fields-1]) != "" })
	switch {
	case fields == names+1 && !valued:
		return fmt.Sprintf("the header has %d fields, and %s a separator more, at the end: write one behind the "+
			"header, too", names, below)
	case fields == names+1:
		return fmt.Sprintf("the header has %d fields, and %s %d: write a name for the column that has none (row "+
			"numbers come first), or correct the lines", names, below, fields)
	case fields == names-1 && strings.TrimSpace(all[0][fields]) == "":
		return fmt.Sprintf("the header ends with a separator, and %s none there: take it away, or write one behind "+
			"each record", below)
	case fields == names-1:
		return fmt.Sprintf("the header has %d fields, and %s %d: take the name away that has no column, or "+
			"correct the lines", names, below, fields)
	}
	return ""
}

// recordsOf cuts the records of a file's head, and leaves out bad ones: too many of them are
// an error beside the others.
func recordsOf(ctx context.Context, f *text, separator byte) (out [][]string, bad int, err error) {
	var uneven error
	for rec, err := range files.Records(ctx, f, f.size, separator, f.name) {
		switch {
		case len(out) > 0 && (rec.Offset >= headBytes || len(out) > headRecords):
			return out, bad, tooUneven(uneven, bad, len(out))
		case err != nil && (fault.Of(err).Kind != fault.UserData || len(out) == 0):
			return nil, bad, err
		case err != nil:
			if bad++; uneven == nil {
				uneven = err
			}
			continue
		}
		out = append(out, rec.Values)
	}
	if len(out) == 0 {
		return nil, 0,
			&fault.Error{Kind: fault.UserData, Place: fault.Place{File: f.name}, Message: "the file has no records"}
	}
	return out, bad, tooUneven(uneven, bad, len(out))
}

// tooUneven is the first bad record, if there are too many of them.
func tooUneven(first error, bad, good int) error {
	if 100*bad > unevenMax*(bad+good-1) {
		return first
	}
	return nil
}

// halfBroken reports whether records of a file are broken as often as not: what it is, is
// not known then.
func halfBroken(bad, all int) bool { return 2*bad >= all }

// looksLikeValue tells numbers, dates and truth values from names.
func looksLikeValue(s string) bool {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return true
	}
	if _, err := strconv.ParseBool(s); err == nil && len(s) > 1 {
		return true
	}
	for _, form := range numberForms {
		if _, ok := numberText([]byte(s), form); ok {
			return true
		}
	}
	if strings.Trim(s, "0123456789.,+-' ") == "" && strings.ContainsAny(s, "0123456789") {
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
