package files

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// rawBytesMax limits the bytes of a bad record's text that are kept.
const rawBytesMax = 64 << 10

// LineColumn is the third column of position, for CSV: BIGINT, the 1-based
// physical line at which the record starts; NULL for Parquet.
const LineColumn = "__line"

// Tolerant reads slices of which some records cannot be read. It costs several
// times what ReadSQL does: it is for batches that ReadSQL could not read.
//
// Prepare hands out the records whose structure is broken; what is left is
// read by SQL, where a value that does not convert is no error. Locate
// describes records that turned out bad afterwards.
//
// Only the columns that are used are looked at: nothing is wrong with a record
// for the sake of a column that nobody reads.
type Tolerant struct {
	// SQL is a FROM item: for each used column, under the name that
	// TolerantColumn gives, a list of its one value, NULL where the value
	// cannot be converted; FileColumn, RowColumn, LineColumn.
	// Its instance must turn failures inside TRY into NULL.
	SQL string

	r       *script.FileReader
	slices  []Slice
	used    []int // indexes of columns of r
	csv     *tolerantCSV
	parquet *parquetPlan
}

// BadRecord is a record that cannot be read.
type BadRecord struct {
	File int   // ordinal of the file in urls
	Row  int64 // 0-based data row in the file
	fault.BadRow
}

// BadCell says what is wrong with a record: the column that does not convert,
// or -1 if that is not for the reader to say.
type BadCell struct {
	File   int
	Row    int64
	Column int // index in the reader's columns
}

// TolerantColumn names column i of the reader in Tolerant.SQL.
func TolerantColumn(i int) string { return fmt.Sprintf("v%d", i) }

// ReadTolerant plans such a reading. Files are opened here already. scratchDir
// is private to the batch, and not that of a ReadSQL.
func ReadTolerant(r *script.FileReader, slices []Slice, scratchDir string, used func(column string) bool) (*Tolerant,
	error) {
	t := &Tolerant{r: r, slices: slices}
	for i, c := range r.Columns {
		if used(c.Name) {
			t.used = append(t.used, i)
		}
	}
	if r.Parquet {
		return t, t.planParquet(scratchDir)
	}
	return t, t.planCSV(scratchDir)
}

// Prepare must have returned before SQL runs. bad is called for each record
// whose structure is broken, in order.
func (t *Tolerant) Prepare(ctx context.Context, bad func(BadRecord) error) error {
	if t.csv == nil {
		return t.parquet.prepare(ctx)
	}
	return t.csv.prepare(ctx, bad)
}

// Locate describes records: found is called for each of cells, which are in
// the order of the slices and of the rows in them, with its index.
func (t *Tolerant) Locate(ctx context.Context, db Querier, cells []BadCell,
	found func(i int, rec BadRecord) error) error {
	for from := 0; from < len(cells); {
		to := from + 1
		for to < len(cells) && cells[to].File == cells[from].File {
			to++
		}
		for _, s := range t.slices {
			if s.File != cells[from].File {
				continue
			}
			var err error
			if t.csv != nil {
				err = t.csv.locate(ctx, s, cells[from:to], func(i int, rec BadRecord) error {
					return found(from+i, rec)
				})
			} else {
				err = t.locateParquet(ctx, db, s, cells[from:to], func(i int, rec BadRecord) error {
					return found(from+i, rec)
				})
			}
			if err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// sliceIndex finds the slice of a file.
func (t *Tolerant) sliceIndex(s Slice) int {
	return slices.IndexFunc(t.slices, func(other Slice) bool {
		return other.File == s.File && other.Offset == s.Offset && other.FirstRow == s.FirstRow
	})
}

// notOfType says that a value cannot be converted.
func notOfType(c *script.InputColumn, value string) string {
	if problem, _ := tooFine(nil, c, value); problem != "" {
		return fmt.Sprintf("column %s: %q %s", c.Name, shorten(value), problem)
	}
	text := fmt.Sprintf("column %s: %q is not %s", c.Name, shorten(value), describeType(c))
	if _, rest, ok := numberIn(c, value); ok && rest != "" {
		text += fmt.Sprintf(", which leaves %q over", shorten(rest))
	}
	return text
}

// rawText is a record as it is kept: without its line end, bytes that are no
// UTF-8 as \xNN, the end cut off if it is longer than can be kept. size is
// that of the whole record.
func rawText(record []byte, size int64) string {
	cut := len(record) > rawBytesMax || size > int64(len(record))
	if len(record) > rawBytesMax {
		record = record[:rawBytesMax]
	}
	if !cut {
		record, _ = splitLineEnd(record)
	}
	text := string(record)
	if !utf8.Valid(record) {
		text = escapeBytes(record)
	}
	if cut {
		text += fmt.Sprintf("… (%d bytes)", size)
	}
	return text
}

func escapeBytes(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&out, `\x%02x`, b[0])
		} else {
			out.Write(b[:n])
		}
		b = b[n:]
	}
	return out.String()
}
