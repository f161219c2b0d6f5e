package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// LeftOver counts the values of which the formats of numbers have read a part only, as
// Capillaries does: its long form takes them, with a warning, which says the first. The
// files are read again for it; scratchDir is as that of ReadSQL.
func LeftOver(ctx context.Context, r *script.FileReader, list []Slice, scratchDir string) (first string, values int64,
	err error) {
	formats := map[int]*expr.NumberFormat{}
	for i, c := range r.Columns {
		if f := expr.ParseNumberFormat(c.Type, c.Format); f != nil && !c.Short {
			formats[i] = f
		}
	}
	if len(formats) == 0 || r.Parquet {
		return "", 0, nil
	}
	plan, err := planCSV(r, list, filepath.Join(scratchDir, "leftover"), Positioned)
	if err != nil {
		return "", 0, err
	}
	w := leftWalk{r: r, formats: formats}
	for _, run := range plan.runs {
		if err := w.slice(ctx, csvCopy{r: r, slice: run.slices[0], head: run.heads[0]}); err != nil {
			return "", 0, err
		}
	}
	return w.first, w.values, nil
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
			w.first = fmt.Sprintf("%s:%d: column %s: the format %q reads %s of %q and passes over the rest, as in "+
				"Capillaries", c.slice.URL, c.lineOf(rec), col.Name, col.Format, number, shorten(value))
		}
	}
}
