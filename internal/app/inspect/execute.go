package inspect

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/progress"
	"thalweg/internal/base/similar"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/query"
)

// Prepared is a query that any process can execute which may read its files: nothing else is asked of the state.
type Prepared struct {
	Setup []string `json:"setup"` // statements that define the tables
	Paths []string `json:"paths"` // the files
	SQL   string   `json:"sql"`
	Ours  bool     `json:"ours,omitempty"` // SQL is no person's: it may be more than one that only reads
	// Condition is what a person has written of SQL that is ours otherwise: it has to be one expression; "": nothing.
	Condition string `json:"condition,omitempty"`
	// Then are statements of ours with the same columns, whose rows come behind those of SQL. DuckDB holds the rows of a
	// statement in memory: many are read so.
	Then        []string `json:"then,omitempty"`
	Spool       bool     `json:"spool,omitempty"`   // likewise, where the statement cannot be cut: rows go by the disk
	Parquet     string   `json:"parquet,omitempty"` // see QueryOptions
	RowsMax     int      `json:"rows_max"`          // 0: all
	CellBytes   int      `json:"cell_bytes"`        // of a cell that are given, the rest is cut off: see CutText; 0: all
	MemoryBytes int64    `json:"memory_bytes"`
	SpillBytes  int64    `json:"spill_bytes"` // 0: as much as there is
	Threads     int      `json:"threads"`

	By caller.Caller `json:"-"` // who asks
}

// Executed says how a prepared query ended.
type Executed struct {
	More    bool     `json:"more,omitempty"`    // there were more rows than RowsMax
	Refused *Refusal `json:"refused,omitempty"` // why there are no rows, or no more of them
}

// Executor executes prepared queries, in this process or another one.
type Executor interface {
	Execute(ctx context.Context, p Prepared, rows RowSink) (Executed, error)
}

// here executes in this process.
type here struct{ home *instance.Instance }

// Execute implements Executor.
func (h here) Execute(ctx context.Context, p Prepared, rows RowSink) (out Executed, err error) {
	dir, err := h.home.Scratch()
	if err != nil {
		return out, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with the instance's own
	return p.Execute(ctx, filepath.Join(dir, "spill"), rows)
}

// Execute executes the query in this process. spill is a directory for DuckDB, that is made and removed.
func (p Prepared) Execute(ctx context.Context, spill string, rows RowSink) (out Executed, err error) {
	in, err := engine.OpenInstance(ctx, p.config(spill))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return p.executeIn(ctx, in, rows)
}

// ExecuteLent is Execute in an instance that others have used and will use, if nothing of the query is a person's and
// it leaves nothing behind.
func (p Prepared) ExecuteLent(ctx context.Context, from *engine.Instances, spill string, rows RowSink) (out Executed,
	err error) {
	if !p.Ours || p.Condition != "" || p.Spool || p.Parquet != "" || len(p.Setup) > 0 {
		return p.Execute(ctx, spill, rows)
	}
	in, done, err := from.Lend(ctx, p.config(spill))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, done(err == nil && out.Refused == nil)) }()
	return p.executeIn(ctx, in, rows)
}

// config bounds the instance for the query.
func (p Prepared) config(spill string) engine.InstanceConfig {
	paths := p.Paths
	if p.Parquet != "" {
		paths = append(paths[:len(paths):len(paths)], p.Parquet)
	}
	return engine.InstanceConfig{MemoryBytes: p.MemoryBytes, Threads: p.Threads, SpillDir: spill,
		SpillBytes: p.SpillBytes, Paths: paths}
}

func (p Prepared) executeIn(ctx context.Context, in *engine.Instance, rows RowSink) (out Executed, err error) {
	err = p.run(ctx, in, rows, &out)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		out.Refused, err = refusal, nil
	}
	return out, err
}

func (p Prepared) run(ctx context.Context, in *engine.Instance, to RowSink, out *Executed) (err error) {
	for _, stmt := range p.Setup {
		if err := in.Exec(ctx, stmt); err != nil {
			return fmt.Errorf("open the tables: %w", err)
		}
	}
	text := p.SQL
	if !p.Ours {
		if text, err = readOnly(ctx, in, p.SQL); err != nil {
			return err
		}
	}
	if err := lineage.CheckCondition(ctx, in, p.Condition); err != nil {
		return refused(err)
	}
	if p.Parquet != "" {
		return refused(copyParquet(ctx, in, p.Parquet, text))
	}
	r := &reader{p: p, in: in, to: to, out: out}
	if p.Spool {
		return refused(r.spooled(ctx, in, text))
	}
	for _, text := range append([]string{text}, p.Then...) {
		text, r.types = p.exactInCells(ctx, in, text)
		if err := r.read(ctx, text); err != nil {
			return refused(err)
		}
	}
	return nil
}

// exactInCells gives a query whose values the driver gives as they are, with no more rows than are wanted, and one,
// and the types of its columns before. One that the engine refuses is left to be refused.
func (p Prepared) exactInCells(ctx context.Context, in *engine.Instance, text string) (string, []query.SQLType) {
	names, list, err := columnsOf(ctx, in, text)
	if err != nil {
		return text, nil
	}
	casts, types := make([]cast, len(list)), make([]query.SQLType, len(list))
	for i, name := range list {
		types[i] = query.ParseSQLType(name)
		if to, other := givable(types[i]); other {
			casts[i] = castTo(to)
		}
		if p.CellBytes > 0 {
			casts[i] = shortened(types[i], casts[i], p.CellBytes)
		}
	}
	text = recast(text, names, casts, p.RowsMax > 0)
	if p.RowsMax > 0 {
		text += fmt.Sprintf(" LIMIT %d", p.RowsMax+1)
	}
	return text, types
}

// shortened adds to a cast that of a text or of bytes no more is read than is shown of it, and a little more, so that
// what was cut is known.
func shortened(t query.SQLType, to cast, bytes int) cast {
	if to == nil {
		to = func(column string) string { return column }
	}
	switch t.Name {
	case "VARCHAR", "JSON", "VARIANT":
		return func(column string) string { return fmt.Sprintf("left(%s, %d)", to(column), bytes+1) }
	case "BLOB":
		return func(column string) string { return fmt.Sprintf("array_slice(%s, 1, %d)", to(column), bytes+1) }
	}
	return to
}

// readOnly refuses everything but one query: what may read the
// parts may not replace them. DuckDB's own parser decides; it can write out nothing but SELECT.
func readOnly(ctx context.Context, in *engine.Instance, query string) (string, error) {
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
		return "", syntaxRefusal(query, parsed.Position, parsed.Message)
	case parsed.Error || len(parsed.Statements) != 1:
		return "", &Refusal{Message: "one query that only reads is needed",
			Hint: "write SELECT, FROM, WITH, VALUES, DESCRIBE or SUMMARIZE"}
	}
	return query, nil
}

// Refusal says why the engine does not answer a query, as far as it knows. It is an error.
type Refusal struct {
	Kind         fault.Kind `json:"kind,omitempty"` // "": fault.Script
	Message      string     `json:"message"`
	Hint         string     `json:"hint,omitempty"`
	Detail       string     `json:"detail,omitempty"`
	Field        string     `json:"field,omitempty"`
	Table        string     `json:"table,omitempty"`         // that is not there
	WantsTable   bool       `json:"wants_table,omitempty"`   // a table is to be named where there is none
	Function     string     `json:"function,omitempty"`      // that is not there
	Near         []string   `json:"near,omitempty"`          // what is called nearly so
	OfCatalog    bool       `json:"of_catalog,omitempty"`    // what it names is not there
	OfPermission bool       `json:"of_permission,omitempty"` // it may not
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// syntaxRefusal is a text that is no SQL, with where in it.
func syntaxRefusal(text, position, message string) *Refusal {
	n, _ := strconv.Atoi(position)
	s := query.SyntaxWords(text, n, message)
	before := text[:min(s.At, len(text))]
	line := 1 + strings.Count(before, "\n")
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &Refusal{Message: fmt.Sprintf("line %d, column %d of the query: %s", line, column, s.What), Hint: s.Hint,
		WantsTable: s.Table != ""}
}

// refused makes a Refusal of an error for which the query is to blame.
func refused(err error) error {
	var db *duckdb.Error
	var known *fault.Error
	switch {
	case errors.As(err, &known) && known.Kind == fault.Script:
		return &Refusal{Message: known.Message, Hint: known.Hint, Detail: known.Detail, Field: known.Place.Field}
	case !errors.As(err, &db), db.Type == duckdb.ErrorTypeInternal, db.Type == duckdb.ErrorTypeFatal,
		db.Type == duckdb.ErrorTypeInterrupt:
		return err
	case db.Type == duckdb.ErrorTypeOutOfMemory:
		return &Refusal{Kind: fault.Environment, Message: "the query needs more memory than it is given",
			Hint: "read fewer rows or columns, or give more with {{set memory}}", Detail: db.Msg}
	}
	said := engine.Said(db)
	r := &Refusal{Message: said.What, Hint: said.Hint, Detail: said.Line, Table: said.Table, Function: said.Function,
		Near: said.Near, OfCatalog: db.Type == duckdb.ErrorTypeCatalog,
		OfPermission: db.Type == duckdb.ErrorTypePermission}
	return r
}

// Fault is the refusal as people see it, with what the state knows.
func (r *Refusal) Fault(ctx context.Context, home *instance.Instance, opts QueryOptions) error {
	out := &fault.Error{Kind: fault.Script, Message: r.Message, Hint: r.Hint, Detail: r.Detail,
		Place: fault.Place{Field: r.Field}}
	if r.Kind != "" {
		out.Kind = r.Kind
	}
	if r.WantsTable {
		out.Hint += "; " + knownTables(ctx, home, opts)
	}
	gone := (*fault.Error)(nil)
	if r.OfCatalog {
		gone = runNotThere(ctx, home, opts)
	}
	switch {
	case gone != nil:
		out.Message, out.Hint = gone.Message, gone.Hint
	case r.Table != "":
		out.Message, out.Hint = fmt.Sprintf("there is no table %q", r.Table), knownTables(ctx, home, opts)
		if tables, err := Tables(ctx, home, opts.Workspace); err == nil {
			if near := similar.Nearest(r.Table, tables); near != "" {
				out.Hint = "did you mean " + near + "? " + out.Hint
			}
		}
	case r.Function != "":
		out.Message, out.Hint = fmt.Sprintf("there is no function %q", r.Function),
			query.FunctionHint(r.Function, r.Near)
	}
	if r.OfPermission {
		out.Hint = "a query reads the tables of runs and nothing else; a sql node of a script can read files, " +
			"with scan_file"
	}
	return out
}

func interrupted(ctx context.Context) error {
	return &fault.Error{Kind: fault.Canceled, Message: "the query was interrupted", Err: context.Cause(ctx)}
}

// reader gives the rows of statements to a sink.
type reader struct {
	p     Prepared
	in    engine.Querier
	to    RowSink
	out   *Executed
	types []query.SQLType // of the columns, before what was cast; none: as the engine says

	columns []string // nil: the sink has not heard of any yet
	count   int
	known   int64 // rows that there are to give; 0: nobody knows
}

// read gives the rows of one statement.
func (r *reader) read(ctx context.Context, text string) (err error) {
	rows, err := r.in.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if err := r.begin(rows); err != nil {
		return err
	}
	for ; rows.Next(); r.count++ {
		if r.p.RowsMax > 0 && r.count == r.p.RowsMax {
			r.out.More = true
			return nil
		}
		row := make([]any, len(r.columns))
		ptrs := make([]any, len(row))
		for i := range row {
			ptrs[i] = &row[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		for i, v := range row {
			if row[i], err = typedCell(v, r.types[i]); err != nil {
				return fmt.Errorf("column %s: %w", r.columns[i], err)
			}
			row[i] = Cut(row[i], r.p.CellBytes)
		}
		if err := r.to.Row(row); err != nil {
			return err
		}
		if r.known > 0 && (r.count+1)%toldRows == 0 {
			r.tell(ctx, r.count+1)
		}
	}
	return rows.Err()
}

// tell says how many of the rows of a spool were given.
func (r *reader) tell(ctx context.Context, given int) {
	progress.Tell(ctx, progress.Progress{Phase: "writing the rows", Done: int64(given), Of: r.known, Unit: "rows"})
}

// begin tells the sink of the columns, once.
func (r *reader) begin(rows *sql.Rows) error {
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	if len(r.types) != len(columns) { // the engine does not describe it
		if r.types, err = typesOf(rows); err != nil {
			return err
		}
	}
	if r.columns != nil {
		return nil
	}
	r.columns = columns
	head := QueryResult{Columns: columns}
	for _, t := range r.types {
		head.Types, head.Text = append(head.Types, t.Name), append(head.Text, isText(t.Name))
	}
	return r.to.Begin(head)
}

const (
	// spoolRows is the number of rows of a spool that are read at once.
	spoolRows = 100_000
	// toldRows is the number of rows after which it is told how many were given.
	toldRows = 1_000
)

// spooled gives the rows of a statement by way of a table, which goes to the disk where it is large.
func (r *reader) spooled(ctx context.Context, in *engine.Instance, text string) error {
	names, list, err := columnsOf(ctx, in, text)
	if err != nil {
		return err
	}
	kept, read := make([]string, len(list)), make([]string, len(list))
	for i, name := range list {
		r.types = append(r.types, query.ParseSQLType(name))
		column := sqltext.Ident(fmt.Sprintf("%s (column %d)", names[i], i+1))
		kept[i] = column
		if to, other := givable(r.types[i]); other {
			kept[i] = castTo(to)(column) + " AS " + column
		}
		read[i], names[i] = column+" AS "+sqltext.Ident(names[i]), column
	}
	limit := ""
	if r.p.RowsMax > 0 {
		limit = fmt.Sprintf(" LIMIT %d", r.p.RowsMax+1)
	}
	if err := in.Exec(ctx, fmt.Sprintf("CREATE TEMP TABLE spool AS SELECT %s FROM (%s\n) AS q(%s)%s",
		strings.Join(kept, ", "), text, strings.Join(names, ", "), limit)); err != nil {
		return err
	}
	if r.known, err = countSpool(ctx, in); err != nil {
		return err
	}
	if r.p.RowsMax > 0 {
		r.known = min(r.known, int64(r.p.RowsMax))
	}
	r.tell(ctx, 0)
	for from := 0; ; from += spoolRows {
		before := r.count
		if err := r.read(ctx, fmt.Sprintf("SELECT %s FROM spool WHERE rowid >= %d AND rowid < %d", strings.Join(read, ", "),
			from, from+spoolRows)); err != nil {
			return err
		}
		if r.count < before+spoolRows {
			return nil
		}
	}
}

func countSpool(ctx context.Context, in *engine.Instance) (n int64, err error) {
	rows, err := in.Query(ctx, "SELECT count(*) FROM spool")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(&n); err != nil {
			return 0, err
		}
	}
	return n, rows.Err()
}

func typesOf(rows *sql.Rows) (types []query.SQLType, err error) {
	described, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	for _, t := range described {
		types = append(types, query.ParseSQLType(t.DatabaseTypeName()))
	}
	return types, nil
}

// CutText is the beginning of a cell's text that is longer.
type CutText string

// Cut cuts a text that is longer than a number of bytes, 0 being none, between two characters.
func Cut(cell any, bytes int) any {
	text, ok := textOf(cell)
	if !ok || bytes == 0 || len(text) <= bytes {
		return cell
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return CutText(text[:bytes])
}

// Text is the text of a cell that is not nil.
func Text(cell any) string {
	if text, ok := textOf(cell); ok {
		return text
	}
	return view.CellText(cell)
}

// CellBytes is about what a cell takes where it is shown.
func CellBytes(cell any) int {
	const number = 20
	if text, ok := textOf(cell); ok {
		return len(text)
	}
	return number
}

// textOf returns the text of a cell that is one.
func textOf(cell any) (string, bool) {
	switch v := cell.(type) {
	case string:
		return v, true
	case Nested:
		return string(v), true
	case CutText:
		return string(v), true
	}
	return "", false
}
