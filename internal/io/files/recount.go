package files

import (
	"context"
	"strconv"

	"thalweg/internal/base/fault"
)

// This file holds DuckDB's CSV reader to what our own grammar has counted: a row
// that it does not give, or gives beside the others, is an error and no result.

// CSVRecords returns the number of data records that Prepare found in CSV text; 0 for Parquet.
func (r *Reading) CSVRecords() (n int64) {
	if r.csv == nil {
		return 0
	}
	for _, run := range r.csv.runs {
		for _, found := range run.found {
			n += found
		}
	}
	return n
}

// Recount has DuckDB count the records of each file and compares that with CSVRecords. It is
// for a statement that was not given as many: one may rightly stop early or read them twice.
func (r *Reading) Recount(ctx context.Context, db Querier) error {
	if r.csv == nil {
		return nil
	}
	for _, run := range r.csv.runs {
		for i, found := range run.found {
			if err := r.csv.recount(ctx, db, run, i, found); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *csvPlan) recount(ctx context.Context, db Querier, run csvRun, i int, found int64) error {
	run.only = piecesOf(i)
	row, err := queryRow(ctx, db, "SELECT CAST(count(*) AS VARCHAR) FROM "+p.reader(run, run.head.field))
	if err != nil {
		return err
	}
	given, err := strconv.ParseInt(row[0].String, 10, 64)
	if err != nil || given == found {
		return err
	}
	c := csvSlice{Slice: run.slices[i], r: p.r, head: run.heads[i]}
	f := c.source().fault(fault.Bug, "DuckDB reads %d of the %d records that the file has from here on",
		given, found)
	if p.r.Records == "" {
		f.Place.Line = c.firstLine()
	}
	f.Hint = "no row is taken for lost: please report this with the lines of the file up to there; " +
		"until it is mended, write the file again with quotes only where they have to be"
	return f
}
