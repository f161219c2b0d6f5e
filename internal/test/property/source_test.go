package property

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// source is a table of values outside of the product: files are made of it.
type source struct {
	name    string
	columns []column
	rows    [][]any
	// joined says of each row whether a file may not end in front of it: unused
	// by the reference, which sees rows only.
}

// column is one of a source's: what scripts call it, and its name in files.
type column struct {
	field
	header string
}

// pool is the values that a column draws from: small ones have many equal
// values, for keys.
type pool struct {
	values []any
	skewed bool
}

func (g gen) pool(k kind, n int) pool {
	p := pool{skewed: g.oneIn(2)}
	for range max(n, 1) {
		p.values = append(p.values, g.value(k))
	}
	return p
}

func (g gen) from(p pool) any {
	if p.skewed && !g.oneIn(3) {
		return p.values[0]
	}
	return p.values[g.IntN(len(p.values))]
}

func (g gen) value(k kind) any {
	switch k {
	case intKind:
		return g.anyInt()
	case floatKind:
		return g.anyFloat()
	case decimalKind:
		return pick(g, cents(0), cents(g.IntN(2000)-1000), cents(g.IntN(200))*100, cents(g.Int64N(2_000_000)-1_000_000),
			cents(g.Int64N(2e14)-1e14))
	case boolKind:
		return g.oneIn(2)
	case timeKind:
		return g.anyTime()
	}
	return g.anyText()
}

func (g gen) anyInt() any {
	switch g.IntN(12) {
	case 0:
		return pick(g, int64(math.MaxInt64), math.MinInt64, math.MaxInt32, math.MinInt32, 1<<53+1)
	case 1:
		return int64(0)
	case 2:
		return g.Int64N(2_000_000) - 1_000_000
	}
	return g.Int64N(41) - 20
}

func (g gen) anyFloat() any {
	switch g.IntN(12) {
	case 0:
		return pick(g, math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324, 1e21, 1e-7)
	case 1:
		return g.NormFloat64() * math.Pow(10, float64(g.IntN(30)-15))
	case 2:
		return 0.0
	}
	return float64(g.IntN(200_001)-100_000) / pick(g, 1.0, 8, 100, 3)
}

func (g gen) anyTime() any {
	switch g.IntN(10) {
	case 0:
		return pick(g, zero(timeKind).(time.Time), time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999e6,
			time.UTC)).UTC()
	case 1:
		return time.UnixMilli(g.Int64N(4_000_000_000_000) - 2_000_000_000_000).UTC()
	case 2, 3:
		return time.Unix(g.Int64N(4_000_000_000)-2_000_000_000, 0).UTC()
	}
	return time.Unix((g.Int64N(4000)-1000)*86400, 0).UTC()
}

// anyText draws texts that are easily taken for another: by case, accents,
// blanks at the end, composed and decomposed letters, length.
func (g gen) anyText() any {
	switch g.IntN(8) {
	case 0:
		return ""
	case 1:
		return pick(g, "Jose", "José", "jose", "JOSÉ", "Jose\u0301", "José ", "Jose  ")
	case 2:
		return pick(g, "a", "A", "a ", " a", "á", "ä", "Ä", "a\u0308", "b", "B", "ab", "a b")
	case 3:
		return pick(g, "한국", "naïve", "😀x", "ñ", "Ñu", "café", "CAFÉ", "日本語 テキスト", "Ωmega")
	case 4:
		return pick(g, `say "x"`, `"quoted"`, "a,b", "a;b", "two\nlines", "tab\tx", "'", `\`, `\"`, "|",
			"%d", "-", "#x", ",", `"`, "a\"b", "NULL", "\\N", "0", "true", "1e5", "NaN")
	case 5:
		return strings.Repeat("x", 62+g.IntN(5)) + pick(g, "", "y", "é", " ")
	}
	b := make([]byte, g.IntN(5))
	for i := range b {
		b[i] = "abcAB xyz019_"[g.IntN(13)]
	}
	return string(b)
}

// source draws columns and rows. Large ones are there for threads, which share
// out rows by the thousand.
func (g gen) source(name string, rows int) *source {
	s := &source{name: name}
	pools := make([]pool, 0, 8)
	for i := range 2 + g.IntN(5) {
		k := pick(g, kinds()...)
		if i == 0 {
			k = pick(g, intKind, stringKind)
		}
		s.columns = append(s.columns,
			column{field: field{name: fmt.Sprintf("%c%d", k.String()[0], i), kind: k, null: g.oneIn(3)},
				header: g.header(i)})
		pools = append(pools, g.pool(k, pick(g, 2, 5, 20, 100)))
	}
	nulls := pick(g, 2, 4, 10)
	for range rows {
		row := make([]any, len(s.columns))
		for i, c := range s.columns {
			if row[i] = g.from(pools[i]); c.null && g.oneIn(nulls) {
				row[i] = nil
			}
		}
		s.rows = append(s.rows, row)
	}
	return s
}

func (g gen) header(i int) string {
	return fmt.Sprintf("%s%d", pick(g, "col", "Col ", "naïve ", "a,b ", "x;y", "UPPER", "_", "a.b-", "quo\"te "), i)
}
