package plan

import (
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

func columnOf(ref func(expr.Ref) string, alias, field string) string {
	return ref(expr.Ref{Alias: alias, Field: field})
}

// reconcileRule compares an aggregate of the rows with one of another table's,
// group by group if there are groups. A group that one side does not have
// counts there as what the aggregate is over no rows.
func reconcileRule(r *rule, c *script.Check, v keyedRows) {
	rows := v.rows
	own := totals(c.Value, rows.ref, rows.order, rows.from, condition(c, rows), "w", c.By)
	other := totals(c.Equals, v.ref, v.otherOrder, v.other, "true", "r", c.ByEq)
	both := fmt.Sprintf("(SELECT __a.__v AS __a, __b.__v AS __b FROM (%s) AS __a, (%s) AS __b)", own, other)
	if len(c.By) > 0 {
		both = groupTotals(c, own, other)
	}
	a, b := "coalesce(__a, "+zeroOf(c.Value)+")", "coalesce(__b, "+zeroOf(c.Equals)+")"
	differs := differing(c, a, b)
	message := fmt.Sprintf("concat(%s, %s, %s, %s)", sqltext.String(c.Value.Source()+" is "),
		shownValue(c.Value.Type(), a),
		sqltext.String(", but "+c.Equals.Source()+" of table "+c.Target.Table.Name+" is "),
		shownValue(c.Equals.Type(), b))
	r.query = fmt.Sprintf("SELECT count(*), count(*) FILTER (WHERE %s), max(%s) FROM %s", differs, message, both)
	r.judge = func(values []any, res *state.CheckResult) error {
		res.Checked, res.Failed = asInt(values[0]), asInt(values[1])
		if res.Failed > 0 && len(c.By) == 0 {
			res.Message = asText(values[2])
		}
		return nil
	}
	r.totals = []comparedTotal{
		{checkedTotal(c, c.Value), relation{from: fmt.Sprintf("(SELECT *, %s AS __n FROM %s) AS w WHERE %s",
			rowNumber(rows), rows.from, condition(c, rows)),
			row: "w.__n", refer: rows.ref, order: rows.order, unknown: rows.unknown}, ""},
		{checkedTotal(c, c.Equals), relation{from: v.other, refer: v.ref, order: v.otherOrder, unknown: v.otherUnknown},
			c.Target.Table.Name},
	}
	if len(c.By) == 0 {
		return
	}
	r.fields, r.whole, r.counts = c.By, true, "groups differ"
	r.failing = failingGroups(c, rows, both, differs, message, r.rowsMax)
}

// checkedTotal is one of the aggregates that c compares.
func checkedTotal(c *script.Check, x *expr.Compiled) suspect {
	return suspect{name: c.Name, what: "check", pos: c.Pos, expr: x, typ: x.Type()}
}

func rowNumber(rows checkedRows) string {
	return relation{order: rows.order, unknown: rows.unknown}.rowNumber()
}

// totals is a SELECT of an aggregate as __v, and of the fields that make the
// groups as __k0 ….
func totals(x *expr.Compiled, ref func(expr.Ref) string, order []string, from, where, alias string,
	by []string) string {
	cols := []string{x.SQL(ref, strings.Join(order, ", ")) + " AS __v"}
	var keys []string
	for i, f := range by {
		key := columnOf(ref, alias, f)
		cols, keys = append(cols, fmt.Sprintf("%s AS __k%d", key, i)), append(keys, key)
	}
	q := fmt.Sprintf("SELECT %s FROM %s WHERE %s", strings.Join(cols, ", "), from, where)
	if len(keys) > 0 {
		q += " GROUP BY " + strings.Join(keys, ", ")
	}
	return q
}

// groupTotals meets the groups of both sides. NULL is a group as any other.
func groupTotals(c *script.Check, own, other string) string {
	cols, same := []string{"__a.__v AS __a", "__b.__v AS __b"}, make([]string, len(c.By))
	for i := range c.By {
		cols = append(cols, fmt.Sprintf("coalesce(__a.__k%d, __b.__k%d) AS __k%d", i, i, i))
		same[i] = fmt.Sprintf("__a.__k%d IS NOT DISTINCT FROM __b.__k%d", i, i)
	}
	return fmt.Sprintf("(SELECT %s FROM (%s) AS __a FULL OUTER JOIN (%s) AS __b ON %s)", strings.Join(cols, ", "), own,
		other, strings.Join(same, " AND "))
}

// failingGroups selects groups in the shape of w's rows: the fields that make
// a group have its values, all others are NULL.
func failingGroups(c *script.Check, rows checkedRows, both, differs, message string, limit int) string {
	types := rows.layout.types()
	cols, order := make([]string, len(rows.layout.Columns)), make([]string, len(c.By))
	for i, col := range rows.layout.Columns {
		cols[i] = fmt.Sprintf("CAST(NULL AS %s) AS %s", types[col.Name].SQL(), sqltext.Ident(col.Stored()))
		for k, f := range c.By {
			if f == col.Name {
				cols[i] = fmt.Sprintf("__k%d AS %s", k, sqltext.Ident(col.Stored()))
			}
		}
	}
	keys := make([]string, len(c.By))
	for k, f := range c.By {
		order[k] = fmt.Sprintf("__k%d", k)
		keys[k] = sqltext.String(f+" = ") + " || " + shownValue(types[f], order[k])
	}
	return fmt.Sprintf("SELECT %s, concat_ws(', ', %s) || ': ' || %s AS %s, %s AS %s FROM %s WHERE %s ORDER BY "+
		"%s LIMIT %d", strings.Join(cols, ", "),
		strings.Join(keys, ", "), message, failedMessage, placeSQL(order), foundAt, both, differs,
		strings.Join(order, ", "), max(limit, examplesMax))
}

// zeroOf returns the value of an aggregate over no rows.
func zeroOf(x *expr.Compiled) string {
	t := x.Type()
	if t == expr.GoInt {
		t = expr.Int
	}
	sql, err := expr.DefaultSQL(t, "", "")
	if err != nil {
		return "NULL"
	}
	return sql
}

// differing says in SQL whether two totals are further apart than the check
// allows. The difference is computed exactly except for floats.
func differing(c *script.Check, a, b string) string {
	if !isNumeric(c.Value.Type()) {
		return fmt.Sprintf("%s IS DISTINCT FROM %s", a, b)
	}
	_, scaleA := c.Value.Type().Digits()
	_, scaleB := c.Equals.Type().Digits()
	as, tolerance := fmt.Sprintf("DECIMAL(38,%d)", max(scaleA, scaleB)), fmt.Sprintf("CAST('%s' AS DECIMAL(38,10))",
		c.Tolerance)
	switch {
	case c.Value.Type() == expr.Float || c.Equals.Type() == expr.Float:
		as, tolerance = "DOUBLE", fmt.Sprintf("CAST('%s' AS DOUBLE)", c.Tolerance)
	}
	return fmt.Sprintf("(CAST(%s AS %s) <> CAST(%s AS %s) AND NOT coalesce(abs(CAST(%s AS %s) - CAST(%s AS %s)) <= "+
		"%s, false))", a, as, b, as, a, as, b, as, tolerance)
}

func isNumeric(t expr.Type) bool {
	return t.IsNumber()
}
