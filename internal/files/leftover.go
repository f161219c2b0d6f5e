package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"thalweg/internal/expr"
	"thalweg/internal/script"
)

// LeftOver counts the values of which the formats of numbers have read a part only, as
// Capillaries does: its long form takes them, with this warning. "" if there are none. The
// files are read again for it; scratchDir is as that of ReadSQL.
func LeftOver(ctx context.Context, r *script.FileReader, list []Slice, scratchDir string) (string, error) {
	formats := map[int]*expr.NumberFormat{}
	for i, c := range r.Columns {
		if f := expr.ParseNumberFormat(c.Type, c.Format); f != nil && !c.Short {
			formats[i] = f
		}
	}
	if len(formats) == 0 || r.Parquet {
		return "", nil
	}
	plan, err := planCSV(r, list, filepath.Join(scratchDir, "leftover"), Positioned)
	if err != nil {
		return "", err
	}
	w := leftWalk{r: r, formats: formats}
	for _, run := range plan.runs {
		if err := w.slice(ctx, csvCopy{r: r, slice: run.slices[0], head: run.heads[0]}); err != nil {
			return "", err
		}
	}
	if w.values == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s: %s read in part, and the rest passed over as in Capillaries; "+
		"write all of the text into the format, or give the column in the short form, where it is an error",
		w.first, countedAs(w.values, "value is", "values are")), nil
}

func countedAs(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// leftWalk counts such values.
type leftWalk struct {
	r       *script.FileReader
	formats map[int]*expr.NumberFormat // by column
	values  int64
	first   string
}

func (w *leftWalk) slice(ctx context.Context, c csvCopy) error {
	f, err := os.Open(c.slice.Path)
	if err != nil {
		return OpenFault(c.slice.URL, err)
	}
	defer f.Close()
	in := c.records(f)
	for {
		rec, err := in.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return wrapScan(c.slice.URL, err)
		case rec.flaw == flawNone: // others have been put aside
			w.record(c, rec)
		}
	}
}

func (w *leftWalk) record(c csvCopy, rec csvRecord) {
	for i, col := range w.r.Columns {
		f := w.formats[i]
		if f == nil {
			continue
		}
		var value string
		if cell := c.head.fixed[i]; cell != nil {
			value = cell.text
		} else {
			value = string(rec.shape.value(rec.text, c.head.index[i]))
		}
		number, rest, ok := f.Read(value)
		if !ok || rest == "" {
			continue
		}
		if w.values++; w.values == 1 {
			w.first = fmt.Sprintf("%s:%d: column %s: the format %q reads %s of %q", c.slice.URL, c.lineOf(rec), col.Name, col.Format, number, shorten(value))
		}
	}
}
