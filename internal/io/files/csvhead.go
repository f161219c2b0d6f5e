package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/lang/script"
)

// csvHead describes the head of a CSV file: the fields of a record, the places of the columns, and the start
// of the data.
type csvHead struct {
	fields    int          // of every record; 0: the file has no records
	index     []int        // per column of the reader, its field; -1: the file has none
	fixed     []*fixedCell // per column, of those; nil where there are fields
	start     int64        // byte offset of the first data record
	lines     int64        // physical lines before start
	skippable bool         // DuckDB's skip setting passes over exactly what lies before start
}

// field is the field that a column of the reader has; -1: none.
func (h csvHead) field(column int) int { return h.index[column] }

// key names what files must share to be read by one read_csv call.
func (h csvHead) key() string {
	key := fmt.Sprint(h.fields, h.lines, h.index)
	for _, c := range h.fixed {
		if c != nil {
			key += fmt.Sprintf(" %q %t", c.text, c.empty)
		}
	}
	return key
}

// fix says what columns have that are not in the file.
func (h *csvHead) fix(named []*fixedCell) {
	h.fixed = named
	for i, at := range h.index {
		if at < 0 && h.fixed[i] == nil {
			h.fixed[i] = &fixedCell{empty: true}
		}
	}
}

var utf8BOM = []byte("\xEF\xBB\xBF")

// csvDialect checks the reader's declaration.
func csvDialect(r *script.FileReader) error {
	switch sep := r.CSV.Separator; {
	case sep == '"' || sep == '\r' || sep == '\n' || sep == 0 || sep >= utf8.RuneSelf:
		return scriptFault(r.Pos, "csv.separator",
			"the separator must be one ASCII character other than a quote or a line end, not %q", sep)
	case r.CSV.ByHeader && r.CSV.HeaderRecord < 0:
		return scriptHint("say csv: {hdr_line_idx: N}, counted from 0, or find the columns by col_idx",
			scriptFault(r.Pos, "csv.hdr_line_idx",
				"columns are found by their headers, but hdr_line_idx says that there is none"))
	case r.CSV.ByHeader && r.CSV.FirstDataRecord > 0 && r.CSV.FirstDataRecord < r.CSV.HeaderRecord:
		return scriptHint("name a record below the header, or leave first_data_line_idx out: the data begins below "+
			"the header then",
			scriptFault(r.Pos, "csv.first_data_line_idx", "first_data_line_idx %d is above the header, hdr_line_idx %d",
				r.CSV.FirstDataRecord, r.CSV.HeaderRecord))
	}
	return nil
}

// skippedRecords returns the number of records before the data. With columns by index a header record is
// nothing special: first_data_line_idx alone counts.
func skippedRecords(r *script.FileReader) int {
	if r.CSV.ByHeader {
		return max(r.CSV.FirstDataRecord, r.CSV.HeaderRecord+1)
	}
	return max(r.CSV.FirstDataRecord, 0)
}

// readHead reads the records before the data, and the first data record if
// that is needed to learn the number of fields.
func readHead(r *script.FileReader, src source) (csvHead, error) {
	f, err := src.open()
	if err != nil {
		return csvHead{}, err
	}
	defer f.Close()
	w, err := src.walkFile(f, r.CSV.Separator)
	if err != nil {
		return csvHead{}, err
	}
	head, err := parseHead(r, w)
	if err != nil {
		return csvHead{}, err
	}
	if head.start >= HeadBytesMax {
		return csvHead{}, src.headTooLong()
	}
	prefix := make([]byte, head.start)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, head.start), prefix); err != nil {
		return csvHead{}, src.unread(err)
	}
	return head, head.describe(prefix, r.CSV.Separator, skippedRecords(r))
}

func (s source) headTooLong() error {
	f := s.bad("the lines before the data are longer than %d MiB", HeadBytesMax>>20)
	f.Hint = "look for a quote in them that is not closed, and whether first_data_line_idx counts too many records"
	return f
}

func scriptHint(hint string, f *fault.Error) error {
	f.Hint = hint
	return f
}

// headBlockBytes is the size of the first read of a file that looks for its head.
const headBlockBytes = 16 << 10

// walkFile walks a whole file of text, behind its byte order mark.
func (s source) walkFile(f *os.File, separator byte) (*csvWalker, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, s.unread(err)
	}
	if err := s.checkText(f); err != nil {
		return nil, err
	}
	w := s.walkText(f, st.Size(), separator)
	return &w, nil
}

// headRecord is the next record of a head, which has to be sound; of a title, which is not read, the quotes
// may be broken: it is a line then. ok is false at the end of the file.
func headRecord(r *script.FileReader, w *csvWalker, title bool) (rec csvRecord, ok bool, err error) {
	rec, err = w.next(context.Background()) // a head is short
	switch {
	case errors.Is(err, io.EOF):
		return rec, false, nil
	case err != nil:
		return rec, false, err
	}
	if err := w.oldLineEnds(r, rec); err != nil {
		return rec, false, err
	}
	if title && rec.flaw.broken() {
		return rec, true, nil
	}
	return rec, true, w.fault(rec)
}

// oldLineEnds refuses a file whose lines end in CR alone: all of it would be
// one record, and with a header nothing would be left.
func (w *csvWalker) oldLineEnds(r *script.FileReader, rec csvRecord) error {
	body, _ := splitLineEnd(rec.text)
	inside := bytes.IndexByte(bytes.TrimRight(body, "\r"), '\r') >= 0
	bare := rec.flaw != flawNone || rec.shape.strayCR || rec.shape.odd // not all are in quotes
	if rec.row > 0 || !inside || !bare || !r.CSV.ByHeader && bytes.IndexByte(rec.text, '\n') >= 0 {
		return nil
	}
	f := w.src.bad("its lines seem to end in a carriage return alone, as on very old systems")
	f.Place.Line = 1
	f.Hint = "convert them: tr '\\r' '\\n' < old.csv > new.csv"
	return f
}

// parseHead reads the head's records.
func parseHead(r *script.FileReader, w *csvWalker) (csvHead, error) {
	head := csvHead{start: w.offset}
	if r.Records != "" {
		return madeHead(r, head)
	}
	skipped := skippedRecords(r)
	if skipped == 0 {
		return head.withoutSkipped(r, w)
	}
	title := false // of the last of them
	for i := range skipped {
		if i <= r.CSV.HeaderRecord || !r.CSV.ByHeader {
			w.fields = 0 // titles above the header are no records of its table
		}
		rec, ok, err := headRecord(r, w, i < r.CSV.HeaderRecord || !r.CSV.ByHeader)
		if err != nil {
			return head, err
		}
		if !ok {
			if head.fields > 0 && r.CSV.ByHeader && i <= r.CSV.HeaderRecord {
				f := w.src.bad("the file ends before its header: it has %s, hdr_line_idx is %d",
					counted(i, "record"), r.CSV.HeaderRecord)
				f.Hint = "hdr_line_idx counts records from 0, and no blank lines; if this is the wrong file, name " +
					"another one"
				return head, f
			}
			break
		}
		w.fields = len(rec.shape.fields)
		head.fields = w.fields
		title = bytes.HasPrefix(rec.text, []byte{'#'}) || rec.flaw.broken()
		if r.CSV.ByHeader && i == r.CSV.HeaderRecord {
			if err := checkHeader(w, rec); err != nil {
				return head, err
			}
			if head.index, err = resolveHeader(r, w, rec); err != nil {
				return head, err
			}
		}
		head.start = w.offset
	}
	if r.CSV.ByHeader {
		return head, nil
	}
	beyond := func(c *script.InputColumn) bool { return c.InFile() && c.Index >= head.fields }
	if title || slices.ContainsFunc(r.Columns, beyond) { // it is no record of the table, or has as many fields
		w.fields, head.fields = 0, 0
		return head.withoutSkipped(r, w)
	}
	return head, head.byIndex(r, w.src)
}

// withoutSkipped learns the number of fields from the first record that has a
// sound form; bad ones before it are for those who read the data.
func (h csvHead) withoutSkipped(r *script.FileReader, w *csvWalker) (csvHead, error) {
	var first error
	for {
		rec, ok, err := headRecord(r, w, false)
		if rec.flaw != flawNone && first == nil {
			first = err
		}
		switch {
		case err == nil && !ok:
			return h, first
		case err != nil && rec.flaw == flawNone:
			return h, err
		case err == nil:
			h.fields = len(rec.shape.fields)
			return h, h.byIndex(r, w.src)
		case w.offset >= HeadBytesMax:
			return h, first
		}
	}
}

// counted writes a number of things.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// byIndex takes the columns' own indexes.
func (h *csvHead) byIndex(r *script.FileReader, src source) error {
	for _, c := range r.Columns {
		if !c.InFile() {
			h.index = append(h.index, -1)
			continue
		}
		if h.fields > 0 && (c.Index < 0 || c.Index >= h.fields) {
			f := src.bad("column %s has col_idx %d, but the records have %s", c.Name, c.Index,
				counted(h.fields, "field"))
			f.Place.Line, f.Place.Field = 1, c.Name
			f.Hint = "indexes start at 0; check the separator, and csv: {first_data_line_idx: N} where titles stand " +
				"above the data"
			return f
		}
		h.index = append(h.index, c.Index)
	}
	return nil
}

// describe notes whether DuckDB passes over the bytes before the data when it
// is told to skip as many lines: these bytes are held to what holds for data
// (csvForm). DuckDB takes them for records, too: behind a quote out of place
// it passes over all of the file.
func (h *csvHead) describe(prefix []byte, separator byte, records int) error {
	h.lines = int64(bytes.Count(prefix, newline))
	if len(prefix) > 0 && prefix[len(prefix)-1] != '\n' {
		return nil // a BOM alone, or a header that is all there is
	}
	text := bytes.TrimPrefix(prefix, utf8BOM)
	scan := source{}.scan(bytes.NewReader(text), 0, int64(len(text)), separator, 0, nil)
	if err := scan.run(context.Background()); err != nil { // a head is short
		return err
	}
	h.skippable = h.lines == int64(records) && scan.found.bad == nil && scan.found.form() == formLink
	return nil
}

// resolveHeader finds the columns by exact header text. A text that is there
// twice is refused in short forms; in the long one the last counts, as in
// Capillaries: see SharedHeaders.
func resolveHeader(r *script.FileReader, w *csvWalker, rec csvRecord) ([]int, error) {
	record, line := rec.shape.values(rec.text), rec.line+1
	times := make(map[string]int, len(record))
	for _, text := range record {
		times[text]++
	}
	for _, c := range r.Columns {
		if c.InFile() && c.Short && !c.Placed && times[c.Header] > 1 {
			f := w.src.bad("the header has %d columns %q", times[c.Header], shorten(c.Header))
			f.Place.Line, f.Place.Field = line, c.Name
			f.Hint = "under columns {type: TYPE, path: HEADER, col_idx: 3}, counted from 0, says which one is meant; " +
				"or write the file with different headers"
			return nil, f
		}
	}
	index, missing := columnsIn(r, record)
	if len(missing) == 0 {
		return index, nil
	}
	f := missingFault(r, record, missing, w.src)
	f.Place.Line, f.Place.Field = line, missing[0].Header
	if missing[0].Placed {
		f.Place.Field = missing[0].Name
	}
	if n, at := headerBelow(r, w); n > 0 {
		f.Hint = fmt.Sprintf("line %d has them, below titles: say csv: {hdr_line_idx: %d, first_data_line_idx: %d} "+
			"on the node that reads it, "+
			"which count records from 0", at, n, n+1)
	}
	if !missing[0].Placed {
		f.Hint = atColumn(f.Hint, r, missing[0])
	}
	return nil, f
}

// columnsIn finds the columns in a header: the index of each, -1 of one that has none, and those that the header lacks.
func columnsIn(r *script.FileReader, record []string) (index []int, missing []*script.InputColumn) {
	at := make(map[string]int, len(record))
	for i, text := range record {
		at[text] = i
	}
	for _, c := range r.Columns {
		n, ok := at[c.Header]
		if c.Placed {
			n, ok = c.Index, hasColumn(record, c)
		}
		if !c.InFile() || !ok {
			n = -1
		}
		if c.InFile() && !ok && !c.Optional {
			missing = append(missing, c)
		}
		index = append(index, n)
	}
	if i := slices.IndexFunc(missing, func(c *script.InputColumn) bool { return c.Placed }); i > 0 {
		missing[0], missing[i] = missing[i], missing[0] // that one is said
	}
	return index, missing
}

// headerBelow looks for a header that has all columns below the record that is taken for it: its index, 0 if there is
// none, and its line.
func headerBelow(r *script.FileReader, w *csvWalker) (record int, line int64) {
	const titlesMax = 20
	for i := range titlesMax {
		w.fields = 0                             // titles are no records of the table
		rec, err := w.next(context.Background()) // a head is short
		if err != nil || rec.flaw == flawLong || w.offset >= HeadBytesMax {
			return 0, 0
		}
		if rec.flaw != flawNone {
			continue
		}
		if _, missing := columnsIn(r, rec.shape.values(rec.text)); len(missing) == 0 {
			return r.CSV.HeaderRecord + 1 + i, rec.line + 1
		}
	}
	return 0, 0
}

// missingFault says which columns a header lacks.
func missingFault(r *script.FileReader, record []string, missing []*script.InputColumn, src source) *fault.Error {
	if missing[0].Placed {
		return misplaced(missing[0], record, src)
	}
	var names []string
	for _, c := range missing {
		names = append(names, c.Header)
	}
	what := "column"
	if len(names) > 1 {
		what = "columns"
	}
	f := src.bad("missing %s %s; the header has: %s", what, quoteList(names), quoteList(record))
	f.Hint = nearHint(names[0], record)
	switch {
	case f.Hint != "":
	case !slices.ContainsFunc(record, func(h string) bool { return !looksLikeValue(h) }):
		f.Hint = "if the file has no header, say csv: {hdr_line_idx: -1, first_data_line_idx: 0} on the node that " +
			"reads it: its columns are counted then"
	case len(record) > 1 || !strings.ContainsAny(record[0], ";,\t| "):
		f.Hint = lackingHint(names[0], record)
	default:
		f.Hint = separatorHint(r.CSV.Separator, record[0])
	}
	return f
}

// hasColumn reports whether a header has a column that is found by it.
func hasColumn(header []string, c *script.InputColumn) bool {
	if c.Placed {
		return c.Index < len(header) && header[c.Index] == c.Header
	}
	return slices.Contains(header, c.Header)
}

// misplaced reports a column whose header is not where the script says.
func misplaced(c *script.InputColumn, header []string, src source) *fault.Error {
	called := func(text string) string {
		if text == "" {
			return "no header"
		}
		return fmt.Sprintf("the header %q", shorten(text))
	}
	f := src.bad("there is no column with the index %d, counted from 0: the file has %s", c.Index,
		counted(len(header), "column"))
	if c.Index < len(header) {
		f.Message = fmt.Sprintf("the column with the index %d, counted from 0, has %s, not %s", c.Index,
			called(header[c.Index]), called(c.Header))
	}
	f.Hint = "the script finds it by both (col_idx): correct the file's header; or if files may be without the " +
		"column, say optional: true of it"
	return f
}

// looksLikeValue says of a cell of a header that it is a number or a time rather than a name.
func looksLikeValue(cell string) bool { return valueLike.MatchString(strings.TrimSpace(cell)) }

var valueLike = regexp.MustCompile(`^[-+]?[0-9][0-9.,:/TZ +-]*$`)

// separatorHint returns the hint for a header that is one field.
func separatorHint(separator byte, header string) string {
	for _, other := range []byte(";\t|,") {
		if other != separator && strings.IndexByte(header, other) >= 0 {
			return fmt.Sprintf("the header is one field: say csv: {separator: %q} on the node that reads it",
				string(other))
		}
	}
	return fmt.Sprintf("the header is one field: is the separator really %q?", separator)
}

// SharedHeaders lists the columns of r whose headers are in an input of
// list more than once, with that input: the last of them is read.
func SharedHeaders(r *script.FileReader, list []Slice) ([]string, error) {
	var out []string
	long := slices.ContainsFunc(r.Columns, func(c *script.InputColumn) bool { return !c.Short })
	if r.Parquet || !r.CSV.ByHeader || !long {
		return nil, nil
	}
	for _, s := range list {
		if s.Offset > 0 || s.FileBytes == 0 { // it is said once of a file
			continue
		}
		record, err := headerRecord(r, s)
		if err != nil {
			return nil, err
		}
		times := make(map[string]int, len(record))
		for _, text := range record {
			times[text]++
		}
		for _, c := range r.Columns {
			if n := times[c.Header]; n > 1 && c.InFile() {
				out = append(out, fmt.Sprintf("the header of %s has %d columns %q: the last of them is read as %s",
					s.URL, n, shorten(c.Header), c.Name))
			}
		}
	}
	return out, nil
}

// headerRecord reads the header of a slice's file.
func headerRecord(r *script.FileReader, s Slice) ([]string, error) {
	f, err := s.source().open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w, err := s.source().walkFile(f, r.CSV.Separator)
	if err != nil {
		return nil, err
	}
	for i := 0; ; i++ {
		rec, ok, err := headRecord(r, w, i < r.CSV.HeaderRecord)
		if err != nil || !ok {
			return nil, err
		}
		if i == r.CSV.HeaderRecord {
			return rec.shape.values(rec.text), nil
		}
	}
}

// lackingHint returns the hint for a column that a file lacks.
func lackingHint(want string, have []string) string {
	const optional = "if files may be without it, say optional: true of the column"
	if near := similar.Nearest(want, have); near != "" {
		return fmt.Sprintf("did you mean %q? %s", near, optional)
	}
	return optional
}

// nearHint points at a name that differs only in case and blanks.
func nearHint(want string, have []string) string {
	fold := func(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), "")) }
	for _, h := range have {
		if fold(h) == fold(want) {
			return fmt.Sprintf("did you mean %q? Names must match exactly", h)
		}
	}
	return ""
}

// quoteList shows names, not too many.
func quoteList(names []string) string {
	const most = 30
	shown := names[:min(len(names), most)]
	out := make([]string, len(shown))
	for i, n := range shown {
		out[i] = fmt.Sprintf("%q", shorten(n))
	}
	s := strings.Join(out, ", ")
	if len(names) > most {
		s += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return s
}

// shorten cuts a value to what an error message can bear.
func shorten(s string) string { return cutRunes(s, shownValueRunes) }

// ShownRecord cuts the text of a record to what an error keeps of it.
func ShownRecord(s string) string { return cutRunes(s, shownRecordRunes) }

func cutRunes(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// bad describes what is wrong with the form of a record.
func (r csvRecord) bad() csvBadRecord {
	return csvBadRecord{record: r.row, line: r.line, fields: len(r.shape.fields), flaw: r.flaw}
}

// fault reports a record of a walk over all of a text whose form is bad, nil if it is not.
func (w *csvWalker) fault(rec csvRecord) error {
	if rec.flaw == flawNone {
		return nil
	}
	return w.src.badRecord(rec.bad(), 1, 0, w.fields)
}

// badRecord reports a record whose form is bad. It was counted from a line and a record of the file; fields is what
// the file's records have.
func (s source) badRecord(bad csvBadRecord, line, record int64, fields int) *fault.Error {
	var f *fault.Error
	switch bad.flaw {
	case flawLong:
		f = s.bad("the record is longer than %d MiB", MaxRecordBytes>>20)
		f.Hint = "look for a missing line end"
	case flawQuotes:
		// The same words whether a later quote of the file happens to close it: what
		// is said of a record must not depend on where the file was cut.
		f = s.bad("field %d begins with a quote that is not closed, or another quote of the record is out of place",
			bad.fields+1)
		f.Hint = fmt.Sprintf("quotes inside of a quoted field are doubled, and it is closed before a separator or a line "+
			"end, within %d MiB", MaxRecordBytes>>20)
	default:
		// a part of bad rows: it does not change
		f = s.bad("the record has %d fields, the first record of the file has %d", bad.fields, fields)
		f.Hint = "every record needs the same number of fields; look for an unquoted separator or a missing quote; " +
			"where titles stand above the header, csv: {hdr_line_idx: N} says which record, counted from 0, " +
			"is the header"
	}
	f.Place.Line, f.Place.Record = line+bad.line, record+bad.record+1
	return f
}
