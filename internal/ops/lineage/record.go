package lineage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
)

// fileLists are slices of input files that were read, by the ordinals of the files.
type fileLists map[int][]files.Slice

func (l fileLists) add(read []files.Slice) {
	for _, s := range read {
		l[s.File] = append(l[s.File], s)
	}
}

// fileRow is a row of files of which a row of a node, by its n, is made: one of
// total of this file.
type fileRow struct {
	key, total int64
	files.Place
}

// fileRows reads rows of n, total and a place.
func (t *tracer) fileRows(ctx context.Context, query string) (out []fileRow, err error) {
	rows, err := t.in.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("follow rows: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r fileRow
		var order int64
		if err := rows.Scan(&r.key, &r.total, &order); err != nil {
			return nil, err
		}
		r.File, r.Row = plan.FilePlace(order)
		out = append(out, r)
	}
	return out, rows.Err()
}

// records finds the records of files that rows were made of.
func (t *tracer) records(ctx context.Context, n *traced, r *script.FileReader, role plan.Role, rows []fileRow,
	read fileLists) (err error) {
	of := map[files.Place][]fileRow{}
	var places []files.Place
	for _, row := range rows {
		if of[row.Place] == nil {
			places = append(places, row.Place)
		}
		of[row.Place] = append(of[row.Place], row)
	}
	found := func(rec files.Located) error {
		id := t.add(&Row{File: rec.URL, Row: rec.Row + 1, Line: rec.Line, Text: rec.Text})
		if len(of[rec.Place]) == 0 {
			return fmt.Errorf("record %d of %s was not looked for", rec.Row+1, rec.URL)
		}
		for _, row := range of[rec.Place] {
			t.tree.Rows[n.ids[row.key]].put(Origin{Role: role, File: rec.URL, Count: row.total}, id)
		}
		return nil
	}
	if r.Parquet && len(r.Columns) == 0 { // of a query, which has named none
		slices.SortFunc(places, func(a, b files.Place) int {
			return cmp.Or(cmp.Compare(a.File, b.File),
				cmp.Compare(a.Row, b.Row))
		})
		for _, p := range places {
			if err := found(files.Located{Place: p, URL: read[p.File][0].URL}); err != nil {
				return err
			}
		}
		return nil
	}
	var list []files.Slice
	for _, file := range slices.Sorted(maps.Keys(read)) {
		list = append(list, read[file]...)
	}
	scratch, err := os.MkdirTemp(t.cfg.Dir, "records-")
	if err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	cfg := t.cfg.Engine
	cfg.SpillDir, cfg.Paths = filepath.Join(scratch, "spill"), []string{scratch}
	for _, s := range list {
		cfg.Paths = append(cfg.Paths, s.Path)
	}
	in, err := engine.OpenInstance(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return files.Locate(ctx, in, r, list, scratch, places, found)
}
