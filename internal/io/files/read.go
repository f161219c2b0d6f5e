package files

import (
	"context"
	"path/filepath"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/script"
)

// RuntimeMarker starts the messages of errors that read SQL raises about a
// value. They are made for Diagnose, which finds the place; without it they
// still say column and value.
const RuntimeMarker = "thalweg:files: "

// The columns that ReadSQL adds to tell rows apart.
const (
	FileColumn = "__file" // BIGINT: ordinal of the file in urls
	RowColumn  = "__row"  // BIGINT: 0-based data row in the file
)

// Rows selects the columns by which rows are told apart.
type Rows uint8

const (
	Unnumbered Rows = iota // not at all
	// Ordered rows have FileColumn and RowColumn, which only tell their order: counting starts at one file,
	// and goes on through the files behind it.
	Ordered
	Positioned // rows have FileColumn and RowColumn
)

// Reading is the reading of one batch's slices.
type Reading struct {
	// SQL is a FROM item: a SELECT in parentheses. Its columns are the fields of the reader in the order of the
	// script, with the script's types, and NULL in nullable columns only. FileColumn and RowColumn, where they
	// are asked for, come behind them. Rows come in the order of the slices and of the rows in them. (decimal2
	// columns of Parquet files with a scale above 2 keep it, as DECIMAL(18, scale) or with as many digits before the
	// point as a decimal2 has: behaviour §2.6.)
	SQL string
	// Prepare must have returned before the SQL runs: it checks that the files
	// are still those that were planned and that their bytes mean to DuckDB what
	// they mean to us, and fills the scratch directory.
	Prepare func(ctx context.Context) error

	csv *csvPlan // nil: of Parquet
}

// Read plans a reading. The SQL reads in scratchDir and, partly through symbolic links in
// there, the slices' paths: an instance must be allowed both. scratchDir is private to the
// batch; whoever made it removes it.
//
// Files are opened here already, for CSV headers and Parquet footers.
func Read(r *script.FileReader, slices []Slice, scratchDir string, rows Rows) (*Reading, error) {
	if r.Parquet {
		plan, err := planParquet(r, slices, filepath.Join(scratchDir, "views"), false)
		if err != nil {
			return nil, err
		}
		sql, err := plan.sql(rows != Unnumbered)
		return &Reading{SQL: sql, Prepare: plan.prepare}, err
	}
	plan, err := planCSV(r, slices, scratchDir, rows)
	if err != nil {
		return nil, err
	}
	sql, err := plan.sql()
	return &Reading{SQL: sql, Prepare: plan.prepare, csv: plan}, err
}

// ReadSQL is Read for those who want its SQL and its Prepare only.
func ReadSQL(r *script.FileReader, slices []Slice, scratchDir string, rows Rows) (sql string,
	prepare func(ctx context.Context) error, err error) {
	reading, err := Read(r, slices, scratchDir, rows)
	if err != nil {
		return "", nil, err
	}
	return reading.SQL, reading.Prepare, nil
}

// unionAll joins SELECTs in order, as a FROM item.
func unionAll(selects []string) string {
	if len(selects) == 1 {
		return "(" + selects[0] + ")"
	}
	// DuckDB keeps the order of the branches while preserve_insertion_order is on.
	return "((" + strings.Join(selects, ") UNION ALL (") + "))"
}

// emptySelect has the columns of r and no rows.
func emptySelect(r *script.FileReader, numbered bool) string {
	var cols []string
	for _, c := range r.Columns {
		cols = append(cols, "CAST(NULL AS "+storedType(c)+") AS "+sqltext.Ident(c.Name))
	}
	if numbered {
		cols = append(cols, "CAST(NULL AS BIGINT) AS "+FileColumn, "CAST(NULL AS BIGINT) AS "+RowColumn)
	}
	return "SELECT " + strings.Join(cols, ", ") + " WHERE false"
}
