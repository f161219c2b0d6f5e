package inspect

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/base/similar"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/query"
	"thalweg/internal/store/state"
)

// queryRunsMax is the number of a workspace's latest runs that a query can see.
const queryRunsMax = 1_000

// QueryOptions of a query over the tables of a workspace's runs.
type QueryOptions struct {
	runtime.Process
	Workspace string
	SQL       string  // user's own: it can read parts of this workspace and nothing else
	RowsMax   int     // 0: all
	Parquet   string  // a file that all rows are written to, instead of giving them; "": none
	Sink      RowSink // gets the rows, instead of the result; nil: none
}

// QueryResult holds a query's rows; cells are string, int64, float64, bool, Nested or nil.
type QueryResult struct {
	Columns []string
	Text    []bool // of each column: not numbers, truth values or times
	Rows    [][]any
	More    bool // there were more than RowsMax
	// Warnings are of tables that were named with their run, and are invalid or not complete.
	Warnings []string
}

// Query runs SQL over tables named NAME (of the latest run that wrote it) and
// runN.NAME, and over their side tables NAME__failed and NAME__bad (of the
// latest run that has them). Only committed parts are seen.
func Query(ctx context.Context, home *instance.Instance, opts QueryOptions) (res QueryResult, err error) {
	views, err := openViews(ctx, home, opts)
	if err != nil {
		return res, err
	}
	defer views.close()
	res.Warnings = views.warnings
	dir, err := home.Scratch()
	if err != nil {
		return res, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with the instance's own
	if opts.Parquet != "" {
		views.paths = append(views.paths, opts.Parquet)
	}
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{MemoryBytes: opts.MemoryBytes, Threads: budget.Cores(),
		SpillDir: filepath.Join(dir, "spill"), Paths: views.paths})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for _, stmt := range views.stmts {
		if err := in.Exec(ctx, stmt); err != nil {
			return res, fmt.Errorf("open the tables: %w", err)
		}
	}
	text, err := readOnly(ctx, in, opts.SQL, func() string { return knownTables(ctx, home, opts) })
	if err != nil {
		return res, err
	}
	if opts.Parquet != "" {
		return res, copyParquet(ctx, in, home, opts, text)
	}
	text, types := exactInCells(ctx, in, text)
	rows, err := in.Query(ctx, text)
	if err != nil {
		return res, queryFault(ctx, home, opts, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if err := readRows(rows, types, opts, &res); err != nil {
		return res, queryFault(ctx, home, opts, err)
	}
	return res, nil
}

// exactInCells gives a query whose values the driver gives as they are, and the
// types of its columns before. One that the engine refuses is left to be refused.
func exactInCells(ctx context.Context, in *engine.Instance, text string) (string, []query.SQLType) {
	names, list, err := columnsOf(ctx, in, text)
	if err != nil {
		return text, nil
	}
	casts, types := make([]string, len(list)), make([]query.SQLType, len(list))
	for i, name := range list {
		types[i] = query.ParseSQLType(name)
		if to, other := givable(types[i]); other {
			casts[i] = to
		}
	}
	return recast(text, names, casts), types
}

// readOnly refuses everything but one query, with a hint that lists the tables where one is wanted: what may read the
// parts may not replace them. DuckDB's own parser decides; it can write out nothing but SELECT.
func readOnly(ctx context.Context, in *engine.Instance, query string, tables func() string) (string, error) {
	query = strings.TrimRight(strings.TrimSpace(query), "; \n\t")
	word, _, _ := strings.Cut(strings.ToLower(query), " ")
	if (word == "describe" || word == "summarize") && !strings.Contains(query, ";") {
		return "SELECT * FROM (" + query + "\n)", nil
	}
	rows, err := in.Query(ctx, "SELECT CAST(json_serialize_sql("+sqltext.String(query)+") AS VARCHAR)")
	if err != nil {
		return "", fmt.Errorf("parse the query: %w", err)
	}
	defer rows.Close()
	var parsed struct {
		Error      bool              `json:"error"`
		Kind       string            `json:"error_type"`
		Message    string            `json:"error_message"`
		Position   string            `json:"position"`
		Statements []json.RawMessage `json:"statements"`
	}
	var text string
	if rows.Next() {
		if err := rows.Scan(&text); err != nil {
			return "", fmt.Errorf("parse the query: %w", err)
		}
	}
	if err := errors.Join(rows.Err(), json.Unmarshal([]byte(text), &parsed)); err != nil {
		return "", fmt.Errorf("parse the query: %w", err)
	}
	switch {
	case parsed.Error && parsed.Kind == "parser":
		return "", syntaxFault(query, parsed.Position, parsed.Message, tables)
	case parsed.Error || len(parsed.Statements) != 1:
		return "", &fault.Error{Kind: fault.Script, Message: "one query that only reads is needed",
			Hint: "write SELECT, FROM, WITH, VALUES, DESCRIBE or SUMMARIZE"}
	}
	return query, nil
}

// syntaxFault is a text that is no SQL, with where in it.
func syntaxFault(text, position, message string, tables func() string) error {
	n, _ := strconv.Atoi(position)
	s := query.SyntaxWords(text, n, message)
	if s.Table != "" {
		s.Hint += "; " + tables()
	}
	before := text[:min(s.At, len(text))]
	line := 1 + strings.Count(before, "\n")
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("line %d, column %d of the query: %s", line, column,
		s.What), Hint: s.Hint}
}

func queryFault(ctx context.Context, home *instance.Instance, opts QueryOptions, err error) error {
	if ctx.Err() != nil {
		return &fault.Error{Kind: fault.Canceled, Message: "the query was interrupted", Err: context.Cause(ctx)}
	}
	var db *duckdb.Error
	if !errors.As(err, &db) || db.Type == duckdb.ErrorTypeInternal || db.Type == duckdb.ErrorTypeFatal {
		return err
	}
	said := engine.Said(db)
	out := &fault.Error{Kind: fault.Script, Message: said.What, Hint: said.Hint, Detail: said.Line}
	gone := (*fault.Error)(nil)
	if db.Type == duckdb.ErrorTypeCatalog {
		gone = runNotThere(ctx, home, opts)
	}
	switch {
	case gone != nil:
		out.Message, out.Hint = gone.Message, gone.Hint
	case said.Table != "":
		out.Message, out.Hint = fmt.Sprintf("there is no table %q", said.Table), knownTables(ctx, home, opts)
		if tables, err := Tables(ctx, home, opts.Workspace); err == nil {
			if near := similar.Nearest(said.Table, tables); near != "" {
				out.Hint = "did you mean " + near + "? " + out.Hint
			}
		}
	case said.Function != "":
		out.Message, out.Hint = fmt.Sprintf("there is no function %q", said.Function),
			query.FunctionHint(said.Function, said.Near)
	}
	switch db.Type {
	case duckdb.ErrorTypePermission:
		out.Hint = "a query reads the tables of runs and nothing else; a sql node of a script can read files, " +
			"with scan_file"
	}
	return out
}

// ofRun finds names of tables of runs in a query.
var ofRun = regexp.MustCompile(`(?i)\brun([0-9]{1,18})"?\s*\.`)

// runNotThere says which run that a query names cannot be read, and why; nil: all can, as far as they are known.
func runNotThere(ctx context.Context, home *instance.Instance, opts QueryOptions) *fault.Error {
	for _, m := range ofRun.FindAllStringSubmatch(opts.SQL, knownTablesMax) {
		n, _ := strconv.ParseInt(m[1], 10, 64) // digits, and not too many
		run, err := home.State.Run(ctx, state.RunKey{Workspace: opts.Workspace, Run: n})
		hint := knownTables(ctx, home, opts)
		switch {
		case errors.Is(err, state.ErrNotFound):
			return &fault.Error{Message: fmt.Sprintf("there is no run %d in workspace %s", n, opts.Workspace),
				Hint: "{{do history}} lists the runs; " + hint}
		case err == nil && run.Dropped != nil:
			by := run.Dropped
			return &fault.Error{Message: fmt.Sprintf("run %d was dropped by %s on %s: %s", n,
				cmp.Or(by.Actor, "somebody"),
				by.Time.Local().Format(time.DateTime), cmp.Or(by.Reason, "no reason is given")),
				Hint: "its tables cannot be read any more; " + hint}
		case err == nil && !hasTableOf(ctx, home, run.RunKey, strings.ToLower(opts.SQL)):
			return &fault.Error{Message: fmt.Sprintf("run %d has no table of a name in the query", n),
				Hint: fmt.Sprintf("{{do nodes run=%d}} lists its nodes; %s", n, hint)}
		}
	}
	return nil
}

// hasTableOf reports whether a query names a table of a run; so, too, where that is not known.
func hasTableOf(ctx context.Context, home *instance.Instance, key state.RunKey, text string) bool {
	nodes, err := home.State.Nodes(ctx, key)
	return err != nil || slices.ContainsFunc(nodes, func(n state.Node) bool {
		name := strings.ToLower(cmp.Or(n.Table, n.Name))
		return mentions(text, name) || strings.Contains(text, name+plan.SideMark)
	})
}

// knownTablesMax bounds the names in a hint.
const knownTablesMax = 50

// Tables lists the names of the tables that a query can read without naming a run, in order.
func Tables(ctx context.Context, home *instance.Instance, workspace string) ([]string, error) {
	runs, _, err := home.State.Runs(ctx, workspace, state.Page{Limit: queryRunsMax})
	if err != nil {
		return nil, fmt.Errorf("read the runs of workspace %s: %w", workspace, err)
	}
	names := map[string]bool{}
	for _, r := range runs {
		for _, n := range r.Nodes {
			if n.Table != "" && n.Status == state.Succeeded {
				names[n.Table] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// knownTables names what a query can read, or how to get there.
func knownTables(ctx context.Context, home *instance.Instance, opts QueryOptions) string {
	known, err := Tables(ctx, home, opts.Workspace)
	if err != nil || len(known) == 0 {
		return "no run of workspace " + opts.Workspace + " has completed a table"
	}
	more := ""
	if len(known) > knownTablesMax {
		known, more = known[:knownTablesMax], " …"
	}
	return "tables: " + strings.Join(known, ", ") + more + "; runN.NAME is run N's, also of a run that failed"
}

// queryViews holds the statements that define the tables which a query can see.
type queryViews struct {
	stmts    []string
	paths    []string
	views    []queryView
	warnings []string
	release  func() // nil: nothing is open
}

// queryView is a table under a name.
type queryView struct {
	table *plan.Table
	as    string
}

func (v *queryViews) close() {
	if v.release != nil {
		v.release()
	}
}

// openViews makes the tables readable that the query's text may mean: those of
// the latest runs by their names, those of run N where it speaks of runN.
func openViews(ctx context.Context, home *instance.Instance, opts QueryOptions) (*queryViews, error) {
	runs, _, err := home.State.Runs(ctx, opts.Workspace, state.Page{Limit: queryRunsMax})
	if err != nil {
		return nil, fmt.Errorf("read the runs of workspace %s: %w", opts.Workspace, err)
	}
	v := &queryViews{}
	text := strings.ToLower(opts.SQL)
	latest := map[string]queryTable{}         // by lower-case name
	for _, r := range slices.Backward(runs) { // the latest last: it wins
		tables, err := runTables(ctx, home, r, text)
		if err != nil {
			return nil, err
		}
		schema, taken := fmt.Sprintf("run%d", r.Run), map[string]bool{}
		for _, t := range tables {
			low := strings.ToLower(t.name)
			if taken[low] {
				continue
			}
			taken[low] = true
			if t.complete {
				latest[low] = t
			}
			if !mentions(text, schema) {
				continue
			}
			if len(taken) == 1 {
				v.stmts = append(v.stmts, "CREATE SCHEMA "+sqltext.Ident(schema))
			}
			v.views = append(v.views, queryView{t.table, sqltext.Ident(schema) + "." + sqltext.Ident(t.name)})
			if t.warning != "" {
				v.warnings = append(v.warnings, t.warning)
			}
		}
	}
	for _, low := range slices.Sorted(maps.Keys(latest)) {
		v.views = append(v.views, queryView{latest[low].table, sqltext.Ident(latest[low].name)})
	}
	return v, v.open(ctx, home)
}

// open makes the parts of the tables readable.
func (v *queryViews) open(ctx context.Context, home *instance.Instance) error {
	var tables []*plan.Table
	for _, view := range v.views {
		if !slices.Contains(tables, view.table) { // the latest run's has two names
			tables = append(tables, view.table)
		}
	}
	paths, release, err := pipeline.FetchTables(ctx, home.Parts, tables)
	if err != nil {
		return err
	}
	v.release = release
	v.paths = slices.AppendSeq(v.paths, maps.Values(paths))
	for _, view := range v.views {
		v.stmts = append(v.stmts, fmt.Sprintf("CREATE VIEW %s AS %s", view.as, view.table.SelectAll(paths)))
	}
	return nil
}

// mentions reports whether a text may speak of a table or schema: it has the
// name, and not only as a piece of a longer one.
func mentions(text, name string) bool {
	name = strings.ToLower(name)
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 || name == "" {
			return false
		}
		start, end := from+i, from+i+len(name)
		if (start == 0 || !ofName(text[start-1])) && (end == len(text) || !ofName(text[end])) {
			return true
		}
		from = start + 1
	}
}

// ofName reports whether a byte continues a name without quotes.
func ofName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}

// queryTable is a table of a run. One that is not complete can be looked at
// as runN.NAME only.
type queryTable struct {
	name     string
	table    *plan.Table
	complete bool
	warning  string // of who names it with its run: who has invalidated it, or what is missing
}

// runTables lists a run's tables whose names are in the query's text.
func runTables(ctx context.Context, home *instance.Instance, r state.Run, text string) ([]queryTable, error) {
	var out, beside []queryTable // a script's own table hides a side table of the same name
	for _, brief := range r.Nodes {
		name := brief.Table
		if name == "" {
			name = brief.Name // it writes files; only its side tables can be queried
		}
		if !strings.Contains(text, strings.ToLower(name)) {
			continue
		}
		n, err := home.State.Node(ctx, state.NodeKey{RunKey: r.RunKey, Node: brief.Name})
		if err != nil {
			return nil, fmt.Errorf("read node %s of run %d: %w", brief.Name, r.Run, err)
		}
		if n.Plan == nil {
			continue
		}
		np, err := plan.DecodeNodePlan(n.Plan)
		if err != nil {
			return nil, err
		}
		if np.Table != "" && mentions(text, name) {
			t, err := pipeline.ReadTable(ctx, home.State, n.NodeKey)
			if errors.Is(err, pipeline.ErrTableGone) && !mentions(text, fmt.Sprintf("run%d", r.Run)) {
				continue // another run's may be meant
			}
			if err != nil {
				return nil, err
			}
			one := queryTable{name: name, table: t, complete: n.Status == state.Succeeded}
			switch {
			case n.Status == state.Invalidated:
				one.warning = fault.Of(pipeline.Voided(ctx, home.State, n)).Message
			case !one.complete:
				one.warning = fmt.Sprintf("table %s of run %d is not complete: node %s is %s, and the rows of %d of "+
					"its %s are there", name, r.Run, n.Name, n.Status, n.BatchesDone,
					format.Counted(int64(n.BatchesTotal), "batch", "batches"))
			}
			out = append(out, one)
		}
		sides, err := sideTables(ctx, home, n, np, name, text)
		if errors.Is(err, pipeline.ErrTableGone) && !mentions(text, fmt.Sprintf("run%d", r.Run)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		beside = append(beside, sides...)
	}
	return append(out, beside...), nil
}

// sideTables lists the tables beside a node's own whose names are in the query's text.
func sideTables(ctx context.Context, home *instance.Instance, n state.Node, np plan.NodePlan, name,
	text string) ([]queryTable, error) {
	var out []queryTable
	if !strings.Contains(text, strings.ToLower(name+plan.SideMark)) {
		return nil, nil
	}
	sides, err := pipeline.ReadSides(ctx, home.State, n, np)
	if err != nil {
		return nil, err
	}
	for _, side := range slices.Sorted(maps.Keys(sides)) {
		if !mentions(text, name+plan.SideMark+side) {
			continue
		}
		// A node that failed for another reason says nothing of its rows.
		complete := n.Status == state.Succeeded || n.Status != state.Invalidated && len(sides[side].Parts) > 0
		out = append(out, queryTable{name: name + plan.SideMark + side, table: sides[side], complete: complete})
	}
	return out, nil
}

// readRows reads rows into the result, or gives them to the sink.
func readRows(rows *sql.Rows, types []query.SQLType, opts QueryOptions, res *QueryResult) error {
	var err error
	if res.Columns, err = rows.Columns(); err != nil {
		return err
	}
	if len(types) != len(res.Columns) { // the engine does not describe it
		described, err := rows.ColumnTypes()
		if err != nil {
			return err
		}
		types = nil
		for _, t := range described {
			types = append(types, query.ParseSQLType(t.DatabaseTypeName()))
		}
	}
	for _, t := range types {
		res.Text = append(res.Text, isText(t.Name))
	}
	keep := func(row []any) error {
		res.Rows = append(res.Rows, row)
		return nil
	}
	if opts.Sink != nil {
		if err := opts.Sink.Begin(*res); err != nil {
			return err
		}
		keep = opts.Sink.Row
	}
	for count := 0; rows.Next(); count++ {
		if opts.RowsMax > 0 && count == opts.RowsMax {
			res.More = true
			return nil
		}
		row := make([]any, len(res.Columns))
		ptrs := make([]any, len(row))
		for i := range row {
			ptrs[i] = &row[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		for i, v := range row {
			if row[i], err = typedCell(v, types[i]); err != nil {
				return fmt.Errorf("column %s: %w", res.Columns[i], err)
			}
		}
		if err := keep(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// isText reports whether cells of a type can be any text.
func isText(typ string) bool {
	for _, other := range []string{"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
		"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DATE"} {
		if typ == other {
			return false
		}
	}
	return !strings.HasPrefix(typ, "DECIMAL") && !strings.HasPrefix(typ, "TIME") || strings.HasSuffix(typ, "]")
}

// Cell turns a value of a script's types, as the driver gives it, into what
// can be printed as text or JSON.
func Cell(v any) any { return plainCell(v) }

// plainCell turns the driver's values into what can be printed as text or JSON.
func plainCell(v any) any {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return v
	case int32:
		return int64(v)
	case int16:
		return int64(v)
	case int8:
		return int64(v)
	case uint32:
		return int64(v)
	case uint16:
		return int64(v)
	case uint8:
		return int64(v)
	case float32: // by its digits, not those that its bits have as a float64
		wide, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
		if err != nil {
			return fmt.Sprint(v)
		}
		return wide
	case time.Time:
		if text := infinity(v); text != "" {
			return text
		}
		if v.Hour() == 0 && v.Minute() == 0 && v.Second() == 0 && v.Nanosecond() == 0 {
			return v.Format(time.DateOnly)
		}
		return v.Format("2006-01-02 15:04:05.999999999")
	case duckdb.Decimal:
		return decimalText(v)
	case duckdb.Interval:
		return intervalText(v)
	case []byte:
		return blobText(v)
	case uint64:
		return wholeCell(new(big.Int).SetUint64(v))
	case *big.Int:
		return wholeCell(v)
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprint(v)
}

// decimalText writes all digits of the type, as files have them: 40.80.
func decimalText(d duckdb.Decimal) string {
	if d.Value == nil {
		return ""
	}
	digits := new(big.Int).Abs(d.Value).String()
	if missing := int(d.Scale) + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if point := len(digits) - int(d.Scale); d.Scale > 0 {
		digits = digits[:point] + "." + digits[point:]
	}
	if d.Value.Sign() < 0 {
		digits = "-" + digits
	}
	return digits
}
