package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
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

// QueryResult holds a query's rows; cells are string, int64, float64, bool, Nested, CutText or nil.
type QueryResult struct {
	Columns []string
	Types   []string // of each column, as DuckDB names them
	Text    []bool   // of each column: not numbers, truth values or times
	Rows    [][]any
	More    bool // there were more than RowsMax
	// Warnings are of tables that were named with their run, and are invalid or not complete.
	Warnings []string
}

// Query runs SQL over tables named NAME (of the latest run that wrote it) and
// runN.NAME, and over their side tables NAME__failed and NAME__bad (of the
// latest run that has them). Only committed parts are seen.
func Query(ctx context.Context, home *instance.Instance, opts QueryOptions) (QueryResult, error) {
	return QueryIn(ctx, home, here{home}, opts)
}

// QueryIn is Query with the statements executed by in.
func QueryIn(ctx context.Context, home *instance.Instance, in Executor, opts QueryOptions) (res QueryResult,
	err error) {
	p, err := Prepare(ctx, home, opts)
	if err != nil {
		return res, err
	}
	defer p.Close()
	res.Warnings = p.Warnings
	sink := &resultSink{res: &res, to: opts.Sink}
	out, err := in.Execute(ctx, p.Prepared, sink)
	if err == nil && out.Refused != nil {
		err = out.Refused.Fault(ctx, home, opts)
	}
	if err != nil && ctx.Err() != nil {
		err = interrupted(ctx)
	}
	res.More = out.More
	return res, err
}

// PreparedQuery is a query whose files are there until Close.
type PreparedQuery struct {
	Prepared
	Warnings []string
	release  func()
}

// Close gives the files back.
func (p *PreparedQuery) Close() {
	if p.release != nil {
		p.release()
	}
}

// Prepare finds what a query reads, and makes it readable.
func Prepare(ctx context.Context, home *instance.Instance, opts QueryOptions) (*PreparedQuery, error) {
	views, err := openViews(ctx, home, opts)
	if err != nil {
		return nil, err
	}
	return &PreparedQuery{Warnings: views.warnings, release: views.release, Prepared: Prepared{Setup: views.stmts,
		Paths: views.paths, SQL: opts.SQL, Parquet: opts.Parquet, RowsMax: opts.RowsMax,
		MemoryBytes: opts.MemoryBytes, Threads: budget.Cores(), By: opts.Caller}}, nil
}

// resultSink keeps rows in a result, unless another sink gets them.
type resultSink struct {
	res *QueryResult
	to  RowSink
}

// Begin implements RowSink.
func (s *resultSink) Begin(head QueryResult) error {
	s.res.Columns, s.res.Types, s.res.Text = head.Columns, head.Types, head.Text
	if s.to == nil {
		return nil
	}
	return s.to.Begin(*s.res)
}

// Row implements RowSink.
func (s *resultSink) Row(cells []any) error {
	if s.to != nil {
		return s.to.Row(cells)
	}
	s.res.Rows = append(s.res.Rows, cells)
	return nil
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
	release  func()
}

// queryView is a table under a name.
type queryView struct {
	table *plan.Table
	as    string
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
