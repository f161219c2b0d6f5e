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

// explainExpressions finds the expression and the first row at which a
// relational task failed. slices are given for relations that read files,
// whose rows then carry __file and __row.
func explainExpressions(n *script.Node, rel relation, slices []files.Slice) func(context.Context, engine.Querier,
	error) error {
	return func(ctx context.Context, db engine.Querier, cause error) error {
		suspects := allSuspects(n)
		if found := find(ctx, db, n, rel, suspects, slices, cause); found != nil {
			return found
		}
		return inScript(n, suspects, cause)
	}
}

// explainTags finds the criterion and the row of source at which a tag node failed, or
// the field of one of its tags.
func explainTags(n *script.Node, source relation) func(context.Context, engine.Querier, error) error {
	return func(ctx context.Context, db engine.Querier, cause error) error {
		if found := blameTags(ctx, db, n, source, cause); found != nil {
			return found
		}
		return inScript(n, append(tagSuspects(n.Tag), allSuspects(n)...), cause)
	}
}

// blameTags is explainTags where it finds a row; nil if it does not.
func blameTags(ctx context.Context, db engine.Querier, n *script.Node, source relation, cause error) error {
	found, held := search(ctx, db, n, source, tagSuspects(n.Tag), source.placedIn(), cause)
	if found != nil || !held {
		return found
	}
	numbered := fmt.Sprintf("SELECT *, %s AS __n FROM %s", source.rowNumber(), source.from)
	tagged := tagRelation(n.Tag, numbered, source.aliases["r"], source.order)
	tagged.row, tagged.unknown, tagged.positions, tagged.slices = "r.__n", source.unknown,
		source.positions, source.slices
	tagged.refer = tagRef(n.Tag, tagged)
	return find(ctx, db, n, tagged, allSuspects(n), tagged.placedIn(), cause)
}

// explainScript names the expression only.
func explainScript(n *script.Node) func(context.Context, engine.Querier, error) error {
	return func(_ context.Context, _ engine.Querier, cause error) error {
		suspects := allSuspects(n)
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
func explainOutput(n *script.Node, rel relation) func(context.Context, engine.Querier, error) error {
	return func(ctx context.Context, db engine.Querier, cause error) error {
		if err := find(ctx, db, n, rel, allSuspects(n), rel.placedIn(), cause); err != nil ||
			!engine.IsValueFault(cause) {
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
func find(ctx context.Context, db engine.Querier, n *script.Node, rel relation, suspects []suspect,
	slices []files.Slice, cause error) error {
	found, _ := search(ctx, db, n, rel, suspects, slices, cause)
	return found
}

// search keeps the values that the suspects look at in a table, tries the
// suspects on all of it and halves the rows of the one that fails. A relation
// that cannot even be read has another cause, and so has a suspect for which
// memory is too short: nothing is found. held says that all suspects can be computed.
func search(ctx context.Context, db engine.Querier, n *script.Node, rel relation, suspects []suspect,
	slices []files.Slice,
	cause error) (found error, held bool) {
	e, err := newEvidence(ctx, db, rel, suspects, slices != nil)
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
		place, err := e.place(ctx, s, at, slices)
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

func newEvidence(ctx context.Context, db engine.Querier, rel relation, suspects []suspect, positioned bool) (*evidence,
	error) {
	e := &evidence{db: db, rel: rel, columns: map[expr.Ref]string{}}
	row, file, order := rel.rowNumber(), "CAST(0 AS BIGINT)", ""
	switch {
	case positioned:
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
func (e *evidence) place(ctx context.Context, s suspect, at int64, slices []files.Slice) (fault.Place, error) {
	p := fault.Place{Field: s.name, Expr: s.expr.Source()}
	var file int64
	err := e.query(ctx, fmt.Sprintf("SELECT at_row + 1, at_file, %s FROM __evidence AS e LIMIT 1 OFFSET %d",
		s.shown(e.ref), at), &p.Record, &file, &p.Value)
	for _, sl := range slices {
		if int64(sl.File) == file {
			p.File = sl.URL
		}
	}
	if e.rel.unknown {
		p.Record, p.Sorted = 0, p.Record
	}
	return p, err
}
