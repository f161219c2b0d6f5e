package plan

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// Recheck runs a node's checks over rows that are there, without a run.
type Recheck struct {
	Node   *script.Node
	Own    *Table // nil: the node writes files, whose rows are computed from in
	Inputs Inputs
	Paths  Paths
	Checks CheckContext
	// Tell is told what was found. db answers what failing gives: a query of the rows that were
	// kept of a check, their fields and why each fails; at most limit of them, 0: all.
	Tell func(ctx context.Context, db engine.Querier, found []state.CheckResult,
		failing func(check string, limit int) string) error
}

// HasChecks reports whether a node's rows are checked: by its checks or its unique indexes.
func HasChecks(n *script.Node) bool { return hasChecks(n) }

// Reads lists the tables that it reads.
func (r Recheck) Reads() []*Table {
	var out []*Table
	for _, read := range checkedParts(r.Node, r.Inputs, r.Own) {
		for _, m := range read.Table.each() {
			out = append(out, m.Table)
		}
	}
	return out
}

// RecheckTask makes the task. It writes nothing, and does not fail for what it finds.
func (p *Planner) RecheckTask(r Recheck) (engine.Task, error) {
	t := engine.Task{Name: "the checks of " + r.Node.Name}
	for _, path := range r.Paths {
		t.Paths = append(t.Paths, path)
	}
	var found []state.CheckResult
	checks := r.Checks
	checks.Report = func(results []state.CheckResult) { found = results }
	t, err := p.checkTask(t, r.Node, r.Inputs, r.Own, Batch{Paths: r.Paths, Checks: checks, Work: Work{Check: true}})
	if err != nil {
		return t, err
	}
	verdict := t.Judge
	t.Sides = nil
	t.Judge = func(ctx context.Context, db engine.Querier, res engine.Result) error {
		_ = verdict(ctx, db, res) // reports; that checks fail is what is asked for
		return r.Tell(ctx, db, found, r.failing)
	}
	return t, nil
}

// failing selects failing rows that were kept, with the names that the script has.
func (r Recheck) failing(check string, limit int) string {
	named := rowLayout(r.Node)
	stored := named
	if r.Own != nil {
		stored = r.Own.Layout
	}
	var cols []string
	for _, c := range named.Columns {
		if s, ok := stored.column(c.Name); ok {
			cols = append(cols, sqltext.Ident(s.Stored())+" AS "+sqltext.Ident(c.Name))
		}
	}
	cols = append(cols, failedMessage)
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s = %s ORDER BY rowid",
		strings.Join(cols, ", "), failedTable, failedCheck, sqltext.String(check))
	if limit > 0 {
		query += fmt.Sprintf(" LIMIT %d", limit)
	}
	return query
}
