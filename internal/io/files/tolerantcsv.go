package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// tolerantCSV rewrites the sound records of slices, with their positions, into
// files that one read_csv call reads.
type tolerantCSV struct {
	r     *script.FileReader
	used  []int
	dir   string
	tells bool       // quotes of empty fields have a meaning
	pairs []csvSlice // of slices that have records
}

// The columns in front of the used ones in the rewritten files.
const tolerantPositions = 3 // file, row, line

func (t *Tolerant) planCSV(scratchDir string) error {
	plan, err := planCSV(t.r, t.slices, scratchDir, Positioned) // one run for each slice
	if err != nil {
		return err
	}
	c := &tolerantCSV{r: t.r, used: t.used, tells: anyTellsQuotes(t.r), dir: filepath.Join(plan.dir, "sound")}
	t.csv = c
	for _, run := range plan.runs {
		n := len(c.pairs)
		c.pairs = append(c.pairs, csvSlice{Slice: run.slices[0], r: t.r, head: run.heads[0], name: func(piece int) string {
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
	field := func(column int) int {
		if at := slices.Index(c.used, column); at >= 0 {
			return tolerantPositions + at
		}
		return -1
	}
	texts := textsAt(c.r, field)
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
	sql := "SELECT " + strings.Join(cols, ", ") + " FROM " + plan.reader(csvRun{dir: c.dir, head: head}, field)
	if len(c.pairs) == 0 {
		sql = "SELECT " + strings.Join(c.emptyColumns(), ", ") + " WHERE false"
	}
	return "(" + sql + ")", nil
}

func (c *tolerantCSV) emptyColumns() []string {
	var cols []string
	for _, n := range c.used {
		cols = append(cols, "CAST(NULL AS "+storedType(c.r.Columns[n])+"[]) AS "+TolerantColumn(n))
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
		if err := p.unchanged(); err != nil {
			return err
		}
		if err := c.rewrite(ctx, p, bad); err != nil {
			return err
		}
	}
	return nil
}

// rewrite writes the sound records of a slice in pieces and hands out the others.
func (c *tolerantCSV) rewrite(ctx context.Context, p *csvSlice, bad func(BadRecord) error) error {
	f, err := p.source().open()
	if err != nil {
		return err
	}
	defer f.Close() // read only: nothing can be lost
	in := p.walk(f)
	for piece, more := 0, true; more; piece++ {
		var stop error
		err := p.piece(piece, func(w io.Writer) error {
			out := bufio.NewWriterSize(w, scanBlockBytes)
			more, stop = c.rewritePiece(ctx, p, in, out, bad)
			return out.Flush()
		})
		if err = errors.Join(stop, err); err != nil {
			return err
		}
	}
	return nil
}

func (c *tolerantCSV) rewritePiece(ctx context.Context, p *csvSlice, in *csvWalker, out *bufio.Writer,
	bad func(BadRecord) error) (more bool, err error) {
	marks := fieldMarks(c.r, p.head)
	for start := in.offset; in.offset-start < pieceBytes; {
		rec, err := in.next(ctx)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if f := c.check(p, rec); f != nil {
			if err := bad(p.badRecord(rec, f)); err != nil {
				return false, err
			}
			continue
		}
		fmt.Fprintf(out, "%d%c%d%c%d", p.File, c.r.CSV.Separator, p.FirstRecord+rec.row, c.r.CSV.Separator,
			p.lineOf(rec))
		for _, n := range c.used {
			out.WriteByte(c.r.CSV.Separator)
			if cell := p.head.fixed[n]; cell != nil {
				c.writeFixed(out, cell)
				continue
			}
			at := p.head.index[n]
			writeField(out, rec, at, c.tells, isMarked(marks, rec, at))
		}
		out.WriteByte('\n') // bufio keeps the first error for Flush
	}
	return true, nil
}

// writeFixed writes what a column has that is not in the file.
func (c *tolerantCSV) writeFixed(out *bufio.Writer, cell *fixedCell) {
	if cell.empty && c.tells {
		return
	}
	out.WriteByte('"')
	out.WriteString(strings.ReplaceAll(cell.text, `"`, `""`))
	out.WriteByte('"')
}

// check finds what no reading of values can survive, as a failure with its place.
func (c *tolerantCSV) check(p *csvSlice, rec csvRecord) *fault.Error {
	if rec.flaw != flawNone {
		return p.fault(rec)
	}
	for _, n := range c.used {
		at := p.head.index[n]
		if at < 0 {
			continue
		}
		if value := rec.shape.value(rec.text, at); !utf8.Valid(value) {
			f := p.source().bad("column %s is not valid UTF-8", c.r.Columns[n].Name)
			p.place(f, rec, n, escapeBytes(value))
			return f
		}
	}
	return nil
}

// locate describes records of a slice whose rows are given in ascending order.
func (c *tolerantCSV) locate(ctx context.Context, s Slice, cells []BadCell,
	found func(i int, rec BadRecord) error) error {
	at := slices.IndexFunc(c.pairs, func(p csvSlice) bool { return p.File == s.File && p.Offset == s.Offset })
	if at < 0 {
		return nil
	}
	p, k := &c.pairs[at], 0
	for k < len(cells) && cells[k].Row < p.FirstRecord {
		k++ // of a slice of the same file before this one
	}
	for rec, err := range p.records(ctx) {
		if k == len(cells) || err != nil {
			return err
		}
		for ; k < len(cells) && cells[k].Row == p.FirstRecord+rec.row; k++ {
			f := fault.New(fault.UserData, "")
			f.Place.Line = p.lineOf(rec)
			if n := cells[k].Column; n >= 0 && p.head.fixed[n] != nil {
				f = p.source().fixedFault(c.r.Columns[n], p.head.fixed[n])
				f.Place.Line = p.lineOf(rec)
			} else if n >= 0 {
				value := string(rec.shape.value(rec.text, p.head.index[n]))
				f.Message = notOfType(c.r.Columns[n], value)
				p.place(f, rec, n, value)
			}
			if err := found(k, p.badRecord(rec, f)); err != nil {
				return err
			}
		}
	}
	return nil
}

// place fills in where column i of a sound record is.
func (c *csvSlice) place(f *fault.Error, rec csvRecord, i int, value string) {
	if c.r.Records != "" {
		f.Place.Line = c.lineOf(rec)
	} else {
		lines, column := rec.shape.place(rec.text, c.head.index[i])
		f.Place.Line, f.Place.Column = c.firstLine()+rec.line+lines, column
	}
	f.Place.Record = c.FirstRecord + rec.row + 1
	f.Place.Field, f.Place.Value, f.Place.Raw = c.r.Columns[i].Name, shorten(value), ShownRecord(c.raw(rec))
}

// badRecord turns a failure of the record into what is kept of it.
func (c *csvSlice) badRecord(rec csvRecord, f *fault.Error) BadRecord {
	row := c.FirstRecord + rec.row
	out := BadRecord{File: c.File, Row: row, BadRow: fault.BadRow{Place: f.Place, Reason: f.Message,
		Raw: c.raw(rec)}}
	out.Place.File, out.Place.Record = c.URL, row+1
	return out
}
