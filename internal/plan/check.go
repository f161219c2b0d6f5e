package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/document"
	"thalweg/internal/engine"
	"thalweg/internal/expr"
	"thalweg/internal/fault"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
	"thalweg/internal/state"
)

// Phases of a node's batches: those of one begin when all of those before it
// have succeeded. A table is checked when it is written, before anybody reads
// it; files are checked before the first is written.
const (
	phaseFirst = iota
	phaseSecond
)

// CheckContext is what checks know beyond the rows.
type CheckContext struct {
	Run      state.RunKey
	Created  time.Time                 // of the run
	Measured map[string]string         // what the checks of the previous complete run measured, by name
	Report   func([]state.CheckResult) // called with what was found, before the batch fails for it
}

// indexKind is the kind of the check that a unique index of a table is.
const indexKind = "unique_index"

// checkRows bounds for indexes, which say none.
const indexFailedRows = script.DefaultFailedRows

// rule is a check in terms of SQL over w.
type rule struct {
	name, kind, severity string
	pos                  document.Pos
	fields               []string // that it is about
	rowsMax              int

	// What counts: either aggregates over the rows, which rules of one scan
	// share, or a query of its own. judge gets their values.
	aggregates []string
	query      string
	judge      func(values []any, r *state.CheckResult) error
	// failing selects the fields of w's layout and a message, of failing rows
	// in order, at most rowsMax; "" for rules that are not about single rows.
	failing string
	whole   bool   // the message tells which row it is
	value   string // SQL over w: what a failing row has that it must not, for the fault's place; "" for none
	// fault is the failure in its own words, for rules that have some.
	fault func(r state.CheckResult, examples []string) *fault.Error
}

// hasChecks reports whether a node's rows are checked.
func hasChecks(n *script.Node) bool { return len(n.Checks) > 0 || len(uniqueIndexes(n)) > 0 }

// uniqueIndexes lists the indexes whose uniqueness has to be checked: a
// distinct table's is kept by how it is computed.
func uniqueIndexes(n *script.Node) []*script.Index {
	if n.Table == nil || n.Type == script.Distinct {
		return nil
	}
	var out []*script.Index
	for _, ix := range n.Table.Indexes {
		if ix.Unique {
			out = append(out, ix)
		}
	}
	return out
}

// checkWork adds the batch that checks a node's rows, and sets the phases.
func checkWork(n *script.Node, works []Work, sizes []size) ([]Work, []size) {
	check := Work{Check: true, Phase: phaseSecond}
	if n.Out != nil {
		check.Phase = phaseFirst
		for i := range works {
			works[i].Phase = phaseSecond
		}
	}
	return append(works, check), append(sizes, size{})
}

// checkReads lists what the batch that checks a node's rows reads.
func checkReads(n *script.Node, in Inputs, own *Table) []Read {
	var out []Read
	if n.Out != nil {
		out = append(out, Read{in.Reader, wholeTable(in.Reader)})
	} else {
		out = append(out, Read{own, wholeTable(own)})
	}
	for _, target := range n.CheckedTables() {
		t := in.Named[target.Table.Name]
		out = append(out, Read{t, wholeTable(t)})
	}
	return out
}

// checkTask checks a node's rows: it writes those that fail beside the table
// and fails with them if the check is an error.
func (p *Planner) checkTask(t engine.Task, n *script.Node, in Inputs, own *Table, b Batch) (engine.Task, error) {
	var rows checkedRows
	var err error
	if n.Out == nil {
		rows = tableRows(own, b.Paths)
	} else if rows, err = p.fileRows(n, in, b.Paths); err != nil {
		return t, err
	}
	x := &inspection{node: n, rows: rows, ctx: b.Checks}
	for _, ix := range uniqueIndexes(n) {
		x.rules = append(x.rules, indexRule(n, ix, rows))
	}
	for _, c := range n.Checks {
		target := own
		if c.Target != nil && c.Target != n {
			target = in.Named[c.Target.Table.Name]
		}
		x.rules = append(x.rules, newRule(c, rows, target, b))
	}
	t.Paths = append(t.Paths, b.StageDir)
	t.Output.Inspect = x.inspect
	t.Sides = []engine.SideOutput{{
		Side:   state.SideFailed,
		Query:  "SELECT * FROM " + failedTable,
		Floats: rows.layout.floats(),
		Stage:  b.Stage,
	}}
	t.Judge = x.verdict
	t.Explain = x.explain
	return t, nil
}

// failedTable gathers the failing rows while the checks run.
const failedTable = "__failed"

// inspection runs the rules over the rows of one node.
type inspection struct {
	node     *script.Node
	rows     checkedRows
	rules    []rule
	ctx      CheckContext
	results  []state.CheckResult
	examples [][]string // by rule
	values   []string   // of the first failing row, by rule
}

// inspect finds out what each rule says, and gathers failing rows.
func (x *inspection) inspect(ctx context.Context, db engine.Querier) error {
	x.results, x.examples, x.values = make([]state.CheckResult, len(x.rules)), make([][]string, len(x.rules)), make([]string, len(x.rules))
	if err := x.scan(ctx, db); err != nil {
		return err
	}
	empty := fmt.Sprintf("CREATE TEMP TABLE %s AS SELECT %s, '' AS %s, '' AS %s, '' AS %s FROM %s WHERE false",
		failedTable, strings.Join(x.rows.stored(), ", "), failedCheck, failedSeverity, failedMessage, x.rows.from)
	if _, err := oneRow(ctx, db, empty); err != nil {
		return err
	}
	for i, r := range x.rules {
		res := &x.results[i]
		if r.query != "" {
			values, err := oneRow(ctx, db, r.query)
			if err == nil {
				err = r.judge(values, res)
			}
			if err != nil {
				return fmt.Errorf("check %s: %w", r.name, err)
			}
		}
		res.Name, res.Kind, res.Severity, res.Passed = r.name, r.kind, r.severity, res.Failed == 0
		if res.Passed || r.failing == "" {
			continue
		}
		if err := x.gather(ctx, db, i); err != nil {
			return fmt.Errorf("check %s: %w", r.name, err)
		}
	}
	return nil
}

// scan asks the rules that look at rows one by one, all in one scan.
func (x *inspection) scan(ctx context.Context, db engine.Querier) error {
	var all []string
	for _, r := range x.rules {
		all = append(all, r.aggregates...)
	}
	if len(all) == 0 {
		return nil
	}
	values, err := oneRow(ctx, db, "SELECT "+strings.Join(all, ", ")+" FROM "+x.rows.from)
	if err != nil {
		return err
	}
	for i, r := range x.rules {
		if len(r.aggregates) == 0 {
			continue
		}
		if err := r.judge(values[:len(r.aggregates)], &x.results[i]); err != nil {
			return fmt.Errorf("check %s: %w", r.name, err)
		}
		values = values[len(r.aggregates):]
	}
	return nil
}

// gather keeps the first failing rows of a rule, and shows some.
func (x *inspection) gather(ctx context.Context, db engine.Querier, i int) error {
	r := x.rules[i]
	if r.rowsMax > 0 {
		kept, err := oneRow(ctx, db, fmt.Sprintf("INSERT INTO %s SELECT * EXCLUDE (%s), %s, %s, %s FROM (%s) LIMIT %d", failedTable, failedMessage,
			sqltext.String(r.name), sqltext.String(r.severity), failedMessage, r.failing, r.rowsMax))
		if err != nil {
			return err
		}
		x.results[i].Kept = asInt(kept[0])
	}
	show := fmt.Sprintf("SELECT %s || coalesce(' (' || nullif(%s, '') || ')', '') FROM (%s) AS w LIMIT %d", failedMessage, x.others(r), r.failing, examplesMax)
	list, err := texts(ctx, db, show)
	if err != nil || len(list) == 0 {
		return err
	}
	x.examples[i] = list
	res := &x.results[i]
	res.Message += ": " + strings.Join(list, "; ")
	if res.Failed > int64(len(list)) {
		res.Message += " …"
	}
	if r.value == "" {
		return nil
	}
	first, err := texts(ctx, db, fmt.Sprintf("SELECT %s FROM (%s) AS w LIMIT 1", r.value, r.failing))
	if err == nil && len(first) > 0 {
		x.values[i] = first[0]
	}
	return err
}

// examplesMax is how many failing rows a message shows.
const examplesMax = 3

// others shows the first fields of a row that a rule's message does not: they
// tell which row it is.
func (x *inspection) others(r rule) string {
	const fieldsMax = 2
	var names []string
	if r.whole {
		return "''"
	}
	for _, c := range x.rows.layout.Columns {
		if len(names) < fieldsMax && !slices.Contains(r.fields, c.Name) {
			names = append(names, c.Name)
		}
	}
	return x.rows.shown(names)
}

// verdict reports what was found and fails if an error check did.
func (x *inspection) verdict(context.Context, engine.Querier, engine.Result) error {
	if x.ctx.Report != nil {
		x.ctx.Report(x.results)
	}
	var failed []int
	for i, r := range x.results {
		if !r.Passed && r.Severity == script.SeverityError {
			failed = append(failed, i)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	f := x.fault(failed[0])
	if rest := failed[1:]; len(rest) > 0 {
		names := make([]string, len(rest))
		for i, at := range rest {
			names[i] = x.results[at].Name
		}
		f.Message += fmt.Sprintf("; failed, too: %s", strings.Join(names, ", "))
	}
	return f
}

// fault is the failure of one rule.
func (x *inspection) fault(i int) *fault.Error {
	r, res := x.rules[i], x.results[i]
	place := fault.Place{File: r.pos.File, Line: int64(r.pos.Line), Column: r.pos.Col, Field: strings.Join(r.fields, ", "), Value: x.values[i]}
	if r.fault != nil {
		f := r.fault(res, x.examples[i])
		f.Place = place
		return f
	}
	f := &fault.Error{Kind: fault.UserData, Place: place}
	f.Message = fmt.Sprintf("check %s: %s", r.name, res.Message)
	f.Hint = x.ctx.Run.Command(fmt.Sprintf("checks --run %d", x.ctx.Run.Run)) + " shows all results"
	if res.Kept > 0 {
		query := fmt.Sprintf("sql 'FROM run%d.%s'", x.ctx.Run.Run, plainIdent(SideTable(x.node, state.SideFailed)))
		f.Hint = x.ctx.Run.Command(query) + " shows the failing rows, " + f.Hint
	}
	return f
}

// plainIdent quotes a name only where SQL needs it, for people to read.
func plainIdent(name string) string {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9' || i == 0) {
			return sqltext.Ident(name)
		}
	}
	return name
}

// SideTable is the name under which a node's side table is queried.
func SideTable(n *script.Node, side string) string {
	if n.Table != nil {
		return n.Table.Name + SideMark + side
	}
	return n.Name + SideMark + side
}

// SideMark is between a table's name and what its side table holds.
const SideMark = "__"

// explain finds the row at which a check itself could not be computed.
func (x *inspection) explain(ctx context.Context, db engine.Querier, cause error) error {
	var suspects []suspect
	for _, c := range x.node.Checks {
		for _, e := range []*expr.Compiled{c.Where, c.Expr} {
			if e != nil {
				suspects = append(suspects, suspect{name: c.Name, what: "check", pos: c.Pos, expr: e, typ: expr.Bool})
			}
		}
	}
	if x.rows.source != nil {
		if err := explainOutput(x.node, *x.rows.source)(ctx, db, cause); err != nil {
			return err
		}
	}
	rel := relation{from: x.rows.from, aliases: columns{"w": x.rows.layout}, order: x.rows.order, unknown: x.rows.unknown}
	found := find(ctx, db, x.node, rel, suspects, nil, cause)
	var f *fault.Error
	if errors.As(found, &f) && f.Place.File == "" && x.node.Table != nil {
		f.Place.PutInTable(x.node.Table.Name, f.Place.Record)
	}
	return found
}

// oneRow runs a query and gives its only row; none for a statement without.
func oneRow(ctx context.Context, db engine.Querier, query string) (row []any, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	cols, err := rows.Columns()
	if err != nil || !rows.Next() {
		return nil, errors.Join(err, rows.Err())
	}
	row = make([]any, len(cols))
	into := make([]any, len(cols))
	for i := range row {
		into[i] = &row[i]
	}
	return row, rows.Scan(into...)
}

// texts gives the first column of a query's rows.
func texts(ctx context.Context, db engine.Querier, query string) (out []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

func asInt(v any) int64 {
	n, _ := v.(int64)
	return n
}

func asText(v any) string {
	s, _ := v.(string)
	return s
}
