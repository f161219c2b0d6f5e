package engine

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/run/python"
)

// Querier runs the queries by which a diagnosis examines the instance that failed.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Task is one batch's work.
type Task struct {
	Name    string   // for logs and errors: node and batch
	Paths   []string // directories and files that its SQL reads or writes
	Prepare func(ctx context.Context) error
	Setup   []string    // statements that make views, before everything else
	Python  *PythonStep // before Query, which may read table __p
	Query   string      // SELECT of the output rows, in order but for FreeOrder
	Output  Output
	Sides   []SideOutput // written after Output, in order
	// Judge has the last word once everything is written; nil: all is well. Its
	// failure removes what Output wrote and keeps what Sides did: rows that
	// show why. It may ask the instance, with its temporary tables.
	Judge func(ctx context.Context, db Querier, res Result) error
	// Secluded says that people wrote SQL of this task: it runs in an instance
	// that no other task uses, and that may touch Paths and nothing else.
	Secluded  bool
	OneThread bool // Query's result may show the order in which rows arrive
	// FreeOrder says that nobody needs the order in which Query gives its rows:
	// they have it in columns, or somebody else has seen to it. All other
	// statements whose rows are written or numbered are refused unless their
	// plan keeps the order (see InOrder).
	FreeOrder bool
	// Numbers says that Query numbers rows somewhere inside, in the order in
	// which they come there: that is held also with FreeOrder.
	Numbers bool
	// MemoryHint is the hint if the memory is not enough; "": the usual one.
	MemoryHint string
	// CSV lists the sources of CSV readers in Query: the rows that they deliver are counted.
	CSV []CSVSource
	// Quarantine is nil for a task that its first bad row fails.
	Quarantine *Quarantine
	// Explain turns the failure of Query into one that names file, row and
	// column; nil or a nil result keeps the failure as it is.
	Explain func(ctx context.Context, db Querier, cause error) error
}

// CSVSource knows how many rows a CSV reader has to give.
type CSVSource interface {
	CSVRecords() int64 // asked once Prepare has returned
	// Recount counts what is read, when the readers of a task gave another number together.
	Recount(ctx context.Context, db Querier) error
}

// PythonStep computes table __p: one row for each row of Source, in its order,
// or, where the program is a function over many rows, what it returned.
type PythonStep struct {
	// SELECT of Program.Inputs in order, as transport types (see TransportSQL); of functions over groups also the
	// group's number, last
	Source  string
	Program *python.Program
	// Of functions over groups: SELECT of one row for each group, with its number from 0
	// in GroupColumn, by which they are ordered, and its rows in GroupRowsColumn. It becomes the table GroupTable.
	// "": all rows of Source are one group.
	Groups string
	// WindowRows is about how many rows are read at a time, of functions over groups:
	// Source is read for some groups after the others, which are WindowTable then. DuckDB holds what it gives, beside
	// its memory limit.
	WindowRows int64
	// GroupName is a text expression over GroupTable that names a group.
	GroupName string
	// Bad, if not nil, describes a row whose formulas fail and says whether it
	// is kept (ActionKept) with NULL or zeros, or not (ActionQuarantined): then
	// column BadFlag of __p is true. nil: the first such row fails the task.
	Bad func(f *fault.Error, reason string) (row fault.BadRow, action string)
}

// What functions over many rows leave beside their own columns in ResultTable.
const (
	GroupTable      = "__groups"
	WindowTable     = "__window"   // the rows of GroupTable that Source is read for
	GroupColumn     = "group no"   // BIGINT; no field of a script has a name with a blank
	GroupRowsColumn = "group rows" // BIGINT
	RowColumn       = "row no"     // BIGINT: of the call's result, from 0
)

// BadFlag is the column of __p that is true for rows without results.
const BadFlag = "__bad_row"

// Output is the destination of the rows of Query. At most one of Part, File and Inspect is set.
type Output struct {
	Part *PartOutput
	File *FileOutput
	// Inspect writes nothing and uses no Query: it asks for itself. Temporary
	// tables that it makes are there for Sides and Judge.
	Inspect func(ctx context.Context, db Querier) error
}

// PartOutput writes a Parquet part.
type PartOutput struct {
	Stage func(ctx context.Context) (string, error) // path for a new file
	// BucketSQL, if not empty, adds BucketColumn: this expression over Query's
	// columns, behind q.
	BucketSQL string
	// NumberSQL, if not empty, adds column __o0: this expression, in which
	// row_number() counts Query's rows from 1.
	NumberSQL string
	Cluster   *Cluster // tried first, if not nil
	SortedBy  []string // hidden columns by which the rows lie in the part; none: as Query gives them
	Floats    []string // DOUBLE columns of Query
	// RowGroupRows bounds a row group; 0 is PartRowGroupRows. Wide rows need
	// fewer: a row group is held whole while it is written.
	RowGroupRows int
	Wide         bool // rows have long texts, and their files do not travel
}

// BucketColumn is the column of a part that says a row's bucket.
const BucketColumn = "__b"

// FileOutput writes one file.
type FileOutput struct {
	Copy sqltext.Copy // to a temporary path: the commit renames it; the task's Query is unused
	// Write writes Copy's rows in another form than a COPY does, as a file or a directory of
	// files at Copy's path; nil: the COPY does it.
	Write func(ctx context.Context, in *Instance) ([]Written, error)
}

// SideOutput keeps rows beside a task's output, in one part.
type SideOutput struct {
	Side string // see state.Part.Side
	// SELECT of the rows, in order; temporary tables that the task made are there
	Query   string
	Floats  []string                                  // DOUBLE columns of Query
	RowsMax int64                                     // rows that are kept; 0: all
	Stage   func(ctx context.Context) (string, error) // path for a new file
}

// Written is a file that a task wrote.
type Written struct {
	Path     string
	Name     string // of a file in a directory of output files: seen from that
	Side     string // of a file in Result.Sides
	Rows     int64
	Keys     []byte // what Cluster.Keep gave
	Bytes    int64
	RawBytes int64 // uncompressed, by the Parquet footer; Bytes for other files
}

// Result holds the output and the figures of a task.
type Result struct {
	Written []Written
	Sides   []Written // also beside Judge's failure
	RowsOut int64
	CSVRows int64 // that CSV readers delivered: see Task.CSV
	Records int64 // of the CSV text that they read; of tasks of one batch that read the same, once
	BadRows int64 // see Quarantine
	// PartsRead says that formats of numbers may have left a part of some text unread.
	PartsRead bool
	Engine    time.Duration
	Python    python.Stats
}

// Add takes in what a later task of the same batch did.
func (r *Result) Add(more Result) {
	r.Written, r.Sides = append(r.Written, more.Written...), append(r.Sides, more.Sides...)
	r.RowsOut += more.RowsOut
	r.CSVRows += more.CSVRows
	r.Records = max(r.Records, more.Records)
	r.BadRows += more.BadRows
	r.PartsRead = r.PartsRead || more.PartsRead
	r.Engine += more.Engine
	r.Python.Rows += more.Python.Rows
	r.Python.Chunks += more.Python.Chunks
	r.Python.Busy += more.Python.Busy
	r.Python.CPU += more.Python.CPU
	r.Python.Starved += more.Python.Starved
	r.Python.PeakBytes = max(r.Python.PeakBytes, more.Python.PeakBytes)
}

// PartRowGroupRows and the codec of parts; see docs/decisions for the measurements.
const (
	PartRowGroupRows = 122_880
	partCodec        = "zstd, COMPRESSION_LEVEL 1"
	// partWideCodec is for rows so wide that a row group has fewer than usual:
	// their long texts are read and written again by each node on their way. Where
	// parts travel, their size counts for more.
	partWideCodec = "lz4_raw"
)

// TransportSQL renders a value of type t the way rows travel to Go: decimals
// as cents, or as text if they have other digits, datetimes as milliseconds, dates as days and timestamptz as
// microseconds, so that no big.Int or time.Time is made per cell.
func TransportSQL(t expr.Type, sql string) string {
	if t.Nested() {
		return "CAST(to_json(" + t.EachSQL(sql, func(t expr.Type, sql string) string {
			if !t.IsDecimal() { // whose text has all of its digits
				sql = TransportSQL(t, sql)
			}
			return "CAST(" + sql + " AS VARCHAR)"
		}) + ") AS VARCHAR)"
	}
	switch t {
	case expr.Decimal:
		// The product of a small one fits into 18 digits, in which DuckDB computes forty times as fast as in more.
		return fmt.Sprintf("CASE WHEN %[1]s BETWEEN -%[2]s AND %[2]s THEN CAST(%[1]s * CAST(100 AS DECIMAL(3,0)) AS "+
			"BIGINT) ELSE CAST(CAST(%[1]s AS DECIMAL(21,2)) * 100 AS BIGINT) END",
			sql, "CAST(99999999999999.99 AS DECIMAL(18,2))")
	case expr.DateTime:
		return "epoch_ms(" + sql + ")"
	case expr.Date:
		return "(" + sql + " - DATE '1970-01-01')"
	case expr.Instant:
		return "epoch_us(" + sql + ")"
	}
	if _, _, exact := t.Exact(); exact {
		return "CAST(" + sql + " AS VARCHAR)"
	}
	return sql
}

// transportType is the SQL type of what TransportSQL gives.
func transportType(t expr.Type) string {
	switch _, _, exact := t.Exact(); {
	case exact, t.Nested():
		return "VARCHAR"
	case t == expr.Decimal || t == expr.DateTime || t == expr.Date || t == expr.Instant:
		return "BIGINT"
	}
	return t.SQL()
}

// untransportSQL is the reverse of TransportSQL.
func untransportSQL(t expr.Type, sql string) string {
	if t.Nested() {
		texts := "CAST(CAST(" + sql + " AS JSON) AS " + t.TextsSQL() + ")"
		return "CAST(" + t.EachSQL(texts, func(t expr.Type, sql string) string {
			if transportType(t) == "BIGINT" && !t.IsDecimal() {
				sql = "CAST(" + sql + " AS BIGINT)"
			}
			if t == expr.Float {
				return expr.UnsignedSQL("CAST(" + sql + " AS DOUBLE)")
			}
			if t.IsDecimal() {
				return "CAST(" + sql + " AS " + t.SQL() + ")"
			}
			return "CAST(" + untransportSQL(t, sql) + " AS " + t.SQL() + ")"
		}) + " AS " + t.SQL() + ")"
	}
	switch t {
	case expr.Decimal:
		return "CAST(" + sql + " AS DECIMAL(18,0)) * CAST(0.01 AS DECIMAL(3,2))" // is a DECIMAL(18,2)
	case expr.DateTime:
		return "make_timestamp_ms(" + sql + ")"
	case expr.Date:
		return "(DATE '1970-01-01' + CAST(" + sql + " AS INTEGER))"
	case expr.Instant:
		return "make_timestamptz(" + sql + ")"
	}
	if _, _, exact := t.Exact(); exact {
		return "CAST(" + sql + " AS " + t.SQL() + ")"
	}
	return sql
}
