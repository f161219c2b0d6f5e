package compare

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/plan"
)

// of is a table with some of its parts only.
func (c *comparison) of(side int, parts []part) *plan.Table {
	t := c.A
	if side == 1 {
		t = c.B
	}
	return &plan.Table{Run: t.Run, Writer: t.Writer, Layout: t.Layout, Parts: parts}
}

// read selects the compared columns of parts of one side: a0, a1 … or b0, b1 …
func (c *comparison) read(side int, parts []part) string {
	list := make([]string, len(c.columns))
	for i, col := range c.columns {
		list[i] = sqltext.Ident(col.stored[side]) + " AS " + at(side, i)
	}
	return fmt.Sprintf("SELECT %s FROM (%s)", strings.Join(list, ", "), c.of(side, parts).SelectAll(c.paths))
}

// at names column i of a side in statements.
func at(side, i int) string { return fmt.Sprintf("%c%d", 'a'+side, i) }

// each renders a text for each of the first n columns.
func each(n int, render func(i int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = render(i)
	}
	return out
}

// names lists the first n columns of a side.
func names(side, n int) string {
	return strings.Join(each(n, func(i int) string { return at(side, i) }), ", ")
}

// side selects the rows of one side that are not known to be in both.
func (c *comparison) side(side int) string {
	var pieces []string
	if len(c.kept) > 0 {
		pieces = append(pieces, fmt.Sprintf("SELECT %s FROM read_parquet(%s)", names(side, len(c.columns)),
			sqltext.Strings(c.kept)))
	}
	if len(c.rest[side]) > 0 || len(pieces) == 0 {
		pieces = append(pieces, c.read(side, c.rest[side]))
	}
	return strings.Join(pieces, " UNION ALL ")
}

// sign tells -0 from 0, which DuckDB takes for equal, and says nothing of other values.
func sign(name string) string { return fmt.Sprintf("(%[1]s = 0 AND signbit(%[1]s))", name) }

// unlike is the condition that the values of column i differ.
func (c *comparison) unlike(i int, tolerant bool) string {
	a, b := at(0, i), at(1, i)
	text := fmt.Sprintf("%s IS DISTINCT FROM %s", a, b)
	if !c.columns[i].float {
		return text
	}
	text = fmt.Sprintf("(%s OR %s IS DISTINCT FROM %s)", text, sign(a), sign(b))
	if !tolerant || c.Tolerance == 0 || i < c.keys {
		return text
	}
	near := fmt.Sprintf("isfinite(%[1]s) AND isfinite(%[2]s) AND abs(%[1]s - %[2]s) <= %[3]s * greatest(1, "+
		"abs(%[1]s), abs(%[2]s))", a, b, sqltext.Float(c.Tolerance))
	return fmt.Sprintf("(%s AND NOT coalesce(%s, false))", text, near)
}

// differ is the condition that two rows differ at all.
func (c *comparison) differ() string {
	return "(" + strings.Join(each(len(c.columns), func(i int) string { return c.unlike(i, false) }), " OR ") + ")"
}

// Keys that occur more than once are found by a hash of the key: grouping by
// eight bytes takes little memory, and rows that share a hash by accident only go
// the way of those that share a key.

// keyColumns returns the number of columns that tell rows apart.
func (c *comparison) keyColumns() int {
	if c.keys == 0 {
		return len(c.columns)
	}
	return c.keys
}

// hash is the hash of a row's key, by the names of its columns.
func (c *comparison) hash(name func(i int) string) string {
	return "hash(" + strings.Join(each(c.keyColumns(), name), ", ") + ")"
}

// sideName gives the names of one side.
func sideName(side int) func(i int) string { return func(i int) string { return at(side, i) } }

// leftName names column i of rows that are left over.
func leftName(i int) string { return fmt.Sprintf("v%d", i) }

// findRepeated finds the hashes of which a side has more than one key. Of a key
// that was given, all rows are looked at, to say how many occur more than once.
func (c *comparison) findRepeated(ctx context.Context) (err error) {
	sides := [2]string{c.side(0), c.side(1)}
	if c.keys > 0 {
		sides = [2]string{c.read(0, c.A.Parts), c.read(1, c.B.Parts)}
	}
	query := fmt.Sprintf("SELECT h, sum(n) AS n FROM (SELECT %s AS h, 1 AS n, false AS b FROM (%s) UNION ALL SELECT "+
		"%s, 1, true FROM (%s)) "+
		"GROUP BY h HAVING count(*) FILTER (b) > 1 OR count(*) FILTER (NOT b) > 1", c.hash(sideName(0)), sides[0],
		c.hash(sideName(1)), sides[1])
	path, rows, err := c.put(ctx, "repeated", query, nil)
	if err != nil || rows == 0 {
		return err
	}
	c.repeated = "read_parquet(" + sqltext.String(path) + ") AS repeated"
	if c.keys == 0 {
		return nil
	}
	for side, into := range []*int64{&c.result.RepeatedA, &c.result.RepeatedB} {
		by := names(side, c.keys)
		if err := c.one(ctx, fmt.Sprintf("SELECT count(*) FROM (SELECT %s FROM (%s) GROUP BY %s HAVING count(*) > 1)",
			by, c.ofRepeated(side, sides[side], "SEMI"), by), into); err != nil {
			return err
		}
	}
	return nil
}

// ofRepeated gives those of a side's rows whose keys may be repeated (how is
// SEMI), or the others (ANTI).
func (c *comparison) ofRepeated(side int, rows, how string) string {
	if c.repeated == "" {
		return rows
	}
	return fmt.Sprintf("SELECT of_side.* FROM (%s) AS of_side %s JOIN %s ON %s = repeated.h", rows, how, c.repeated,
		c.hash(sideName(side)))
}

// leftShare is the share of the memory that the rows should take that are
// grouped at once: DuckDB puts groups aside, but not all that belongs to them.
const leftShare = 4

// leftOver writes the rows whose keys may be repeated and of which A has n more
// than B, or -n fewer: v0, v1 … and n.
func (c *comparison) leftOver(ctx context.Context) (relation string, err error) {
	count := len(c.columns)
	values := func(side int) string {
		return strings.Join(each(count, func(i int) string { return at(side, i) + " AS " + leftName(i) }), ", ")
	}
	by := each(count, leftName)
	for i, col := range c.columns {
		if col.float {
			by = append(by, sign(leftName(i)))
		}
	}
	rows := fmt.Sprintf("SELECT %s, 1 AS n FROM (%s) UNION ALL SELECT %s, -1 FROM (%s)",
		values(0), c.ofRepeated(0, c.side(0), "SEMI"), values(1), c.ofRepeated(1, c.side(1), "SEMI"))
	shares, err := c.shares(ctx)
	if err != nil {
		return "", err
	}
	paths := make([]string, shares)
	for k := range paths {
		query := fmt.Sprintf("SELECT %s, CAST(sum(n) AS BIGINT) AS n FROM (%s) WHERE (%s >> 32) %% %d = %d GROUP BY "+
			"%s HAVING sum(n) <> 0",
			strings.Join(by[:count], ", "), rows, c.hash(leftName), shares, k, strings.Join(by, ", "))
		if paths[k], _, err = c.put(ctx, fmt.Sprintf("left-%d", k), query,
			func(_, i int) string { return leftName(i) }); err != nil {
			return "", err
		}
	}
	return "read_parquet(" + sqltext.Strings(paths) + ") AS left_over", nil
}

// shares is in how many shares of the keys the rows are grouped whose keys may be repeated.
func (c *comparison) shares(ctx context.Context) (int64, error) {
	var rows int64
	if err := c.one(ctx, "SELECT CAST(sum(n) AS BIGINT) FROM "+c.repeated, &rows); err != nil {
		return 0, err
	}
	bytes, all := c.A.Bytes()+c.B.Bytes(), c.result.RowsA+c.result.RowsB
	return 1 + int64(float64(bytes)*float64(rows)/float64(max(all, 1)))/max(c.Memory.SlotEngineBytes/leftShare, 1), nil
}

// Relations of rows side by side have in_a and in_b, a0, a1 …, b0, b1 …, and times.

// sideBySide is that of all rows that are not known to be in both tables.
func (c *comparison) sideBySide(ctx context.Context) (string, error) {
	single := c.joined(c.ofRepeated(0, c.side(0), "ANTI"), c.ofRepeated(1, c.side(1), "ANTI"))
	if c.repeated == "" {
		return single, nil
	}
	left, err := c.leftOver(ctx)
	if err != nil {
		return "", err
	}
	if c.keys == 0 {
		return single + " UNION ALL " + c.apart("SELECT * FROM "+left), nil
	}
	return c.joinedOnce(ctx, single, left)
}

// apart makes such a relation of one of leftOver's.
func (c *comparison) apart(left string) string {
	values := func(side int, sign string) string {
		return strings.Join(each(len(c.columns),
			func(i int) string { return fmt.Sprintf("CASE WHEN n %s 0 THEN v%d END AS %s", sign, i, at(side, i)) }),
			", ")
	}
	return fmt.Sprintf("SELECT n > 0 AS in_a, n < 0 AS in_b, %s, %s, abs(n) AS times FROM (%s)", values(0, ">"),
		values(1, "<"), left)
}

// joined makes such a relation of two sides in which no key occurs twice.
func (c *comparison) joined(a, b string) string {
	on := each(c.keyColumns(),
		func(i int) string { return fmt.Sprintf("%s IS NOT DISTINCT FROM %s", at(0, i), at(1, i)) })
	for i, col := range c.columns {
		if col.float && c.keys == 0 {
			on = append(on, fmt.Sprintf("%s IS NOT DISTINCT FROM %s", sign(at(0, i)), sign(at(1, i))))
		}
	}
	n := len(c.columns)
	return fmt.Sprintf("SELECT coalesce(in_a, false) AS in_a, coalesce(in_b, false) AS in_b, %s, %s, CAST(1 AS "+
		"BIGINT) AS times FROM "+
		"(SELECT true AS in_a, * FROM (%s)) FULL JOIN (SELECT true AS in_b, * FROM (%s)) ON %s",
		names(0, n), names(1, n), a, b, strings.Join(on, " AND "))
}

// joinedOnce adds the rows that are left over of repeated keys: side by side if
// a key has one on either side, else apart.
func (c *comparison) joinedOnce(ctx context.Context, single, left string) (string, error) {
	by := strings.Join(each(c.keys, leftName), ", ")
	many, _, err := c.put(ctx, "many",
		fmt.Sprintf("SELECT %[1]s FROM %[2]s GROUP BY %[1]s HAVING sum(greatest(n, 0)) > 1 OR sum(greatest(-n, 0)) > 1",
			by, left), nil)
	if err != nil {
		return "", err
	}
	many = "read_parquet(" + sqltext.String(many) + ") AS many"
	same := strings.Join(each(c.keys,
		func(i int) string { return fmt.Sprintf("left_over.v%[1]d IS NOT DISTINCT FROM many.v%[1]d", i) }), " AND ")
	once := func(side int, sign string) string {
		values := each(len(c.columns), func(i int) string { return leftName(i) + " AS " + at(side, i) })
		return fmt.Sprintf("SELECT %s FROM %s ANTI JOIN %s ON %s WHERE n %s 0", strings.Join(values, ", "), left, many,
			same, sign)
	}
	return strings.Join([]string{single, c.joined(once(0, ">"), once(1, "<")),
		c.apart(fmt.Sprintf("SELECT left_over.* FROM %s SEMI JOIN %s ON %s", left, many, same))}, " UNION ALL "), nil
}

// summarize counts what differs in a relation of rows side by side, and takes samples.
func (c *comparison) summarize(ctx context.Context, relation string) error {
	n := len(c.columns)
	const removed, added, changed = "NOT in_b", "NOT in_a", "in_a AND in_b"
	// Whether a column differs is worked out once: with hundreds of columns
	// DuckDB would take longer to find what is there twice than to compare.
	unlike := func(i int) string { return fmt.Sprintf("d%d", i) }
	flags := each(n, func(i int) string { return c.unlike(i, true) + " AS " + unlike(i) })
	list := each(n, func(i int) string { return fmt.Sprintf("count(*) FILTER (%s AND %s)", changed, unlike(i)) })
	for _, kind := range []string{removed, added, changed} {
		list = append(list, fmt.Sprintf("CAST(coalesce(sum(times) FILTER (%s), 0) AS BIGINT)", kind))
	}
	if c.Limit > 0 {
		list = append(list, c.sample(removed, 0), c.sample(added, 1), c.sample(changed, 0, 1))
	}
	counts := make([]int64, n+3)
	targets := make([]any, 0, n+6)
	for i := range counts {
		targets = append(targets, &counts[i])
	}
	var samples [3]any
	for i := range samples {
		if c.Limit > 0 {
			targets = append(targets, &samples[i])
		}
	}
	err := c.one(ctx, fmt.Sprintf("SELECT %s FROM (SELECT *, %s FROM (%s)) WHERE NOT in_a OR NOT in_b OR %s",
		strings.Join(list, ", "), strings.Join(flags, ", "), relation,
		strings.Join(each(n, unlike), " OR ")), targets...)
	if err != nil {
		return err
	}
	r := &c.result
	r.Removed, r.Added, r.Changed = counts[n], counts[n+1], counts[n+2]
	for i, col := range c.columns {
		if counts[i] > 0 {
			r.ChangedIn = append(r.ChangedIn, ColumnCount{col.name, counts[i]})
		}
	}
	for i, into := range []*[]Difference{&r.SampleRemoved, &r.SampleAdded, &r.SampleChanged} {
		if *into, err = c.differences(samples[i]); err != nil {
			return err
		}
	}
	return nil
}

// sample is the first rows of a kind, by the values of the first of sides.
func (c *comparison) sample(kind string, sides ...int) string {
	fields := []string{"'times': times"}
	for _, side := range sides {
		for i := range c.columns {
			value := at(side, i)
			if c.columns[i].float { // what min_by keeps has no -0
				value = "CAST(" + value + " AS VARCHAR)"
			}
			fields = append(fields, fmt.Sprintf("'%s': %s", at(side, i), value))
		}
	}
	if len(sides) > 1 {
		unlike := each(len(c.columns), func(i int) string { return fmt.Sprintf("d%d", i) })
		fields = append(fields, "'unlike': ["+strings.Join(unlike, ", ")+"]")
	}
	columns := c.columns
	if c.keys > 0 && (len(sides) > 1 || c.result.RepeatedA+c.result.RepeatedB == 0) {
		columns = c.columns[:c.keys] // no other row of the kind has the same
	}
	var order []string
	by := func(text string) { order = append(order, text, "'ASC NULLS LAST'") }
	for i := range columns {
		by(at(sides[0], i))
	}
	for i, col := range columns {
		if col.float {
			by("NOT " + sign(at(sides[0], i)))
		}
	}
	return fmt.Sprintf("min_by({%s}, create_sort_key(%s), %d) FILTER (%s)", strings.Join(fields, ", "),
		strings.Join(order, ", "), c.Limit, kind)
}

// differences reads a sample.
func (c *comparison) differences(sample any) ([]Difference, error) {
	list, ok := sample.([]any)
	if !ok && sample != nil {
		return nil, fault.New(fault.Bug, "a sample of rows is a %T", sample)
	}
	var out []Difference
	for _, row := range list {
		fields, ok := row.(map[string]any)
		if !ok {
			return nil, fault.New(fault.Bug, "a row of a sample is a %T", row)
		}
		var d Difference
		if d.Times, ok = fields["times"].(int64); !ok {
			return nil, fault.New(fault.Bug, "a row of a sample is there %T times", fields["times"])
		}
		unlike, _ := fields["unlike"].([]any)
		for i, changed := range unlike {
			if changed == true {
				d.Changed = append(d.Changed, i)
			}
		}
		for side, values := range []*[]any{&d.A, &d.B} {
			if _, ok := fields[at(side, 0)]; !ok {
				continue
			}
			for i, col := range c.columns {
				value := fields[at(side, i)]
				if text, ok := value.(string); ok && col.float {
					f, err := strconv.ParseFloat(text, 64)
					if err != nil {
						return nil, fault.New(fault.Bug, "a float of a sample is %q", text)
					}
					value = f
				}
				*values = append(*values, value)
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// one reads the only row of a query.
func (c *comparison) one(ctx context.Context, query string, targets ...any) (err error) {
	rows, err := c.db.Query(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return errors.Join(rows.Err(), sql.ErrNoRows)
	}
	if err := rows.Scan(targets...); err != nil {
		return err
	}
	return rows.Err()
}
