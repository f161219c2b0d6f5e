package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/test/effort"
)

// parquetReader reads columns given as "name|type".
func parquetReader(columns string, paths ...string) *script.FileReader {
	r := &script.FileReader{URLs: urls(paths...), Parquet: true}
	for c := range strings.SplitSeq(columns, " ") {
		name, typ, _ := strings.Cut(c, "|")
		t, _ := expr.ParseType(typ)
		r.Columns = append(r.Columns, &script.InputColumn{Name: "f_" + name, Parquet: name, Type: t,
			Pos: document.Pos{File: "s.yaml", Line: 20, Col: 7}})
	}
	return r
}

func TestReadParquetTypes(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	tests := map[string]struct {
		value  string // SQL of DuckDB's COPY
		typ    string
		want   string // text, or the reason of a refusal after "!"
		noNull bool
	}{
		"text":             {"'x,\"y'", "string", `x,"y`, false},
		"enum":             {"CAST('b' AS ENUM('a', 'b'))", "string", "b", false},
		"json":             {"CAST('{\"a\":1}' AS JSON)", "string", `{"a":1}`, false},
		"binary text":      {"encode('é')", "string", "é", false},
		"int8":             {"CAST(-5 AS TINYINT)", "int", "-5", false},
		"int16":            {"CAST(-300 AS SMALLINT)", "int", "-300", false},
		"int32":            {"CAST(-70000 AS INTEGER)", "int", "-70000", false},
		"int64":            {"CAST(-9223372036854775808 AS BIGINT)", "int", "-9223372036854775808", false},
		"uint8":            {"CAST(200 AS UTINYINT)", "int", "200", false},
		"uint32":           {"CAST(4000000000 AS UINTEGER)", "int", "4000000000", false},
		"uint64":           {"CAST(9223372036854775807 AS UBIGINT)", "int", "9223372036854775807", false},
		"whole decimal":    {"CAST(-12 AS DECIMAL(9,0))", "int", "-12", false},
		"float32":          {"CAST(0.5 AS FLOAT)", "float", "0.5", false},
		"float64":          {"CAST(0.1 AS DOUBLE)", "float", "0.1", false},
		"int32 as float":   {"CAST(7 AS INTEGER)", "float", "7.0", false},
		"int64 as float":   {"CAST(-9007199254740992 AS BIGINT)", "float", "-9007199254740992.0", false},
		"even as float":    {"CAST(9007199254740994 AS BIGINT)", "float", "9007199254740994.0", false},
		"uint64 as float":  {"CAST(9223372036854775808 AS UBIGINT)", "float", "9.223372036854776e+18", false},
		"decimal as float": {"CAST(-0.10 AS DECIMAL(9,2))", "float", "-0.1", false},
		"whole as float":   {"CAST(1200 AS DECIMAL(18,0))", "float", "1200.0", false},
		"fine as float": {"CAST('1.0000000000000000000000000000000000000' AS DECIMAL(38,37))",
			"float", "1.0", false},
		"int as text":     {"CAST(-12 AS BIGINT)", "string", "-12", false},
		"uint64 as text":  {"CAST(18446744073709551615 AS UBIGINT)", "string", "18446744073709551615", false},
		"decimal as text": {"CAST(-1.50 AS DECIMAL(9,2))", "string", "-1.50", false},
		"float as text":   {"CAST(1234567 AS DOUBLE)", "string", "1234567", false},
		"part as text":    {"CAST(0.1 AS FLOAT)", "string", "0.1", false},
		"bool as text":    {"true", "string", "true", false},
		"date as text":    {"DATE '2024-01-31'", "string", "2024-01-31", false},
		"bool":            {"true", "bool", "true", false},
		"all digits": {"CAST('-0.12345678901234567890123456789012345670' AS DECIMAL(38,38))", "decimal(38,37)",
			"-0.1234567890123456789012345678901234567", false},
		"a digit too many": {"CAST('0.12345678901234567890123456789012345678' AS DECIMAL(38,38))", "decimal(38,37)",
			"!does not fit decimal(38,37)", false},
		"decimal in int32": {"CAST(-1.5 AS DECIMAL(4,1))", "decimal2", "-1.50", false},
		"decimal in int64": {"CAST(-1234567890.25 AS DECIMAL(18,2))", "decimal2", "-1234567890.25", false},
		"decimal fixed":    {"CAST(-1.25 AS DECIMAL(38,2))", "decimal2", "-1.25", false},
		"decimal 4 digits": {"CAST(-1.2345 AS DECIMAL(10,4))", "decimal2", "-1.2345", false},
		"int as decimal":   {"CAST(3 AS BIGINT)", "decimal2", "3.00", false},
		"date":             {"DATE '1969-12-31'", "datetime", "1969-12-31 00:00:00", false},
		"timestamp ms":     {"TIMESTAMP_MS '1960-01-02 03:04:05.678'", "datetime", "1960-01-02 03:04:05.678", false},
		"timestamp us":     {"TIMESTAMP '2020-01-02 03:04:05.678901'", "datetime", "2020-01-02 03:04:05.678901", false},
		"timestamp ns": {"TIMESTAMP_NS '2020-01-02 03:04:05.678901234'", "datetime",
			"2020-01-02 03:04:05.678901", false},
		"timestamp utc": {"CAST('2020-01-02 03:04:05.5+02' AS TIMESTAMPTZ)", "datetime",
			"2020-01-02 01:04:05.5", false},
		"first day": {"TIMESTAMP '0001-01-01'", "datetime", "0001-01-01 00:00:00", false},

		"text as int":  {"'1'", "int", "!only whole numbers can be read as int", false},
		"time as text": {"TIMESTAMP '2020-01-02'", "string", "!only text, numbers, truth values and dates", false},
		"list as text": {"[1]", "string", "!cannot be read as string", false},
		"large int as float": {"CAST(9007199254740993 AS BIGINT)", "float", `!value "9007199254740993" of column "c"`,
			false},
		"float as int": {"CAST(1 AS DOUBLE)", "int",
			"!declare it as float, which reads the whole numbers of other files", false},
		"long decimal float": {"CAST(12345678901234567.8 AS DECIMAL(20,1))", "float",
			`!value "12345678901234567.8" of column "c"`, false},
		"decimal as int":   {"CAST(1 AS DECIMAL(9,2))", "int", "!declare it as decimal2", false},
		"float as decimal": {"CAST(1 AS DOUBLE)", "decimal2", "!declare it as float", false},
		"int as time":      {"CAST(1 AS BIGINT)", "datetime", "!declare it as int", false},
		"int as bool":      {"1", "bool", "!only booleans", false},
		"list":             {"[1]", "int", "!cannot be read as int", false},
		"struct":           {"{'a': 1}", "string", "!cannot be read as string", false},
		"time of day":      {"TIME '01:02:03'", "datetime", "!only timestamps and dates", false},
		"uuid":             {"CAST('00000000-0000-0000-0000-000000000000' AS UUID)", "string", "!only text", false},
		"too large for int": {"CAST(18446744073709551615 AS UBIGINT)", "int",
			`!value "18446744073709551615" of column "c"`, false},
		"too large a decimal": {"CAST(99999999999999999.0 AS DECIMAL(20,1))", "decimal2",
			`!value "99999999999999999.0" of column "c"`, false},
		"binary, not UTF-8": {"CAST('\\xFF' AS BLOB)", "string", "!of column \"c\"", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "it's [1]*.parquet")
			exec(t, db, "COPY (SELECT "+test.value+" AS c UNION ALL SELECT NULL UNION ALL SELECT "+test.value+") TO '"+
				strings.ReplaceAll(path, "'", "''")+"' (FORMAT parquet)")
			r := parquetReader("c|"+test.typ, path)
			r.Columns[0].Short = test.typ == "string"
			got, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
			if reason, bad := strings.CutPrefix(test.want, "!"); bad {
				require.ErrorContains(t, err, reason)
				require.Equal(t, path, fault.Of(err).Place.File)
				require.Equal(t, "c", fault.Of(err).Place.Field)
				require.Equal(t, fault.UserData, fault.Of(err).Kind)
				return
			}
			require.NoError(t, err)
			typ, _ := expr.ParseType(test.typ)
			zero := map[expr.Type]string{expr.String: "", expr.Int: "0", expr.Float: "0.0", expr.Bool: "false",
				expr.Decimal: "0.00", expr.DateTime: "0001-01-01 00:00:00"}[typ]
			switch name {
			case "decimal 4 digits":
				zero = "0.0000"
			case "all digits":
				zero = "0." + strings.Repeat("0", 37)
			}
			require.Equal(t, [][]string{{test.want}, {zero}, {test.want}}, got)
		})
	}
}

// TestReadParquetOfOtherWriter reads what DuckDB does not write: INT96, required columns.
// What a type does not hold says what it is, and the way out: another type, or round: true.
func TestReadParquetExactly(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	for _, c := range []struct {
		value, typ  string
		fails, hint string
		rounded     string // with round: true; "": there is no such thing
	}{
		{"CAST('2024-01-02 03:04:05.123456789' AS TIMESTAMP_NS)", "timestamptz", "2024-01-02 03:04:05.123456789",
			"{type: timestamptz, round: true}", "2024-01-02 08:49:05.123456+05:45"},
		{"CAST('1969-12-31 23:59:59.999999999' AS TIMESTAMP_NS)", "timestamptz", "1969-12-31 23:59:59.999999999",
			"round: true", "1970-01-01 05:29:59.999999+05:30"},
		{"CAST('2024-01-02 03:04:05.123456789' AS TIMESTAMP_NS)", "datetime", "2024-01-02 03:04:05.123456789",
			"declare it as timestamptz", "2024-01-02 03:04:05.123456"},
		{"CAST(18446744073709551615 AS UBIGINT)", "int", "18446744073709551615", "declare it as decimal(20,0)", ""},
		{"CAST(9007199254740993 AS BIGINT)", "float", "9007199254740993", "round it with {type: float, round: true}",
			"9007199254740992.0"},
		{"CAST(12345678901234567.8 AS DECIMAL(20,1))", "float", "12345678901234567.8",
			"round it with {type: float, round: true}", "1.2345678901234568e+16"},
		// expressions see all digits: it is rounded when it is stored
		{"CAST(1.085 AS DECIMAL(10,3))", "decimal2", "1.085", `round it with {type: "decimal2", round: true}`, "1.085"},
	} {
		path := filepath.Join(t.TempDir(), "in.parquet")
		exec(t, db, "COPY (SELECT "+c.value+" AS c) TO '"+path+"' (FORMAT parquet)")
		r := parquetReader("c|"+c.typ, path)
		r.Columns[0].Short = true
		_, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
		require.ErrorContains(t, err, `value "`+c.fails+`" of column "c"`)
		require.Contains(t, fault.Of(err).Hint, c.hint)
		if c.rounded != "" {
			r.Columns[0].Round = true
			got, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
			require.NoError(t, err)
			require.Equal(t, [][]string{{c.rounded}}, got)
		}
	}
}

func TestReadParquetOfOtherWriter(t *testing.T) {
	t.Parallel()
	type row struct {
		Old  deprecated.Int96
		Day  int32     `parquet:",date"`
		When time.Time `parquet:",timestamp(nanosecond)"`
		Name string
		Opt  *int64 `parquet:",optional"`
	}
	path := filepath.Join(t.TempDir(), "other.parquet")
	old := deprecated.Int96{0: 0, 1: 0, 2: 2440588 + 1} // one day after 1970-01-01 as a Julian day
	rows := []row{{old, 18262, time.Date(2020, 1, 1, 0, 0, 0, 1000, time.UTC), "x", nil},
		{old, -1, time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), "", new(int64)}}
	require.NoError(t, parquet.WriteFile(path, rows))
	got, err := readAll(t, openDB(t, 1), parquetReader("Old|datetime Day|datetime When|datetime Name|string Opt|int",
		path), 1<<30, 1, Positioned)
	require.NoError(t, err)
	require.Equal(t, [][]string{
		{"1970-01-02 00:00:00", "2020-01-01 00:00:00", "2020-01-01 00:00:00.000001", "x", "0", "0", "0"},
		{"1970-01-02 00:00:00", "1969-12-31 00:00:00", "1969-01-01 00:00:00", "", "0", "0", "1"}}, got)
}

func TestReadParquetManyFilesInOrder(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	dir := t.TempDir()
	var paths []string
	var want [][]string
	for i := range 60 {
		path := filepath.Join(dir, fmt.Sprintf("f%02d.parquet", 99-i))
		cols := "range * 2 AS n, 'x' AS s"
		if i/9%3 == 1 { // runs of files with another schema
			cols = "'y' AS other, CAST(range * 2 AS INTEGER) AS n, 'x' AS s"
		}
		exec(t, db, fmt.Sprintf("COPY (SELECT %s FROM range(%d, %d)) TO '%s' (FORMAT parquet)", cols,
			i*100, i*100+i, path))
		paths = append(paths, path)
		for k := range i {
			want = append(want, []string{fmt.Sprint((i*100 + k) * 2), "x", fmt.Sprint(i), fmt.Sprint(k)})
		}
	}
	for _, threads := range []int{1, 4} {
		for _, batches := range []int{1, 4, 100} {
			got, err := readAll(t, openDB(t, threads), parquetReader("n|int s|string", paths...), 1,
				batches, Positioned)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}

func TestPlanSlicesOfParquetRowGroups(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	path := filepath.Join(t.TempDir(), "big.parquet")
	exec(t, db, "COPY (SELECT range AS n, hash(range) AS h FROM range(100000)) TO '"+path+
		"' (FORMAT parquet, ROW_GROUP_SIZE 10240, COMPRESSION uncompressed)")
	r := parquetReader("n|int", path)
	in, err := Inspect(t.Context(), r, Places{})
	require.NoError(t, err)
	require.Equal(t, int64(100000), in[0].Rows)
	require.Greater(t, in[0].RawBytes, in[0].Bytes/2)
	for _, batches := range []int{1, 2, 3, 7, 10, 50} {
		plan, err := PlanSlices(t.Context(), r, 1, batches)
		require.NoError(t, err)
		require.Len(t, plan, min(batches, 10), "one batch per row group at most")
		next := int64(0)
		for _, b := range plan {
			require.Len(t, b, 1)
			if batches == 1 {
				require.Equal(t, int64(-1), b[0].Rows)
				continue
			}
			require.Equal(t, next, b[0].FirstRow)
			require.Zero(t, b[0].FirstRow%10240)
			next += b[0].Rows
			got, err := readSlices(t, db, r, b, Positioned)
			require.NoError(t, err)
			require.Len(t, got, int(b[0].Rows))
			require.Equal(t, []string{fmt.Sprint(b[0].FirstRow), "0", fmt.Sprint(b[0].FirstRow)}, got[0])
		}
	}
}

// A batch for which the memory is not enough is cut within row groups.
func TestSlicesWithinRowGroups(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	db := openDB(t, 2)
	for name, own := range map[string]string{"as it is": "other", "through a view": "file_row_number"} {
		path := filepath.Join(t.TempDir(), "groups.parquet")
		exec(t, db, fmt.Sprintf("COPY (SELECT range AS n, 7 AS %s FROM range(%d)) TO '%s' (FORMAT parquet, "+
			"ROW_GROUP_SIZE 10240)", own, rows, path))
		r := parquetReader("n|int", path)
		plan, err := PlanSlices(t.Context(), r, 1<<30, 1)
		require.NoError(t, err)
		whole := plan[0][0]
		for _, cut := range [][2]int64{{0, 100}, {100, 10140}, {100, 10141}, {10239, 2}, {10240, 10240}, {5000, 30000},
			{30720, 9280}, {39999, 1}, {20000, 0}} {
			slice := whole
			slice.FirstRow, slice.Rows = cut[0], cut[1]
			got, err := readSlices(t, db, r, []Slice{slice}, Positioned)
			require.NoError(t, err, name)
			require.Len(t, got, int(cut[1]), "%s: %v", name, cut)
			for i, row := range got {
				n := fmt.Sprint(cut[0] + int64(i))
				require.Equal(t, []string{n, "0", n}, row, name)
			}
		}
		whole.FirstRow, whole.Rows = 30000, rows-30000+1
		_, err = readSlices(t, db, r, []Slice{whole}, Unnumbered)
		require.ErrorContains(t, err, "changed after the run planned it")
	}
}

func TestReadParquetFaults(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	dir := t.TempDir()
	good := filepath.Join(dir, "good.parquet")
	exec(t, db, "COPY (SELECT range AS n, 'text ' || range AS s, 1 AS \"A\", range AS file_index FROM range(50000)) "+
		"TO '"+good+"' (FORMAT parquet, COMPRESSION zstd)")
	raw, err := os.ReadFile(good)
	require.NoError(t, err)
	broken := append([]byte{}, raw...)
	for i := 4; i < 3000; i++ { // the first page's header and more; damage inside a page may pass, there is no checksum
		broken[i] = 0xFF
	}
	footerless := append(append([]byte{}, raw[:len(raw)-8]...), 0xff, 0xff, 0xff, 0x00, 'P', 'A', 'R', '1')
	garbled := append([]byte{}, raw...)
	for i := len(raw) - 60; i < len(raw)-8; i++ {
		garbled[i] = 0xAB
	}
	tests := map[string]struct {
		content string
		columns string
		message string
	}{
		"empty":          {"", "n|int", "not a readable Parquet file: the file is empty"},
		"tiny":           {"PAR1", "n|int", "4 bytes are too few"},
		"CSV":            {"a,b\n1,2\nsome more\n", "n|int", `it ends in "ore\n" instead of "PAR1"`},
		"truncated":      {string(raw[:len(raw)/2]), "n|int", `instead of "PAR1" (truncated, or another format)`},
		"footer length":  {string(footerless), "n|int", "it says that its footer has"},
		"footer garbled": {string(garbled), "n|int", "not a readable Parquet file"},
		"data damaged":   {string(broken), "n|int s|string", "cannot be decoded"},
		"missing column": {string(raw), "n|int N2|int",
			`missing column "N2"; the file has: "n", "s", "A", "file_index"`},
		"wrong case": {string(raw), "a|int", `missing column "a"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, t.TempDir(), "in.parquet", test.content)
			r := parquetReader(test.columns, path)
			_, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
			require.ErrorContains(t, err, test.message)
			require.Equal(t, path, fault.Of(err).Place.File)
			require.Equal(t, fault.UserData, fault.Of(err).Kind)
		})
	}
}

// A file that may be sound, and is of a kind that is not read, is no damaged one.
func TestReadParquetUnsupported(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	dir := unzipCorpus(t)
	raw := filepath.Join(dir, "raw.parquet")
	exec(t, db, "COPY (SELECT range AS n FROM range(500)) TO '"+raw+"' (FORMAT parquet, CODEC lz4_raw)")
	content, err := os.ReadFile(raw)
	require.NoError(t, err)
	// field 4 of the chunk's metadata, and the type of field 5
	const lz4Raw, lz4, lzo = "\x15\x0e\x16", "\x15\x0a\x16", "\x15\x06\x16"
	require.Equal(t, 1, strings.Count(string(content), lz4Raw))
	for name, test := range map[string]struct{ path, columns, message string }{
		"split of fixed bytes": {filepath.Join(dir, "pa_decimal_38_10_split_brotli_v2.parquet"), "",
			"page 1: its encoding BYTE_STREAM_SPLIT of FIXED_LEN_BYTE_ARRAY is not supported"},
		"old LZ4": {writeFile(t, t.TempDir(), "lz4.parquet", strings.Replace(string(content), lz4Raw, lz4, 1)),
			"n|int", "its codec LZ4 (the old one: LZ4_RAW is) is not supported"},
		"LZO": {writeFile(t, t.TempDir(), "lzo.parquet", strings.Replace(string(content), lz4Raw, lzo, 1)),
			"n|int", "its codec LZO is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			r := parquetReader(test.columns, test.path)
			if test.columns == "" {
				list, err := parquetColumns(Input{Path: test.path, URL: test.path})
				require.NoError(t, err)
				r = parquetReader(list[0].Name+"|"+list[0].Type.String(), test.path)
			}
			_, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
			require.ErrorContains(t, err, test.message)
			f := fault.Of(err)
			require.Equal(t, fault.UserData, f.Kind)
			require.Contains(t, f.Message, "cannot be read: row group 1, ")
			require.NotContains(t, f.Hint, "complete")
			require.Contains(t, f.Hint, "docs/parquet.md")
		})
	}
}

// FuzzReadParquet reads damaged Parquet files whole, our footer reader first
// and then the engine: every file is read, or refused with a reason.
func FuzzReadParquet(f *testing.F) {
	db := openDB(f, 1)
	for i, codec := range []string{"uncompressed", "snappy", "zstd"} {
		path := filepath.Join(f.TempDir(), fmt.Sprintf("seed%d.parquet", i))
		exec(f, db, "COPY (SELECT range AS n, 'text ' || range AS s, range / 3 AS v, CAST(range AS DECIMAL(9,2)) AS "+
			"d, TIMESTAMP '2024-01-31 10:00:00' AS at, range % 2 = 0 AS b FROM range(50)) TO '"+
			path+"' (FORMAT parquet, CODEC "+codec+", ROW_GROUP_SIZE 20)")
		raw, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(raw)
	}
	columns := []*script.InputColumn{{Name: "n", Type: expr.Int, Parquet: "n"},
		{Name: "s", Type: expr.String, Parquet: "s"}, {Name: "v", Type: expr.Float, Parquet: "v"},
		{Name: "d", Type: expr.Decimal, Parquet: "d"}, {Name: "at", Type: expr.DateTime, Parquet: "at"},
		{Name: "b", Type: expr.Bool, Parquet: "b", Nullable: true}}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "in.parquet")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		r := &script.FileReader{Parquet: true, URLs: []script.FileURL{{URL: path}}, Columns: columns}
		started := time.Now()
		_, _ = readAll(t, db, r, 1<<20, 2, Unnumbered)
		effort.Promised(t, started, time.Minute)
	})
}

// BenchmarkInspect reads the footers of 1,050 files.
func BenchmarkInspect(b *testing.B) {
	db := openDB(b, 2)
	dir := b.TempDir()
	var paths []string
	for i := range 1050 {
		path := filepath.Join(dir, fmt.Sprintf("f%04d.parquet", i))
		exec(b, db, "COPY (SELECT range AS a, range AS b, 'x' || range AS c, range / 7 AS d, 'y' AS e FROM "+
			"range(2000)) TO '"+path+"' (FORMAT parquet)")
		paths = append(paths, path)
	}
	r := parquetReader("a|int", paths...)
	for b.Loop() {
		_, err := PlanSlices(b.Context(), r, 1<<20, 8)
		require.NoError(b, err)
	}
}
