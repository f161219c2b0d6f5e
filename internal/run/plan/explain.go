package plan

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

// shownRunesMax bounds a value in an error message.
const shownRunesMax = 60

// explanation turns the failure of a statement into one that says where it failed; nil: it cannot.
type explanation = func(ctx context.Context, db engine.Querier, cause error) error

// explainRows finds what n computes that failed, and the first row of rel at which
// it did: the rows of a tag node are those that it tags.
func explainRows(n *script.Node, rel relation) explanation {
	return first(func(ctx context.Context, db engine.Querier, cause error) error {
		return findRow(ctx, db, n, rel, cause)
	}, explainScript(n))
}

// findRow is explainRows where it finds a row; nil if it does not.
func findRow(ctx context.Context, db engine.Querier, n *script.Node, rel relation, cause error) error {
	if n.Tag == nil {
		return find(ctx, db, rel, allSuspects(n), cause)
	}
	found, held := search(ctx, db, rel, tagSuspects(n.Tag), cause)
	if found != nil || !held {
		return found
	}
	numbered := fmt.Sprintf("SELECT *, %s AS __n FROM %s", rel.rowNumber(), rel.from)
	tagged := tagRelation(n.Tag, numbered, rel.aliases["r"], rel.order)
	tagged.row, tagged.unknown, tagged.positions, tagged.slices = "r.__n", rel.unknown, rel.positions, rel.slices
	tagged.refer = tagRef(n.Tag, tagged)
	return find(ctx, db, tagged, allSuspects(n), cause)
}

// explainScript names the expression only.
func explainScript(n *script.Node) explanation {
	return func(_ context.Context, _ engine.Querier, cause error) error {
		suspects := allSuspects(n)
		if n.Tag != nil {
			suspects = append(tagSuspects(n.Tag), suspects...)
		}
		if n.Lookup != nil && n.Lookup.Filter != nil {
			suspects = append(suspects, suspect{name: "filter", pos: n.Lookup.Pos, expr: n.Lookup.Filter})
		}
		return inScript(n, suspects, cause)
	}
}

// inScript places a failure that no row was found for at the expression whose
// text it quotes, else at the node.
func inScript(n *script.Node, suspects []suspect, cause error) error {
	if !engine.IsValueFault(cause) {
		return nil
	}
	only := ""
	if len(suspects) == 1 {
		only = suspects[0].expr.Quoted()
	}
	reason, subject, hint := engine.ExpressionReason(cause, only)
	f := &fault.Error{Kind: fault.UserData, Message: reason,
		Place: fault.Place{File: n.Pos.File, Line: int64(n.Pos.Line), Column: n.Pos.Col},
		Hint:  "change the expression, or correct the rows that it meets"}
	if hint != "" {
		f.Hint += "; " + hint
	}
	for _, s := range suspects {
		if subject != "" && (subject == s.expr.Quoted() || strings.Contains(s.expr.Source(), subject)) {
			f.Place = fault.Place{File: s.pos.File, Line: int64(s.pos.Line), Column: s.pos.Col, Field: s.name,
				Expr: s.expr.Source()}
			break
		}
	}
	return f
}

// explainOutput does the same for an output file's columns.
func explainOutput(n *script.Node, rel relation) explanation {
	return func(ctx context.Context, db engine.Querier, cause error) error {
		if err := find(ctx, db, rel, allSuspects(n), cause); err != nil || !engine.IsValueFault(cause) {
			return err
		}
		// The values are fine, but the file cannot hold one of them.
		w := n.Out
		return &fault.Error{Kind: fault.UserData, Message: engine.Reason(cause),
			Place: fault.Place{File: w.Pos.File, Line: int64(w.Pos.Line), Column: w.Pos.Col}, Hint: refusedHint(w)}
	}
}

// refusedHint is the way out where a file cannot hold a value: a text that needs
// quotes, or a NULL that would be an empty line.
func refusedHint(w *script.FileWriter) string {
	quotes, null := w.Quote == script.QuoteNone, len(w.Columns) == 1 && w.Columns[0].Nullable &&
		w.Columns[0].NullText == ""
	switch {
	case quotes && null:
		return "give the column csv.null_text for its NULLs; values that need quotes are written with csv.quote " +
			"minimal or all"
	case null:
		return "give the column csv.null_text, or write coalesce(…) instead of the NULL"
	}
	return "write it with csv.quote minimal or all, or change the value"
}

// find says which of the suspects failed, and at which row; nil: none, or it
// cannot be said.
func find(ctx context.Context, db engine.Querier, rel relation, suspects []suspect, cause error) error {
	found, _ := search(ctx, db, rel, suspects, cause)
	return found
}

// search keeps the values that the suspects look at in a table, tries the
// suspects on all of it and halves the rows of the one that fails. A relation
// that cannot even be read has another cause, and so has a suspect for which
// memory is too short: nothing is found. held says that all suspects can be computed.
func search(ctx context.Context, db engine.Querier, rel relation, suspects []suspect, cause error) (found error,
	held bool) {
	e, err := newEvidence(ctx, db, rel, suspects)
	if err != nil {
		return nil, false
	}
	for _, s := range suspects {
		switch err := e.try(ctx, s, 0, e.rows); {
		case engine.IsMachineFault(err): // the expression may be right, and need more memory here
			return nil, false
		case err == nil:
			continue
		}
		at := firstFailure(e.rows, func(from, to int64) bool { return e.holds(ctx, s, from, to) })
		if err := e.try(ctx, s, at, at+1); engine.IsValueFault(err) {
			cause = err // the batch may have failed for a row behind this one
		}
		place, err := e.place(ctx, s, at)
		if err != nil {
			return nil, false
		}
		f := s.failed(cause, place.Value)
		f.Place = place
		return f, false
	}
	return nil, true
}

// evidence is a table __evidence of the columns that suspects refer to, in
// the relation's order.
type evidence struct {
	db      engine.Querier
	rel     relation
	columns map[expr.Ref]string
	rows    int64
}

func newEvidence(ctx context.Context, db engine.Querier, rel relation, suspects []suspect) (*evidence, error) {
	e := &evidence{db: db, rel: rel, columns: map[expr.Ref]string{}}
	row, file, order := rel.rowNumber(), "CAST(0 AS BIGINT)", ""
	switch {
	case rel.placedIn() != nil:
		row, file = "r."+files.RowColumn, "r."+files.FileColumn
	case rel.unknown:
		order = " ORDER BY " + strings.Join(rel.order, ", ")
	}
	cols := []string{row + " AS at_row", file + " AS at_file"}
	for _, s := range suspects {
		for _, ref := range s.refs() {
			if e.columns[ref] == "" {
				e.columns[ref] = fmt.Sprintf("c%d", len(e.columns))
				cols = append(cols, rel.ref(ref)+" AS "+e.columns[ref])
			}
		}
	}
	if err := execInOrder(ctx, db, fmt.Sprintf("CREATE OR REPLACE TEMP TABLE __evidence AS SELECT %s FROM %s%s",
		strings.Join(cols, ", "), rel.from, order)); err != nil {
		return nil, err
	}
	return e, e.query(ctx, "SELECT count(*) FROM __evidence", &e.rows)
}

func (e *evidence) ref(r expr.Ref) string { return "e." + e.columns[r] }

// query runs a query and reads its first row.
func (e *evidence) query(ctx context.Context, query string, into ...any) error {
	return queryRow(ctx, e.db, query, into...)
}

// try computes s for rows [from, to). LIMIT keeps DuckDB from computing it for others.
func (e *evidence) try(ctx context.Context, s suspect, from, to int64) error {
	value := s.sql(e.ref)
	if s.print != nil {
		text, err := s.print(value)
		if err != nil {
			return err
		}
		value = text
	}
	return e.query(ctx, fmt.Sprintf("SELECT count(v) FROM (SELECT %s AS v FROM (SELECT * FROM __evidence LIMIT %d "+
		"OFFSET %d) AS e)", value, to-from, from))
}

// holds reports whether s can be computed for rows [from, to).
func (e *evidence) holds(ctx context.Context, s suspect, from, to int64) bool {
	return e.try(ctx, s, from, to) == nil
}

// place names row at and shows the values there.
func (e *evidence) place(ctx context.Context, s suspect, at int64) (fault.Place, error) {
	p := fault.Place{Field: s.name, Expr: s.expr.Source()}
	var file int64
	err := e.query(ctx, fmt.Sprintf("SELECT at_row + 1, at_file, %s FROM __evidence AS e LIMIT 1 OFFSET %d",
		s.shown(e.ref), at), &p.Record, &file, &p.Value)
	for _, sl := range e.rel.placedIn() {
		if int64(sl.File) == file {
			p.File = sl.URL
		}
	}
	if e.rel.unknown {
		p.Record, p.Sorted = 0, p.Record
	}
	return p, err
}
