package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"thalweg/internal/engine"
	"thalweg/internal/expr"
	"thalweg/internal/fault"
	"thalweg/internal/files"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
)

// suspect is an expression that may have failed, with its place in the script.
type suspect struct {
	name string // field, or what it is for
	pos  script.Pos
	expr *expr.Compiled
	typ  expr.Type
}

// shownRunesMax bounds a value in an error message.
const shownRunesMax = 60

// explainExpressions finds the expression and the first row at which a
// relational task failed: TRY turns an error into NULL, which values never are.
// slices are given for relations that read files, whose rows then carry
// __file and __row.
func explainExpressions(n *script.Node, rel relation, slices []files.Slice) func(context.Context, engine.Querier, error) error {
	return func(ctx context.Context, db engine.Querier, cause error) error {
		var suspects []suspect
		for _, f := range n.Table.Fields {
			suspects = append(suspects, suspect{name: f.Name, pos: f.ExprPos, expr: f.Expr, typ: f.Type})
		}
		return find(ctx, db, n, rel, suspects, slices, cause)
	}
}

// explainOutput does the same for an output file's columns.
func explainOutput(n *script.Node, rel relation) func(context.Context, engine.Querier, error) error {
	return func(ctx context.Context, db engine.Querier, cause error) error {
		var suspects []suspect
		for _, c := range n.Out.Columns {
			suspects = append(suspects, suspect{name: c.Name, pos: c.Pos, expr: c.Expr, typ: c.Type})
		}
		return find(ctx, db, n, rel, suspects, nil, cause)
	}
}

func find(ctx context.Context, db engine.Querier, n *script.Node, rel relation, suspects []suspect, slices []files.Slice, cause error) error {
	for _, s := range suspects {
		f, err := tryExpression(ctx, db, rel, s, slices)
		if err != nil || f == nil {
			continue // a relation that cannot even be read has another cause
		}
		f.Message = fmt.Sprintf("node %s, field %s: %s", n.Name, s.name, reason(cause))
		f.Hint = fmt.Sprintf("change the expression at %s:%d:%d, or correct the input", s.pos.File, s.pos.Line, s.pos.Col)
		f.Err = nil
		return f
	}
	return nil
}

// reason is the failure's own words, without the task's name in front.
func reason(cause error) string {
	var f *fault.Error
	if !errors.As(cause, &f) {
		return cause.Error()
	}
	if _, after, ok := strings.Cut(f.Message, ": "); ok {
		return after
	}
	return f.Message
}

// tryExpression looks for the first row at which s fails.
func tryExpression(ctx context.Context, db engine.Querier, rel relation, s suspect, slices []files.Slice) (*fault.Error, error) {
	value := expr.StoreSQL(s.typ, s.expr.SQL(rel.aliases.ref, ""))
	var shown []string
	for _, r := range s.expr.Refs() {
		shown = append(shown, fmt.Sprintf("%s || coalesce(left(CAST(%s AS VARCHAR), %d), 'NULL')",
			sqltext.String(r.Alias+"."+r.Field+" = "), rel.aliases.ref(r), shownRunesMax))
	}
	row := "row_number() OVER ()"
	file := "0"
	if slices != nil {
		row, file = "r.__row + 1", "r.__file"
	}
	query := fmt.Sprintf("SELECT __row1, __file1, __shown FROM (SELECT %s AS __row1, %s AS __file1, concat_ws(', ', %s) AS __shown, TRY(struct_pack(v := %s)) IS NULL AS __bad FROM %s) WHERE __bad LIMIT 1",
		row, file, strings.Join(append(shown, "NULL"), ", "), value, rel.from)
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, rows.Err()
	}
	f := &fault.Error{Kind: fault.UserData, Place: fault.Place{Field: s.name, Expr: s.expr.Source()}}
	var fileIndex int64
	if err := rows.Scan(&f.Place.Record, &fileIndex, &f.Place.Value); err != nil {
		return nil, err
	}
	for _, sl := range slices {
		if int64(sl.File) == fileIndex {
			f.Place.File = sl.URL
		}
	}
	return f, nil
}
