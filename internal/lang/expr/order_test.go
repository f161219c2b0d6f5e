package expr_test

import (
	"database/sql"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
)

func orderFields() map[string]expr.Type {
	return map[string]expr.Type{"name": expr.String, "qty": expr.Int, "ts": expr.DateTime, "price": expr.Decimal,
		"ok": expr.Bool}
}

func TestParseOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src  string
		want expr.Order
	}{
		{"name", expr.Order{{Field: "name"}}},
		{" qty(desc) , name(ignore_case, 128,desc)", expr.Order{{Field: "qty", Desc: true, Offset: 1},
			{Field: "name", Desc: true, IgnoreCase: true, Length: 128, Offset: 13}}},
		{"name(5)", expr.Order{{Field: "name", Length: 16}}},
		{"ts(asc),\n\tok()", expr.Order{{Field: "ts"}, {Field: "ok", Offset: 10}}},
	} {
		got, err := expr.ParseOrder(c.src, orderFields())
		require.NoError(t, err, c.src)
		require.Equal(t, c.want, got, c.src)
	}
	unique, key, err := expr.ParseIndex("non_unique( name(32), qty )", orderFields())
	require.NoError(t, err)
	require.False(t, unique)
	require.Equal(t, expr.Order{{Field: "name", Length: 32, Offset: 12}, {Field: "qty", Offset: 22}}, key)
	unique, _, err = expr.ParseIndex("unique(qty)", orderFields())
	require.NoError(t, err)
	require.True(t, unique)
}

func TestOrderErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src         string
		off, length int
		want        string
	}{
		{"", 0, 0, "expected a field (an order is field(desc), field, …)"},
		{"qty, nmae", 5, 4, "there is no field nmae (did you mean name?)"},
		{"name(dsc)", 5, 3, `unknown modifier "dsc" (did you mean desc?)`},
		{"qty(ignore_case)", 4, 11, "ignore_case is for strings, qty is int"},
		{"qty(20)", 4, 2, "a length is for strings, qty is int"},
		{"name(2000)", 5, 4, "length 2000 is above 1024"},
		{"name qty", 5, 1, `unexpected "q" (an order is field(desc), field, …)`},
		{"name(desc", 9, 0, "expected , or )"},
		{"name, name(desc)", 6, 4, "name is there twice"},
	} {
		_, err := expr.ParseOrder(c.src, orderFields())
		requireError(t, err, c.off, c.length, c.want)
	}
	_, _, err := expr.ParseIndex("uniqe(name)", orderFields())
	requireError(t, err, 0, 5, "an index is unique(…) or non_unique(…) (did you mean unique?)")
	_, _, err = expr.ParseIndex("unique(name", orderFields())
	requireError(t, err, 11, 0, "expected , or )")
}

func requireError(t *testing.T, err error, off, length int, text string) {
	t.Helper()
	require.EqualError(t, err, text)
	e := new(expr.Error)
	require.ErrorAs(t, err, &e)
	require.Equal(t, [2]int{off, length}, [2]int{e.Offset, e.Length}, text)
}

// compareSQL compares two rows of one string column v by SQL expressions over alias: -1, 0 or 1.
func compareSQL(t *testing.T, db *sql.DB, a, b string, key func(column string) string) int {
	t.Helper()
	var got int
	query := "SELECT CASE WHEN " + key("a.v") + " < " + key("b.v") + " THEN -1 WHEN " + key("a.v") +
		" = " + key("b.v") + " THEN 0 WHEN " + key("a.v") + " > " + key("b.v") +
		" THEN 1 END FROM (SELECT " + sqltext.String(a) + " AS v) a, (SELECT " + sqltext.String(b) + " AS v) b"
	require.NoError(t, db.QueryRow(query).Scan(&got), query)
	return got
}

// TestKeys checks which strings are equal in joins, groups, distinct rows and unique indexes.
func TestKeys(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	long, most := strings.Repeat("x", 63), strings.Repeat("x", 1023)
	for _, c := range []struct {
		order, a, b string
		equal       bool
	}{
		{"name", "abc", "abc", true}, {"name", "abc", "abd", false}, {"name", "José", "Jose", false},
		{"name", "e\u0301", "é", false},
		{"name", "a", "a ", false}, {"name", "a", "A", false}, {"name", "", " ", false}, {"name", "", "", true},
		{"name", "a\x00b", "a\x00c", false},
		{"name", long + "x1", long + "x2", false}, {"name", most + "xx1", most + "xx2", false},
		{"name(ignore_case)", "a", "A", true}, {"name(ignore_case)", "é", "É", true},
		{"name(ignore_case)", "é", "E", false},
		{"name(ignore_case)", "a ", "A", false},
		{"name(ignore_case)", long + "yy", long + "yZ", false}, {"name(ignore_case)", "ж", "Ж", true},
		{"name(16)", "0123456789abcdefX", "0123456789abcdefY", true},
		{"name(16)", "0123456789abcdeX", "0123456789abcdeY", false},
		{"name(16)", "0123456789abcde ", "0123456789abcde", false},
		{"name(16)", "0123456789abcde 1", "0123456789abcde 2", true},
		{"name(16)", "0123456789abcde X", "0123456789abcde", false},
		{"name(16)", "é23456789abcdef", "e23456789abcdef", false},
		// cut inside the character: ED 95 9C and ED 95 98 share the first byte
		{"name(64)", long + "한", long + "하", true},
		{"name(64)", long + "한", long + "가", false},     // ED… against EA…
		{"name(64)", long + "ж", long + "б", true},      // D0 B6, D0 B1
		{"name(64)", long + "Р", long + "р", false},     // D0 A0, D1 80
		{"name(64)", long + "À", long + "\u00C1", true}, // what stands for a cut C3 is U+00C0 itself
		{"name(65)", long + "À", long + "\u00C1", false},
		{"name(64, ignore_case)", long + "Р", long + "р", true}, // upper case first, then its bytes
	} {
		order, err := expr.ParseOrder(c.order, orderFields())
		require.NoError(t, err)
		got := compareSQL(t, db, c.a, c.b,
			func(column string) string { return order.KeySQL(func(string) string { return column })[0] })
		require.Equal(t, c.equal, got == 0, "%s: %q against %q", c.order, c.a, c.b)
	}
}

// TestKeyValues checks which values of the other types are equal, in the two
// ways in which DuckDB compares them: by operator and by hash.
func TestKeyValues(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	for _, c := range []struct {
		a, b  string
		equal bool
	}{
		{"'NaN'::DOUBLE", "-('NaN'::DOUBLE)", true}, {"0.0::DOUBLE", "-0.0::DOUBLE", true},
		{"0.1::DOUBLE + 0.2::DOUBLE", "0.3::DOUBLE", false},
		{"1e308::DOUBLE", "'Infinity'::DOUBLE", false}, {"9007199254740993", "9007199254740992", false},
		{"1.10::DECIMAL(18,2)", "1.1::DECIMAL(18,2)", true}, {"9999999999999999.99::DECIMAL(18,2)",
			"9999999999999999.98::DECIMAL(18,2)", false},
		{"TIMESTAMP '2024-01-01 00:00:00.001'", "TIMESTAMP '2024-01-01 00:00:00.002'", false}, {"true", "false", false},
	} {
		var joined, groups, buckets int
		from := "(SELECT v FROM (VALUES (" + c.a + "), (" + c.b + ")) t(v))"
		require.NoError(t, db.QueryRow("SELECT count(*) FROM (SELECT "+c.a+" AS v) a JOIN (SELECT "+c.b+
			" AS v) b ON a.v = b.v").Scan(&joined))
		require.NoError(t, db.QueryRow("SELECT count(*), count(DISTINCT h) FROM (SELECT v, hash(v) AS h FROM "+from+
			" GROUP BY v, h)").Scan(&groups, &buckets))
		want := map[bool][3]int{true: {1, 1, 1}, false: {0, 2, 2}}[c.equal]
		require.Equal(t, want, [3]int{joined, groups, buckets}, "%s, %s", c.a, c.b)
	}
}

// TestSortKeys checks how strings sort, and which of them only their exact values keep apart (0).
func TestSortKeys(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	long := strings.Repeat("x", 63)
	for _, c := range []struct {
		order, a, b string
		want        int // of comparing a with b
	}{
		{"name", "abc", "abc", 0}, {"name", "abc", "abd", -1}, {"name", "é", "e", 0}, {"name", "e\u0301", "e", 0},
		{"name", "Ärger", "Arger", 0},
		{"name", "a", "A", 1}, {"name(ignore_case)", "a", "A", 0}, {"name(ignore_case)", "é", "E", 0},
		{"name", "a ", "a", 0}, {"name", "a  b", "a b", -1}, {"name", " a", "a", -1},
		{"name", long + "yz", long + "yq", 0}, {"name", long + "y", long + "z", -1},
		{"name", long + " z", long + "", 0},
		{"name(16)", "0123456789abcdefX", "0123456789abcdefY", 0}, {"name(128)", long + "yz", long + "yq", 1},
		{"name", long + "한", long + "하", 0}, // cut inside the character: ED 95 9C and ED 95 98 share the first byte
		{"name", long + "한", long + "가", 1}, // ED… against EA…
		{"name", long + "😀", long + "😁", 0}, // F0…
		{"name", long + "😀", long + "z", 1}, // a cut character sorts by its bytes
		{"name", long + "अ", long + "ॐ", 0}, // E0 A4, E0 A5
		{"name", long + "ж", long + "б", 0}, // D0 B6 and D0 B1 share D0
		{"name", "ß", "ss", 1}, {"name", "", "a", -1}, {"name", "", " ", 0},
	} {
		order, err := expr.ParseOrder(c.order, orderFields())
		require.NoError(t, err)
		got := compareSQL(t, db, c.a, c.b, func(column string) string {
			key, _, _ := strings.Cut(order.SortSQL(orderFields(), func(string) string { return column }),
				" ASC NULLS LAST")
			return key
		})
		require.Equal(t, c.want, got, "%s: %q against %q", c.order, c.a, c.b)
	}
}

// TestSort checks a whole ORDER BY list, NULL included.
func TestSort(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	order, err := expr.ParseOrder("qty(desc), name(ignore_case)", orderFields())
	require.NoError(t, err)
	list := order.SortSQL(orderFields(), sqltext.Ident)
	rows, err := db.Query(`SELECT id FROM (VALUES (0, 1, 'b'), (1, 2, 'z'), (2, 1, 'A'), (3, NULL, 'a'), (4, 1, ` +
		`NULL), (5, 1, 'á '), (6, 1, 'a'), (7, 1, 'a ')) v(id, qty, name) ORDER BY ` + list)
	require.NoError(t, err)
	defer rows.Close()
	var got []int
	for rows.Next() {
		var id int
		require.NoError(t, rows.Scan(&id))
		got = append(got, id)
	}
	require.NoError(t, rows.Err())
	require.Equal(t, []int{1, 2, 6, 7, 5, 0, 4, 3}, got) // A, a, a and á with blanks are equal but for their bytes
}

// TestSortKeysRandom: sort keys of random ASCII text compare as the padded, cut text does.
func TestSortKeysRandom(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 11))}
	order, err := expr.ParseOrder("name(16)", orderFields())
	require.NoError(t, err)
	key, _, _ := strings.Cut(order.SortSQL(orderFields(), func(string) string { return "v" }), " ASC NULLS LAST")
	texts := make([]string, 300)
	values := make([]string, len(texts))
	for i := range texts {
		b := make([]byte, g.IntN(20))
		for j := range b {
			b[j] = "ab "[g.IntN(3)]
		}
		texts[i] = string(b)
		values[i] = "(" + strconv.Itoa(i) + ", " + sqltext.String(texts[i]) + ")"
	}
	rows, err := db.Query("SELECT id, " + key + " FROM (VALUES " + strings.Join(values, ", ") + ") t(id, v)")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id int
		var got string
		require.NoError(t, rows.Scan(&id, &got))
		padded := (texts[id] + strings.Repeat(" ", 16))[:16]
		require.Equal(t, strings.TrimRight(padded, " "), got)
	}
	require.NoError(t, rows.Err())
}

// TestSortedRandom: rows with texts whose components are equal, cut, without
// their diacritics, or NULL come in the order of the list, as they were.
func TestSortedRandom(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 12))}
	pieces := []string{"a", "b", "A", " ", "  ", "\t", "\x00", "é", "e", "e\u0301", "\u0301", "\u0301\u4e2d", "\u4e2d",
		"Ω", "\u2126", "\u1f71", "\u0374", "ß", "가", "\u1100\u1161", "😀", "0123456789abcde"}
	text := func() string {
		if g.IntN(8) == 0 {
			return "CAST(NULL AS VARCHAR)"
		}
		var b strings.Builder
		for range g.IntN(4) {
			b.WriteString(pieces[g.IntN(len(pieces))])
		}
		return sqltext.String(b.String())
	}
	values := make([]string, 400)
	for i := range values {
		price := []string{"0", "-0", "1.5", "NaN", "-2"}[g.IntN(5)]
		values[i] = "(" + strconv.Itoa(i) + ", " + strconv.Itoa(g.IntN(2)) + ", " + text() + ", " +
			text() + ", CAST('" + price + "' AS DOUBLE))"
	}
	rows := "SELECT *, nullif(id % 3, 1) = 0 AS flag, nullif(CAST(id - 100 AS DECIMAL(18,2)) / 8, " +
		"-12.5)::DECIMAL(18,2) AS amount, nullif(make_timestamp(id * 1000 - 99000), make_timestamp(0)) AS day" +
		" FROM (VALUES " + strings.Join(values, ", ") + ") v(id, qty, name, note, price)"
	types := map[string]expr.Type{"qty": expr.Int, "name": expr.String, "note": expr.String, "price": expr.Float}
	all := func(from string) []string {
		rows, err := db.Query("SELECT concat_ws('|', id, qty, coalesce(hex(name), 'NULL'), coalesce(hex(note), " +
			"'NULL'), price, signbit(price), coalesce(flag::VARCHAR, 'NULL'), coalesce(amount::VARCHAR, 'NULL'), " +
			"coalesce(day::VARCHAR, 'NULL')) FROM (" + from + ")")
		require.NoError(t, err)
		defer rows.Close()
		var out []string
		for rows.Next() {
			var line string
			require.NoError(t, rows.Scan(&line))
			out = append(out, line)
		}
		require.NoError(t, rows.Err())
		return out
	}
	for _, order := range []string{"name", "name(desc)", "name(nulls_first)", "name(desc, nulls_first), note",
		"qty, name(16), note(desc, 16)", "name(ignore_case), note(desc)", "price(desc), name, note(ignore_case, desc)",
		"note, name, qty(desc)"} {
		o, err := expr.ParseOrder(order, types)
		require.NoError(t, err)
		want := all(rows + " ORDER BY " + o.SortSQL(types, sqltext.Ident) + ", id")
		require.Len(t, want, len(values))
		require.Equal(t, want, all(o.SortedSQL(rows, types, sqltext.Ident, []string{"id"}, 0)), order)
		require.Equal(t, want, all(o.SortedSQL(rows, types, sqltext.Ident, []string{"id", "flag", "amount", "day"}, 0)),
			order)
		require.Equal(t, want[:7], all(o.SortedSQL(rows, types, sqltext.Ident, []string{"id"}, 7)), order)
	}
}
