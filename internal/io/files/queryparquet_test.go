package files

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

func TestCheckQueryParquet(t *testing.T) {
	t.Parallel()
	dir := unzipCorpus(t)
	for name, reason := range map[string]string{
		"duckdb_gzip_V1.parquet":         "",
		"polars_zstd_one.parquet":        "",
		"x_int64_decimal_2_2.parquet":    "",
		"x_fixed20_decimal_40_2.parquet": "not known to be read rightly",
		"x_int_8_in_int64.parquet":       "",
		"x_names_shared.parquet":         "two of its columns have the same name",
	} {
		err := checkQuery(t, filepath.Join(dir, name))
		if reason == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, reason, name)
		require.Equal(t, fault.UserData, fault.Of(err).Kind)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "duckdb_gzip_V1.parquet"))
	require.NoError(t, err)
	raw[60] ^= 4 // inside the first page
	path := filepath.Join(dir, "damaged.parquet")
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	require.ErrorContains(t, checkQuery(t, path), "cannot be decoded")
}

func checkQuery(t *testing.T, path string) error {
	t.Helper()
	plan, err := PlanSlices(t.Context(), &script.FileReader{URLs: urls(path), Parquet: true}, 1<<30, 1)
	require.NoError(t, err)
	_, prepare, err := QueryParquet(plan[0], t.TempDir())
	if err != nil {
		return err
	}
	return prepare(t.Context())
}

// TestChaosQueryParquetCorpus reads the corpus as queries do: with DuckDB's
// types, but never a value that is not the file's.
func TestChaosQueryParquetCorpus(t *testing.T) {
	t.Parallel()
	dir := unzipCorpus(t)
	corpus := readCorpus(t, dir)
	db := openDB(t, 2)
	n := 0
	for _, name := range slices.Sorted(maps.Keys(corpus)) {
		crafted := strings.HasPrefix(name, "x_")
		if n++; !crafted && n%sampleOne() != 0 || crafted && n%effort.Of(8, 1, 1) != 0 {
			continue
		}
		columns, err := parquetColumns(Input{Path: filepath.Join(dir, name), URL: name})
		require.NoError(t, err)
		for _, c := range columns {
			got, err := queryCorpusColumn(t, db, filepath.Join(dir, name), c)
			if err != nil {
				wide := strings.HasPrefix(name, "pa_decimal256_") && strings.Contains(err.Error(),
					"not known to be read rightly")
				if !crafted && !wide && !strings.Contains(err.Error(), refusedSplit) {
					t.Errorf("%s: column %q (%s) is not read: %v", name, c.Name, c.Kind, err)
				}
				continue
			}
			require.Len(t, got, len(corpus[name].Columns[c.Name]), name)
			for i, want := range corpus[name].Columns[c.Name] {
				if _, refused := want.(map[string]any); refused && crafted {
					continue // does not fit the script's type, which may be narrower
				}
				if !sameCorpusValue(c.Type, want, got[i][0]) {
					t.Errorf("%s: column %q (%s), row %d is %q, not %v", name, c.Name, c.Kind, i, got[i][0], want)
				}
			}
		}
	}
}

func queryCorpusColumn(t *testing.T, db *sql.Conn, path string, c script.FileColumn) ([][]string, error) {
	t.Helper()
	plan, err := PlanSlices(t.Context(), &script.FileReader{URLs: urls(path), Parquet: true}, 1<<30, 1)
	require.NoError(t, err)
	from, prepare, err := QueryParquet(plan[0], t.TempDir())
	if err != nil {
		return nil, err
	}
	if err := prepare(t.Context()); err != nil {
		return nil, err
	}
	value := sqltext.Ident(c.Name)
	switch {
	case c.Type == expr.Date:
		value = "epoch_us(CAST(" + value + " AS TIMESTAMP))"
	case c.Type == expr.DateTime || c.Type == expr.Instant:
		nanos := "epoch_ns(" + value + ")"
		value = "CASE WHEN typeof(" + value + ") = 'TIMESTAMP_NS' " +
			"THEN " + nanos + " // 1000 - CAST(" + nanos + " % 1000 < 0 AS BIGINT) ELSE epoch_us(" + value + ") END"
	case c.Type.IsDecimal(): // DuckDB prints one without whole digits as .5
		value = "regexp_replace(CAST(" + value + " AS VARCHAR), '^(-?)[.]', '\\10.')"
	case c.Type == expr.String:
		value = "CASE WHEN typeof(" + value + ") = 'BLOB' THEN decode(CAST(" + value + " AS BLOB)) ELSE CAST(" + value +
			" AS VARCHAR) END"
	}
	return texts(t.Context(), db, "SELECT CAST("+value+" AS VARCHAR) FROM "+from)
}

// TestQueryParquetTypes reads files as they are and through views: a query
// sees the same types and values.
func TestQueryParquetTypes(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	for _, value := range []string{
		"'text'", "CAST('\\x00\\xFF' AS BLOB)", "true", "CAST(1.5 AS FLOAT)", "CAST(-2.5 AS DOUBLE)",
		"CAST(-100 AS TINYINT)", "CAST(-1000 AS SMALLINT)", "CAST(-3 AS INTEGER)", "CAST(-3 AS BIGINT)",
		"CAST(200 AS UTINYINT)", "CAST(60000 AS USMALLINT)", "CAST(4000000000 AS UINTEGER)",
		"CAST(18446744073709551615 AS UBIGINT)",
		"CAST(-9.99 AS DECIMAL(3,2))", "CAST(1.5 AS DECIMAL(9,1))", "CAST(1.5 AS DECIMAL(18,6))",
		"CAST(-1.5 AS DECIMAL(38,18))",
		"DATE '1969-12-31'", "TIMESTAMP '1960-01-02 03:04:05.678901'", "TIMESTAMP_NS '1960-01-02 03:04:05.678901234'",
		"TIMESTAMP_MS '1960-01-02 03:04:05.678'",
		"CAST('1960-01-02 03:04:05.5+02' AS TIMESTAMPTZ)", "CAST('{\"a\": 1}' AS JSON)",
	} {
		path := filepath.Join(t.TempDir(), "a.parquet")
		exec(t, db, "COPY (SELECT "+value+" AS c UNION ALL SELECT NULL) TO '"+path+"' (FORMAT parquet)")
		own, err := texts(t.Context(), db, "SELECT typeof(c), CAST(c AS VARCHAR) FROM '"+path+"'")
		require.NoError(t, err)
		for _, viewed := range []bool{false, true} {
			plan, err := PlanSlices(t.Context(), &script.FileReader{URLs: urls(path), Parquet: true}, 1<<30, 1)
			require.NoError(t, err)
			foot, err := source{url: path, path: path}.footer(func(string) bool { return true })
			require.NoError(t, err)
			views := filepath.Join(t.TempDir(), "views")
			one, err := planQuery(plan[0][0], foot, filepath.Join(views, "a.parquet"))
			require.NoError(t, err)
			if viewed {
				one.view = filepath.Join(views, "a.parquet")
			}
			p := &parquetPlan{r: &script.FileReader{Parquet: true}, dir: views, slices: []parquetSlice{one}}
			require.NoError(t, p.prepare(t.Context()))
			got, err := texts(t.Context(), db, "SELECT typeof(c), CAST(c AS VARCHAR) FROM "+p.querySQL())
			require.NoError(t, err, value)
			require.Equal(t, own, got, "%s, view %q", value, one.view)
		}
	}
}

// TestQueryParquetNested reads nested columns, through views where DuckDB reads
// leaves wrongly, and refuses what is within maps, where no value is looked at.
func TestQueryParquetNested(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	for value, reason := range map[string]string{
		"[1, NULL]": "", "{'a': 'x', 'b': [1.5::DOUBLE]}": "", "MAP {'k': 5::BIGINT}": "",
		"TIME '01:02:03'": "", "CAST('00000000-0000-0000-0000-000000000001' AS UUID)": "",
		"[1::TINYINT, -128]": "", "[255::UTINYINT, NULL]": "", "[18446744073709551615::UBIGINT]": "",
		"{'n': 1.5::DECIMAL(2,1)}": "", "{'n': [[-99.99::DECIMAL(4,2)], NULL, []], 'm': NULL::SMALLINT}": "",
		"[TIMESTAMP '2020-01-01', NULL]": "", "{'t': TIMESTAMPTZ '2020-01-01 01:02:03.000004+00'}": "",
		"[TIMESTAMP_NS '2020-01-01 01:02:03.000000004']": "", "[[DATE '0001-01-01']]": "",
		"{'a': TIME '01:02:03'}": "", "{'a': 1, 'b': ['x'::BLOB]}": "", "[{'with \"quotes\"': 1::TINYINT}]": "",
		"[CAST('00000000-0000-0000-0000-000000000001' AS UUID)]":              "",
		"{'u': UUID '00000000-0000-0000-0000-000000000001', 'n': 1::TINYINT}": "",
		"INTERVAL 1 DAY":                 "not known to be read rightly",
		"MAP {'k': 1::TINYINT}":          `inside of it "value" is INT32 INT_8`,
		"MAP {'k': DATE '2020-01-01'}":   `inside of it "value" is INT32 DATE`,
		"[MAP {'k': 1.5::DECIMAL(2,1)}]": "not known to be read rightly there",
	} {
		path := filepath.Join(t.TempDir(), "a.parquet")
		exec(t, db, "COPY (SELECT "+value+" AS c, 7 AS d UNION ALL SELECT NULL, 8) TO '"+path+"' (FORMAT parquet)")
		own, err := texts(t.Context(), db, "SELECT typeof(c), CAST(c AS VARCHAR), d FROM '"+path+"'")
		require.NoError(t, err)
		plan, err := PlanSlices(t.Context(), &script.FileReader{URLs: urls(path), Parquet: true}, 1<<30, 1)
		require.NoError(t, err)
		from, prepare, err := QueryParquet(plan[0], t.TempDir())
		if reason != "" {
			require.Error(t, err, value)
			require.Equal(t, fault.UserData, fault.Of(err).Kind)
			require.ErrorContains(t, err, reason)
			require.Equal(t, "c", fault.Of(err).Place.Field)
			continue
		}
		require.NoError(t, err, value)
		require.NoError(t, prepare(t.Context()))
		got, err := texts(t.Context(), db, "SELECT typeof(c), CAST(c AS VARCHAR), d FROM "+from)
		require.NoError(t, err, value)
		require.Equal(t, own, got)
	}
}

// TestQueryParquetFilesDiffer refuses files that have not the columns of the
// first one.
func TestQueryParquetFilesDiffer(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	dir := t.TempDir()
	write := func(name, columns string) {
		exec(t, db, "COPY (SELECT "+columns+") TO '"+filepath.Join(dir, name)+"' (FORMAT parquet)")
	}
	read := func() ([][]string, error) {
		plan, err := PlanSlices(t.Context(), &script.FileReader{URLs: urls(filepath.Join(dir, "*.parquet")),
			Parquet: true},
			1<<30, 1)
		require.NoError(t, err)
		from, prepare, err := QueryParquet(plan[0], t.TempDir())
		if err != nil {
			return nil, err
		}
		require.NoError(t, prepare(t.Context()))
		return texts(t.Context(), db, "SELECT a, b FROM "+from)
	}
	write("1.parquet", "1::TINYINT AS a, 'x' AS b")
	write("2.parquet", "'y' AS b, 2::TINYINT AS a")
	got, err := read()
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1", "x"}, {"2", "y"}}, got)
	write("2.parquet", "'y' AS b, 2000 AS a")
	_, err = read()
	require.ErrorContains(t, err, `column "a": it is INT32 INT_32, and in the first file`)
	write("2.parquet", "'y' AS b")
	_, err = read()
	require.ErrorContains(t, err, "not in this one")
}

// TestParquetStatisticsHideNoCheck reads values that must be refused and that
// the statistics say are not there: by a file_table and by a query.
func TestParquetStatisticsHideNoCheck(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	path := filepath.Join(t.TempDir(), "lie.parquet")
	exec(t, db, "COPY (SELECT unnest([TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', TIMESTAMP '2020-01-03']) AS t) "+
		"TO '"+path+"' (FORMAT parquet, CODEC uncompressed)")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	last := binary.LittleEndian.AppendUint64(nil, uint64(time.Date(2020, 1, 3, 0, 0, 0, 0, time.UTC).UnixMicro()))
	at := bytes.Index(raw, last) // the value; its statistics come behind it
	require.Positive(t, at)
	binary.LittleEndian.PutUint64(raw[at:], math.MaxInt64)
	require.NoError(t, os.WriteFile(path, raw, 0o600))

	_, err = readAll(t, db, parquetReader("t|datetime", path), 1<<30, 1, Unnumbered)
	require.ErrorContains(t, err, "does not fit")
	_, err = queryCorpusColumn(t, db, path, script.FileColumn{Name: "t", Type: expr.DateTime})
	require.ErrorContains(t, err, "out of range")
}
