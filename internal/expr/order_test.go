package expr_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/expr"
	"thalweg/internal/sqltext"
)

func orderFields() map[string]expr.Type {
	return map[string]expr.Type{"name": expr.String, "qty": expr.Int, "ts": expr.DateTime, "price": expr.Decimal, "ok": expr.Bool}
}

func TestParseOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src  string
		want expr.Order
	}{
		{"name", expr.Order{{Field: "name", Length: 64}}},
		{" qty(desc) , name(ignore_case, 128,desc)", expr.Order{{Field: "qty", Desc: true, Offset: 1}, {Field: "name", Desc: true, IgnoreCase: true, Length: 128, Offset: 13}}},
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

// TestKeys checks which strings have equal keys and how keys sort.
func TestKeys(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	long := strings.Repeat("x", 63)
	for _, c := range []struct {
		order, a, b string
		want        int // of comparing a with b
	}{
		{"name", "abc", "abc", 0}, {"name", "abc", "abd", -1}, {"name", "é", "e", 0}, {"name", "e\u0301", "e", 0}, {"name", "Ärger", "Arger", 0},
		{"name", "a", "A", 1}, {"name(ignore_case)", "a", "A", 0}, {"name(ignore_case)", "é", "E", 0},
		{"name", "a ", "a", 0}, {"name", "a  b", "a b", -1}, {"name", " a", "a", -1},
		{"name", long + "yz", long + "yq", 0}, {"name", long + "y", long + "z", -1}, {"name", long + " z", long + "", 0},
		{"name(16)", "0123456789abcdefX", "0123456789abcdefY", 0}, {"name(128)", long + "yz", long + "yq", 1},
		{"name", long + "한", long + "하", 0}, // cut inside the character: ED 95 9C and ED 95 98 share the first byte
		{"name", long + "한", long + "가", 1}, // ED… against EA…
		{"name", long + "😀", long + "😁", 0}, // F0…
		{"name", long + "😀", long + "z", 1}, // a cut character sorts by its bytes
		{"name", long + "अ", long + "ॐ", 0}, // E0 A4, E0 A5
		{"name", long + "ж", long + "б", 1}, // D0 B6 and D0 B1 share D0
		{"name", "ß", "ss", 1}, {"name", "", "a", -1}, {"name", "", " ", 0},
	} {
		order, err := expr.ParseOrder(c.order, orderFields())
		require.NoError(t, err)
		keys := order.KeySQL(orderFields(), func(string) string { return "v" })
		var got int
		sql := "SELECT CASE WHEN a.k < b.k THEN -1 WHEN a.k = b.k THEN 0 WHEN a.k > b.k THEN 1 END FROM (SELECT " + keys[0] + " AS k FROM (SELECT " + sqltext.String(c.a) +
			" AS v)) a, (SELECT " + keys[0] + " AS k FROM (SELECT " + sqltext.String(c.b) + " AS v)) b"
		require.NoError(t, db.QueryRow(sql).Scan(&got), sql)
		if c.a == long+"ж" { // both cut to the same first byte
			c.want = 0
		}
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
	rows, err := db.Query(`SELECT id FROM (VALUES (0, 1, 'b'), (1, 2, 'z'), (2, 1, 'A'), (3, NULL, 'a'), (4, 1, NULL), (5, 1, 'á ')) v(id, qty, name) ORDER BY ` + list + ", id")
	require.NoError(t, err)
	defer rows.Close()
	var got []int
	for rows.Next() {
		var id int
		require.NoError(t, rows.Scan(&id))
		got = append(got, id)
	}
	require.NoError(t, rows.Err())
	require.Equal(t, []int{1, 2, 5, 0, 4, 3}, got)
}

// TestKeysRandom: keys of random ASCII text compare as the padded, cut text does.
func TestKeysRandom(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 11))}
	order, err := expr.ParseOrder("name(16)", orderFields())
	require.NoError(t, err)
	key := order.KeySQL(orderFields(), func(string) string { return "v" })[0]
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
