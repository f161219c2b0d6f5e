package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// Phases of a node's batches: those of one begin when all of those before it
// have succeeded. A table is checked when it is written, before anybody reads
// it; files are checked before the first is written.
const (
	phaseFirst = iota
	phaseSecond
)

// ErrLookAgain asks for all of a node's rows, from a batch that has only some of them at hand to check. It
// needs all to find the row at which an expression fails, or to do its shares' counting itself.
var ErrLookAgain = errors.New("all rows are needed to check them")

// CheckContext holds the facts that checks need besides the rows.
type CheckContext struct {
	Run      state.RunKey
	Created  time.Time                 // of the run
	Measured map[string]string         // what the checks of the previous complete run measured, by name
	Report   func([]state.CheckResult) // called with what was found, before the batch fails for it
}

// indexKind is the kind of check for a table's unique index.
const indexKind = "unique_index"

// indexFailedRows limits the failing rows that are kept for a unique index, which has no key of its own for
// it.
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
	rows       checkedRows // that it looks at
	absent     bool        // it looks at none: they are in other shares
	counts     string      // what the failed ones are said to do, as in "3 of 4 rows failed"; "": judge says it
	// failing selects the fields of w's layout, a message and the place (see
	// placeSQL) of failing rows in order, at most rowsMax or examplesMax; "" for rules that are not about single rows.
	failing string
	whole   bool   // the message tells which row it is
	value   string // SQL over w: what a failing row has that it must not, for the fault's place; "" for none
	// fault is the failure in its own words, for rules that have some.
	fault  func(r state.CheckResult, examples []string) *fault.Error
	totals []comparedTotal // aggregates that it compares
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

// checkWork adds the batches that check a node's rows, and sets the phases.
func (p *Planner) checkWork(n *script.Node, in Inputs, works []Work, sizes []size) ([]Work, []size) {
	phase := phaseSecond
	if n.Out != nil {
		phase = phaseFirst
		for i := range works {
			works[i].Phase = phaseSecond
		}
	}
	checks := p.checkWorks(p.checkShares(n, in, sizes), phase)
	return append(works, checks...), append(sizes, make([]size, len(checks))...)
}

// checkReads lists what the batch that checks a node's rows reads: of a share,
// what its rules look at; of the one that adds up, only what the shares have
// left. One that looks again reads all.
func checkReads(n *script.Node, in Inputs, own *Table, w Work) []Read {
	var out []Read
	if len(w.Found) > 0 {
		left := &Table{Run: own.Run, Writer: own.Writer, Parts: w.Found}
		out = append(out, Read{left, wholeTable(left)})
	}
	switch {
	case w.Again:
	case w.Share.judges():
		return out
	case w.Share.Looks():
		return append(out, shareReads(n, in, own, w.Share)...)
	}
	return append(out, checkedParts(n, in, own)...)
}

// checkedParts are all rows that a node's checks look at.
func checkedParts(n *script.Node, in Inputs, own *Table) (out []Read) {
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

// shareReads are those that the rules of a share look at.
func shareReads(n *script.Node, in Inputs, own *Table, share *CheckShare) (out []Read) {
	c := checked{own: own, share: share,
		read: func(t *Table, slices []PartSlice) { out = append(out, Read{t, slices}) }}
	c.rows = tableRows(own, wholeTable(own), nil)
	c.each() // whatever its rules are, it knows the columns from some part
	(&inspection{node: n, share: share}).takeRules(n, in, c, CheckContext{})
	return out
}

// checkTask checks a node's rows: it writes those that fail beside the table
// and fails with them if the check is an error.
func (p *Planner) checkTask(t engine.Task, n *script.Node, in Inputs, own *Table, b Batch) (engine.Task, error) {
	c := checked{own: own, share: b.Work.Share, paths: b.Paths}
	var err error
	if n.Out == nil {
		c.rows = tableRows(own, wholeTable(own), b.Paths)
	} else if c.rows, err = p.fileRows(n, in, b.Paths); err != nil {
		return t, err
	}
	x := &inspection{node: n, rows: c.rows, share: c.share, ctx: b.Checks}
	switch {
	case b.Work.Again:
	case c.share.Looks():
		x.rows, x.part = c.each(), true
	case c.share.judges():
		x.rows, x.part = tableRows(own, nil, nil), true
	}
	x.takeRules(n, in, c, b.Checks)
	for _, read := range checkedParts(n, in, own) {
		for _, s := range read.Slices {
			x.reads = append(x.reads, read.Table.Parts[s.Part].Key)
		}
	}
	for _, part := range b.Work.Found {
		x.found = append(x.found, sqltext.Glob(b.Paths[part.Key]))
	}
	if x.share.judges() && !x.part { // what is left may not count: it looks at all rows itself
		all := c
		all.share = nil
		x.again = func() { x.rules = nil; x.takeRules(n, in, all, b.Checks) }
	}
	t.Paths = append(t.Paths, b.StageDir)
	t.Output.Inspect = x.inspect
	side := engine.SideOutput{Side: state.SideFailed, Query: "SELECT * FROM " + failedTable,
		Floats: c.rows.layout.floats(), Stage: b.Stage}
	if x.share.Looks() {
		side.Side, side.Query = state.SideFound, "SELECT * FROM "+foundTable
	} else {
		t.Judge = x.verdict
	}
	t.Sides = []engine.SideOutput{side}
	t.Explain = x.explain
	return t, nil
}

// takeRules puts the node's checks into SQL.
func (x *inspection) takeRules(n *script.Node, in Inputs, c checked, ctx CheckContext) {
	for _, ix := range uniqueIndexes(n) {
		x.rules = append(x.rules, indexRule(n, ix, c))
	}
	for _, check := range n.Checks {
		target := c.own
		if check.Target != nil && check.Target != n {
			target = in.Named[check.Target.Table.Name]
		}
		x.rules = append(x.rules, newRule(check, c, target, ctx))
	}
}

// failedTable holds the failing rows that are kept.
const failedTable = "__failed"

// inspection runs the rules over the rows of one node.
type inspection struct {
	node     *script.Node
	rows     checkedRows
	rules    []rule
	share    *CheckShare
	reads    []string // keys of the parts
	found    []string // paths of what the shares have left
	again    func()   // makes rules of all rows
	part     bool     // it has not all rows at hand
	ctx      CheckContext
	results  []state.CheckResult
	examples [][]string // by rule
	values   []string   // of the first failing row, by rule
}

// inspect finds out what each rule says, and gathers failing rows.
func (x *inspection) inspect(ctx context.Context, db engine.Querier) error {
	x.results, x.examples, x.values = make([]state.CheckResult, len(x.rules)), make([][]string, len(x.rules)),
		make([]string, len(x.rules))
	added := false
	if x.share.judges() {
		var err error
		if added, err = x.addUp(ctx, db, *x.share); err != nil {
			return err
		}
		switch {
		case added:
		case x.part:
			return ErrLookAgain
		default:
			x.again()
		}
	}
	if !added {
		if err := x.look(ctx, db); err != nil {
			return err
		}
	}
	if x.share.Looks() {
		return x.leave(ctx, db)
	}
	return x.conclude(ctx, db)
}

// look asks the rules, and gathers the first failing rows of each.
func (x *inspection) look(ctx context.Context, db engine.Querier) error {
	if err := x.scan(ctx, db); err != nil {
		return err
	}
	if err := x.begin(ctx, db); err != nil {
		return err
	}
	for i, r := range x.rules {
		if r.absent {
			continue
		}
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
		if res.Failed == 0 || r.failing == "" {
			continue
		}
		if _, err := oneRow(ctx, db, fmt.Sprintf("INSERT INTO %s SELECT *, %d, NULL FROM (%s)", foundTable, i,
			r.failing)); err != nil {
			return fmt.Errorf("check %s: %w", r.name, err)
		}
	}
	return nil
}

// scan asks the rules that look at rows one by one: those that look at the same
// rows all in one scan.
func (x *inspection) scan(ctx context.Context, db engine.Querier) error {
	var all []string
	var asked []int
	for i, r := range x.rules {
		if !r.absent && len(r.aggregates) > 0 {
			asked = append(asked, i)
		}
	}
	for len(asked) > 0 {
		from := x.rules[asked[0]].rows.from
		all = all[:0]
		var others []int
		for _, i := range asked {
			if r := x.rules[i]; r.rows.from == from {
				all = append(all, r.aggregates...)
			} else {
				others = append(others, i)
			}
		}
		values, err := oneRow(ctx, db, "SELECT "+strings.Join(all, ", ")+" FROM "+from)
		if err != nil {
			return err
		}
		for _, i := range asked {
			r := x.rules[i]
			if r.rows.from != from {
				continue
			}
			if err := r.judge(values[:len(r.aggregates)], &x.results[i]); err != nil {
				return fmt.Errorf("check %s: %w", r.name, err)
			}
			values = values[len(r.aggregates):]
		}
		asked = others
	}
	return nil
}

// conclude says what was found by each rule, and keeps the first failing rows.
func (x *inspection) conclude(ctx context.Context, db engine.Querier) error {
	empty := fmt.Sprintf("CREATE TEMP TABLE %s AS SELECT %s, '' AS %s, '' AS %s, '' AS %s FROM %s AS w WHERE false",
		failedTable, strings.Join(x.rows.stored(), ", "), failedCheck, failedSeverity, failedMessage, foundTable)
	if _, err := oneRow(ctx, db, empty); err != nil {
		return err
	}
	for i, r := range x.rules {
		res := &x.results[i]
		if res.Failed > 0 && r.counts != "" {
			res.Message = fmt.Sprintf("%d of %d %s", res.Failed, res.Checked, r.counts)
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

// gather keeps the first failing rows of a rule, and shows some.
func (x *inspection) gather(ctx context.Context, db engine.Querier, i int) error {
	r := x.rules[i]
	failing := func(limit int) string {
		return fmt.Sprintf("(SELECT * FROM %s WHERE %s = %d AND %s IS NOT NULL ORDER BY %s LIMIT %d) AS w", foundTable,
			foundRule, i, foundAt, foundAt, limit)
	}
	if r.rowsMax > 0 {
		kept, err := oneRow(ctx, db, fmt.Sprintf("INSERT INTO %s SELECT %s, %s, %s, %s FROM %s", failedTable,
			strings.Join(x.rows.stored(), ", "),
			sqltext.String(r.name), sqltext.String(r.severity), failedMessage, failing(r.rowsMax)))
		if err != nil {
			return err
		}
		x.results[i].Kept = asInt(kept[0])
	}
	show := fmt.Sprintf("SELECT %s || coalesce(' (' || nullif(%s, '') || ')', '') FROM %s", failedMessage, x.others(r),
		failing(examplesMax))
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
	first, err := texts(ctx, db, fmt.Sprintf("SELECT %s FROM %s", r.value, failing(1)))
	if err == nil && len(first) > 0 {
		x.values[i] = first[0]
	}
	return err
}

// examplesMax limits the failing rows that a message shows.
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
	place := fault.Place{File: r.pos.File, Line: int64(r.pos.Line), Column: r.pos.Col,
		Field: strings.Join(r.fields, ", "), Value: x.values[i]}
	if r.fault != nil {
		f := r.fault(res, x.examples[i])
		f.Place = place
		return f
	}
	f := &fault.Error{Kind: fault.UserData, Place: place}
	f.Message = fmt.Sprintf("check %s: %s", r.name, res.Message)
	f.Hint = x.ctx.Run.Do("checks").String() + " shows all results"
	if res.Kept > 0 {
		query := fmt.Sprintf("FROM run%d.%s", x.ctx.Run.Run, plainIdent(SideTable(x.node, state.SideFailed)))
		f.Hint = x.ctx.Run.Beside("sql", "query", query).String() + " shows the failing rows, " + f.Hint
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
	if x.part {
		return ErrLookAgain
	}
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
	rel := relation{from: x.rows.from, aliases: columns{"w": x.rows.layout}, order: x.rows.order,
		unknown: x.rows.unknown}
	found := find(ctx, db, rel, suspects, cause)
	var f *fault.Error
	if !errors.As(found, &f) {
		return x.explainTotals(ctx, db, cause)
	}
	f.Place.Sorted = 0 // it counts the node's own rows
	if f.Place.File == "" && x.node.Table != nil {
		f.Place.PutInTable(x.node.Table.Name, f.Place.Record)
	}
	return found
}

// comparedTotal is an aggregate that a check compares, over some rows of a table.
type comparedTotal struct {
	suspect
	rows  relation
	table string // "": the node's own, or what its file will hold
}

// explainTotals finds the total that could not be computed, and the row for which it
// could not, if it is for one.
func (x *inspection) explainTotals(ctx context.Context, db engine.Querier, cause error) error {
	for _, r := range x.rules {
		for _, t := range r.totals {
			each := t.suspect
			each.each = true
			found := find(ctx, db, t.rows, []suspect{each}, cause)
			if err := queryRow(ctx, db,
				fmt.Sprintf("SELECT %s FROM %s", t.expr.SQL(t.rows.ref, strings.Join(t.rows.order, ", ")),
					t.rows.from)); found == nil &&
				engine.IsValueFault(err) {
				found = t.failed(err, "")
			}
			var f *fault.Error
			if !errors.As(found, &f) {
				continue
			}
			f.Place.Sorted = 0
			if t.table == "" && x.node.Table != nil {
				t.table = x.node.Table.Name
			}
			if t.table != "" {
				f.Place.PutInTable(t.table, f.Place.Record)
			}
			return f
		}
	}
	return nil
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
