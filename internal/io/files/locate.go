package files

import (
	"cmp"
	"context"
	"slices"

	"thalweg/internal/lang/script"
)

// Place is a data row of a file: see FileColumn and RowColumn.
type Place struct {
	File int
	Row  int64
}

// Located is a data row of a file as people find it there.
type Located struct {
	Place
	URL  string
	Line int64  // of CSV, from 1: at which the record begins
	Text string // as it stands in the file; of Parquet the row as JSON
}

// Locate finds rows of the files that slices have been read of. scratchDir is
// private to the call; db reads Parquet in it and where the slices are. A place that no slice has is left out.
func Locate(ctx context.Context, db Querier, r *script.FileReader, read []Slice, scratchDir string, places []Place,
	found func(Located) error) error {
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Row, b.Row))
	})
	read = slices.Clone(read)
	slices.SortFunc(read, func(a, b Slice) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.FirstRow, b.FirstRow))
	})
	read = slices.CompactFunc(read, func(a, b Slice) bool {
		return a.File == b.File && a.Offset == b.Offset && a.FirstRow == b.FirstRow
	})
	t, err := ReadTolerant(r, read, scratchDir, func(string) bool { return true })
	if err != nil {
		return err
	}
	if t.parquet != nil {
		if err := t.parquet.prepare(ctx); err != nil {
			return err
		}
	}
	cells := make([]BadCell, len(places))
	for i, p := range places {
		cells[i] = BadCell{File: p.File, Row: p.Row, Column: -1}
	}
	return t.Locate(ctx, db, cells, func(i int, rec BadRecord) error {
		return found(Located{Place: places[i], URL: rec.Place.File, Line: rec.Place.Line, Text: rec.Raw})
	})
}
