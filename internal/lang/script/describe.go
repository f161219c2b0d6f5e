package script

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// Describer understands the SQL of nodes of type sql: what this package cannot
// do without an engine. Load opens one at the first such node and closes it.
type Describer interface {
	// Describe checks a query against the tables that it may read. The problems
	// are the person's; an error among them means that there is no QueryInfo.
	// The error is ours or the environment's.
	Describe(ctx context.Context, q QueryText) (*QueryInfo, []QueryProblem, error)
	Close() error
}

// QueryText is a query to describe.
type QueryText struct {
	Text   string
	Tables []QueryTable // that it may read
	Others []string     // tables of the script that it may not read, for hints
	By     []string     // fields of all Tables: it is to be evaluated for each of their values; nil: no
}

// QueryTable is a table under the name that it has in a query.
type QueryTable struct {
	Name   string
	Fields []*Field
}

// QueryProblem is a problem of a query, at bytes [Start, End) of its text.
type QueryProblem struct {
	Severity   document.Severity
	Start, End int
	Message    string
	Hint       string
}

// QueryInfo describes a bound query: its tables, its columns and its order.
type QueryInfo struct {
	SQL       string        // the query to run: files by the names of Files, choices that SQL leaves open made
	Columns   []QueryColumn // of its rows
	Files     []QueryFile   // that it reads
	Sorted    bool          // it says in which order its rows come
	OneThread bool          // the order in which rows arrive may show in its result
	Unused    []string      // tables that it may read and does not
	Cut       QueryCut
	Origins   QueryOrigins
}

// QueryOrigins says what a query's columns are made of.
type QueryOrigins struct {
	Columns [][]QuerySource // of each column: what its values are computed from
	// what decides which rows there are: by "filter", "join", "group", "distinct", "window", "order"
	Beside map[string][]QuerySource
	Lost   bool // the columns cannot be told apart: each has all that is read
}

// QuerySource is a column of a table, by the query's name for it, or of a file, by its address.
type QuerySource struct {
	Of, Column string
	File       bool
}

// QueryCut says whether a query may be evaluated in pieces of its tables, and
// what the pieces give together.
type QueryCut struct {
	Whole  string    // why it cannot be; "" if it can: in any pieces of rows, or with QueryText.By of keys
	Sort   []SortKey // the order that the query gives its rows, before that by all columns; nil: none
	Tables []string  // that it reads, in its order
}

// SortKey is a column of a query by which its rows are sorted.
type SortKey struct {
	Column           int
	Desc, NullsFirst bool
}

// QueryColumn is a column of a query's rows.
type QueryColumn struct {
	Name    string
	SQLType string
	// types that hold its values without loss, checked where they meet; the first is what is inferred
	Fits   []expr.Type
	Advice string // what to write when nothing fits

	Start, End int // where the query's text gives it; 0, 0: not known
}

// holds reports whether a field of type t holds the column's values: each is
// looked at when the query runs.
func (c QueryColumn) holds(t expr.Type) bool {
	if slices.Contains(c.Fits, t) {
		return true
	}
	_, scale, exact := t.Exact()
	if _, rest, decimal := strings.Cut(c.SQLType, "DECIMAL("); exact && decimal {
		_, behind, _ := strings.Cut(strings.TrimSuffix(rest, ")"), ",")
		n, err := strconv.Atoi(strings.TrimSpace(behind))
		return err == nil && n <= scale
	}
	return exact && slices.Contains(c.Fits, expr.Int)
}

// QueryFile is a file that a query reads.
type QueryFile struct {
	Schema string      // the query calls it Schema.scan_file
	Reader *FileReader // of one file: CSV with text columns by header; Parquet with no columns: they are the file's
}
