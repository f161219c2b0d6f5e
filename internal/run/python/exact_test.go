package python

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// modulePools are pools by the module that their interpreter has: importing takes longer than the tests.
type modulePools struct {
	parent *testing.T
	pools  map[string]*Pool // by interpreter
	found  map[string]string
}

func newModulePools(t *testing.T) *modulePools {
	return &modulePools{parent: t, pools: map[string]*Pool{}, found: map[string]string{}}
}

// of skips t where no interpreter has the module.
func (p *modulePools) of(t *testing.T, module string) *Pool {
	t.Helper()
	interpreter := p.found[module]
	if interpreter == "" {
		interpreter = pythonWith(t, module)
		p.found[module] = interpreter
	}
	if p.pools[interpreter] == nil {
		p.pools[interpreter] = newTestPool(p.parent, Config{Interpreter: interpreter, Size: 1, MemoryBytes: 1 << 30})
	}
	return p.pools[interpreter]
}

// returnedOf runs a function that returns one column v of a type, and gives its values.
func returnedOf(t *testing.T, pool *Pool, typ expr.Type, round bool, lines ...string) ([]any, error) {
	t.Helper()
	prog := &Program{
		Files:  source(lines...),
		Inputs: []Column{{Name: "n", Type: expr.Int}},
		Fields: []Field{{Name: "v", Type: typ, Nullable: true, Round: round}},
		Table:  &Table{Function: "f"},
	}
	var got []any
	_, err := pool.RunTable(t.Context(), prog, func() func() (Row, int64, error) {
		done := false
		return func() (Row, int64, error) {
			if done {
				return nil, 0, io.EOF
			}
			done = true
			return values{int64(1)}, 0, nil
		}
	}(), func(_, _ int64, values []any) error {
		got = append(got, values[0])
		return nil
	}, nil)
	return got, err
}

// TestTableResultsAreNotCut shows that what a type does not hold exactly is an
// error in whatever form a function returns it, unless the script says round.
func TestTableResultsAreNotCut(t *testing.T) {
	effort.Raced(t)
	pools := newModulePools(t)
	const fine = "2024-01-02T03:04:05.123456"
	ms := time.Date(2024, 1, 2, 3, 4, 5, 123e6, time.UTC)
	us := int64(1704164645123456)
	wide := expr.DecimalOf(38, 20)
	narrow := expr.DecimalOf(5, 2)
	for _, c := range []struct {
		module, value string // value: of the second of two rows, in a list or as what it makes of its own
		typ           expr.Type
		bad           string // of the message
		rounded       any    // with round
	}{
		{"datetime", "[None, datetime.datetime.fromisoformat('" + fine + "')]", expr.DateTime,
			"has more than the milliseconds of a datetime", ms},
		{"datetime", "[None, datetime.datetime.fromisoformat('" + fine + "+00:00')]", expr.DateTime,
			"has more than the milliseconds", ms},
		{"numpy", "numpy.array(['NaT', '" + fine + "'], dtype='datetime64[us]')", expr.DateTime,
			"has more than the milliseconds", ms},
		{"numpy", "numpy.array(['NaT', '2024-01-02T03:04:05.123000001'], dtype='datetime64[ns]')", expr.DateTime,
			"2024-01-02T03:04:05.123000001 has more", ms},
		{"numpy", "[None, numpy.datetime64('" + fine + "')]", expr.DateTime, "has more than the milliseconds", ms},
		{"pandas", "pandas.Series([pandas.NaT, pandas.Timestamp('" + fine + "')])", expr.DateTime,
			"has more than the milliseconds", ms},
		{"pandas", "pandas.Series([pandas.NaT, pandas.Timestamp('2024-01-02T03:04:05.123000001Z')])", expr.DateTime,
			"has more than the milliseconds", ms},
		{"pandas", "[None, pandas.Timestamp('2024-01-02T03:04:05.123000001Z')]", expr.DateTime,
			"has more than the milliseconds", ms},
		{"polars", "polars.Series([None, '2024-01-02T03:04:05.123000001']).str.to_datetime(time_unit='ns')",
			expr.DateTime, "has more than the milliseconds", ms},
		{"pyarrow", "pyarrow.array([None, 1704164645123000001], pyarrow.timestamp('ns'))", expr.DateTime,
			"has more than the milliseconds", ms},

		{"numpy", "numpy.array(['NaT', '2024-01-02T03:04:05.123456789'], dtype='datetime64[ns]')", expr.Instant,
			"has digits below the microsecond", us},
		{"polars", "polars.Series([None, " +
			"'2024-01-02T03:04:05.123456789']).str.to_datetime(time_unit='ns').dt.replace_time_zone('UTC')",
			expr.Instant, "has digits below the microsecond", us},
		{"pyarrow", "pyarrow.array([None, 1704164645123456789], pyarrow.timestamp('ns', 'UTC'))", expr.Instant,
			"has digits below the microsecond", us},
		{"pandas", "[None, pandas.Timestamp('2024-01-02T03:04:05.123456789Z')]", expr.Instant,
			"has digits below the microsecond", us},
		{"math", "[None, 2**53 + 1]", expr.Float, "9007199254740993 has more than the digits of a float",
			float64(1 << 53)},
		{"math", "[1.5, -2**60 - 1]", expr.Float, "has more than the digits of a float", float64(-1 << 60)},
		{"numpy", "numpy.array([1, 2**53 + 1])", expr.Float, "has more than the digits of a float", float64(1 << 53)},
		{"pandas", "pandas.Series([pandas.NA, 2**53 + 1], dtype='Int64')", expr.Float,
			"has more than the digits of a float", float64(1 << 53)},
		{"datetime", "[None, datetime.datetime(2024, 1, 2)]", expr.Instant, "has no time zone", nil},

		{"datetime", "[None, datetime.datetime(2024, 1, 2, 3)]", expr.Date, "has a time of the day", nil},
		{"numpy", "numpy.array(['NaT', '2024-01-02T00:00:00.000000001'], dtype='datetime64[ns]')", expr.Date,
			"has a time of the day", nil},
		{"pandas", "[None, pandas.Timestamp('2024-01-02T00:00:00.000000001')]", expr.Date,
			"has a time of the day", nil},
		{"numpy", "numpy.array(['NaT', '300000-01-02'], dtype='datetime64[D]')", expr.Date,
			"expected a datetime.date", nil},
		{"numpy", "numpy.array([0, 2**62], dtype='datetime64[s]')", expr.DateTime, "expected a datetime.datetime", nil},

		{"decimal", "[None, decimal.Decimal('1.08754321')]", expr.Decimal,
			"Decimal('1.08754321') has more than the 2 digits behind the point of a decimal2", Cents(109)},
		{"decimal", "[None, -1.125]", expr.Decimal, "-1.125 has more than the 2 digits", Cents(-113)},
		{"decimal", "[1.25, 0.1 + 0.2]", expr.Decimal, "0.30000000000000004 has more than the 2 digits", Cents(30)},
		{"numpy", "numpy.array([1.25, 1.255])", expr.Decimal, "1.255 has more than the 2 digits", Cents(126)},
		{"decimal", "[None, decimal.Decimal('999.995')]", narrow,
			"has more than the 2 digits behind the point of a decimal(5,2)", nil},
		{"decimal", "[None, decimal.Decimal('-0.125')]", narrow, "has more than the 2 digits", "-0.13"},
		{"decimal", "[None, decimal.Decimal('1e18')]", wide, "does not fit into a decimal(38,20)", nil},
		{"decimal", "[None, decimal.Decimal('1e999999')]", wide, "does not fit into a decimal(38,20)", nil},
		{"decimal", "[None, decimal.Decimal('nan')]", wide, "NaN is not a number that a field can hold", nil},
		{"decimal", "[None, decimal.Decimal('sNaN')]", wide, "sNaN is not a number that a field can hold", nil},
		{"decimal", "[None, decimal.Decimal('-Infinity')]", wide, "-Infinity is not a number that a field can hold",
			nil},
		{"decimal", "[None, float('inf')]", wide, "inf is not a number that a field can hold", nil},
		{"numpy", "numpy.array([1, numpy.inf])", narrow, "inf is not a number that a field can hold", nil},

		{"decimal", "[None, decimal.Decimal('1')]", expr.Int, "expected an int, got Decimal", nil},
		{"numpy", "numpy.array([1, 2.5], dtype='float32')", expr.Int, "2.5 is not a whole number", nil},
		{"numpy", "numpy.array([1, 2**63], dtype='uint64')", expr.Int, "does not fit into 64 bits", nil},
		{"numpy", "numpy.array([1, 2**53 + 1], dtype='longdouble')", expr.Int, "expected an int, got longdouble", nil},
		{"numpy", "[1, numpy.longdouble(2**53) + 1]", expr.Int, "expected an int, got longdouble", nil},
		{"polars", "polars.Series([1, 2**63], dtype=polars.UInt64)", expr.Int, "does not fit into 64 bits", nil},
	} {
		t.Run(c.value+" "+c.typ.String(), func(t *testing.T) {
			pool := pools.of(t, c.module)
			run := func(round bool) ([]any, error) {
				return returnedOf(t, pool, c.typ, round, "import "+c.module, "def f(rows): return {'v': "+c.value+"}")
			}
			_, err := run(false)
			require.ErrorContains(t, err, c.bad)
			require.ErrorContains(t, err, "p.v in row 2 of its result: ")
			require.NotEmpty(t, fault.Of(err).Place.Value)
			got, err := run(true)
			if c.rounded == nil {
				require.ErrorContains(t, err, "p.v in row 2 of its result: ")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.rounded, got[1])
		})
	}
}

// TestTableResultsThatFitExactly are the neighbours of what is refused.
func TestTableResultsThatFitExactly(t *testing.T) {
	effort.Raced(t)
	pools := newModulePools(t)
	most := strings.Repeat("9", 18) + "." + strings.Repeat("9", 20)
	for _, c := range []struct {
		module, value string
		typ           expr.Type
		want          any
	}{
		{"numpy", "numpy.array(['2024-01-02T03:04:05.123000000'], dtype='datetime64[ns]')", expr.DateTime,
			time.Date(2024, 1, 2, 3, 4, 5, 123e6, time.UTC)},
		{"numpy", "numpy.array(['1969-12-31T23:59:59.999999'], dtype='datetime64[us]')", expr.Instant, int64(-1)},
		{"numpy", "numpy.array(['2024-01-31'], dtype='datetime64[D]')", expr.Date, int64(19753)},
		{"polars", "polars.Series(['2024-01-02T03:04:05.123']).str.to_datetime(time_unit='ns')", expr.DateTime,
			time.Date(2024, 1, 2, 3, 4, 5, 123e6, time.UTC)},
		{"pyarrow", "pyarrow.array([-1000], pyarrow.timestamp('ns', 'UTC'))", expr.Instant, int64(-1)},
		{"decimal", "[decimal.Decimal('-" + most + "')]", expr.DecimalOf(38, 20), "-" + most},
		{"polars", "polars.Series(['" + most + "']).cast(polars.Decimal(38, 20))", expr.DecimalOf(38, 20), most},
		{"pyarrow", "pyarrow.array([decimal.Decimal('" + most + "')], pyarrow.decimal256(50, 20))",
			expr.DecimalOf(38, 20), most},
		{"decimal", "[1.2500000]", expr.Decimal, Cents(125)},
		{"decimal", "[decimal.Decimal('9999999999999999.990')]", expr.Decimal, Cents(999999999999999999)},
		{"numpy", "numpy.array([0.07, 1.1]) [1:]", expr.Decimal, Cents(110)},
		{"numpy", "numpy.array([2**53 + 1], dtype='longdouble') - 1", expr.Int, int64(1 << 53)},
	} {
		t.Run(c.value+" "+c.typ.String(), func(t *testing.T) {
			pool := pools.of(t, c.module)
			got, err := returnedOf(t, pool, c.typ, false, "import decimal, "+c.module,
				"def f(rows): return {'v': "+c.value+"}")
			require.NoError(t, err, "%s", detail(err))
			require.Equal(t, []any{c.want}, got)
		})
	}
}
