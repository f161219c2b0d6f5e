package roundtrip

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/sqltext"
)

// column is one of a table that is generated.
type column struct {
	Name string `json:"name"`
	// string, int, float, bool, decimal, date, datetime, timestamptz; with texts in JSON: list, texts, struct
	Kind  string `json:"kind"`
	P     int    `json:"p,omitempty"`
	Scale int    `json:"scale"`
}

// typ returns the script's name of the column's type.
func (c column) typ() string {
	switch {
	case c.Kind == "decimal" && c.P == 18 && c.Scale == 2:
		return "decimal2"
	case c.Kind == "decimal":
		return fmt.Sprintf("decimal(%d,%d)", c.P, c.Scale)
	}
	if of, ok := within[c.Kind]; ok {
		return of.typ
	}
	return c.Kind
}

// within are the kinds of lists and structs: for scripts, for DuckDB, and how it reads their JSON.
var within = map[string]struct{ typ, sql, json string }{
	"list":  {"list(int)", "BIGINT[]", `["BIGINT"]`},
	"texts": {"list(string)", "VARCHAR[]", `["VARCHAR"]`},
	"struct": {"struct(n int, t string, d date, l list(struct(x int)))",
		"STRUCT(n BIGINT, t VARCHAR, d DATE, l STRUCT(x BIGINT)[])",
		`{"n":"BIGINT","t":"VARCHAR","d":"DATE","l":[{"x":"BIGINT"}]}`},
}

// sql is its type in DuckDB.
func (c column) sql() string {
	if of, ok := within[c.Kind]; ok {
		return of.sql
	}
	return map[string]string{"string": "VARCHAR", "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "date": "DATE",
		"datetime":    "TIMESTAMP",
		"timestamptz": "TIMESTAMP WITH TIME ZONE", "decimal": fmt.Sprintf("DECIMAL(%d,%d)", c.P, c.Scale)}[c.Kind]
}

// table holds rows that have to stay the same in every form. Its texts are those of its types, nil is NULL.
type table struct {
	Columns []column    `json:"columns"`
	Rows    [][]*string `json:"rows"`
}

// manner names a set of values that a form can hold.
type manner string

const (
	anything manner = "any"
	western  manner = "western" // texts of the characters that latin-1 and windows-1252 have
	sheets   manner = "sheet"   // what Excel can hold exactly
	nested   manner = "nested"  // lists and structs, too
)

// names are those of the columns, in their order.
func (t table) names() (out []string) {
	for _, c := range t.Columns {
		out = append(out, c.Name)
	}
	return out
}

// doubles is the table with floats in place of decimals: DuckDB reads numbers of JSON as these.
func (t table) doubles() table {
	t.Columns = slices.Clone(t.Columns)
	for i, c := range t.Columns {
		if c.Kind == "decimal" {
			t.Columns[i].Kind = "float"
		}
	}
	return t
}

// draw makes a table: the first column numbers the rows.
func draw(rnd *rand.Rand, how manner) table {
	t := table{Columns: []column{{Name: "id", Kind: "int"}}, Rows: [][]*string{}}
	kinds := []string{"string", "string", "int", "float", "bool", "decimal", "decimal", "date",
		"datetime", "timestamptz"}
	if how == nested {
		kinds = []string{"list", "texts", "struct", "struct", "string", "decimal", "timestamptz"}
	}
	columns := rnd.IntN(9)
	if rnd.IntN(25) == 0 {
		columns = 60
	}
	for i := range columns {
		c := column{Name: fmt.Sprintf("c%d", i), Kind: kinds[rnd.IntN(len(kinds))]}
		if c.Kind == "decimal" {
			c.P, c.Scale = 18, 2
			if rnd.IntN(2) == 0 {
				c.P = 1 + rnd.IntN(38)
				c.Scale = rnd.IntN(c.P)
			}
		}
		t.Columns = append(t.Columns, c)
	}
	rows := []int{0, 1, 2, 30}[rnd.IntN(4)]
	if rows == 30 {
		rows = rnd.IntN(100)
	}
	for id := range rows {
		text := strconv.Itoa(id)
		row := []*string{&text}
		for _, c := range t.Columns[1:] {
			var cell *string
			if rnd.IntN(5) > 0 {
				value := c.value(rnd, how)
				cell = &value
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func pick(rnd *rand.Rand, some ...string) string { return some[rnd.IntN(len(some))] }

// value makes one of a column: extremes, and what readers trip over.
func (c column) value(rnd *rand.Rand, how manner) string {
	switch c.Kind {
	case "int":
		if how == sheets {
			return pick(rnd, "0", "-1", "999999999999999", "-999999999999999", strconv.Itoa(rnd.IntN(1e6)))
		}
		return pick(rnd, "0", "-1", "9223372036854775807", "-9223372036854775808", strconv.Itoa(rnd.IntN(1e6)))
	case "float":
		if how == sheets {
			return pick(rnd, "0", "0.5", "-0.1", "1e+300", "12345.678", strconv.FormatFloat(float64(rnd.IntN(1e6))/64,
				'g', -1, 64))
		}
		return pick(rnd, "0", "0.1", "-1.5e-300", "1.7976931348623157e+308", "5e-324",
			strconv.FormatFloat(rnd.NormFloat64()*math.Pow(10, float64(rnd.IntN(30))), 'g', -1, 64))
	case "bool":
		return pick(rnd, "true", "false")
	case "decimal":
		return c.decimal(rnd, how)
	case "list", "texts", "struct":
		return c.inner(rnd)
	case "date":
		days := []string{"2024-02-29", "1970-01-01", "2000-12-31", time.Unix(rnd.Int64N(4e9), 0).UTC().
			Format(time.DateOnly)}
		if how == sheets {
			return pick(rnd, append(days, "1900-03-01", "9999-12-31")...)
		}
		return pick(rnd, append(days, "0001-01-01", "9999-12-31", "1582-10-10")...)
	case "datetime", "timestamptz":
		return c.instant(rnd, how)
	}
	return texts(rnd, how)
}

// inner makes a list or a struct, as JSON.
func (c column) inner(rnd *rand.Rand) string {
	part := func(kind string) any {
		if rnd.IntN(4) == 0 {
			return nil
		}
		value := column{Kind: kind}.value(rnd, nested)
		if kind == "int" {
			return json.Number(value)
		}
		return value
	}
	several := func(kind string) any {
		out := []any{}
		for range rnd.IntN(4) {
			out = append(out, part(kind))
		}
		return out
	}
	var of any
	switch c.Kind {
	case "list":
		of = several("int")
	case "texts":
		of = several("string")
	default:
		members := map[string]any{"n": part("int"), "t": part("string"), "d": part("date"), "l": nil}
		if rnd.IntN(3) > 0 {
			list := []any{}
			for range rnd.IntN(3) {
				list = append(list, map[string]any{"x": part("int")})
			}
			if rnd.IntN(3) == 0 {
				list = append(list, nil)
			}
			members["l"] = list
		}
		of = members
	}
	raw, err := json.Marshal(of)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// decimal has at most p digits, s of them behind the point; sheets keep 15.
func (c column) decimal(rnd *rand.Rand, how manner) string {
	most := c.P
	if how == sheets {
		most = min(most, 15)
	}
	digits := make([]byte, rnd.IntN(most+1))
	for i := range digits {
		digits[i] = '0' + byte(rnd.IntN(10))
	}
	if rnd.IntN(3) == 0 {
		digits = []byte(strings.Repeat("9", most))
	}
	padded := strings.Repeat("0", c.Scale+1) + string(digits)
	point := len(padded) - c.Scale
	text := strings.TrimLeft(padded[:point-1], "0") + padded[point-1:point]
	if c.Scale > 0 {
		text += "." + padded[point:]
	}
	if rnd.IntN(2) == 0 && strings.ContainsAny(text, "123456789") {
		text = "-" + text
	}
	return text
}

// instant is a time as DuckDB prints it, a timestamptz in UTC.
func (c column) instant(rnd *rand.Rand, how manner) string {
	at := time.UnixMilli(rnd.Int64N(4e12)).UTC()
	switch n := rnd.IntN(8); {
	case n == 0:
		at = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
	case n == 1:
		at = time.Date(1900, 3, 1, 0, 0, 0, 0, time.UTC)
	case n == 2 && how != sheets:
		at = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	case n == 3 && how != sheets:
		at = time.Date(1969, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
	}
	if c.Kind == "datetime" {
		return at.Format("2006-01-02 15:04:05.000")
	}
	if rnd.IntN(2) == 0 {
		at = at.Add(time.Duration(rnd.IntN(1000)) * time.Microsecond)
	}
	return at.Format("2006-01-02 15:04:05.000000+00")
}

// texts makes one of pieces.
func texts(rnd *rand.Rand, how manner) string {
	pieces := []string{"a", "B7", " ", "\t", `"`, `""`, ",", ";", "|", "\n", "\r\n", "'", `\`, `\n`, `\u0041`, "#", "/",
		"=", "%41", "{", "[", "null", "NULL", "NA", "nan", "0", "-1.50",
		"=1+1", "@x", "+1", "true", "2024-01-01", "_x0041_", "<&>", "é", "ÿ", "£", "\u00a0"}
	switch how {
	case western:
	case sheets:
		pieces = append(pieces, "日本", "🙂", "\u2028", "e\u0301", "\u202e")
	default:
		pieces = append(pieces, "\r", "日本", "🙂", "\ufeff", "\u2028", "\x01", "\x1f", "\x7f", "\u0085",
			"e\u0301", "\u202e", "\U0010ffff", "__HIVE_DEFAULT_PARTITION__")
	}
	var b strings.Builder
	for range rnd.IntN(6) {
		b.WriteString(pieces[rnd.IntN(len(pieces))])
	}
	if rnd.IntN(60) == 0 {
		b.WriteString(strings.Repeat("long ", 5_000))
	}
	if how == sheets && b.Len() == 0 {
		return "x" // programs take a cell with an empty text for none
	}
	return b.String()
}

// query is the table as a query of DuckDB.
func (t table) query() string {
	cells := func(row []*string) string {
		out := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			value := "NULL"
			if row != nil && row[i] != nil {
				value = sqltext.String(*row[i])
				if of, ok := within[c.Kind]; ok {
					value = "from_json(" + value + ", " + sqltext.String(of.json) + ")"
				}
			}
			out[i] = "CAST(" + value + " AS " + c.sql() + ") AS " + sqltext.Ident(c.Name)
		}
		return "SELECT " + strings.Join(out, ", ")
	}
	if len(t.Rows) == 0 {
		return cells(nil) + " WHERE false"
	}
	selects := make([]string, len(t.Rows))
	for i, row := range t.Rows {
		selects[i] = cells(row)
	}
	return strings.Join(selects, " UNION ALL ")
}
