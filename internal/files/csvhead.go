package files

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"thalweg/internal/fault"
	"thalweg/internal/script"
)

// csvHead is what the start of a CSV file says: how many fields a record has,
// where the columns are, and where the data starts.
type csvHead struct {
	fields    int   // of every record; 0: the file has no records
	index     []int // per column of the reader, its field
	start     int64 // byte offset of the first data record
	lines     int64 // physical lines before start
	skippable bool  // DuckDB's skip setting passes over exactly what lies before start
}

// key names what files must share to be read by one read_csv call.
func (h csvHead) key() string { return fmt.Sprint(h.fields, h.lines, h.index) }

var utf8BOM = []byte("\xEF\xBB\xBF")

// csvDialect checks the reader's declaration.
func csvDialect(r *script.FileReader) error {
	switch sep := r.CSV.Separator; {
	case sep == '"' || sep == '\r' || sep == '\n' || sep == 0 || sep >= utf8.RuneSelf:
		return scriptFault(r.Pos, "csv.separator", "the separator must be one ASCII character other than a quote or a line end, not %q", sep)
	case r.CSV.ByHeader && r.CSV.HeaderRecord < 0:
		return scriptFault(r.Pos, "csv.hdr_line_idx", "columns are found by header text, so the file must have a header record")
	case r.CSV.ByHeader && r.CSV.FirstDataRecord > 0 && r.CSV.FirstDataRecord < r.CSV.HeaderRecord:
		return scriptFault(r.Pos, "csv.first_data_line_idx", "data before the header record is not supported yet")
	}
	return nil
}

// skippedRecords is how many records lie before the data. With columns by
// index a header record is nothing special: first_data_line_idx alone counts.
func skippedRecords(r *script.FileReader) int {
	if r.CSV.ByHeader {
		return max(r.CSV.FirstDataRecord, r.CSV.HeaderRecord+1)
	}
	return max(r.CSV.FirstDataRecord, 0)
}

func newCSVReader(r *script.FileReader, from io.Reader) *csv.Reader {
	c := csv.NewReader(from)
	c.Comma = rune(r.CSV.Separator)
	c.LazyQuotes = true
	c.ReuseRecord = true
	return c
}

// readHead reads the records before the data, and the first data record if
// that is needed to learn the number of fields.
func readHead(r *script.FileReader, path, u string) (csvHead, error) {
	f, err := os.Open(path)
	if err != nil {
		return csvHead{}, openFault(u, err)
	}
	defer f.Close()
	bom := int64(0)
	first := make([]byte, len(utf8BOM))
	if n, _ := f.ReadAt(first, 0); bytes.Equal(first[:n], utf8BOM) {
		bom = int64(len(utf8BOM))
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return csvHead{}, openFault(u, err)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, bom, min(size-bom, HeadBytesMax)), 16<<10)
	head, err := parseHead(r, newCSVReader(r, in), u)
	if err != nil {
		return csvHead{}, err
	}
	if head.start >= HeadBytesMax {
		return csvHead{}, inputFault(fault.UserData, u, "the lines before the data are longer than %d MiB", HeadBytesMax>>20)
	}
	head.start += bom
	prefix := make([]byte, head.start)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, head.start), prefix); err != nil {
		return csvHead{}, openFault(u, err)
	}
	head.describe(prefix, skippedRecords(r))
	return head, nil
}

// parseHead leaves start relative to what c reads.
func parseHead(r *script.FileReader, c *csv.Reader, u string) (csvHead, error) {
	var head csvHead
	skipped := skippedRecords(r)
	for i := range max(skipped, 1) {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			if head.fields > 0 && r.CSV.ByHeader && i <= r.CSV.HeaderRecord {
				return head, inputFault(fault.UserData, u, "the file ends before its header: it has %d records, hdr_line_idx is %d", i, r.CSV.HeaderRecord)
			}
			break
		}
		if errors.Is(err, csv.ErrFieldCount) {
			line, _ := c.FieldPos(0)
			return head, raggedFault(u, int64(line), int64(i), len(record), head.fields)
		}
		if err != nil {
			return head, openFault(u, err)
		}
		head.fields = len(record)
		if r.CSV.ByHeader && i == r.CSV.HeaderRecord {
			line, _ := c.FieldPos(0)
			if head.index, err = resolveHeader(r, record, u, int64(line)); err != nil {
				return head, err
			}
		}
		if i < skipped {
			head.start = c.InputOffset()
		}
	}
	if r.CSV.ByHeader {
		return head, nil
	}
	return head, head.byIndex(r, u)
}

// byIndex takes the columns' own indexes.
func (h *csvHead) byIndex(r *script.FileReader, u string) error {
	for _, c := range r.Columns {
		if h.fields > 0 && (c.Index < 0 || c.Index >= h.fields) {
			f := inputFault(fault.UserData, u, "column %s has col_idx %d, but the records have %d fields", c.Name, c.Index, h.fields)
			f.Place.Line, f.Place.Field = 1, c.Name
			f.Hint = "indexes start at 0; check the separator"
			return f
		}
		h.index = append(h.index, c.Index)
	}
	return nil
}

// describe notes whether DuckDB passes over the bytes before the data when it
// is told to skip as many lines: not with blank lines or line ends in quotes
// (we might count differently), not with a CR.
func (h *csvHead) describe(prefix []byte, records int) {
	h.lines = int64(bytes.Count(prefix, newline))
	if len(prefix) > 0 && prefix[len(prefix)-1] != '\n' {
		return // a BOM alone, or a header that is all there is
	}
	h.skippable = h.lines == int64(records) && bytes.IndexByte(prefix, '\r') < 0
}

// resolveHeader finds the columns by exact header text; of duplicates the
// last counts.
func resolveHeader(r *script.FileReader, record []string, u string, line int64) ([]int, error) {
	at := make(map[string]int, len(record))
	for i, text := range record {
		at[text] = i
	}
	index := make([]int, len(r.Columns))
	var missing []string
	for i, c := range r.Columns {
		n, ok := at[c.Header]
		if !ok {
			missing = append(missing, c.Header)
		}
		index[i] = n
	}
	if len(missing) == 0 {
		return index, nil
	}
	f := inputFault(fault.UserData, u, "missing column %s; the header has: %s", quoteList(missing), quoteList(record))
	f.Place.Line, f.Place.Field = line, missing[0]
	f.Hint = nearHint(missing[0], record)
	if len(record) == 1 {
		f.Hint = fmt.Sprintf("the header is one field: is the separator really %q?", r.CSV.Separator)
	}
	return nil, f
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
func shorten(s string) string {
	if utf8.RuneCountInString(s) <= shownValueRunes {
		return s
	}
	return string([]rune(s)[:shownValueRunes]) + "…"
}

// raggedFault reports a record with the wrong number of fields.
func raggedFault(u string, line, record int64, got, want int) *fault.Error {
	f := inputFault(fault.UserData, u, "the record has %d fields, the first record of the file has %d", got, want)
	f.Place.Line, f.Place.Record = line, record+1
	f.Hint = "every record needs the same number of fields; look for an unquoted separator or a missing quote"
	return f
}
