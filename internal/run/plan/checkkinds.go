package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// newRule puts a check into SQL. target is the table that it compares with.
func newRule(c *script.Check, seen checked, target *Table, ctx CheckContext) rule {
	r := rule{name: c.Name, kind: string(c.Kind), severity: c.Severity, pos: c.Pos, fields: c.Fields,
		rowsMax: c.MaxRows}
	here := true
	switch c.Kind {
	case script.CheckRows:
		r.rows, here = seen.once()
		countRule(&r, c, r.rows, ctx)
	case script.CheckFreshness:
		r.rows, here = seen.once()
		freshnessRule(&r, c, r.rows, ctx)
	case script.CheckUnique:
		var v keyedRows
		v, here = seen.byKey(keyOf(c.Fields), nil, nil, nil)
		keys := make([]string, len(c.Fields))
		for i, f := range c.Fields {
			keys[i] = v.rows.column(f)
		}
		uniqueRule(&r, v.rows, condition(c, v.rows), keys, "' rows have ' || "+v.rows.shown(c.Fields))
	case script.CheckReferences:
		var v keyedRows
		v, here = seen.byKey(keyOf(c.Fields), target, keyOf(c.To), targetFields(c, target.Layout))
		referencesRule(&r, c, v)
	case script.CheckReconcile:
		var v keyedRows
		v, here = seen.byGroup(c, target)
		reconcileRule(&r, c, v)
	default:
		r.rows = seen.each()
		rowRule(&r, c, r.rows)
	}
	r.absent = !here
	return r
}

// byGroup returns the rows that a reconcile check of a share compares. Without groups the check is not shared
// out.
func (c checked) byGroup(check *script.Check, target *Table) (keyedRows, bool) {
	fields := targetFields(check, target.Layout)
	if len(check.By) > 0 {
		return c.byKey(keyOf(check.By), target, keyOf(check.ByEq), fields)
	}
	_, here := c.once()
	c.share = nil
	v, _ := c.byKey(nil, target, nil, fields)
	return v, here
}

// condition is the SQL of a check's where, true without one.
func condition(c *script.Check, rows checkedRows) string {
	if c.Where == nil {
		return "true"
	}
	return "coalesce(" + c.Where.SQL(rows.ref, "") + ", false)"
}

// selecting is a SELECT of w's fields, a message and the place in an order, in that order.
func (r checkedRows) selecting(message, from, where string, order []string, limit int) string {
	return fmt.Sprintf("SELECT %s, %s AS %s, %s AS %s FROM %s WHERE %s ORDER BY %s LIMIT %d",
		strings.Join(r.stored(), ", "), message, failedMessage,
		placeSQL(order), foundAt, from, where, strings.Join(order, ", "), max(limit, examplesMax))
}

// rowRule is a rule that each row keeps or breaks by itself. A comparison with
// NULL is neither: it passes.
func rowRule(r *rule, c *script.Check, rows checkedRows) {
	breaks, message := rowCondition(c, rows)
	fails := "coalesce(" + breaks + ", false)"
	where := condition(c, rows)
	if c.Where != nil { // what is not looked at must not raise an error either
		fails = fmt.Sprintf("CASE WHEN %s THEN %s ELSE false END", where, fails)
	}
	r.aggregates = []string{"count(*) FILTER (WHERE " + where + ")", "count(*) FILTER (WHERE " + fails + ")"}
	r.countRows()
	r.failing = rows.selecting(message, rows.from, fails, rows.order, r.rowsMax)
	for _, ref := range refsOf(c) {
		if !slices.Contains(r.fields, ref) {
			r.fields = append(r.fields, ref)
		}
	}
}

func refsOf(c *script.Check) []string {
	var out []string
	if c.Expr != nil {
		for _, ref := range c.Expr.Refs() {
			out = append(out, ref.Field)
		}
	}
	return out
}

// countRows makes a rule of counts: the rows that it looked at, and those that failed.
func (r *rule) countRows() {
	r.counts = "rows failed"
	r.judge = func(values []any, res *state.CheckResult) error {
		res.Checked, res.Failed = asInt(values[0]), asInt(values[1])
		return nil
	}
}

// rowCondition says in SQL when a row breaks a check, and with what words.
func rowCondition(c *script.Check, rows checkedRows) (breaks, message string) {
	switch c.Kind {
	case script.CheckNotNull:
		var any, named []string
		for _, f := range c.Fields {
			is := rows.column(f) + " IS NULL"
			any = append(any, is)
			named = append(named, fmt.Sprintf("CASE WHEN %s THEN %s END", is, sqltext.String(f)))
		}
		return "(" + strings.Join(any, " OR ") + ")", "concat_ws(', ', " + strings.Join(named, ", ") + ") || ' is NULL'"
	case script.CheckRange:
		f := rows.column(c.Fields[0])
		message = rows.shown(c.Fields)
		var any []string
		words := "''"
		if c.Max != nil {
			any = append(any, f+" > "+c.Max.SQL)
			words = sqltext.String(", above " + c.Max.Text)
		}
		if c.Min != nil {
			any = append(any, f+" < "+c.Min.SQL)
			words = fmt.Sprintf("CASE WHEN %s < %s THEN %s ELSE %s END", f, c.Min.SQL,
				sqltext.String(", below "+c.Min.Text), words)
		}
		return "(" + strings.Join(any, " OR ") + ")", message + " || " + words
	case script.CheckValues:
		values := make([]string, len(c.Values))
		for i, v := range c.Values {
			values[i] = v.SQL
		}
		return rows.column(c.Fields[0]) + " NOT IN (" + strings.Join(values, ", ") + ")", rows.shown(c.Fields) +
			" || ', not an accepted value'"
	}
	return "NOT " + c.Expr.SQL(rows.ref, ""), rows.shown(refsOf(c))
}

// uniqueRule counts the rows whose key another row has, too. As in SQL, a key
// with a NULL in it is equal to none. words follow the number of equal rows.
func uniqueRule(r *rule, rows checkedRows, where string, keys []string, words string) {
	var known []string
	for _, f := range r.fields {
		known = append(known, rows.column(f)+" IS NOT NULL")
	}
	named, same := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		named[i] = fmt.Sprintf("%s AS __k%d", k, i)
		same[i] = fmt.Sprintf("%s = __many.__k%d", k, i)
	}
	where += " AND " + strings.Join(known, " AND ")
	group := strings.Join(keys, ", ")
	r.query = fmt.Sprintf("SELECT CAST(coalesce(sum(n), 0) AS BIGINT), CAST(coalesce(sum(n) FILTER (WHERE n > 1), 0) "+
		"AS BIGINT) FROM (SELECT count(*) AS n FROM %s WHERE %s GROUP BY %s)",
		rows.from, where, group)
	r.countRows()
	limit := max(r.rowsMax, examplesMax)
	many := fmt.Sprintf("(SELECT %s, count(*) AS __n FROM %s WHERE %s GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL "+
		"LIMIT %d) AS __many",
		strings.Join(named, ", "), rows.from, where, limit)
	from := rows.from + " JOIN " + many + " ON " + strings.Join(same, " AND ")
	order := append(orderedKeys(len(keys)), rows.order...)
	r.failing = rows.selecting("__many.__n || "+words, from, where, order, r.rowsMax)
}

func orderedKeys(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("__many.__k%d", i)
	}
	return out
}

// indexRule is the promise of a unique index, in the words that it always had.
func indexRule(n *script.Node, ix *script.Index, seen checked) rule {
	v, here := seen.byKey(ix.Key, nil, nil, nil)
	rows := v.rows
	r := rule{name: ix.Name, kind: indexKind, severity: script.SeverityError, pos: ix.Pos, rowsMax: indexFailedRows,
		whole: true, absent: !here}
	for _, k := range ix.Key {
		r.fields = append(r.fields, k.Field)
	}
	key := make([]string, len(r.fields))
	for i, f := range r.fields {
		key[i] = shownValue(expr.Invalid, rows.column(f)) // without quotes
	}
	r.value = joinedTexts(key)
	uniqueRule(&r, rows, "true", ix.Key.KeySQL(rows.column), "' rows have the key (' || "+r.value+" || ')'")
	r.fault = func(_ state.CheckResult, examples []string) *fault.Error {
		f := &fault.Error{Kind: fault.UserData,
			Hint: "remove the duplicates from the input, filter them with having, or make the index non_unique"}
		if len(examples) > 0 {
			f.Message = fmt.Sprintf("index %s of table %s is unique, but %s", ix.Name, n.Table.Name, examples[0])
		}
		return f
	}
	return r
}

// measured is the record that a check keeps for the next run's.
type measured struct {
	Rows   int64  `json:"rows,omitempty"`
	Field  string `json:"field,omitempty"`
	Type   string `json:"type,omitempty"`
	Newest string `json:"newest,omitempty"`
}

func (m measured) text() string {
	data, _ := json.Marshal(m) // plain fields always encode
	return string(data)
}

// before returns the measurement of the previous complete run's check of that name.
func (x CheckContext) before(name string) (m measured, ok bool) {
	text, ok := x.Measured[name]
	if !ok || json.Unmarshal([]byte(text), &m) != nil {
		return measured{}, false
	}
	return m, true
}

const firstRun = "no earlier complete run to compare with"

// countRule bounds the number of rows.
func countRule(r *rule, c *script.Check, rows checkedRows, x CheckContext) {
	r.aggregates = []string{"count(*) FILTER (WHERE " + condition(c, rows) + ")"}
	r.judge = func(values []any, res *state.CheckResult) error {
		n := asInt(values[0])
		res.Checked, res.Measured = n, measured{Rows: n}.text()
		res.Message = countFault(c, n, x, res)
		return nil
	}
}

func thereAre(rows int64) string {
	if rows == 1 {
		return "there is 1 row"
	}
	return fmt.Sprintf("there are %d rows", rows)
}

// countFault says what is wrong with a count, or only notes something.
func countFault(c *script.Check, n int64, x CheckContext, res *state.CheckResult) string {
	res.Failed = 1
	switch {
	case n < c.RowsMin:
		return fmt.Sprintf("%s, fewer than %d", thereAre(n), c.RowsMin)
	case c.RowsMax >= 0 && n > c.RowsMax:
		return fmt.Sprintf("%s, more than %d", thereAre(n), c.RowsMax)
	}
	if c.Change >= 0 {
		before, ok := x.before(c.Name)
		if !ok {
			res.Failed = 0
			return firstRun
		}
		if math.Abs(float64(n-before.Rows)) > float64(before.Rows)*c.Change/100 {
			return fmt.Sprintf("%s, %d in the previous complete run: more than %v %% of a change", thereAre(n),
				before.Rows, c.Change)
		}
	}
	res.Failed = 0
	return ""
}

// freshnessRule compares the newest value with that of the previous run.
func freshnessRule(r *rule, c *script.Check, rows checkedRows, x CheckContext) {
	field := c.Fields[0]
	col, _ := rows.layout.column(field)
	before, known := x.before(c.Name)
	known = known && before.Newest != "" && before.Field == field && before.Type == col.Type
	where := condition(c, rows)
	newest := fmt.Sprintf("max(%s) FILTER (WHERE %s)", rows.column(field), where)
	older, old := "false", "false"
	if known {
		compare := "<"
		if c.Newer {
			compare = "<="
		}
		older = fmt.Sprintf("%s %s CAST(%s AS %s)", newest, compare, sqltext.String(before.Newest),
			rows.layout.types()[field].SQL())
	}
	limit := x.Created.Add(-c.MaxAge).UTC()
	if c.MaxAge > 0 {
		old = newest + " < TIMESTAMP " + sqltext.String(limit.Format("2006-01-02 15:04:05.000"))
	}
	r.aggregates = []string{"count(*) FILTER (WHERE " + where + ")", "CAST(" + newest + " AS VARCHAR)", older, old}
	r.judge = func(values []any, res *state.CheckResult) error {
		text := asText(values[1])
		res.Checked = asInt(values[0])
		if text != "" {
			res.Measured = measured{Field: field, Type: col.Type, Newest: text}.text()
		}
		res.Message, res.Failed = freshnessFault(c, text, before.Newest, known, values[2] == true, values[3] == true)
		return nil
	}
}

// freshnessFault says what is wrong with the newest value, or only notes something.
func freshnessFault(c *script.Check, newest, before string, known, older, old bool) (string, int64) {
	field := c.Fields[0]
	switch {
	case newest == "" && (known || c.MaxAge > 0):
		return fmt.Sprintf("there is no value of %s", field), 1
	case old:
		return fmt.Sprintf("the newest %s is %s, more than %s before the run began", field, newest, age(c.MaxAge)), 1
	case older && c.Newer:
		return fmt.Sprintf("the newest %s is %s, not newer than %s in the previous complete run", field,
			newest, before), 1
	case older:
		return fmt.Sprintf("the newest %s is %s, older than %s in the previous complete run", field, newest, before), 1
	case !known && c.MaxAge == 0:
		return firstRun, 0
	}
	return "", 0
}

// age writes a length of time with days.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}

// referencesRule counts the rows whose values the other table does not have. A
// row with a NULL among them refers to nothing and passes.
func referencesRule(r *rule, c *script.Check, v keyedRows) {
	rows := v.rows
	known, same, keys := []string{condition(c, rows)}, make([]string, len(c.To)), make([]string, len(c.To))
	for i, f := range c.To {
		keys[i] = fmt.Sprintf("%s AS __k%d", columnOf(v.ref, "r", f), i)
		same[i] = fmt.Sprintf("%s = __there.__k%d", rows.column(c.Fields[i]), i)
		known = append(known, rows.column(c.Fields[i])+" IS NOT NULL")
	}
	where := strings.Join(known, " AND ")
	missing := fmt.Sprintf("%s ANTI JOIN (SELECT %s FROM %s) AS __there ON %s", rows.from, strings.Join(keys, ", "),
		v.other, strings.Join(same, " AND "))
	r.query = fmt.Sprintf("SELECT (SELECT count(*) FROM %s WHERE %s), (SELECT count(*) FROM %s WHERE %s)", rows.from,
		where, missing, where)
	r.countRows()
	message := sqltext.String(fmt.Sprintf("table %s has no row with ", c.Target.Table.Name)) + " || " +
		renamed(c.To, c.Fields, rows)
	r.failing = rows.selecting(message, missing, where, rows.order, r.rowsMax)
}

// renamed shows the values of some fields under other names.
func renamed(names, fields []string, rows checkedRows) string {
	types := rows.layout.types()
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = sqltext.String(name+" = ") + " || " + shownValue(types[fields[i]], rows.column(fields[i]))
	}
	return joinedTexts(parts)
}
