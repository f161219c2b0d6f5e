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
	"strings"
	"sync"

	"thalweg/internal/fault"
	"thalweg/internal/script"
)

// prepare fills the runs' directories with files that DuckDB reads as we
// mean them.
func (p *csvPlan) prepare(ctx context.Context) error {
	if err := os.RemoveAll(p.dir); err != nil { // a try before this one
		return scratchFault(err)
	}
	type job struct {
		run *csvRun
		i   int
	}
	var jobs []job
	for k := range p.runs {
		if err := os.MkdirAll(p.runs[k].dir, 0o700); err != nil {
			return scratchFault(err)
		}
		for i := range p.runs[k].slices {
			jobs = append(jobs, job{&p.runs[k], i})
		}
	}
	blocks := sync.Pool{New: func() any { return &[]byte{} }}
	return eachInOrder(ctx, len(jobs), func(ctx context.Context, i int) error {
		block := blocks.Get().(*[]byte)
		defer blocks.Put(block)
		j := jobs[i]
		s := j.run.slices[j.i]
		if err := s.unchanged(); err != nil {
			return err
		}
		c := csvCopy{r: p.r, slice: s, head: j.run.heads[j.i], lines: j.run.head.lines, block: block,
			name: func(piece int) string {
				return filepath.Join(j.run.dir, fmt.Sprintf("%06d_%06d.csv", j.i, piece))
			}}
		return c.prepare(ctx)
	})
}

func scratchFault(err error) error {
	f := fault.New(fault.Environment, "cannot write to the scratch directory")
	f.Err, f.Retryable = err, true
	f.Hint = "free space where the state directory is (large CSV files are cut into batches there), then continue with --resume"
	return f
}

// csvCopy brings one slice into a run's directory.
type csvCopy struct {
	r     *script.FileReader
	slice Slice
	head  csvHead
	lines int64                  // lines that the run's read_csv call skips
	name  func(piece int) string // path of a piece
	block *[]byte                // for the scanner
}

// dataRange is the slice without what lies before the data.
func (c *csvCopy) dataRange() (offset, length int64) {
	offset = max(c.slice.Offset, c.head.start)
	return offset, max(c.slice.Offset+c.slice.Length-offset, 0)
}

// firstLine is the 1-based physical line at the start of dataRange.
func (c *csvCopy) firstLine() int64 {
	if c.slice.Offset > c.head.start {
		return c.slice.FirstLine
	}
	return c.head.lines + 1
}

func (c *csvCopy) prepare(ctx context.Context) error {
	f, err := os.Open(c.slice.Path)
	if err != nil {
		return openFault(c.slice.URL, err)
	}
	defer f.Close()
	offset, length := c.dataRange()
	scan := csvScan{separator: c.r.CSV.Separator, fields: c.head.fields, block: *c.block}
	defer func() { *c.block = scan.block }()
	for at := offset + pieceBytes; at < offset+length; at += pieceBytes {
		scan.targets = append(scan.targets, at)
	}
	if err := scan.scanRange(ctx, f, offset, length); err != nil {
		return wrapScan(c.slice.URL, err)
	}
	if scan.found.long {
		return longRecordFault(c.slice.URL, c.firstLine()+scan.recordLine)
	}
	if bad := scan.found.ragged; bad != nil {
		return raggedFault(c.slice.URL, c.firstLine()+bad.Line, c.slice.FirstRecord+bad.Record, bad.Fields, c.head.fields)
	}
	borders := []int64{offset}
	switch c.form(scan.found) {
	case formOdd:
		return c.rewrite(ctx, io.NewSectionReader(f, offset, length))
	case formLink:
		if offset == c.head.start && offset+length == c.slice.FileBytes && c.head.skippable {
			return c.link()
		}
	case formPieces:
		for _, cut := range scan.cuts {
			borders = append(borders, cut.Offset)
		}
	}
	return c.copyRanges(ctx, f, append(borders, offset+length), scan.found.crlf > 0)
}

// csvForm is how a range has to reach DuckDB.
type csvForm int

const (
	formLink   csvForm = iota // as it is
	formCopy                  // without the CRs of line ends
	formPieces                // the same, in pieces that one thread reads
	formOdd                   // rewritten by way of encoding/csv
)

// form decides on what the scanner has found. Tried against DuckDB 1.5.5:
// mixed line ends are errors; CR alone ends a record; blank lines are rows of
// a one-column file; blanks around quotes are dropped; CRLF is unsafe (see
// csvPlan.reader) and keeps its CR inside quotes, where encoding/csv drops it
// as everywhere.
func (c *csvCopy) form(found csvFindings) csvForm {
	switch {
	case found.oddQuotes, found.strayCR, found.blankLines > 0:
		return formOdd
	case found.quotedNewline:
		return formPieces
	case found.crlf > 0:
		return formCopy
	}
	return formLink
}

// link gives the file a name in the run's directory.
func (c *csvCopy) link() error {
	if err := os.Symlink(c.slice.Path, c.name(0)); err != nil {
		return scratchFault(err)
	}
	return nil
}

// copyRanges copies the ranges between borders, one piece each, CRLF as LF.
func (c *csvCopy) copyRanges(ctx context.Context, f io.ReaderAt, borders []int64, crlf bool) error {
	for i := 0; i+1 < len(borders); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.piece(i, func(w io.Writer) error {
			from := io.NewSectionReader(f, borders[i], borders[i+1]-borders[i])
			if crlf {
				return copyWithoutCR(w, from)
			}
			_, err := io.Copy(w, from)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copyWithoutCR copies text in which each CR is followed by an LF.
func copyWithoutCR(w io.Writer, from io.Reader) error {
	block := make([]byte, scanBlockBytes)
	for {
		n, err := io.ReadFull(from, block)
		kept := 0
		for rest := block[:n]; len(rest) > 0; {
			i := bytes.IndexByte(rest, '\r')
			if i < 0 {
				kept += copy(block[kept:], rest)
				break
			}
			kept += copy(block[kept:], rest[:i])
			rest = rest[i+1:]
		}
		if _, werr := w.Write(block[:kept]); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// piece writes a file of the run: as many lines as the call skips, then what
// fill writes.
func (c *csvCopy) piece(i int, fill func(io.Writer) error) (err error) {
	out, err := os.OpenFile(c.name(i), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return scratchFault(err)
	}
	defer func() {
		if cerr := out.Close(); err == nil && cerr != nil {
			err = scratchFault(cerr)
		}
	}()
	// DuckDB drops a byte order mark at the start of a file: it gets one to
	// drop, lest it takes the data's.
	if _, err := io.WriteString(out, string(utf8BOM)+strings.Repeat("x\n", int(c.lines))); err != nil {
		return scratchFault(err)
	}
	if err := fill(out); err != nil {
		return scratchFault(err)
	}
	return nil
}

// rewrite lets encoding/csv read the range and quotes every field of what it
// understood.
func (c *csvCopy) rewrite(ctx context.Context, from io.Reader) error {
	var raw *rawRecords
	if anyTellsQuotes(c.r) {
		raw = &rawRecords{from: from}
		from = raw
	}
	in := newCSVReader(c.r, bufio.NewReaderSize(from, scanBlockBytes))
	in.FieldsPerRecord = c.head.fields
	records := int64(0)
	for piece, more := 0, true; more; piece++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		var stop error
		err := c.piece(piece, func(w io.Writer) error {
			out := bufio.NewWriterSize(w, scanBlockBytes)
			more, stop = c.rewritePiece(in, raw, out, &records)
			return out.Flush()
		})
		if err = errors.Join(stop, err); err != nil {
			return err
		}
	}
	return nil
}

// rewritePiece writes records up to the size of a piece. Where it matters,
// an empty field that had no quotes gets none: raw is given then.
func (c *csvCopy) rewritePiece(in *csv.Reader, raw *rawRecords, out *bufio.Writer, records *int64) (more bool, err error) {
	for start := in.InputOffset(); in.InputOffset()-start < pieceBytes; {
		record, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case errors.Is(err, csv.ErrFieldCount):
			line, _ := in.FieldPos(0)
			return false, raggedFault(c.slice.URL, c.firstLine()+int64(line)-1, c.slice.FirstRecord+*records, len(record), c.head.fields)
		case err != nil:
			return false, openFault(c.slice.URL, err)
		}
		*records++
		var lines [][]byte
		if raw != nil {
			lines = raw.lines(in.InputOffset())
		}
		for i, field := range record {
			if i > 0 {
				out.WriteByte(c.r.CSV.Separator)
			}
			if raw != nil && field == "" && !quoted(in, lines, i) {
				continue
			}
			out.WriteByte('"')
			out.WriteString(strings.ReplaceAll(field, `"`, `""`))
			out.WriteByte('"')
		}
		out.WriteByte('\n') // bufio keeps the first error for Flush
	}
	return true, nil
}
