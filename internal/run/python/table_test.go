package python

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// tableProgram calls f with groups of rows of an int g and an int n, and wants x and s back.
func tableProgram(input Input, lines ...string) *Program {
	return &Program{
		Files:  source(lines...),
		Inputs: []Column{{Name: "g", Type: expr.Int}, {Name: "n", Type: expr.Int}},
		Fields: []Field{{Name: "x", Type: expr.Int}, {Name: "s", Type: expr.String}},
		Table:  &Table{Function: "f", Input: input, Grouped: true},
	}
}

// grouped gives n rows in groups of the sizes, again and again.
func grouped(n int, sizes ...int) func() (Row, int64, error) {
	i, group, left := 0, int64(0), sizes[0]
	return func() (Row, int64, error) {
		if i == n {
			return nil, 0, io.EOF
		}
		if left == 0 {
			group++
			left = sizes[int(group)%len(sizes)]
		}
		left--
		i++
		return values{group, int64(i - 1)}, group, nil
	}
}

type tableRow struct {
	group, row int64
	values     string
}

func runTable(t *testing.T, p *Pool, prog *Program, next func() (Row, int64, error)) ([]tableRow, error) {
	t.Helper()
	var got []tableRow
	_, err := p.RunTable(t.Context(), prog, next, func(group, row int64, values []any) error {
		got = append(got, tableRow{group, row, fmt.Sprint(values...)})
		return nil
	}, func(group int64) string { return fmt.Sprintf("group (g = %d)", group) })
	return got, err
}

func TestTableCallsEachGroupOnceAndInOrder(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 2})
		prog := tableProgram(Lists,
			"def f(rows):",
			"    assert set(rows['g']) == {rows['g'][0]}",
			"    if rows['g'][0] % 3 == 1: return None",
			"    if rows['g'][0] % 3 == 2: return [{'s': 'last', 'x': rows['n'][-1]}, {'x': len(rows['n']), 's': ''}]",
			"    return {'x': (sum(rows['n']),), 's': ['sum']}")
		got, err := runTable(t, pool, prog, grouped(10_000, 1, 7, 2, 300, 40))
		require.NoError(t, err)
		var want []tableRow
		next := grouped(10_000, 1, 7, 2, 300, 40)
		group, sum, last, count := int64(0), int64(0), int64(0), int64(0)
		end := func() {
			switch group % 3 {
			case 0:
				want = append(want, tableRow{group, 0, fmt.Sprint(sum, "sum")})
			case 2:
				want = append(want, tableRow{group, 0, fmt.Sprint(last, "last")},
					tableRow{group, 1, fmt.Sprint(count, "")})
			}
			sum, count = 0, 0
		}
		for {
			row, g, err := next()
			if err == io.EOF {
				break
			}
			if g != group {
				end()
				group = g
			}
			last = row.(values)[1].(int64)
			sum += last
			count++
		}
		end()
		require.Equal(t, want, got)
	})
}

func TestTableWithoutGroupsIsCutBySizeAlone(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 2})
		prog := tableProgram(Lists, "def f(rows): return {'x': [len(rows['n'])], 's': [str(rows['n'][0])]}")
		prog.Table.Grouped = false
		got, err := runTable(t, pool, prog, grouped(maxCallRows*2+5, 1))
		require.NoError(t, err)
		require.Equal(t, []tableRow{
			{0, 0, fmt.Sprint(maxCallRows, "0")}, {1, 0, fmt.Sprint(maxCallRows, fmt.Sprint(maxCallRows))},
			{2, 0, fmt.Sprint(5, fmt.Sprint(2*maxCallRows))},
		}, got)
	})
}

// everyType is a program that returns its rows, whatever the form of its input.
func everyType(input Input, lines ...string) *Program {
	prog := &Program{Files: source(lines...), Table: &Table{Function: "f", Input: input}}
	for name, typ := range map[string]expr.Type{"s": expr.String, "i": expr.Int, "x": expr.Float, "b": expr.Bool,
		"d": expr.Decimal, "t": expr.DateTime} {
		prog.Inputs = append(prog.Inputs, Column{Name: name, Type: typ})
		prog.Fields = append(prog.Fields, Field{Name: name, Type: typ, Nullable: true})
	}
	return prog
}

// sampleRows are rows for the inputs of everyType; those with nulls have NULL in every column once.
func sampleRows(prog *Program, nulls bool) [][]any {
	samples := map[string][]any{
		"s": {"", "it's \x00 \"ü\"\n", "z"}, "i": {int64(-1 << 63), int64(1<<63 - 1), int64(0)},
		"x": {0.1, -1e300, 5e-324}, "b": {true, false, true}, "d": {Cents(-12345678901), Cents(1), Cents(0)},
		"t": {time.Date(1969, 12, 31, 23, 59, 59, 999e6, time.UTC), time.Date(2024, 2, 29, 1, 2, 3, 4e6, time.UTC),
			time.UnixMilli(0).UTC()},
	}
	rows := make([][]any, 3)
	for i := range rows {
		for k, c := range prog.Inputs {
			v := samples[c.Name][i]
			if nulls && (i+k)%3 == 0 {
				v = nil
			}
			rows[i] = append(rows[i], v)
		}
	}
	return rows
}

// pythonWith finds an interpreter that has a module: THALWEG_TEST_LIBRARIES, or python3.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	for _, name := range []string{os.Getenv("THALWEG_TEST_LIBRARIES"), "python3"} {
		if name != "" && exec.Command(name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	t.Skipf("no Python interpreter has %s", module)
	return ""
}

var modules = map[Input]string{Lists: "sys", Numpy: "numpy", Pandas: "pandas", Polars: "polars", Arrow: "pyarrow"}

func TestTableValuesArriveExactlyBothWays(t *testing.T) {
	t.Parallel()
	for input, module := range modules {
		for _, nulls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s nulls=%v", input, nulls), func(t *testing.T) {
				t.Parallel()
				pool := newTestPool(t, Config{Interpreter: pythonWith(t, module), Size: 1, MemoryBytes: 512 << 20})
				prog := everyType(input, "def f(rows): return rows")
				rows := sampleRows(prog, nulls)
				i := -1
				var got [][]any
				_, err := pool.RunTable(t.Context(), prog, func() (Row, int64, error) {
					if i++; i == len(rows) {
						return nil, 0, io.EOF
					}
					return values(rows[i]), 0, nil
				}, func(_, _ int64, values []any) error {
					got = append(got, append([]any(nil), values...))
					return nil
				}, nil)
				require.NoError(t, err, "%s", detail(err))
				require.Equal(t, rows, got)
			})
		}
	}
}

func detail(err error) string {
	if err == nil {
		return ""
	}
	return fault.Of(err).Detail
}

func TestTableInputTypes(t *testing.T) {
	t.Parallel()
	for input, want := range map[Input]string{
		Lists:  "dict b=bool d=Decimal i=int s=str t=datetime x=float",
		Numpy:  "dict b=bool d=float64 i=int64 s=object t=datetime64[ms] x=float64",
		Pandas: "DataFrame b=bool d=float64 i=int64 s=string t=datetime64[ms, UTC] x=float64",
		Polars: "DataFrame b=Boolean d=Decimal(precision=18, scale=2) i=Int64 s=String t=Datetime(time_unit='ms', " +
			"time_zone='UTC') x=Float64",
		Arrow: "Table b=bool d=decimal128(18, 2) i=int64 s=string t=timestamp[ms, tz=UTC] x=double",
	} {
		t.Run(string(input), func(t *testing.T) {
			t.Parallel()
			pool := newTestPool(t, Config{Interpreter: pythonWith(t, modules[input]), Size: 1})
			prog := everyType(input, "def f(rows, kind):",
				"    def name(v): return str(getattr(v, 'dtype', None) or (v.type if hasattr(v, 'type') else "+
					"type(v[0]).__name__))",
				"    text = type(rows).__name__ + ''.join(' %s=%s' % (k, name(rows[k])) for k in 'bdistx')",
				"    return [{'s': text, 'i': kind['a'] if isinstance(kind, dict) else len(kind), 'x': None, 'b': "+
					"None, 'd': None, 't': None}]")
			prog.Table.Arguments = map[string]json.RawMessage{"kind": json.RawMessage(`["a","b"]`)}
			rows := sampleRows(prog, false)
			i := -1
			_, err := pool.RunTable(t.Context(), prog, func() (Row, int64, error) {
				if i++; i == len(rows) {
					return nil, 0, io.EOF
				}
				return values(rows[i]), 0, nil
			}, func(_, _ int64, values []any) error {
				for k, f := range prog.Fields {
					switch f.Name {
					case "s":
						require.Equal(t, want, values[k])
					case "i":
						require.Equal(t, int64(2), values[k])
					}
				}
				return nil
			}, nil)
			require.NoError(t, err, "%s", detail(err))
		})
	}
}

func TestTableFailures(t *testing.T) {
	good := "{'x': [1], 's': ['a']}"
	for name, c := range map[string]struct {
		body, text string
		kind       fault.Kind
		field      string
	}{
		"raises": {"raise ValueError('no')", "formulas.py:3: function f, group (g = 2): ValueError: no",
			fault.UserData, ""},
		"not columns": {"return 7", "function f, group (g = 2): its result: expected a dict of columns",
			fault.Script, ""},
		"a generator":    {"return (i for i in [1])", "got generator", fault.Script, ""},
		"missing column": {"return {'x': [1]}", "column s is missing", fault.Script, "s"},
		"unknown column": {"return {'x': [1], 's': ['a'], 'y': [1]}",
			"there is a column 'y' that p.returns does not list", fault.Script, ""},
		"unequal columns": {"return {'x': [1, 2], 's': ['a']}", "p.s: it has 1 values, but column x has 2",
			fault.Script, "s"},
		"text for a list": {"return {'x': [1], 's': 'a'}", "p.s: expected a list, a tuple or an array, got str",
			fault.Script, "s"},
		"wrong type": {"return {'x': [1, 'b'], 's': ['a', 'a']}",
			"p.x in row 2 of its result: expected an int, got str: 'b'", fault.Script, "x"},
		"not whole": {"return {'x': [1.5], 's': ['a']}", "p.x in row 1 of its result: 1.5 is not a whole number",
			fault.UserData, "x"},
		"too large": {"return {'x': [1, 2**63], 's': ['a', 'a']}",
			"p.x in row 2 of its result: 9223372036854775808 does not fit into 64 bits", fault.UserData, "x"},
		"None": {"return {'x': [1], 's': [None]}", "p.s in row 1 of its result: the value is missing",
			fault.Script, "s"},
		"a row too few": {"return [{'x': 1, 's': 'a'}, {'x': 1}]", "p.s in row 2 of its result: column s is missing",
			fault.Script, "s"},
		"a row of another": {"return [{'x': 1, 's': 'a'}, 3]",
			"row 2 of its result: expected a dict for each row, got int", fault.Script, ""},
		"exits": {"import os; os._exit(3)", "function f, group (g = 2): the Python process ended (exit status 3)",
			fault.Script, ""},
		"endless": {"while True: pass", "function f, group (g = 2): the time for one call is over",
			fault.Script, ""},
		"stubborn": {"import time\n        while True:\n            try: time.sleep(1e6)\n            except " +
			"BaseException: pass", "and did not stop", fault.Script, ""},
		"memory": {"return {'x': list(range(10**8)), 's': []}", "function f, group (g = 2): MemoryError",
			fault.Script, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newStillClock(t, name == "stubborn")
			pool := newTestPool(t, Config{Size: 1, GroupTimeout: 500 * time.Millisecond, RowTimeout: 2 * stillLimit,
				MemoryBytes: 256 << 20, clock: clock.now})
			body := c.body
			if name == "endless" || name == "stubborn" {
				body = clock.hang() + "\n        " + c.body
			}
			prog := tableProgram(Lists, "def f(rows):", "    if rows['g'][0] >= 2:", "        "+body,
				"    return "+good)
			got, err := runTable(t, pool, prog, grouped(50, 5))
			require.ErrorContains(t, err, c.text)
			f := fault.Of(err)
			require.Equal(t, c.kind, f.Kind)
			require.Equal(t, c.field, f.Place.Field)
			require.LessOrEqual(t, len(got), 2)
			if name == "endless" || name == "stubborn" {
				require.Contains(t, f.Hint, "{{set group-timeout}}")
			}
			if name == "raises" {
				require.Contains(t, f.Detail, "raise ValueError('no')")
			}
			if name == "raises" || c.field != "" || strings.Contains(c.text, "result:") {
				require.NotContains(t, f.Detail, "<stdin>")
			}
			requireWorks(t, pool)
		})
	}
}

func TestTableGroupTooLarge(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 1, MaxGroupBytes: 1 << 20})
	prog := tableProgram(Lists, "def f(rows): return {'x': [len(rows['n'])], 's': ['']}")
	got, err := runTable(t, pool, prog, grouped(200_000, 10, 50_000, 70_000))
	require.ErrorContains(t, err, "function f, group (g = 2): its rows are more than the 1 MiB that a call may have")
	require.Contains(t, fault.Of(err).Hint, "p.columns")
	require.Equal(t, []tableRow{{0, 0, fmt.Sprint(10, "")}, {1, 0, fmt.Sprint(50_000, "")}}, got)
}

func TestTablePreflight(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 1})
	check := func(prog *Program) *fault.Error { return fault.Of(checked(t, pool, prog)) }
	require.Nil(t, check(tableProgram(Lists, "def f(rows): pass")))
	require.ErrorContains(t, check(tableProgram(Lists, "def g(rows): pass")),
		"there is no function f in the Python files")
	require.ErrorContains(t, check(tableProgram(Lists, "def f(rows, more): pass")),
		"f cannot be called with the rows and p.arguments: missing a required argument: 'more'")
	if exec.Command("python3", "-c", "import polars").Run() != nil {
		f := check(tableProgram(Polars, "def f(rows): pass"))
		require.Equal(t, fault.Environment, f.Kind)
		require.ErrorContains(t, f, "input: polars needs the Python module polars, which the interpreter ")
		require.Contains(t, f.Hint, "{{set python}}")
	}
}

func TestTableMissingValuesOfLibraries(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Interpreter: pythonWith(t, "pandas"), Size: 1})
	prog := tableProgram(Numpy, "import numpy as np, pandas as pd",
		"def f(rows):",
		"    if rows['g'][0] == 0: return {'x': np.array([1.0, np.nan]), 's': np.array(['a', None], dtype=object)}",
		"    if rows['g'][0] == 1: return pd.DataFrame({'x': [np.nan, 3], 's': pd.Series(['b', None])})",
		"    return {'x': [np.int32(4), np.float64(5)], 's': pd.Series(['c', pd.NA])}")
	prog.Fields[0].Nullable, prog.Fields[1].Nullable = true, true
	got, err := runTable(t, pool, prog, grouped(3, 1))
	require.NoError(t, err, "%s", detail(err))
	require.Equal(t, []tableRow{
		{0, 0, fmt.Sprint(1, "a")}, {0, 1, fmt.Sprint(nil, nil)}, {1, 0, fmt.Sprint(nil, "b")},
		{1, 1, fmt.Sprint(3, nil)},
		{2, 0, fmt.Sprint(4, "c")}, {2, 1, fmt.Sprint(5, nil)},
	}, got)
	prog.Fields[0].Nullable = false
	_, err = runTable(t, pool, prog, grouped(3, 1))
	require.ErrorContains(t, err, "p.x in row 2 of its result: the value is missing (None, NaN or NaT)")
}
