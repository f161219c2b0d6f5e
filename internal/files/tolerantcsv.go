package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"thalweg/internal/fault"
	"thalweg/internal/script"
)

// tolerantCSV rewrites the sound records of slices, with their positions, into
// files that one read_csv call reads.
type tolerantCSV struct {
	r     *script.FileReader
	used  []int
	dir   string
	tells bool      // quotes of empty fields have a meaning
	pairs []csvCopy // of slices that have records
}

// The columns in front of the used ones in the rewritten files.
const tolerantPositions = 3 // file, row, line

func (t *Tolerant) planCSV(scratchDir string) error {
	plan, err := planCSV(t.r, t.slices, scratchDir, true) // with position: one run for each slice
	if err != nil {
		return err
	}
	c := &tolerantCSV{r: t.r, used: t.used, tells: anyTellsQuotes(t.r), dir: filepath.Join(plan.dir, "sound")}
	t.csv = c
	for _, run := range plan.runs {
		n := len(c.pairs)
		c.pairs = append(c.pairs, csvCopy{r: t.r, slice: run.slices[0], head: run.heads[0], name: func(piece int) string {
			return filepath.Join(c.dir, fmt.Sprintf("%06d_%06d.csv", n, piece))
		}})
	}
	t.SQL, err = c.sql(plan)
	return err
}

// sql renders the reading of the rewritten files.
func (c *tolerantCSV) sql(plan *csvPlan) (string, error) {
	cols := make([]string, 0, len(c.used)+tolerantPositions)
	head := csvHead{fields: tolerantPositions + len(c.used)}
	for i := range head.fields {
		head.index = append(head.index, i)
	}
	texts := textsAt(c.r, func(column int) int { return tolerantPositions + slices.Index(c.used, column) })
	for _, n := range c.used {
		value, err := csvValue(c.r.Columns[n], texts[n])
		if err != nil {
			return "", err
		}
		cols = append(cols, "TRY(["+value+"]) AS "+TolerantColumn(n))
	}
	for i, name := range []string{FileColumn, RowColumn, LineColumn} {
		cols = append(cols, "CAST("+csvColumn(i)+" AS BIGINT) AS "+name)
	}
	sql := "SELECT " + strings.Join(cols, ", ") + " FROM " + plan.reader(csvRun{dir: c.dir, head: head})
	if len(c.pairs) == 0 {
		sql = "SELECT " + strings.Join(c.emptyColumns(), ", ") + " WHERE false"
	}
	return "(" + sql + ")", nil
}

func (c *tolerantCSV) emptyColumns() []string {
	var cols []string
	for _, n := range c.used {
		cols = append(cols, "CAST(NULL AS "+c.r.Columns[n].Type.SQL()+"[]) AS "+TolerantColumn(n))
	}
	for _, name := range []string{FileColumn, RowColumn, LineColumn} {
		cols = append(cols, "CAST(NULL AS BIGINT) AS "+name)
	}
	return cols
}

func (c *tolerantCSV) prepare(ctx context.Context, bad func(BadRecord) error) error {
	if err := os.RemoveAll(c.dir); err != nil { // a try before this one
		return scratchFault(err)
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return scratchFault(err)
	}
	for i := range c.pairs {
		p := &c.pairs[i]
		if err := p.slice.unchanged(); err != nil {
			return err
		}
		if err := c.rewrite(ctx, p, bad); err != nil {
			return err
		}
	}
	return nil
}

// rewrite writes the sound records of a slice in pieces and hands out the others.
func (c *tolerantCSV) rewrite(ctx context.Context, p *csvCopy, bad func(BadRecord) error) error {
	in, err := openRecords(p)
	if err != nil {
		return err
	}
	defer in.close()
	for piece, more := 0, true; more; piece++ {
		var stop error
		err := p.piece(piece, func(w io.Writer) error {
			out := bufio.NewWriterSize(w, scanBlockBytes)
			more, stop = c.rewritePiece(ctx, in, out, bad)
			return out.Flush()
		})
		if err = errors.Join(stop, err); err != nil {
			return err
		}
	}
	return nil
}

func (c *tolerantCSV) rewritePiece(ctx context.Context, in *csvRecords, out *bufio.Writer, bad func(BadRecord) error) (more bool, err error) {
	for start := in.offset; in.offset-start < pieceBytes; {
		rec, err := in.next(ctx)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		fields, f := c.check(in.copy, rec)
		if f != nil {
			if err := bad(rec.bad(in.copy, f)); err != nil {
				return false, err
			}
			continue
		}
		fmt.Fprintf(out, "%d%c%d%c%d", in.copy.slice.File, c.r.CSV.Separator, rec.row, c.r.CSV.Separator, rec.line)
		for _, n := range c.used {
			at := in.copy.head.index[n]
			out.WriteByte(c.r.CSV.Separator)
			if c.tells && fields[at] == "" && !rec.quoted(c.r, at) {
				continue
			}
			out.WriteByte('"')
			out.WriteString(strings.ReplaceAll(fields[at], `"`, `""`))
			out.WriteByte('"')
		}
		out.WriteByte('\n') // bufio keeps the first error for Flush
	}
	return true, nil
}

// check finds what no reading of values can survive, as a failure with its place.
func (c *tolerantCSV) check(p *csvCopy, rec csvRecord) (fields []string, f *fault.Error) {
	if rec.size > MaxRecordBytes {
		return nil, longRecordFault(p.slice.URL, rec.line)
	}
	fields = rec.fields(c.r)
	if len(fields) != p.head.fields {
		return nil, raggedFault(p.slice.URL, rec.line, rec.row, len(fields), p.head.fields)
	}
	for _, n := range c.used {
		if value := fields[p.head.index[n]]; !utf8.ValidString(value) {
			f := inputFault(fault.UserData, p.slice.URL, "column %s is not valid UTF-8", c.r.Columns[n].Name)
			f.Place.Field, f.Place.Value = c.r.Columns[n].Name, shorten(escapeBytes([]byte(value)))
			f.Place.Line, f.Place.Column = rec.position(c.r, p.head.index[n])
			return nil, f
		}
	}
	return fields, nil
}

// locate describes records of a slice whose rows are given in ascending order.
func (c *tolerantCSV) locate(ctx context.Context, s Slice, cells []BadCell, found func(i int, rec BadRecord) error) error {
	for i := range c.pairs {
		p := &c.pairs[i]
		if p.slice.File != s.File || p.slice.Offset != s.Offset {
			continue
		}
		in, err := openRecords(p)
		if err != nil {
			return err
		}
		return errors.Join(c.walk(ctx, in, cells, found), in.close())
	}
	return nil
}

func (c *tolerantCSV) walk(ctx context.Context, in *csvRecords, cells []BadCell, found func(i int, rec BadRecord) error) error {
	k := 0
	for k < len(cells) && cells[k].Row < in.copy.slice.FirstRecord {
		k++ // of a slice of the same file before this one
	}
	for k < len(cells) {
		rec, err := in.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for ; k < len(cells) && cells[k].Row == rec.row; k++ {
			f := fault.New(fault.UserData, "")
			f.Place.Line = rec.line
			if n := cells[k].Column; n >= 0 {
				col, at := c.r.Columns[n], in.copy.head.index[n]
				value := rec.fields(c.r)[at]
				f.Message = notOfType(col, value)
				f.Place.Field, f.Place.Value = col.Name, shorten(value)
				f.Place.Line, f.Place.Column = rec.position(c.r, at)
			}
			if err := found(k, rec.bad(in.copy, f)); err != nil {
				return err
			}
		}
	}
	return nil
}

// csvRecords goes through the records of a slice as encoding/csv sees them,
// without ever holding more of one than a record may have.
type csvRecords struct {
	copy   *csvCopy
	file   *os.File
	in     *bufio.Reader
	scan   csvScan
	text   []byte
	offset int64 // bytes of the slice read
	line   int64 // 1-based physical line of what comes next
	row    int64 // 0-based data row of what comes next
}

// csvRecord is one of them; its text is valid until the next.
type csvRecord struct {
	text []byte // as in the file, line ends included; cut at MaxRecordBytes
	size int64
	line int64
	row  int64
}

func openRecords(c *csvCopy) (*csvRecords, error) {
	f, err := os.Open(c.slice.Path)
	if err != nil {
		return nil, openFault(c.slice.URL, err)
	}
	offset, length := c.dataRange()
	return &csvRecords{copy: c, file: f, in: bufio.NewReaderSize(io.NewSectionReader(f, offset, length), scanBlockBytes),
		scan: csvScan{separator: c.r.CSV.Separator}, line: c.firstLine(), row: c.slice.FirstRecord}, nil
}

func (s *csvRecords) close() error { return s.file.Close() } // read only: nothing can be lost

// next returns the next record, or io.EOF.
func (s *csvRecords) next(ctx context.Context) (csvRecord, error) {
	const recordsBetweenLooks = 4096
	if s.row%recordsBetweenLooks == 0 && ctx.Err() != nil {
		return csvRecord{}, ctx.Err()
	}
	rec := csvRecord{row: s.row}
	s.text = s.text[:0]
	for {
		first := len(s.text)
		size, whole, err := s.readLine()
		if size == 0 && err != nil {
			if rec.size == 0 {
				return rec, err
			}
			break // quotes that are never closed take all the rest
		}
		line := s.text[first:]
		if rec.size == 0 {
			rec.line = s.line
			if body, _ := splitLineEnd(line); len(body) == 0 {
				s.line++ // a blank line is no record
				s.text = s.text[:0]
				continue
			}
		}
		s.line++
		rec.size += size
		if !whole {
			s.scan.inQuotes = false // a line that is too long ends its record, whatever its quotes
			break
		}
		if s.scan.inQuotes || bytes.IndexByte(line, '"') >= 0 {
			s.scan.line(line)
		}
		if !s.scan.inQuotes {
			break
		}
		if rec.size > MaxRecordBytes {
			s.text = s.text[:min(len(s.text), rawBytesMax+1)]
		}
	}
	s.scan.inQuotes = false
	s.row++
	rec.text = s.text
	return rec, nil
}

// readLine appends the next physical line to text, as far as a record may
// reach; whole is false if that was not all of it.
func (s *csvRecords) readLine() (size int64, whole bool, err error) {
	whole = true
	for {
		part, err := s.in.ReadSlice('\n')
		size += int64(len(part))
		s.offset += int64(len(part))
		if size <= MaxRecordBytes {
			s.text = append(s.text, part...)
		} else {
			whole = false
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF):
			return size, whole, err
		default:
			return size, whole, openFault(s.copy.slice.URL, err)
		}
	}
}

// fields parses the record.
func (r csvRecord) fields(reader *script.FileReader) []string {
	if bytes.IndexByte(r.text, '"') < 0 {
		body, _ := splitLineEnd(r.text)
		return strings.Split(string(body), string(rune(reader.CSV.Separator)))
	}
	fields, _ := r.parse(reader)
	return fields
}

func (r csvRecord) parse(reader *script.FileReader) ([]string, *csv.Reader) {
	in := newCSVReader(reader, bytes.NewReader(r.text))
	in.FieldsPerRecord, in.ReuseRecord = -1, false
	fields, err := in.Read()
	if err != nil {
		return nil, in
	}
	return fields, in
}

// quoted reports whether field n is written in quotes.
func (r csvRecord) quoted(reader *script.FileReader, n int) bool {
	if bytes.IndexByte(r.text, '"') < 0 {
		return false
	}
	_, in := r.parse(reader)
	return quoted(in, bytes.SplitAfter(r.text, newline), n)
}

// position is the physical line and the 1-based character of field n.
func (r csvRecord) position(reader *script.FileReader, n int) (line int64, column int) {
	fields, in := r.parse(reader)
	if n >= len(fields) {
		return r.line, 0
	}
	at, byteColumn := in.FieldPos(n)
	lines := bytes.SplitAfter(r.text, newline)
	column = byteColumn
	if at-1 < len(lines) && byteColumn-1 <= len(lines[at-1]) {
		column = utf8.RuneCount(lines[at-1][:byteColumn-1]) + 1
	}
	return r.line + int64(at) - 1, column
}

// bad turns a failure of the record into what is kept of it.
func (r csvRecord) bad(c *csvCopy, f *fault.Error) BadRecord {
	out := BadRecord{File: c.slice.File, Row: r.row, BadRow: fault.BadRow{Place: f.Place, Reason: f.Message, Raw: rawText(r.text, r.size)}}
	out.Place.File, out.Place.Record = c.slice.URL, r.row+1
	return out
}
