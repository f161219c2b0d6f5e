package expr_test

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// TestAggregates compares aggregates over groups with a plain loop in row order.
func TestAggregates(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 10))}
	args := map[string][]string{
		"sum": {"r.i", "r.j % 1000", "r.f", "r.d", "r.d * r.e", "len(r.s)", "decimal2(r.f) * 0",
			"r.f * 0.1", "r.ni % 1000", "r.nf", "r.nd"},
		"avg": {"r.j % 1000", "r.f", "r.d", "-(len(r.s) + 3)", "r.i % 7", "decimal2(r.j % 1000) / 7", "r.ni % 1000",
			"r.nf", "r.nd"},
		"min": {"r.i", "r.f", "r.d", "r.s", "r.ni", "r.ns"}, "max": {"r.i", "r.f", "r.d", "r.s", "len(r.s)",
			"r.nf", "r.nd"},
		"string_agg": {"r.s", "r.n", "string.iif(r.b, ``, r.s)", "r.ns", "iif(r.b, r.ns, null)"},
		"count":      {"", "r.ni", "r.nt", "r.nb"},
	}
	conditions := []string{"", "r.b", "r.j > 0", "false", "r.nb", "r.s == `a` || r.b"}
	for round := range effort.Of(6, 30, 30) {
		rows := make([]map[string]any, 40)
		for i := range rows {
			rows[i] = g.row()
			if round%3 > 0 { // tame values, so that sums do not overflow
				rows[i]["r.i"], rows[i]["r.f"] = g.Int64N(100)-50, float64(g.IntN(1000))/8.1
			}
			if g.IntN(2) == 0 {
				rows[i]["r.s"] = ""
			}
		}
		fillTable(t, db, rows)
		for fn, of := range args {
			for _, arg := range of {
				src := aggregateSource(g, fn, arg, pick(g, conditions...))
				checkAggregate(t, src, g.IntN(2) == 0, rows,
					func(columns []string) ([][]any, error) {
						return query(db, columns, "GROUP BY id % 4 ORDER BY id % 4")
					})
			}
		}
	}
}

func aggregateSource(g generator, fn, arg, condition string) string {
	var list []string
	if arg != "" {
		list = append(list, arg)
	}
	if fn == "string_agg" {
		list = append(list, pick(g, `","`, "`,`", `""`, `" "`))
	}
	if condition != "" {
		return fn + "_if(" + strings.Join(append(list, condition), ", ") + ")"
	}
	return fn + "(" + strings.Join(list, ", ") + ")"
}

func checkAggregate(t *testing.T, src string, emptyNull bool, rows []map[string]any,
	run func([]string) ([][]any, error)) {
	t.Helper()
	c := compile(t, src, genScope(), expr.Mode{Round: true, Aggregates: true, EmptyNull: emptyNull,
		Nullable: genNullable, Zoned: genZoned})
	require.True(t, c.Aggregate(), src)
	require.Equal(t, emptyNull && !strings.HasPrefix(src, "count"), c.Nullable(), src)
	// The order is descending by id, which is not how the rows lie.
	got, runErr := run([]string{c.SQL(column, "r.id DESC")})
	var want [4]any
	for group := range want {
		var ok bool
		if want[group], ok = aggregate(t, src, c.Type(), c.Nullable(), group, rows); !ok {
			return // an overflow: some group raises
		}
	}
	require.NoError(t, runErr, src)
	for group, w := range want {
		require.True(t, same(got[group][0], w), "%s: got %v, want %v\n%s", src, got[group][0], show(w),
			c.SQL(column, "r.id DESC"))
	}
}

// aggregate is the reference; ok is false when a value raises or overflows.
func aggregate(t *testing.T, src string, typ expr.Type, emptyNull bool, group int, rows []map[string]any) (any, bool) {
	t.Helper()
	fn, list, _ := strings.Cut(strings.TrimSuffix(src, ")"), "(")
	arg, condition := list, "true"
	if fn, conditional := strings.CutSuffix(fn, "_if"); conditional {
		i := strings.LastIndex(list, ", ")
		arg, condition = list[:max(i, 0)], strings.TrimPrefix(list[max(i, 0):], ", ")
		_ = fn
	}
	fn = strings.TrimSuffix(fn, "_if")
	sep := ""
	if fn == "string_agg" {
		i := strings.LastIndex(arg, ", ")
		arg, sep = arg[:i], strings.Trim(arg[i+2:], `"`)
	}
	var values []any
	for i := len(rows) - 1; i >= 0; i-- {
		if i%4 != group {
			continue
		}
		keep, _, err := reference(condition, rows[i], true)
		require.NoError(t, err)
		if keep != true {
			continue
		}
		if arg == "" {
			values = append(values, int64(1))
			continue
		}
		v, risky, err := reference(arg, rows[i], true)
		if err != nil || risky {
			return nil, false
		}
		if v != nil {
			values = append(values, v)
		}
	}
	if emptyNull && len(values) == 0 {
		return nil, true
	}
	return fold(fn, sep, typ, values)
}

func fold(fn, sep string, typ expr.Type, values []any) (any, bool) {
	n := int64(len(values))
	if fn == "count" {
		return n, true
	}
	if fn == "string_agg" {
		text := ""
		for _, v := range values {
			if text != "" {
				text += sep
			}
			text += v.(string)
		}
		return text, true
	}
	if fn == "min" || fn == "max" {
		return extreme(fn, typ, values)
	}
	if typ == expr.Float {
		sum := 0.0
		for _, v := range values {
			sum += v.(float64)
		}
		if fn == "avg" && n > 0 {
			sum /= float64(n)
		}
		return sum, true
	}
	sum := new(big.Rat)
	for _, v := range values {
		if d, ok := v.(dec); ok {
			sum.Add(sum, d.rat)
		} else {
			sum.Add(sum, new(big.Rat).SetInt64(v.(int64)))
		}
	}
	if fn == "avg" && n > 0 {
		sum.Quo(sum, new(big.Rat).SetInt64(n))
	}
	if typ == expr.Decimal {
		return dec{roundTo(sum, 2), 2}, true
	}
	floor := new(big.Int).Div(sum.Num(), sum.Denom())
	return floor.Int64(), floor.IsInt64()
}

func extreme(fn string, typ expr.Type, values []any) (any, bool) {
	if len(values) == 0 {
		return map[expr.Type]any{expr.Int: int64(0), expr.Float: 0.0, expr.Decimal: dec{new(big.Rat), 2},
			expr.String: ""}[typ], true
	}
	best := values[0]
	for _, v := range values {
		switch x := v.(type) {
		case string:
			if (x < best.(string)) == (fn == "min") {
				best = x
			}
		case float64:
			// NaN is neither less nor greater, so a number takes its place and never it a number's.
			if b := best.(float64); b != b || x < b && fn == "min" || x > b && fn == "max" {
				best = x
			}
		case int64:
			if (x < best.(int64)) == (fn == "min") {
				best = x
			}
		case dec:
			if (x.rat.Cmp(best.(dec).rat) < 0) == (fn == "min") {
				best = x
			}
		}
	}
	if f, ok := best.(float64); ok {
		return f + 0, true
	}
	return best, true
}
