package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
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
		c := csvSlice{Slice: j.run.slices[j.i], r: p.r, head: j.run.heads[j.i], lines: j.run.head.lines, block: block,
			name: func(piece int) string {
				return filepath.Join(j.run.dir, fmt.Sprintf("%s%06d.csv", piecesOf(j.i), piece))
			}}
		err := c.unchanged()
		if err != nil {
			return err
		}
		j.run.found[j.i], err = c.prepare(ctx)
		return err
	})
}

// piecesOf begins the names of the pieces of a run's slice.
func piecesOf(slice int) string { return fmt.Sprintf("%06d_", slice) }

func scratchFault(err error) error {
	f := fault.New(fault.Environment, "cannot write to the scratch directory")
	f.Err, f.Retryable = err, true
	f.Hint = "free space where the state directory is (large CSV files are cut into batches there)"
	return f
}

// csvSlice is a slice of a CSV file and how it is read.
type csvSlice struct {
	Slice
	r     *script.FileReader
	head  csvHead
	lines int64                  // lines that the run's read_csv call skips
	name  func(piece int) string // path of a piece in the run's directory
	block *[]byte                // for the scanner
}

// dataRange is the slice without what lies before the data.
func (c *csvSlice) dataRange() (offset, length int64) {
	offset = max(c.Offset, c.head.start)
	return offset, max(c.Offset+c.Length-offset, 0)
}

// firstLine is the 1-based physical line at the start of dataRange.
func (c *csvSlice) firstLine() int64 {
	if c.Offset > c.head.start {
		return c.FirstLine
	}
	return c.head.lines + 1
}

// prepare brings the slice over and counts its data records.
func (c *csvSlice) prepare(ctx context.Context) (records int64, err error) {
	f, err := c.source().open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	offset, length := c.dataRange()
	scan := c.source().scan(f, offset, length, c.r.CSV.Separator, c.head.fields, *c.block)
	scan.stopAtBad, scan.marks = true, newMarkFinder(fieldMarks(c.r, c.head))
	defer func() { *c.block = scan.w.window }()
	for at := offset + pieceBytes; at < offset+length; at += pieceBytes {
		scan.targets = append(scan.targets, at)
	}
	if err := scan.run(ctx); err != nil {
		return 0, err
	}
	if bad := scan.found.bad; bad != nil {
		return 0, c.scanned(ctx, *bad)
	}
	return scan.w.row, c.bring(ctx, f, scan)
}

// bring writes what a scan has found to be sound in the form that DuckDB understands.
func (c *csvSlice) bring(ctx context.Context, f io.ReaderAt, scan *csvScan) error {
	offset, length := c.dataRange()
	borders := []int64{offset}
	form := scan.found.form()
	if scan.marks != nil && scan.marks.found {
		form = formOdd
	}
	switch form {
	case formOdd, formRecords:
		return c.rewrite(ctx, f, form == formOdd)
	case formLink:
		if offset == c.head.start && offset+length == c.FileBytes && c.head.skippable {
			return c.link()
		}
	case formPieces:
		for _, cut := range scan.cuts {
			borders = append(borders, cut.Offset)
		}
	}
	return c.copyRanges(ctx, f, append(borders, offset+length), scan.found.cr)
}

// fault reports a bad record of a walk over the slice's data.
func (c *csvSlice) fault(rec csvRecord) *fault.Error {
	f := c.source().badRecord(rec.bad(), c.firstLine(), c.FirstRecord, c.head.fields)
	if c.r.Records != "" {
		f = c.badMade(rec)
	}
	f.Place.Raw = ShownRecord(c.raw(rec))
	return f
}

// scanned reports a bad record, which a scan over the slice's data has found. It is read once more, for its text.
func (c *csvSlice) scanned(ctx context.Context, bad csvBadRecord) *fault.Error {
	f := c.source().badRecord(bad, c.firstLine(), c.FirstRecord, c.head.fields)
	for rec, err := range c.records(ctx) {
		switch {
		case err != nil:
			return f
		case rec.row < bad.record:
			continue
		case c.r.Records != "":
			return c.fault(rec)
		}
		f.Place.Raw = ShownRecord(c.raw(rec))
		return f
	}
	return f
}

// walk starts a walk over the slice's data.
func (c *csvSlice) walk(f io.ReaderAt) *csvWalker {
	offset, length := c.dataRange()
	w := c.source().walk(f, offset, length, c.r.CSV.Separator, c.head.fields, nil)
	return &w
}

// records yields the records of the slice's data, also bad ones, or the failure to read on.
func (c *csvSlice) records(ctx context.Context) iter.Seq2[csvRecord, error] {
	return func(yield func(csvRecord, error) bool) {
		f, err := c.source().open()
		if err != nil {
			yield(csvRecord{}, err)
			return
		}
		defer f.Close() // read only: nothing can be lost
		for w := c.walk(f); ; {
			rec, err := w.next(ctx)
			if errors.Is(err, io.EOF) || !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// csvForm says in which form a range has to reach DuckDB.
type csvForm int

const (
	formLink    csvForm = iota // as it is
	formCopy                   // without the CRs of line ends
	formPieces                 // the same, in pieces that one thread reads
	formRecords                // record by record, each with an LF, in pieces
	formOdd                    // the same with all fields in quotes, and with marks
)

// form decides on what the scanner has found. Tried against DuckDB 1.5.5:
// mixed line ends are errors; CR alone ends a record; blank lines are rows of
// a one-column file; blanks around quotes are dropped; CRLF is unsafe (see
// csvPlan.reader).
func (found csvFindings) form() csvForm {
	switch {
	case found.odd, found.padded, found.strayCR:
		return formOdd
	case found.blankLines > 0, found.quotedCR && found.cr:
		return formRecords
	case found.newline, found.quotedCR:
		return formPieces
	case found.cr:
		return formCopy
	}
	return formLink
}

// link gives the file a name in the run's directory.
func (c *csvSlice) link() error {
	if err := os.Symlink(c.Path, c.name(0)); err != nil {
		return scratchFault(err)
	}
	return nil
}

// copyRanges copies the ranges between borders, one piece each, CRLF as LF.
func (c *csvSlice) copyRanges(ctx context.Context, f io.ReaderAt, borders []int64, crlf bool) error {
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
func (c *csvSlice) piece(i int, fill func(io.Writer) error) (err error) {
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

// rewrite writes the records in pieces, each with an LF; with quotes around
// every field if that is asked for.
func (c *csvSlice) rewrite(ctx context.Context, f io.ReaderAt, quotes bool) error {
	in := c.walk(f)
	for piece, more := 0, true; more; piece++ {
		var stop error
		err := c.piece(piece, func(w io.Writer) error {
			out := bufio.NewWriterSize(w, scanBlockBytes)
			more, stop = c.rewritePiece(ctx, in, out, quotes)
			return out.Flush()
		})
		if err = errors.Join(stop, err); err != nil {
			return err
		}
	}
	return nil
}

// rewritePiece writes records up to the size of a piece.
func (c *csvSlice) rewritePiece(ctx context.Context, in *csvWalker, out *bufio.Writer, quotes bool) (more bool,
	err error) {
	unquoted, marks := anyTellsQuotes(c.r), fieldMarks(c.r, c.head)
	for start := in.offset; in.offset-start < pieceBytes; {
		rec, err := in.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case rec.flaw != flawNone:
			return false, c.fault(rec)
		case !quotes:
			out.Write(rec.text[:rec.shape.body])
		default:
			for i := range rec.shape.fields {
				if i > 0 {
					out.WriteByte(c.r.CSV.Separator)
				}
				writeField(out, rec, i, unquoted, isMarked(marks, rec, i))
			}
		}
		out.WriteByte('\n') // bufio keeps the first error for Flush
	}
	return true, nil
}

// writeField writes a field in quotes, but for an empty one that had none
// where that has a meaning.
func writeField(out *bufio.Writer, rec csvRecord, i int, unquoted, marked bool) {
	f := rec.shape.fields[i]
	if unquoted && !f.quoted && f.from == f.to {
		return
	}
	out.WriteByte('"')
	if marked {
		out.WriteByte(cellMark)
	}
	value := rec.text[f.from:f.to]
	if rec.shape.odd { // some may not be doubled
		value = bytes.ReplaceAll(rec.shape.value(rec.text, i), quote, doubledQuote)
	}
	out.Write(value)
	out.WriteByte('"')
}
