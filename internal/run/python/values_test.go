package python

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// allTypes passes a value of each type through, with its NULLs.
func allTypes(decimals, datetimes Form) *Program {
	prog := &Program{Decimals: decimals, Datetimes: datetimes}
	for _, t := range passedTypes() {
		name := strings.NewReplacer("(", "_", ",", "_", ")", "").Replace(t.String())
		prog.Inputs = append(prog.Inputs, Column{Name: name, Type: t})
		prog.Fields = append(prog.Fields, Field{Name: name, Type: t, Expr: "r." + name, Nullable: true})
	}
	return prog
}

// rowOfAll is a row of allTypes that begins with these values; the others are NULL.
func rowOfAll(first ...any) []any {
	return append(first, make([]any, len(passedTypes())-len(first))...)
}

// passedTypes are the types that are passed through; of decimals with digits one of each size.
func passedTypes() []expr.Type {
	return append(expr.ColumnTypes(), expr.DecimalOf(10, 4), expr.DecimalOf(38, 20))
}

// exactValue is the text of a decimal with digits.
func exactValue(t expr.Type) *rapid.Generator[any] {
	digits, scale := t.Digits()
	return rapid.Map(rapid.SliceOfN(rapid.ByteRange('0', '9'), digits, digits), func(b []byte) any {
		text := strings.TrimLeft(string(b[:digits-scale]), "0")
		if text == "" {
			text = "0"
		}
		if text += "." + string(b[digits-scale:]); b[0]%2 == 1 {
			text = "-" + text
		}
		return text
	})
}

func TestValuesComeBackAsTheyWere(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
		rapid.Check(t, func(rt *rapid.T) {
			rich := rapid.Bool().Draw(rt, "rich")
			form, largest := Plain, int64(1e15) // hundredths that a double carries
			if rich {
				form, largest = Rich, int64(1e18-1)
			}
			gens := map[expr.Type]*rapid.Generator[any]{
				expr.String: rapid.String().AsAny(),
				expr.Int:    rapid.Int64().AsAny(),
				expr.Float: rapid.Float64().
					Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).AsAny(),
				expr.Bool: rapid.Bool().AsAny(),
				expr.Decimal: rapid.Map(rapid.Int64Range(-largest, largest), func(n int64) Cents { return Cents(n) }).
					AsAny(), expr.DateTime: rapid.Map(rapid.Int64Range(-62135596800000, 253402300799999),
					func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }).AsAny(),
			}
			gens[expr.Date] = rapid.Int64Range(-719162, 2932896).AsAny()
			gens[expr.Instant] = rapid.Int64Range(-62135596800000000, 253402300799999999).AsAny()
			for _, t := range []expr.Type{expr.DecimalOf(10, 4), expr.DecimalOf(38, 20)} {
				gens[t] = exactValue(t)
			}
			rows := make([][]any, rapid.IntRange(0, 40).Draw(rt, "rows"))
			for i := range rows {
				for _, typ := range passedTypes() {
					var v any
					if rapid.IntRange(0, 9).Draw(rt, "null") > 0 {
						v = gens[typ].Draw(rt, typ.String())
					}
					rows[i] = append(rows[i], v)
				}
			}
			var got results
			_, err := pool.Run(t.Context(), allTypes(form, form), slice(rows), got.emit)
			if err != nil {
				rt.Fatalf("%v\n%s", err, fault.Of(err).Detail)
			}
			if len(rows) == 0 {
				rows = nil
			}
			if diff := cmp.Diff(rows, got.rows); diff != "" {
				rt.Fatalf("want, got:\n%s", diff)
			}
		})
	})
}

func TestDifficultTexts(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
		texts := []string{
			"", "\x00", "a\x00b", `\`, `\'`, `'); import os; os._exit(3) #`, `"""`, "line\nline\r\n\u2028",
			"\\x41 %s {0} ${a}",
			"p.y r.s", "äöü", "日本語", "🜲🜲", "\ufeff", "e\u0301", "\x7f\x1b[0m", "__import__('os')._exit(1)",
		}
		var rows, want [][]any
		for _, s := range texts {
			rows = append(rows, []any{s})
			want = append(want, []any{s, int64(len([]rune(s)))})
		}
		prog := &Program{
			Inputs: []Column{{Name: "s", Type: expr.String}},
			Fields: []Field{{Name: "same", Type: expr.String, Expr: "r.s"}, {Name: "size", Type: expr.Int,
				Expr: "len(p.same)"}},
		}
		got, err := runRows(t, pool, prog, rows...)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestInputsAsPythonSeesThem(t *testing.T) {
	moment := time.Date(2021, 3, 14, 1, 59, 26, 535*1e6+897932, time.FixedZone("", 3600))
	tests := []struct {
		name  string
		prog  Program
		value any
		typ   expr.Type
		want  string
	}{
		{"string", Program{}, "x", expr.String, "'x'"},
		{"int", Program{}, int64(math.MinInt64), expr.Int, "-9223372036854775808"},
		{"float", Program{}, 0.1, expr.Float, "0.1"},
		{"large float", Program{}, 1e300, expr.Float, "1e+300"},
		{"bool", Program{}, true, expr.Bool, "True"},
		{"decimal as float", Program{}, Cents(-28_50), expr.Decimal, "-28.5"},
		{"whole decimal as int", Program{}, Cents(28_00), expr.Decimal, "28"},
		{"whole negative decimal as int", Program{}, Cents(-28_00), expr.Decimal, "-28"},
		{"no decimal as int", Program{}, Cents(0), expr.Decimal, "0"},
		{"largest decimal", Program{}, Cents(999999999999999999), expr.Decimal, "1e+16"},
		{"largest whole decimal", Program{}, Cents(999999999999999900), expr.Decimal, "9999999999999999"},
		{"decimal as nearest float", Program{}, Cents(1_10), expr.Decimal, "1.1"},
		{"decimal", Program{Decimals: Rich}, Cents(-28_50), expr.Decimal, "Decimal('-28.50')"},
		{"datetime as text", Program{}, moment, expr.DateTime, "'2021-03-14T00:59:26.535+00:00'"},
		{"datetime", Program{Datetimes: Rich}, moment, expr.DateTime,
			"datetime.datetime(2021, 3, 14, 0, 59, 26, 535000, tzinfo=datetime.timezone.utc)"},
		{"date", Program{}, int64(19753), expr.Date, "datetime.date(2024, 1, 31)"},
		{"timestamptz", Program{}, int64(1), expr.Instant,
			"datetime.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=datetime.timezone.utc)"},
		{"decimal with digits", Program{}, "-0.0001", expr.DecimalOf(10, 4), "Decimal('-0.0001')"},
		{"NULL", Program{}, nil, expr.Int, "None"},
	}
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				prog := test.prog
				prog.Inputs = []Column{{Name: "v", Type: test.typ}}
				prog.Fields = []Field{{Name: "y", Type: expr.String, Expr: "repr(r.v)"}}
				got, err := runRows(t, pool, &prog, []any{test.value})
				require.NoError(t, err)
				require.Equal(t, [][]any{{test.want}}, got)
			})
		}
	})
}

func TestResults(t *testing.T) {
	const isError = "!"
	tests := []struct {
		expr string
		typ  expr.Type
		rich bool
		want any // or the beginning of the message behind isError
	}{
		{"3", expr.Int, false, int64(3)},
		{"2.9", expr.Int, false, int64(2)},
		{"-2.9", expr.Int, false, int64(-2)},
		{"2**63 - 1", expr.Int, false, int64(math.MaxInt64)},
		{"2**63", expr.Int, false, isError + "9223372036854775808 does not fit into 64 bits"},
		{"1e30", expr.Int, false, isError + "1"},
		{"float('nan')", expr.Int, false, isError + "nan is not a number that a field can hold"},
		{"True", expr.Int, false, isError + "expected an int, got bool: True"},
		{"'3'", expr.Int, false, isError + "expected an int, got str: '3'"},
		{"None", expr.Int, false, isError + "the result is None, and the field does not take NULL"},
		{"enum.IntEnum('E', 'A').A", expr.Int, false, int64(1)},

		{"2.5", expr.Float, false, 2.5},
		{"2", expr.Float, false, 2.0},
		{"1e308 * 10", expr.Float, false, isError + "inf is not a number that a field can hold"},
		{"float('nan')", expr.Float, false, isError + "nan is not a number that a field can hold"},
		{"10**400", expr.Float, false, isError + "1"},
		{"False", expr.Float, false, isError + "expected a float or an int, got bool"},

		{"1", expr.Bool, false, isError + "expected a bool, got int: 1"},
		{"1 == 1", expr.Bool, false, true},

		{"12.345", expr.Decimal, false, Cents(12_35)}, // the text is halfway, the double is below
		{"-12.345", expr.Decimal, false, Cents(-12_35)},
		{"1.005", expr.Decimal, false, Cents(1_01)},
		{"0.125", expr.Decimal, false, Cents(13)},
		{"-0.004", expr.Decimal, false, Cents(0)},
		{"-0.006", expr.Decimal, false, Cents(-1)},
		{"7", expr.Decimal, false, Cents(7_00)},
		{"9999999999999.99", expr.Decimal, false, Cents(999999999999999)},
		{"decimal.Decimal('9999999999999999.994')", expr.Decimal, false, Cents(999999999999999999)},
		{"decimal.Decimal('9999999999999999.995')", expr.Decimal, false,
			isError + "Decimal('9999999999999999.995') does not fit into 18 digits"},
		{"decimal.Decimal('1e1000000')", expr.Decimal, false, isError +
			"Decimal('1E+1000000') does not fit into 18 digits"},
		{"10**16", expr.Decimal, false, isError + "10000000000000000 does not fit into 18 digits"},
		{"1e300", expr.Decimal, false, isError + "Decimal('1E+300') does not fit into 18 digits"},
		{"float('inf')", expr.Decimal, false, isError + "inf is not a number"},
		{"decimal.Decimal('nan')", expr.Decimal, false, isError + "NaN is not a number"},
		{"True", expr.Decimal, false, isError + "expected a float, an int or a Decimal, got bool"},

		{"'x'", expr.String, false, "x"},
		{"b'x'", expr.String, false, isError + "expected a str, got bytes: b'x'"},
		{"chr(0xd800)", expr.String, false, isError + "the text cannot be stored as UTF-8"},

		{"'2021-03-14T01:59:26.535+01:00'", expr.DateTime, false, time.Date(2021, 3, 14, 1, 59, 26, 535e6,
			time.FixedZone("", 3600))},
		{"'2021-03-14T01:59:26Z'", expr.DateTime, false, time.Date(2021, 3, 14, 1, 59, 26, 0, time.UTC)},
		{"'2021-03-14T01:59:26.535897+00:00'", expr.DateTime, false, time.Date(2021, 3, 14, 1, 59, 26,
			535e6, time.UTC)},
		{"'2021-03-14'", expr.DateTime, false, isError +
			"the text is not a datetime like 2006-01-02T15:04:05.000-07:00"},
		{"datetime.datetime(2021, 3, 14)", expr.DateTime, false, isError + "expected a str, got datetime"},
		{"datetime.datetime(2021, 3, 14)", expr.DateTime, true, time.Date(2021, 3, 14, 0, 0, 0, 0, time.UTC)},
		{"datetime.datetime(1, 1, 1, 0, 0, 0, 999)", expr.DateTime, true, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"datetime.datetime.fromisoformat('2021-03-14T00:00:00+01:00')", expr.DateTime, true,
			time.Date(2021, 3, 13, 23, 0, 0, 0, time.UTC)},
		{"'2021-03-14T01:59:26Z'", expr.DateTime, true, isError + "expected a datetime.datetime, got str"},
	}
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
		for _, test := range tests {
			t.Run(fmt.Sprintf("%s %s", test.typ, test.expr), func(t *testing.T) {
				prog := &Program{
					Files:  source("import datetime, decimal, enum"),
					Fields: []Field{{Name: "y", Type: test.typ, Expr: test.expr}},
				}
				if test.rich {
					prog.Datetimes = Rich
				}
				got, err := runRows(t, pool, prog, []any{})
				if want, ok := test.want.(string); ok && len(want) > 0 && want[:1] == isError {
					require.Error(t, err)
					f := fault.Of(err)
					require.Contains(t, f.Message, "p.y of row 1: "+want[1:])
					require.Equal(t, int64(1), f.Place.Record)
					require.Equal(t, "y", f.Place.Field)
					require.Equal(t, test.expr, f.Place.Expr)
					return
				}
				require.NoError(t, err)
				require.Equal(t, [][]any{{test.want}}, got)
			})
		}
	})
}

func TestDecimalsAreRoundedAsTheyAreWritten(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
		prog := &Program{Inputs: []Column{{Name: "f", Type: expr.Float}},
			Fields: []Field{{Name: "d", Type: expr.Decimal, Expr: "r.f"}}}
		rapid.Check(t, func(rt *rapid.T) {
			near := rapid.Map(rapid.Int64Range(-2e12, 2e12), func(n int64) float64 { return float64(n) / 1000 })
			wide := rapid.Float64Range(-9e12, 9e12)
			values := rapid.SliceOfN(rapid.OneOf(near, wide), 1, 100).Draw(rt, "values")
			if rapid.Bool().Draw(rt, "no halves") { // the quick way is taken
				for i, f := range values {
					values[i] = math.Round(f*100) / 100
				}
			}
			var rows, want [][]any
			for _, f := range values {
				rows = append(rows, []any{f})
				want = append(want, []any{roundedCents(f)})
			}
			var got results
			if _, err := pool.Run(t.Context(), prog, slice(rows), got.emit); err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(want, got.rows); diff != "" {
				rt.Fatalf("%v\nwant, got:\n%s", values, diff)
			}
		})
	})
}

// roundedCents rounds the shortest decimal that is f, half away from zero.
func roundedCents(f float64) Cents {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(math.Abs(f), 'f', -1, 64))
	r.Mul(r, big.NewRat(100, 1)).Add(r, big.NewRat(1, 2))
	cents := Cents(new(big.Int).Quo(r.Num(), r.Denom()).Int64())
	if f < 0 {
		return -cents
	}
	return cents
}

func TestMisuseIsADefect(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 1})
	for name, prog := range map[string]*Program{
		"no fields":      {},
		"two of a name":  {Fields: []Field{{Name: "a", Type: expr.Int}, {Name: "a", Type: expr.Int}}},
		"no column type": {Fields: []Field{{Name: "a", Type: expr.GoInt}}},
		"input no column": {Inputs: []Column{{Name: "n", Type: expr.Invalid}},
			Fields: []Field{{Name: "a", Type: expr.Int, Expr: "1"}}},
	} {
		_, err := runRows(t, pool, prog)
		require.Error(t, err, name)
		require.Equal(t, fault.Bug, fault.Of(err).Kind, name)
	}
}

func TestInputsThatPythonCannotTake(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 1})
	_, err := runRows(t, pool, allTypes(Plain, Plain), rowOfAll("ok"), rowOfAll("\xff"))
	require.ErrorContains(t, err, "r.string is not valid UTF-8")
	require.Equal(t, fault.UserData, fault.Of(err).Kind)
	require.Equal(t, int64(2), fault.Of(err).Place.Record)

	_, err = runRows(t, pool, allTypes(Plain, Plain),
		rowOfAll(nil, nil, nil, nil, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)))
	require.ErrorContains(t, err, "the year of r.datetime is outside of Python's range")
}

func TestCentsText(t *testing.T) {
	t.Parallel()
	for c, want := range map[Cents]string{0: "0.00", 5: "0.05", -5: "-0.05", 12345: "123.45",
		math.MinInt64: "-92233720368547758.08"} {
		require.Equal(t, want, c.String())
	}
}

// FuzzAnswer shows that nothing an interpreter may say makes the decoder panic.
func FuzzAnswer(f *testing.F) {
	prog, err := prepare(allTypes(Plain, Plain), false)
	require.NoError(f, err)
	f.Add(make([]byte, resultHeaderBytes))
	f.Add([]byte{})
	good := make([]byte, resultHeaderBytes)
	good[24] = 1 // one row
	good = append(good, make([]byte, 8+16+8+8+8+8+8+1+8+16+8+8)...)
	f.Add(good)
	f.Fuzz(func(t *testing.T, payload []byte) {
		a, err := decodeAnswer(payload)
		if err != nil {
			return
		}
		dec, err := newDecoder(prog, a)
		if err != nil {
			return
		}
		row := make([]any, len(prog.Fields))
		for i := range dec.rows {
			dec.row(i, row)
		}
	})
}
