package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

// suspect is an expression that may have failed, with its place in the script.
type suspect struct {
	name string // field, or what it is for
	what string // what has that name; "": a field
	pos  document.Pos
	expr *expr.Compiled
	typ  expr.Type

	finer bool      // having sees it as it was computed
	each  bool      // an aggregate, of which only what it takes from a row is computed
	of    []suspect // of having: the values that its references stand for; nil: of the row itself
	// print gives the text in the file, which may fail where the value does not; nil: there is none that can.
	print func(value string) (string, error)
}

// title returns the suspect's name in messages.
func (s suspect) title() string {
	if s.of != nil {
		return s.name
	}
	return cmp.Or(s.what, "field") + " " + s.name
}

// refs lists what s looks at in a row.
func (s suspect) refs() []expr.Ref {
	if s.of == nil {
		return s.expr.Refs()
	}
	var out []expr.Ref
	for _, v := range s.of {
		if slices.ContainsFunc(s.expr.Refs(), func(r expr.Ref) bool { return r.Field == v.name }) {
			out = append(out, v.refs()...)
		}
	}
	return out
}

// sql computes s; ref writes a reference to a value of the row.
func (s suspect) sql(ref func(expr.Ref) string) string {
	switch {
	case s.of != nil: // over the expressions behind its references, so that it needs nothing else of them
		return s.expr.SQL(func(r expr.Ref) string { return s.valueOf(r).seen(ref) }, "")
	case s.each:
		return s.expr.EachSQL(ref)
	}
	return expr.StoreSQL(s.typ, s.expr.SQL(ref, ""))
}

// seen is s as having sees it.
func (s suspect) seen(ref func(expr.Ref) string) string {
	if s.finer {
		return "(" + s.expr.ComputedSQL(ref, "") + ")"
	}
	return "(" + s.sql(ref) + ")"
}

// valueOf returns the value that a reference of having stands for.
func (s suspect) valueOf(ref expr.Ref) suspect {
	i := slices.IndexFunc(s.of, func(v suspect) bool { return v.name == ref.Field })
	return s.of[max(i, 0)] // the loader has looked
}

// shown is the SQL of the values that s looks at, as text.
func (s suspect) shown(ref func(expr.Ref) string) string {
	if s.of == nil {
		return shownSQL(s.expr.Refs(), s.expr.Shown(ref))
	}
	return shownSQL(s.expr.Refs(), func(r expr.Ref) string {
		v := s.valueOf(r)
		if v.typ == expr.DateTime { // which may be one with a zone
			v.finer = false
		}
		return "TRY(" + v.seen(ref) + ")"
	})
}

// failed is the failure of s by cause, for a row of these values.
func (s suspect) failed(cause error, values string) *fault.Error {
	reason, _, hint := engine.ExpressionReason(cause, s.expr.Quoted())
	f := &fault.Error{Kind: fault.UserData, Message: s.title() + ": " + reason,
		Place: fault.Place{Field: s.name, Value: values, Expr: s.expr.Source()},
		Hint: fmt.Sprintf("change the expression at %s:%d:%d, or correct the input", s.pos.File,
			s.pos.Line, s.pos.Col)}
	if s.print != nil {
		f.Hint = "leave csv.zone out, name another, or give the column a layout that shows all of it"
	}
	if hint != "" {
		f.Hint += "; " + hint
	}
	return f
}

// shownSQL renders the values of references as r.a = 1, r.b = 2.
func shownSQL(refs []expr.Ref, ref func(expr.Ref) string) string {
	shown := []string{"NULL"}
	for _, r := range refs {
		shown = append(shown, fmt.Sprintf("%s || coalesce(left(CAST(%s AS VARCHAR), %d), 'NULL')",
			sqltext.String(r.Alias+"."+r.Field+" = "), ref(r), shownRunesMax))
	}
	return "concat_ws(', ', " + strings.Join(shown, ", ") + ")"
}

// suspectsOf lists what a node computes of each row, and its having.
func suspectsOf(n *script.Node) ([]suspect, *suspect) {
	var values []suspect
	var pos document.Pos
	if n.Out != nil {
		values, pos = columnSuspects(n.Out), n.Out.Pos
	} else {
		values, pos = fieldSuspects(n.Table), n.Table.Pos
	}
	for _, i := range finerValues(n) {
		for k := range values {
			values[k].finer = values[k].finer || values[k].name == n.Written()[i].Name
		}
	}
	if n.Having() == nil {
		return values, nil
	}
	return values, &suspect{name: "having", pos: pos, expr: n.Having(), typ: expr.Bool, of: values}
}

// allSuspects lists all that suspectsOf does.
func allSuspects(n *script.Node) []suspect {
	values, having := suspectsOf(n)
	if having != nil {
		values = append(slices.Clone(values), *having)
	}
	return values
}

func fieldSuspects(w *script.TableWriter) []suspect {
	var out []suspect
	for _, f := range w.Fields {
		out = append(out, suspect{name: f.Name, pos: f.ExprPos, expr: f.Expr, typ: f.Type})
	}
	return out
}

func tagSuspects(tag *script.Tag) []suspect {
	var out []suspect
	for _, c := range tag.Criteria {
		out = append(out, suspect{name: "tag " + c.Tag, pos: tag.Pos, expr: c.Expr, typ: expr.Bool})
	}
	return out
}

func columnSuspects(w *script.FileWriter) []suspect {
	var out []suspect
	for _, c := range w.Columns {
		out = append(out, suspect{name: c.Name, pos: c.Pos, expr: c.Expr, typ: c.Type})
		if c.Zone != "" {
			out = append(out, suspect{name: c.Name, what: "column", pos: c.Pos, expr: c.Expr, typ: c.Type,
				print: c.PrintSQL})
		}
	}
	return out
}
