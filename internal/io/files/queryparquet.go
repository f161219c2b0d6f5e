package files

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/parquetfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// QueryParquet plans how a query reads Parquet files: all columns, with
// DuckDB's names and types. It gives a FROM item, and what must be done before
// it is read. A file of which DuckDB would read a column wrongly is read
// through a view, as those of file_tables; where there is no such view it is
// refused. scratch is a directory for views.
func QueryParquet(list []Slice, scratch string) (from string, prepare func(context.Context) error, err error) {
	dir, err := filepath.Abs(filepath.Join(scratch, "views"))
	if err != nil {
		return "", nil, fmt.Errorf("resolve scratch directory: %w", err)
	}
	feet := make([]*parquetfile.Footer, len(list))
	err = eachInOrder(context.Background(), len(list), func(_ context.Context, i int) error {
		var err error
		feet[i], err = list[i].source().footer(func(string) bool { return true })
		return err
	})
	if err != nil {
		return "", nil, err
	}
	p := &parquetPlan{r: &script.FileReader{Parquet: true}, dir: dir}
	for i, s := range list {
		one, err := planQuery(s, feet[i], filepath.Join(dir, fmt.Sprintf("%06d.parquet", i)))
		if err == nil && i > 0 {
			err = one.likeFirst(&p.slices[0])
		}
		if err != nil {
			return "", nil, err
		}
		p.slices = append(p.slices, one)
	}
	return p.querySQL(), p.prepare, nil
}

// CheckQueryParquet refuses a file that a query cannot read, by its footer.
func CheckQueryParquet(in Input) error {
	foot, err := in.source().footer(func(string) bool { return true })
	if err == nil {
		_, err = planQuery(Slice{Path: in.Path, URL: in.URL, Rows: -1}, foot, "view")
	}
	return err
}

// planQuery decides how a file is read.
func planQuery(s Slice, foot *parquetfile.Footer, view string) (parquetSlice, error) {
	one := parquetSlice{Slice: s, foot: foot}
	var err error
	if one.from, one.to, err = s.groups(foot); err != nil {
		return one, err
	}
	if foot.SharedNames() {
		return one, s.source().queryFault("", "two of its columns have the same name, or differ in case only")
	}
	viewed := false // a column is there that DuckDB reads wrongly
	for i := range foot.Columns {
		c := parquetColumn{Column: foot.Columns[i], index: i, element: foot.Element(i), leaves: leavesOf(foot, i)}
		c.findSplit(foot, one.from, one.to)
		c.keep()
		if why := queryRefuses(c); why != "" {
			return one, s.source().queryFault(c.Name, why)
		}
		viewed = viewed || !queryNative(c) || ownName(c.Name)
		one.columns = append(one.columns, c)
	}
	if viewed {
		one.view = view
	}
	return one, nil
}

// keep marks what views are to leave as it is: DuckDB reads it rightly, and there
// is no other way.
func (c *parquetColumn) keep() {
	if c.Kind != parquetfile.Nested {
		_, ok := queryViewed(*c, "")
		c.kept = !ok && queryNative(*c)
	}
	for i := range c.leaves {
		leaf := &c.leaves[i]
		leaf.kept = queryNative(*leaf)
	}
}

// ownName reports names that hide columns of DuckDB, or get another name.
func ownName(name string) bool {
	switch strings.ToLower(name) {
	case "", "file_row_number", "file_index", "filename":
		return true
	}
	return false
}

// queryFault says why a query cannot read the file, or a column of it.
func (s source) queryFault(column, what string) error {
	if column != "" {
		what = "column " + quoteList([]string{column}) + ": " + what
	}
	f := s.bad("a query cannot read the file: %s", what)
	f.Place.Field = column
	f.Hint = "load the columns that are needed with a file_table, which looks at every value, and give the " +
		"query its table"
	return f
}

// queryRefuses says why a column can be read neither by DuckDB nor through a
// view; "" if it can.
func queryRefuses(c parquetColumn) string {
	if c.Name == "" {
		return "it has no name"
	}
	if c.Contradiction != "" {
		return "it is described twice, and differently: " + c.Contradiction
	}
	if c.Kind != parquetfile.Nested {
		if _, viewed := queryViewed(c, ""); !viewed && !queryNative(c) {
			return "it is " + c.Type + ", which is not known to be read rightly"
		}
		return ""
	}
	reached := leavesBelow(c.element)
	for i, leaf := range c.leaves {
		ok := queryNative(leaf)
		if slices.Contains(reached, i) { // it can be looked at by itself
			_, viewed := queryViewed(leaf, "x")
			ok = ok || viewed
		} else {
			ok = ok && queryCheck(leaf, "x", false) == ""
		}
		switch {
		case leaf.Contradiction != "":
			return "it is described twice, and differently: " + leaf.Contradiction
		case !ok:
			return fmt.Sprintf("inside of it %q is %s, which is not known to be read rightly there",
				leaf.Name, leaf.Type)
		}
	}
	return ""
}

// queryNative reports whether DuckDB reads a column rightly with a type of its
// own. What is not known to be is not.
func queryNative(c parquetColumn) bool {
	switch c.Kind {
	case parquetfile.Nested:
		return !slices.ContainsFunc(c.leaves, func(leaf parquetColumn) bool { return !queryNative(leaf) })
	case parquetfile.Null, parquetfile.Half, parquetfile.UUID, parquetfile.Fixed, parquetfile.Time:
		return !c.split
	case parquetfile.Other:
		return false
	}
	return nativeReads(c)
}

// hasInfinity reports types of DuckDB whose largest and smallest values stand
// for infinity.
func hasInfinity(c parquetColumn) bool {
	switch c.Kind {
	case parquetfile.Timestamp, parquetfile.TimestampTZ, parquetfile.Date:
		return true
	}
	return false
}

// queryType is DuckDB's type of a column, "" if only DuckDB knows it.
func queryType(c parquetColumn) string {
	switch {
	case c.Kind == parquetfile.Int:
		return integerType(c)
	case c.Kind == parquetfile.Decimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", c.Precision, c.Scale)
	case c.Kind == parquetfile.String && c.JSON:
		return "JSON"
	case c.Kind == parquetfile.Float && c.Physical == parquetfile.Float32:
		return "FLOAT"
	case c.Kind == parquetfile.Timestamp && c.Unit == parquetfile.Nanoseconds:
		return "TIMESTAMP_NS"
	}
	return map[parquetfile.Kind]string{
		parquetfile.String:      "VARCHAR",
		parquetfile.Binary:      "BLOB",
		parquetfile.Fixed:       "BLOB",
		parquetfile.Bool:        "BOOLEAN",
		parquetfile.Float:       "DOUBLE",
		parquetfile.Date:        "DATE",
		parquetfile.TimestampTZ: "TIMESTAMPTZ",
		parquetfile.Timestamp:   "TIMESTAMP",
		parquetfile.Int96:       "TIMESTAMP",
		parquetfile.Time:        "TIME",
	}[c.Kind]
}

func integerType(c parquetColumn) string {
	bits := c.Bits
	if bits == 0 {
		bits = map[parquetfile.Physical]int{parquetfile.Int32: 32, parquetfile.Int64: 64}[c.Physical]
	}
	name := map[int]string{8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}[bits]
	if c.Unsigned {
		name = "U" + name
	}
	return name
}

// queryViewed is a column of a view with the type that DuckDB gives to that of
// the file; !ok if there is none.
func queryViewed(c parquetColumn, col string) (value string, ok bool) {
	switch c.Kind {
	case parquetfile.Binary, parquetfile.Bool, parquetfile.Float, parquetfile.Fixed:
		value = col
	case parquetfile.String:
		value = "decode(" + col + ")"
	case parquetfile.Int:
		if c.Bits == 64 && c.Physical == parquetfile.Int32 {
			return "", false
		}
		value = wholeNumber(c, col, true)
	case parquetfile.Decimal:
		if c.Precision < 1 || c.Precision > wideDigits || c.Scale < 0 || c.Scale > min(c.Precision, finestScale) {
			return "", false
		}
		value = exactDecimal(c, col, true)
		if wideView(c) && c.Precision == wideDigits { // the cast looks at nothing
			most := decimalText(strings.Repeat("9", wideDigits), c.Scale)
			value = fmt.Sprintf("CASE WHEN %[1]s BETWEEN CAST('-%[2]s' AS %[3]s) AND CAST('%[2]s' AS %[3]s) THEN "+
				"%[1]s WHEN %[1]s IS NOT NULL THEN CAST('out of range' AS %[3]s) END", value, most, queryType(c))
		}
	case parquetfile.Timestamp:
		if c.Unit == parquetfile.Nanoseconds {
			const least = "-9223372036854775807" // and below it infinity
			value = fmt.Sprintf("CASE WHEN %[1]s BETWEEN %[2]s AND 9223372036854775806 THEN make_timestamp_ns(%[1]s) "+
				"WHEN %[1]s IS NOT NULL THEN CAST('out of range' AS TIMESTAMP_NS) END", col, least)
			break
		}
		value = countedTime(c, col)
	case parquetfile.TimestampTZ:
		value = "make_timestamptz(epoch_us(" + countedTime(c, col) + "))"
	case parquetfile.Date:
		value = countedTime(c, col)
	case parquetfile.Int96:
		if col == "" {
			return "", true
		}
		var err error
		if value, err = convertTime(c, col, true); err != nil {
			return "", false
		}
	default:
		return "", false
	}
	return "CAST(" + value + " AS " + queryType(c) + ")", true
}

// likeFirst brings the columns into the order of those of the first file, by
// whose names and types a query sees them all.
func (s *parquetSlice) likeFirst(first *parquetSlice) error {
	columns := make([]parquetColumn, len(first.columns))
	for i, want := range first.columns {
		at, found := s.foot.Find(want.Name)
		if found == 0 {
			return s.source().queryFault(want.Name, "it is in the first file, "+first.URL+", and not in this one")
		}
		have := s.columns[at]
		same := have.Type == want.Type
		if t := queryType(want); t != "" {
			same = t == queryType(have)
		} else if want.Kind == parquetfile.Nested {
			same = same && slices.Equal(s.leaves(at), first.leaves(i))
		}
		if !same {
			return s.source().queryFault(want.Name,
				fmt.Sprintf("it is %s, and in the first file, %s, %s", have.Type, first.URL, want.Type))
		}
		columns[i] = have
	}
	s.columns = columns
	return nil
}

// leaves lists the names and types inside of a nested column.
func (s *parquetSlice) leaves(column int) (list []string) {
	for _, leaf := range s.foot.Nested {
		if leaf.Of == column {
			list = append(list, leaf.Name+" "+leaf.Type)
		}
	}
	return list
}

// querySQL reads all files, in order.
func (p *parquetPlan) querySQL() string {
	var selects []string
	for run := range p.runs() {
		first := &run[0]
		cols := make([]string, len(first.columns))
		for i, c := range first.columns {
			cols[i] = first.queryValue(i) + " AS " + sqltext.Ident(c.Name)
		}
		selects = append(selects, "SELECT "+strings.Join(cols, ", ")+first.scan(run))
	}
	return unionAll(selects)
}

// queryValue is column i with DuckDB's type.
func (s *parquetSlice) queryValue(i int) string {
	c, col := s.columns[i], ""
	if s.view == "" {
		col = unguessed(sqltext.Ident(c.Name))
	} else {
		col = s.viewed(i)
	}
	switch {
	case c.Kind == parquetfile.Nested:
		value, _ := c.queryWithin(c.element, col, 0)
		return value
	case s.view != "" && !c.kept:
		value, _ := queryViewed(c, col)
		return value
	}
	return queryNativeValue(c, col, true)
}

// queryNativeValue is a column as DuckDB reads it, without what it would take for
// infinity, and decimals with no more digits than declared.
func queryNativeValue(c parquetColumn, col string, decimals bool) string {
	check := queryCheck(c, col, decimals)
	if check == "" {
		return col
	}
	return fmt.Sprintf("CASE WHEN %[1]s THEN %[2]s WHEN %[2]s IS NOT NULL THEN CAST('out of range' AS %[3]s) END",
		check, col, queryType(c))
}

// queryCheck is the condition that a value is what the file has; "": it always is.
func queryCheck(c parquetColumn, col string, decimals bool) string {
	switch {
	case hasInfinity(c):
		return "isfinite(" + col + ")"
	case c.Kind == parquetfile.Time:
		return col + " BETWEEN TIME '00:00:00' AND TIME '24:00:00'"
	case c.Kind == parquetfile.Decimal && decimals:
		// The bytes may hold more digits than declared, which DuckDB neither
		// looks for nor prints.
		most := decimalText(strings.Repeat("9", c.Precision), c.Scale)
		return fmt.Sprintf("%[1]s BETWEEN CAST('-%[2]s' AS %[3]s) AND CAST('%[2]s' AS %[3]s)", col, most, queryType(c))
	}
	return ""
}

// queryWithin is an element of a nested column; changed is false if it is what
// DuckDB reads.
func (c parquetColumn) queryWithin(e parquetfile.Element, value string, depth int) (sql string, changed bool) {
	switch e.Shape {
	case parquetfile.Value:
		leaf := c.leaves[e.Leaf]
		if leaf.form() == parquetfile.Kept {
			sql = queryNativeValue(leaf, value, true)
			return sql, sql != value
		}
		sql, _ = queryViewed(leaf, leaf.joined(value))
		return sql, true
	case parquetfile.List:
		one := fmt.Sprintf("e%d", depth)
		if each, changed := c.queryWithin(e.Inner[0], one, depth+1); changed {
			return fmt.Sprintf("list_transform(%s, lambda %s: %s)", value, one, each), true
		}
	case parquetfile.Struct:
		var members []expr.Member
		made := map[string]string{}
		for _, inner := range e.Inner {
			part, other := c.queryWithin(inner, expr.MemberSQL(value, inner.Name), depth)
			members, made[inner.Name], changed = append(members, expr.Member{Name: inner.Name}), part, changed || other
		}
		if changed {
			return expr.PackSQL(value, members, made), true
		}
	}
	return value, false
}
