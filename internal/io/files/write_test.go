package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/test/effort"
)

// csvWriter writes columns given as "name|type|format|header".
func csvWriter(separator string, columns ...string) *script.FileWriter {
	w := &script.FileWriter{Separator: separator, Quote: script.QuoteMinimal}
	for _, c := range columns {
		p := strings.SplitN(c, "|", 4)
		typ, _ := expr.ParseType(p[1])
		w.Columns = append(w.Columns, &script.OutputColumn{Name: p[0], Type: typ, Format: p[2], Header: p[3],
			Pos: document.Pos{File: "s.yaml", Line: 3, Col: 1}})
	}
	return w
}

func TestWriteCSV(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	all := []string{"s|string|%s|text", "i|int|%05d|a, number", "f|float|%.2f|float", "d|decimal2|%s|money",
		"b|bool|%t|flag", "t|datetime|2006-01-02 15:04:05|when"}
	row := "SELECT %s AS s, CAST(42 AS BIGINT) AS i, CAST(1.005 AS DOUBLE) AS f, CAST(28.5 AS DECIMAL(18,2)) AS d, " +
		"true AS b, TIMESTAMP '2020-01-02 03:04:05.678' AS t"
	tests := map[string]struct {
		writer *script.FileWriter
		from   string
		want   string
	}{
		"all types": {csvWriter(",", all...), fmt.Sprintf(row, "'plain'"),
			"text,\"a, number\",float,money,flag,when\nplain,00042,1.00,28.50,true,2020-01-02 03:04:05\n"},
		"what is quoted": {csvWriter(",", all[0], all[1]),
			"SELECT unnest(['a,b', 'a\"b', 'a\nb', 'a\rb', '', ' ', 'a ', '\ta', 'a\t', 'a\tb c', '''', 'a;b', '\\', " +
				"'#', '\u00a0', chr(0)]) AS s, CAST(1 AS BIGINT) AS i",
			"text,\"a, number\"\n\"a,b\",00001\n\"a\"\"b\",00001\n\"a\nb\",00001\n\"a\rb\",00001\n,00001\n\" " +
				"\",00001\n\"a \",00001\n\"\ta\",00001\n\"a\t\",00001\na\tb " +
				"c,00001\n',00001\na;b,00001\n\\,00001\n#,00001\n\u00a0,00001\n\"\x00\",00001\n"},
		"one column has no empty lines": {csvWriter(",", all[0]), "SELECT unnest(['', 'x']) AS s", "text\n\"\"\nx\n"},
		"one column of nullable ints": {nullable(csvWriter(",", "i|int||i"), ""), "SELECT unnest([1, NULL]) AS i",
			"i\n1\n\"\"\n"},
		"one column with a null text": {nullable(csvWriter(",", all[0]), "NA"), "SELECT unnest(['', NULL, 'NA']) AS s",
			"text\n\"\"\nNA\n\"NA\"\n"},
		"nulls and empty texts": {nullable(csvWriter(",", all[0], all[1]), ""),
			"SELECT unnest(['', NULL]) AS s, unnest([CAST(NULL AS BIGINT), 1]) AS i",
			"text,\"a, number\"\n\"\",\n,00001\n"},
		"other separator, still the comma": {csvWriter(";", all[0], all[1]),
			"SELECT unnest(['a,b', 'a;b']) AS s, CAST(1 AS BIGINT) AS i",
			"text;\"a, number\"\n\"a,b\";00001\n\"a;b\";00001\n"},
		"separator in numbers": {csvWriter(".", "d|decimal2|%s|d", all[1]),
			"SELECT CAST(1.5 AS DECIMAL(18,2)) AS d, 1 AS i", "d.\"a, number\"\n\"1.50\".00001\n"},
		"padded with blanks": {csvWriter(",", "i|int|%4d|i"), "SELECT 7 AS i", "i\n   7\n"},
		"long separator": {csvWriter("||'", all[0], all[2]), "SELECT 'x|' AS s, CAST(0.5 AS DOUBLE) AS f",
			"text||'float\n\"x|\"||'0.50\n"},
		"layout with a comma": {csvWriter(",", "t|datetime|Jan 2, 2006|day"), "SELECT TIMESTAMP '2020-01-02' AS t",
			"day\n\"Jan 2, 2020\"\n"},
		"layout with a blank": {csvWriter(",", "t|datetime|_2 Jan|day"), "SELECT TIMESTAMP '2020-01-02' AS t",
			"day\n 2 Jan\n"},
		"no rows": {csvWriter(",", all[0], all[1]), "SELECT 'x' AS s, CAST(1 AS BIGINT) AS i WHERE false",
			"text,\"a, number\"\n"},
		"null is empty": {csvWriter(",", all[0], all[1]), "SELECT CAST(NULL AS VARCHAR) AS s, CAST(1 AS BIGINT) AS i",
			"text,\"a, number\"\n,00001\n"},
		"ordered": {csvWriter(",", all[0]),
			"SELECT * FROM (SELECT unnest(['b', 'c', 'a']) AS s, unnest([1, 2, 3]) AS k) ORDER BY k DESC",
			"text\na\nc\nb\n"},
		"odd header":            {csvWriter(",", "s|string|%s|a\"b\nc"), "SELECT 'x' AS s", "\"a\"\"b\nc\"\nx\n"},
		"header like a mark":    {csvWriter(",", "s|string|%s|\ufeffa"), "SELECT 'x' AS s", "\"\ufeffa\"\nx\n"},
		"header without text":   {csvWriter(",", "s|string|%s|"), "SELECT 'x' AS s", "\"\"\nx\n"},
		"headers without texts": {csvWriter(",", "s|string|%s|", "i|int|%d|"), "SELECT 'x' AS s, 1 AS i", ",\nx,1\n"},
		"CRLF": {with(csvWriter(",", all[0], all[1]), func(w *script.FileWriter) { w.CRLF = true }),
			"SELECT 'x\ny' AS s, 1 AS i", "text,\"a, number\"\r\n\"x\ny\",00001\r\n"},
		"all in quotes": {with(nullable(csvWriter(",", all[0], all[1]), ""),
			func(w *script.FileWriter) { w.Quote = script.QuoteAll }),
			"SELECT unnest(['x\"y', NULL, '']) AS s, unnest([1, 2, NULL]) AS i",
			"\"text\",\"a, number\"\n\"x\"\"y\",\"00001\"\n,\"00002\"\n\"\",\n"},
		"none in quotes": {with(csvWriter(",", all[0], "i|int|%d|i"),
			func(w *script.FileWriter) { w.Quote = script.QuoteNone }), "SELECT unnest(['x y', '']) AS s, 1 AS i",
			"text,i\nx y,1\n,1\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "it's out.csv")
			query, err := WriteSQL(test.writer, test.from, path)
			require.NoError(t, err)
			exec(t, db, query.SQL(), query.SQL()) // the second replaces the first
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
}

// TestWriteCSVRefuses names the row that cannot be written.
func TestWriteCSVRefuses(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	none := func(w *script.FileWriter) { w.Quote = script.QuoteNone }
	for name, test := range map[string]struct {
		writer *script.FileWriter
		from   string
		want   string
	}{
		"a separator": {with(csvWriter(",", "s|string||s", "i|int||i"), none),
			"SELECT unnest(['x', 'y', 'a,b', 'c,d']) AS s, 1 AS i",
			"row 3, column s: the value needs quotes, but csv.quote is none: a,b"},
		"an empty line": {with(csvWriter(",", "s|string||s"), none), "SELECT unnest(['x', '']) AS s",
			"row 2, column s: the value needs quotes"},
		"an empty line, of a null": {nullable(csvWriter(",", "s|string||s"), ""), "SELECT unnest(['x', NULL]) AS s",
			"row 2, column s: a NULL would be an empty line"},
		"a text that stands for null": {with(nullable(csvWriter(",", "s|string||s", "i|int||i"), "NA"), none),
			"SELECT unnest(['x', NULL, 'NA']) AS s, 1 AS i", "row 3, column s: the value needs quotes"},
	} {
		t.Run(name, func(t *testing.T) {
			query, err := WriteSQL(test.writer, test.from, filepath.Join(t.TempDir(), "out.csv"))
			require.NoError(t, err)
			_, err = db.ExecContext(t.Context(), query.SQL())
			raised, ok := expr.ParseRaised(err.Error())
			require.True(t, ok)
			require.Contains(t, raised.Text(), test.want)
		})
	}
}

func with(w *script.FileWriter, change func(*script.FileWriter)) *script.FileWriter {
	change(w)
	return w
}

// nullable makes all columns nullable, with a text for NULL.
func nullable(w *script.FileWriter, text string) *script.FileWriter {
	for _, c := range w.Columns {
		c.Nullable, c.NullText = true, text
	}
	return w
}

// TestWriteKeepsOrder writes enough rows for several threads.
func TestWriteKeepsOrder(t *testing.T) {
	t.Parallel()
	const rows = 700_000
	for _, threads := range effort.Of([]int{4}, []int{1, 4}, []int{1, 4}) {
		db := openDB(t, threads)
		for _, order := range []string{"", "k"} {
			from := fmt.Sprintf("SELECT range AS i, %d - range AS k FROM range(%d)", rows, rows)
			dir := t.TempDir()
			want := func(n int) string {
				if order == "k" {
					n = rows - 1 - n
				}
				return fmt.Sprint(n)
			}
			if order != "" {
				from = "SELECT * FROM (" + from + ") ORDER BY " + order
			}
			query, err := WriteSQL(csvWriter(",", "i|int|%d|i"), from, filepath.Join(dir, "out.csv"))
			require.NoError(t, err)
			exec(t, db, query.SQL())
			raw, err := os.ReadFile(filepath.Join(dir, "out.csv"))
			require.NoError(t, err)
			lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")[1:]
			require.Len(t, lines, rows)
			for n, line := range lines {
				if line != want(n) {
					t.Fatalf("line %d is %s", n, line)
				}
			}
			w := &script.FileWriter{Parquet: true,
				Columns: []*script.OutputColumn{{Name: "i", Type: expr.Int, Parquet: "k"}}}
			query, err = WriteSQL(w, from, filepath.Join(dir, "out.parquet"))
			require.NoError(t, err)
			exec(t, db, query.SQL())
			bad, err := texts(t.Context(), db, fmt.Sprintf("SELECT count(*) FROM '%s/out.parquet' WHERE k <> %s", dir,
				map[string]string{"": "file_row_number", "k": fmt.Sprintf("%d - file_row_number", rows-1)}[order]))
			require.NoError(t, err)
			require.Equal(t, "0", bad[0][0])
		}
	}
}

func TestWriteParquet(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	w := &script.FileWriter{Parquet: true}
	for i, typ := range append(expr.ColumnTypes(), expr.DecimalOf(38, 4)) {
		w.Columns = append(w.Columns, &script.OutputColumn{Name: fmt.Sprintf("c%d", i), Type: typ,
			Parquet: fmt.Sprintf("p \"%d\"", i)})
	}
	from := `SELECT unnest(['x', '']) AS c0, CAST(7 AS BIGINT) AS c1, CAST(0.5 AS DOUBLE) AS c2, true AS c3,
		unnest([TIMESTAMP '2020-01-02 03:04:05.678', TIMESTAMP '0001-01-01']) AS c4, CAST(12.5 AS DECIMAL(18,2)) AS c5,
		DATE '2020-01-02' AS c6, make_timestamptz(epoch_us(TIMESTAMP '2020-01-02 03:04:05.678901')) AS c7, CAST('1.0001' AS DECIMAL(38,4)) AS c8`
	for codec, want := range map[string]string{"": "GZIP", "gzip": "GZIP", "snappy": "SNAPPY",
		"uncompressed": "UNCOMPRESSED"} {
		w.Codec = codec
		path := filepath.Join(t.TempDir(), "out.parquet")
		query, err := WriteSQL(w, from, path)
		require.NoError(t, err)
		exec(t, db, query.SQL())
		got, err := texts(t.Context(), db, "SELECT DISTINCT compression FROM parquet_metadata('"+path+"')")
		require.NoError(t, err)
		require.Equal(t, [][]string{{want}}, got)
		if codec != "" {
			continue
		}
		got, err = texts(t.Context(), db,
			"SELECT name, type, repetition_type, converted_type, CAST(scale AS VARCHAR), CAST(precision AS VARCHAR) "+
				"FROM parquet_schema('"+path+"') OFFSET 1")
		require.NoError(t, err)
		require.Equal(t, [][]string{
			{`p "0"`, "BYTE_ARRAY", "OPTIONAL", "UTF8", "NULL", "NULL"},
			{`p "1"`, "INT64", "OPTIONAL", "INT_64", "NULL", "NULL"},
			{`p "2"`, "DOUBLE", "OPTIONAL", "NULL", "NULL", "NULL"},
			{`p "3"`, "BOOLEAN", "OPTIONAL", "NULL", "NULL", "NULL"},
			{`p "4"`, "INT64", "OPTIONAL", "TIMESTAMP_MILLIS", "NULL", "NULL"},
			{`p "5"`, "INT64", "OPTIONAL", "DECIMAL", "2", "18"},
			{`p "6"`, "INT32", "OPTIONAL", "DATE", "NULL", "NULL"},
			{`p "7"`, "INT64", "OPTIONAL", "TIMESTAMP_MICROS", "NULL", "NULL"},
			{`p "8"`, "FIXED_LEN_BYTE_ARRAY", "OPTIONAL", "DECIMAL", "4", "38"}}, got)
		got, err = texts(t.Context(), db, "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM '"+path+"'")
		require.NoError(t, err)
		require.Equal(t, [][]string{{"x", "7", "0.5", "true", "2020-01-02 03:04:05.678", "12.50", "2020-01-02",
			"2020-01-02 08:49:05.678901+05:45", "1.0001"},
			{"", "7", "0.5", "true", "NULL", "12.50", "2020-01-02", "2020-01-02 08:49:05.678901+05:45", "1.0001"}}, got)
	}
}

func TestWriteFaults(t *testing.T) {
	t.Parallel()
	twice := &script.FileWriter{Parquet: true,
		Columns: []*script.OutputColumn{{Name: "a", Parquet: "x", Type: expr.Int},
			{Name: "b", Parquet: "X", Type: expr.Int}}}
	_, err := WriteSQL(twice, "SELECT 1", "p")
	require.ErrorContains(t, err, `two Parquet columns named "x" and "X"`)
	_, err = WriteSQL(&script.FileWriter{Parquet: true, Codec: "lzo"}, "SELECT 1", "p")
	require.ErrorContains(t, err, `unknown codec "lzo"`)
	require.Equal(t, fault.Script, fault.Of(err).Kind)
	_, err = WriteSQL(csvWriter(",", "i|int|%1001d|x"), "SELECT 1 AS i", "p")
	require.ErrorContains(t, err, "of column i")
}

// NULL and the texts that could be taken for it are told apart, and a reader
// that says the same reads the same.
func TestNullsRoundTrip(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	from := `SELECT unnest([NULL, '', 'NULL', 'a,b', NULL]) AS s, unnest([1, NULL, 0, NULL, 5])::BIGINT AS i,
		unnest([NULL, TIMESTAMP '0001-01-01', TIMESTAMP '2020-01-02', NULL, NULL]) AS t`
	want := [][]string{{"NULL", "1", "NULL"}, {"", "NULL", "0001-01-01 00:00:00"}, {"NULL", "0", "2020-01-02 00:00:00"},
		{"a,b", "NULL", "NULL"}, {"NULL", "5", "NULL"}}
	for null, text := range map[string]string{
		"":     "s,i,t\n,1,\n\"\",,0001-01-01\nNULL,0,2020-01-02\n\"a,b\",,\n,5,\n",
		"NULL": "s,i,t\nNULL,1,NULL\n,NULL,0001-01-01\n\"NULL\",0,2020-01-02\n\"a,b\",NULL,NULL\nNULL,5,NULL\n",
		"0":    "s,i,t\n0,1,0\n,0,0001-01-01\nNULL,\"0\",2020-01-02\n\"a,b\",0,0\n0,5,0\n",
	} {
		path := filepath.Join(t.TempDir(), "out.csv")
		w := csvWriter(",", "s|string|%s|s", "i|int|%d|i", "t|datetime|2006-01-02|t")
		r := csvByHeader("s|string i|int t|datetime|2006-01-02", path)
		for i := range w.Columns {
			w.Columns[i].Nullable, w.Columns[i].NullText = true, null
			r.Columns[i].Nullable, r.Columns[i].NullTexts = true, []string{null}
		}
		query, err := WriteSQL(w, from, path)
		require.NoError(t, err)
		exec(t, db, query.SQL())
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(raw))
		got, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
		require.NoError(t, err)
		if null != "0" { // there i cannot be told from NULL
			require.Equal(t, want, got, "%q", null)
		}
	}
	path := filepath.Join(t.TempDir(), "out.parquet")
	w := &script.FileWriter{Parquet: true}
	r := &script.FileReader{Parquet: true, URLs: urls(path)}
	for name, typ := range map[string]expr.Type{"s": expr.String, "i": expr.Int, "t": expr.DateTime} {
		w.Columns = append(w.Columns, &script.OutputColumn{Name: name, Type: typ, Parquet: name, Nullable: true})
		r.Columns = append(r.Columns, &script.InputColumn{Name: name, Type: typ, Parquet: name, Nullable: true})
	}
	slices.SortFunc(r.Columns,
		func(a, b *script.InputColumn) int { return strings.Index("sit", a.Name) - strings.Index("sit", b.Name) })
	query, err := WriteSQL(w, from, path)
	require.NoError(t, err)
	exec(t, db, query.SQL())
	got, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, c := range r.Columns {
		c.Nullable = false
	}
	got, err = readAll(t, db, r, 1<<30, 1, Unnumbered)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"", "1", "0001-01-01 00:00:00"}, {"", "0", "0001-01-01 00:00:00"}}, got[:2])
}

// TestRoundTrip reads what was written.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	path := filepath.Join(t.TempDir(), "out.csv")
	query, err := WriteSQL(csvWriter(",", "s|string|%s|text", "d|decimal2|%s|money",
		"t|datetime|2006-01-02T15:04:05.000|when"),
		"SELECT 'a,b' AS s, CAST(-0.5 AS DECIMAL(18,2)) AS d, TIMESTAMP '1969-12-31 23:59:59.999' AS t", path)
	require.NoError(t, err)
	exec(t, db, query.SQL())
	got, err := readAll(t, db, csvByHeader("text|string money|decimal2 when|datetime|2006-01-02T15:04:05.000", path),
		1<<30, 1, Unnumbered)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"a,b", "-0.50", "1969-12-31 23:59:59.999"}}, got)
}
