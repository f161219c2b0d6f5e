package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

// describer implements script.Describer.
type describer struct {
	in       *engine.Instance
	dir      string
	volatile map[string]bool // functions
	catalog  map[string]bool // views
	choosers map[string]bool // aggregates
	look     files.Look      // at remote files
}

// Open gives what describes queries; the caller closes it. It is not safe for
// concurrent use.
func Open(ctx context.Context, look files.Look) (_ script.Describer, err error) {
	dir, err := os.MkdirTemp("", "thalweg-describe-")
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "make a directory for checking queries", Err: err,
			Hint: "check TMPDIR"}
	}
	d := &describer{dir: dir, look: look, volatile: map[string]bool{}, catalog: map[string]bool{},
		choosers: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.in, err = engine.OpenInstance(ctx, engine.InstanceConfig{Threads: 1, SpillDir: filepath.Join(dir, "spill"),
		JSONErrors: true}); err != nil {
		return nil, err
	}
	return d, d.learn(ctx)
}

func (d *describer) Close() error {
	var err error
	if d.in != nil {
		err = d.in.Close()
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

// learn asks which functions give something else each time, which are
// aggregates, and which names are DuckDB's own.
func (d *describer) learn(ctx context.Context) (err error) {
	for _, name := range environmentFunctions() {
		d.volatile[name] = true
	}
	if err := d.names(ctx, d.volatile,
		"SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE stability <> 'CONSISTENT' AND "+
			"function_name <> 'error'"); err != nil {
		return fmt.Errorf("list functions: %w", err)
	}
	if err := d.names(ctx, d.catalog,
		"SELECT DISTINCT lower(view_name) FROM duckdb_views() WHERE internal"); err != nil {
		return fmt.Errorf("list views: %w", err)
	}
	if err := d.names(ctx, d.choosers,
		"SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = 'aggregate' AND NOT "+
			"starts_with(function_name, 'count')"); err != nil {
		return fmt.Errorf("list aggregates: %w", err)
	}
	return nil
}

// names puts the names that a query gives into a set.
func (d *describer) names(ctx context.Context, set map[string]bool, query string) (err error) {
	rows, err := d.in.Query(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		set[name] = true
	}
	return rows.Err()
}

// Describe implements script.Describer.
func (d *describer) Describe(ctx context.Context, ask script.QueryText) (*script.QueryInfo,
	[]script.QueryProblem, error) {
	text := strings.TrimRight(ask.Text, " \t\r\n")
	p, err := parse(ctx, d.in, text)
	if err != nil {
		return nil, nil, err
	}
	src := newSource(text)
	c := newChecker(src, ask, d)
	switch {
	case p.Error && p.Kind == "parser":
		position, _ := strconv.Atoi(p.Position)
		s := SyntaxWords(text, position, p.Message)
		if hint := c.tableHint(s.Table); s.Table != "" && c.tables[strings.ToLower(s.Table)] == "" {
			s.What, s.Hint = "there is no table "+quote(s.Table)+" here", cmp.Or(hint, s.Hint)
		}
		c.problem(s.At, s.Hint, "%s", s.What)
	case p.Error || len(p.Statements) != 1:
		c.problem(0, "write one SELECT, WITH, FROM or VALUES", "a sql node has one query that only reads")
	default:
		c.check(p.Statements[0].Node)
	}
	if len(c.problems) > 0 {
		return nil, c.problems, nil
	}
	info, err := d.bind(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return info, c.problems, nil
}

// bind checks the query against empty tables, within a transaction that leaves
// nothing behind.
func (d *describer) bind(ctx context.Context, c *checker) (info *script.QueryInfo, err error) {
	err = d.in.InRollback(ctx, func() (err error) {
		info, err = d.bindThere(ctx, c)
		return err
	})
	return info, err
}

func (d *describer) bindThere(ctx context.Context, c *checker) (*script.QueryInfo, error) {
	if err := d.makeTables(ctx, c.ask.Tables); err != nil {
		return nil, err
	}
	info := &script.QueryInfo{Sorted: c.sorted}
	for _, t := range c.ask.Tables {
		if !c.used[strings.ToLower(t.Name)] {
			info.Unused = append(info.Unused, t.Name)
		}
	}
	text, ok := d.openFiles(ctx, c, info)
	if !ok {
		return nil, nil
	}
	text = strings.TrimRight(text, " \t\r\n")
	if n := len(c.src.tokens); c.src.is(n-1, ";") {
		text = text[:c.src.tokens[n-1].Start]
	}
	cols, err := describeSQL(ctx, d.in, text)
	if err != nil {
		c.bindProblem(err)
		return nil, nil
	}
	for i, col := range cols {
		out := column(col.name, col.sqlType)
		if len(c.items) == len(cols) && c.items[i] >= 0 {
			out.Start, out.End = c.src.span(c.items[i])
		}
		info.Columns = append(info.Columns, out)
	}
	d.settle(ctx, c, text, info)
	tree := plan(ctx, d.in, info.SQL)
	info.OneThread = info.OneThread || signShows(tree, info.Sorted)
	info.Origins = origins(tree, len(info.Columns), c.ask.Tables, info.Files)
	if cut(c, info, tree); len(c.problems) > 0 {
		return nil, nil
	}
	return info, nil
}

// makeTables makes the empty tables that a query reads.
func (d *describer) makeTables(ctx context.Context, tables []script.QueryTable) error {
	if err := d.in.Exec(ctx, "CREATE SCHEMA "+ident(inputSchema)); err != nil {
		return fmt.Errorf("make a schema for empty tables: %w", err)
	}
	for _, t := range tables {
		stored, cols := make([]string, len(t.Fields)), make([]string, len(t.Fields))
		for i, f := range t.Fields {
			stored[i] = fmt.Sprintf("c%d %s", i, f.Type.SQL())
			cols[i] = fmt.Sprintf("c%d AS %s", i, ident(f.Name))
		}
		table := ident(inputSchema) + "." + ident(t.Name)
		// A view, as in a run: a table has more columns, such as rowid.
		if err := d.in.Exec(ctx, fmt.Sprintf("CREATE TABLE %s (%s); CREATE VIEW %s AS SELECT %s FROM %s", table,
			strings.Join(stored, ", "), ident(t.Name), strings.Join(cols, ", "), table)); err != nil {
			return fmt.Errorf("make an empty table %s: %w", t.Name, err)
		}
	}
	return nil
}

// cut finds out whether the query can be evaluated in pieces.
func cut(c *checker, info *script.QueryInfo, tree any) {
	x := cutter{ask: c.ask, by: c.ask.By, ctes: map[int]flow{}}
	sort, told, err := x.prove(tree)
	var why *dependent
	switch {
	case errors.As(err, &why):
	case info.OneThread:
		why = &dependent{why: "its result may show the order in which rows arrive",
			hint: "add keys to ORDER BY until no two rows are equal"}
	case !told:
		why = &dependent{why: "its ORDER BY has more than its columns", words: []string{"order"},
			hint: "select what it sorts by, or sort where the rows are written"}
	}
	for _, key := range sort {
		if strings.HasPrefix(info.Columns[key.Column].SQLType, "ENUM(") && why == nil {
			// whose order is not that of its text
			why = &dependent{why: "it sorts by an ENUM", words: []string{"order"}, hint: "sort by CAST(… AS VARCHAR)"}
		}
	}
	info.Cut = script.QueryCut{Sort: sort, Tables: x.tables}
	if why == nil {
		return
	}
	info.Cut.Whole = why.why
	if c.ask.By != nil {
		at := 0
		for _, word := range why.words {
			if at = c.src.start(word); at > 0 {
				break
			}
		}
		c.problem(at, why.hint, "the query cannot be evaluated by %s: %s", strings.Join(c.ask.By, ", "), why.why)
	}
}

// openFiles makes an empty table for each file, and gives the text in which
// they stand for the calls. false: a file cannot be read, which is reported.
func (d *describer) openFiles(ctx context.Context, c *checker, info *script.QueryInfo) (string, bool) {
	text := c.src.text
	for i, call := range c.calls {
		r, columns, err := d.reader(ctx, call)
		if err == nil && len(columns) == 0 {
			err = fault.New(fault.UserData, "the file has no columns")
		}
		schema := fmt.Sprintf("__%d", i)
		if err == nil {
			err = d.in.Exec(ctx,
				fmt.Sprintf("CREATE SCHEMA %[1]s; CREATE TABLE %[1]s.%[2]s (%[3]s); CREATE VIEW %[1]s.%[4]s "+
					"AS FROM %[1]s.%[2]s", ident(schema), ident(scanFile+"_columns"),
					strings.Join(columns, ", "), scanFile))
		}
		if err != nil {
			f, text := fault.Of(err), err.Error()
			if f.Place.File != call.url {
				text = call.url + ": " + text
			}
			c.problem(call.urlAt, f.Hint, "%s", text)
			return "", false
		}
		info.Files = append(info.Files, script.QueryFile{Schema: schema, Reader: r})
		for _, column := range r.Columns {
			call.columns = append(call.columns, column.Name)
		}
		text = text[:call.start] + call.name(i) + text[call.end:]
	}
	return text, true
}

// settle puts the edits into the query, as far as the result can be bound.
func (d *describer) settle(ctx context.Context, c *checker, text string, info *script.QueryInfo) {
	floats, zeros := d.floatAggregates(ctx, c, text)
	if floats["histogram"] {
		c.problem(c.src.start("histogram"), "count them with GROUP BY, or give it CAST(… AS DECIMAL(18,2))",
			"histogram counts a NaN as any of the other floats")
	}
	sure, all := slices.Clone(zeros), slices.Clone(zeros)
	for _, e := range c.edits {
		if e.function != "" && floats != nil && !floats[e.function] {
			continue
		}
		if e.text == "" { // behind the query's own ORDER BY
			for i := range info.Columns {
				e.text += fmt.Sprintf(", %d", i+1)
			}
		}
		all = append(all, e.splice)
		if !e.ties {
			sure = append(sure, e.splice)
		}
	}
	info.OneThread = c.oneThread || c.sums && (floats == nil || floats[overWindow]) || c.unread && len(floats) > 0
	for _, edits := range [][]splice{all, sure, nil} {
		info.SQL = apply(text, edits)
		if _, err := describeSQL(ctx, d.in, info.SQL); err == nil {
			break
		}
		info.OneThread = true
	}
}

// overWindow stands for all aggregates over windows in floatAggregates.
const overWindow = "over"

// floatAggregates lists the aggregates that see floats somewhere in the query,
// nil if that cannot be told, and what takes the signs from their zeros.
func (d *describer) floatAggregates(ctx context.Context, c *checker, text string) (names map[string]bool,
	zeros []splice) {
	if !c.sums && len(c.chosen) == 0 && !c.unread &&
		!slices.ContainsFunc(c.edits, func(e edit) bool { return e.function != "" }) {
		return map[string]bool{}, nil
	}
	tree := plan(ctx, d.in, apply(text, mark(c.chosen)))
	if tree == nil {
		return nil, nil
	}
	names = map[string]bool{}
	each(tree, func(n node) {
		name, types := n.lower("name"), n.list("arguments")
		switch n.text("expression_class") {
		case "BOUND_AGGREGATE":
		case "BOUND_WINDOW":
			name = overWindow
			for _, e := range n.list("children") {
				types = append(types, e.child("return_type"))
			}
		default:
			return
		}
		if slices.ContainsFunc(types, isFloat) {
			names[name] = true
		}
	})
	return names, unsigned(c.chosen, tree)
}

// sqlColumn is a column of a query as DuckDB describes it.
type sqlColumn struct{ name, sqlType string }

const describeWord = "DESCRIBE "

func describeSQL(ctx context.Context, in *engine.Instance, query string) (out []sqlColumn, err error) {
	rows, err := in.Query(ctx, describeWord+query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c sqlColumn
		var null, key, def, extra any
		if err := rows.Scan(&c.name, &c.sqlType, &null, &key, &def, &extra); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, rows.Err()
}

// bindProblem turns the failure to bind a query into a problem at its place.
func (c *checker) bindProblem(err error) {
	e := engine.Diagnose(err)
	at := max(e.Position-len(describeWord), 0)
	message, hint := e.Message, e.Advice
	if words, way := engine.QueryWords(e.Full); way != "" || words != "" && e.Missing == engine.NothingMissing {
		message, hint = words, cmp.Or(way, hint)
	}
	switch e.Missing {
	case engine.ColumnMissing:
		message, hint = "there is no column "+quote(e.Name)+" here", c.missingColumnHint(at, e.Name)
	case engine.FunctionMissing:
		message, hint = "there is no function "+quote(e.Name), FunctionHint(e.Name, e.Candidates)
		if strings.Contains(e.Name, "`") {
			message = "the query is not understood at \"`\""
		}
	case engine.FieldMissing:
		if start, end := c.src.span(at); start < end {
			if i := c.src.at(at); c.src.is(i+1, ".") {
				hint, _ = c.columnHint(strings.Trim(c.src.tokenText(i+2), `"`))
			}
		}
	}
	c.problem(at, hint, "%s", message)
}

// missingColumnHint says what can be done about a column that is not there.
func (c *checker) missingColumnHint(at int, name string) string {
	hint, near := c.columnHint(name)
	switch i := c.src.at(at); {
	case !slices.ContainsFunc(c.src.tokens,
		func(t sqltext.Token) bool { return strings.EqualFold(c.src.text[t.Start:t.End], "from") }):
		return "the query has no FROM"
	case !near && strings.HasPrefix(c.src.tokenText(i), `"`):
		return strings.TrimSuffix("texts stand between '…', names between \"…\"; "+hint, "; ")
	}
	return hint
}

// columnHint finds the column that was probably meant, among all tables and files, or lists what those of the query
// have.
func (c *checker) columnHint(name string) (hint string, near bool) {
	const namesShown = 20
	all, has := map[string]bool{}, []string(nil)
	note := func(of string, names []string) {
		for _, n := range names {
			all[n] = true
		}
		shown := strings.Join(names[:min(len(names), namesShown)], ", ")
		if more := len(names) - namesShown; more > 0 {
			shown += fmt.Sprintf(" and %d more", more)
		}
		has = append(has, of+" has "+shown)
	}
	for _, t := range c.ask.Tables {
		var names []string
		for _, f := range t.Fields {
			names = append(names, f.Name)
		}
		note(t.Name, names)
	}
	for _, call := range c.calls {
		note(call.url, call.columns)
	}
	if near := similar.Nearest(name, slices.Sorted(maps.Keys(all))); near != "" {
		return "did you mean " + quote(near) + "?", true
	}
	return strings.Join(has, "; "), false
}
