package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/test/effort"
)

func TestReadCSV(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	tests := map[string]struct {
		columns string
		content string
		change  func(*script.FileReader)
		want    [][]string
	}{
		"by header, out of order": {"b|int a|string", "a,b,c\nx,1,q\ny,2,q\n", nil,
			[][]string{{"1", "x"}, {"2", "y"}}},
		"header only":             {"a|string", "a,b\n", nil, nil},
		"header without line end": {"a|string", "a,b", nil, nil},
		"empty file":              {"a|string", "", nil, nil},
		"blank lines only":        {"a|string", "\n\r\n\n", nil, nil},
		"byte order mark":         {"a|string b|int", "\ufeffa,b\nx,1\n", nil, [][]string{{"x", "1"}}},
		"quoted mark":             {"a|string b|int", "\ufeff\"a\",b\nx,1\n", nil, [][]string{{"x", "1"}}},
		"windows line ends":       {"a|string b|int", "a,b\r\nx,1\r\ny,2", nil, [][]string{{"x", "1"}, {"y", "2"}}},
		"header as we write it":   {"a|string b|int", "a,b\r\nx,1\ny,2\n", nil, [][]string{{"x", "1"}, {"y", "2"}}},
		"CRLF in quotes, LF ends": {"a|string b|string", "a,b\n\"x\r\ny\",\"\r\n\"\nu,v\n", nil,
			[][]string{{"x\r\ny", "\r\n"}, {"u", "v"}}},
		"CRLF in quotes, CRLF ends": {"a|string b|string", "a,b\r\n\"x\r\ny\",\"\r\n\"\r\nu,\"v\nw\"\r\n", nil,
			[][]string{{"x\r\ny", "\r\n"}, {"u", "v\nw"}}},
		"CRLF in quotes, odd lines": {"a|string b|string", "a,b\r\n\n\"x\r\ny\",z\nu\r,5\" tall\r\n", nil,
			[][]string{{"x\r\ny", "z"}, {"u\r", "5\" tall"}}},
		"CR in quotes": {"a|string b|string", "a,b\n\"x\ry\",\"\r\"\nu,v\n", nil,
			[][]string{{"x\ry", "\r"}, {"u", "v"}}},
		"CR in quotes, CRLF ends": {"a|string b|string", "a,b\r\n\"x\ry\",\"\r\"\r\nu,v", nil,
			[][]string{{"x\ry", "\r"}, {"u", "v"}}},
		"last duplicate wins": {"a|string", "a,a\nx,y\n", nil, [][]string{{"y"}}},
		"same column twice": {"a|string a|int", "a\n7\n",
			func(r *script.FileReader) { r.Columns[1].Name = "n" }, [][]string{{"7", "7"}}},
		"header over two lines": {"a|string", "\"b\nb\",a\nx,y\n", nil, [][]string{{"y"}}},
		"quotes out of place in a header": {"a|int b|int", "\"Size \"cm\" x\",b,a\n10,20,1\n11,25,2\n", nil,
			[][]string{{"1", "20"}, {"2", "25"}}},
		"quotes out of place in a title": {"a|int", "\"Report \"new\" of\",2024\na,b\n1,2\n",
			func(r *script.FileReader) { r.CSV.HeaderRecord = 1 }, [][]string{{"1"}}},
		"a quote alone in a title": {"a|int", "5\" pipes\na,b\n1,2\n",
			func(r *script.FileReader) { r.CSV.HeaderRecord = 1 }, [][]string{{"1"}}},
		"a word in quotes begins a title": {"a|int", "\"Report\" of 2024\na,b\n1,2\n",
			func(r *script.FileReader) { r.CSV.HeaderRecord = 1 }, [][]string{{"1"}}},
		"a quote not closed in a title": {"a|int", "\"Report of\n2024\na,b\n1,2\n",
			func(r *script.FileReader) { r.CSV.HeaderRecord = 2 }, [][]string{{"1"}}},
		"a broken title above data by index": {"a|int", "x,\"Report\" of 2024\n1,2,3\n4,5,6\n",
			func(r *script.FileReader) { r.CSV.ByHeader, r.CSV.FirstDataRecord, r.Columns[0].Index = false, 1, 2 },
			[][]string{{"3"}, {"6"}}},
		"a title above data by index": {"a|int", "Report of 2024\n1,2,3\n4,5,6\n",
			func(r *script.FileReader) { r.CSV.ByHeader, r.CSV.FirstDataRecord, r.Columns[0].Index = false, 1, 2 },
			[][]string{{"3"}, {"6"}}},
		"blanks behind quotes of a header": {"a|int b|int", "\"a\" ,\"b\"\t\n1,2\n", nil, [][]string{{"1", "2"}}},
		"blanks behind quotes": {"a|string b|string", "a,b\n\"x, y\" ,\"1\"\"\"  \n\"u\nv\"\t,\"\" \r\n", nil,
			[][]string{{"x, y", `1"`}, {"u\nv", ""}}},
		"blanks behind quotes out of place": {"a|string b|string", "a,b\n\"He said \"no\" , then left\",5\n", nil,
			[][]string{{`He said "no" , then left`, "5"}}},
		"header in record 2": {"a|string", "title,\n\nsome,more\na,b\nx,y\n",
			func(r *script.FileReader) { r.CSV.HeaderRecord = 2 }, [][]string{{"x"}}},
		"data begins later": {"a|string", "a,b\n-,-\nx,y\n",
			func(r *script.FileReader) { r.CSV.FirstDataRecord = 2 }, [][]string{{"x"}}},
		"by index, header counts as data": {"a|string", "a,b\nx,y\n",
			func(r *script.FileReader) { r.CSV.ByHeader, r.Columns[0].Index = false, 1 }, [][]string{{"b"}, {"y"}}},
		"by index, header skipped": {"a|string", "a,b\nx,y\n",
			func(r *script.FileReader) {
				r.CSV.ByHeader, r.CSV.FirstDataRecord, r.Columns[0].Index = false, 1, 1
			}, [][]string{{"y"}}},
		"by index, below a comment": {"a|int b|string", "# a, b, c\n# d\n1,x\n",
			func(r *script.FileReader) { r.CSV.ByHeader, r.CSV.FirstDataRecord, r.Columns[1].Index = false, 2, 1 },
			[][]string{{"1", "x"}}},
		"by index, a comment alone": {"a|int b|string", "# a\n",
			func(r *script.FileReader) { r.CSV.ByHeader, r.CSV.FirstDataRecord, r.Columns[1].Index = false, 1, 1 },
			nil},
		"tab": {"a|string b|string", "a\tb\nx,\ty\n", func(r *script.FileReader) { r.CSV.Separator = '\t' },
			[][]string{{"x,", "y"}}},
		"blank cells": {"s|string i|int f|float d|decimal2 b|bool t|datetime|2006-01-02",
			"s,i,f,d,b,t\n,, ,\"\",\t,\u00a0\n", nil,
			[][]string{{"", "0", "0.0", "0.00", "false", "0001-01-01 00:00:00"}}},
		"defaults of blank cells": {"s|string||none i|int||7 f|float||1.5 d|decimal2||2.25 b|bool||true " +
			"t|datetime|2006-01-02|1980-02-03", "s,i,f,d,b,t\n,, ,,,\n ,1,2,3,f,2020-01-02\n", nil,
			[][]string{{"none", "7", "1.5", "2.25", "true", "1980-02-03 00:00:00"},
				{" ", "1", "2.0", "3.00", "false", "2020-01-02 00:00:00"}}},
		"text of other readers' nulls": {"a|string", "a\nNULL\nnull\n\\N\n", nil,
			[][]string{{"NULL"}, {"null"}, {"\\N"}}},
		"NUL bytes":                  {"a|string", "a,b\nx\x00y,z\n", nil, [][]string{{"x\x00y"}}},
		"invalid UTF-8 nobody reads": {"a|string", "a,b\nx,\xff\n", nil, [][]string{{"x"}}},
		"longest record": {"b|string", "b\n" + strings.Repeat("x", MaxRecordBytes-1) + "\n", nil,
			[][]string{{strings.Repeat("x", MaxRecordBytes-1)}}},
		"longest odd record": {"b|string", "b\nx" + strings.Repeat("\"", MaxRecordBytes-2) + "\n", nil,
			[][]string{{"x" + strings.Repeat("\"", MaxRecordBytes-2)}}},
		"long line": {"a|string", "a,b\n1," + strings.Repeat("x", 3<<20) + "\n2,y\n", nil,
			[][]string{{"1"}, {"2"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := csvByHeader(test.columns, writeFile(t, t.TempDir(), "it's [1].csv", test.content))
			if test.change != nil {
				test.change(r)
			}
			got, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// TestReadCSVFaults checks each failure's place and words.
func TestReadCSVFaults(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	tests := map[string]struct {
		columns string
		content string
		place   fault.Place // without the file and the record
		message string      // part of it
		raw     string
	}{
		"bad int": {"a|string b|int", "a,b\nx,1\ny,one\n", fault.Place{Line: 3, Column: 3, Record: 2, Field: "f_b",
			Value: "one"}, `"one" is not an int`, "y,one"},
		"first of many": {"a|int b|int", "a,b\n1,x\ny,2\n", fault.Place{Line: 2, Column: 3, Record: 1, Field: "f_b",
			Value: "x"}, `"x" is not an int`, "1,x"},
		"characters count": {"a|string b|int", "a,b\nüß,x\n", fault.Place{Line: 2, Column: 4, Record: 1, Field: "f_b",
			Value: "x"}, "is not an int", "üß,x"},
		"after quoted lines": {"a|string b|int", "a,b\n\"1\n2\n3\",4\n\n\"5\n6\",x\n",
			fault.Place{Line: 7, Column: 4, Record: 2, Field: "f_b", Value: "x"}, "is not an int", "\"5\n6\",x"},
		"after skipped lines": {"b|int", "\"a\n\",b\n1,x\n", fault.Place{Line: 3, Column: 3, Record: 1, Field: "f_b",
			Value: "x"}, "is not an int", "1,x"},
		"bad datetime": {"a|datetime|2006-01-02", "a\n2020-13-01\n", fault.Place{Line: 2, Column: 1, Record: 1,
			Field: "f_a", Value: "2020-13-01"}, `not a datetime in the format "2006-01-02"`, "2020-13-01"},
		"bad bool": {"a|bool", "a\nyes\n", fault.Place{Line: 2, Column: 1, Record: 1, Field: "f_a", Value: "yes"},
			"is not a bool", "yes"},
		"bad decimal": {"a|decimal2", "a\n1,\n", fault.Place{Line: 2, Record: 1}, "2 fields", "1,"},
		"too few fields": {"a|string", "a,b\nx,y\nz\n", fault.Place{Line: 3, Record: 2},
			"the record has 1 fields, the first record of the file has 2", "z"},
		"too many fields":    {"a|string", "a,b\nx,y\nz,z,z\n", fault.Place{Line: 3, Record: 2}, "3 fields", "z,z,z"},
		"extra empty field":  {"a|string", "a,b\nx,y\nz,z,\n", fault.Place{Line: 3, Record: 2}, "3 fields", "z,z,"},
		"extra quoted empty": {"a|string", "a,b\nx,\"y\"\nz,z,\"\"\n", fault.Place{Line: 3, Record: 2}, "3 fields", "z,z,\"\""},
		"missing column": {"a|string z|int", "a,b\nx,y\n", fault.Place{Line: 1, Field: "z"},
			`missing column "z"; the header has: "a", "b"`, ""},
		"invalid UTF-8": {"a|string b|string", "a,b\nx,y\nu,\xffv\n", fault.Place{Line: 3, Column: 3, Record: 2,
			Field: "f_b", Value: "\uFFFDv"}, "not valid UTF-8", `u,\xffv`},
		"huge record": {"a|string", "a\n" + strings.Repeat("x", MaxRecordBytes+1), fault.Place{Line: 2, Record: 1},
			"longer than 8 MiB", strings.Repeat("x", 1_000) + "…"},
		"huge quoted record": {"a|string", "a\nb\n\"" + strings.Repeat("x\n", MaxRecordBytes/2+1) + "\"\n",
			fault.Place{Line: 3, Record: 2}, "field 1 begins with a quote that is not closed", "\"x"},
		"a quote not closed": {"a|string b|string", "a,b\nx,y\nu,\"v\nw,z\n", fault.Place{Line: 3, Record: 2},
			"field 2 begins with a quote that is not closed", "u,\"v"},
		"not closed at last": {"a|string b|string", "a,b\nx,y\nu,\"v", fault.Place{Line: 3, Record: 2},
			"field 2 begins with a quote that is not closed", "u,\"v"},
		"text behind a quote": {"a|string b|string", "a,b\n\"x\"y,z\n\"u\",v\n", fault.Place{Line: 2, Record: 1},
			"field 1 begins with a quote that is not closed", "\"x\"y,z"},
		"closed in a field": {"a|string b|string", "a,b\nx,\"y\nu,5\"\" \"v\"\n", fault.Place{Line: 2, Record: 1},
			"field 2 begins with a quote that is not closed", "x,\"y"},
		"unclosed in header": {"a|string", "a,\"b\nx,y\n", fault.Place{Line: 1, Record: 1},
			"field 2 begins with a quote that is not closed", ""},
		"CR alone": {"a|string b|string", "a,b\rx,y\ru,v\r", fault.Place{Line: 1}, "carriage return alone", ""},
		"CR alone, quoted": {"a|string b|string", "\"a\",\"b\"\r\"x\",\"y\nz\"\r", fault.Place{Line: 1},
			"carriage return alone", ""},
		"CR alone in data": {"a|string b|string", "a,b\nx,y\ru,v\r", fault.Place{Line: 2, Record: 1}, "3 fields", "x,y\ru,v"},
		"long value is cut": {"a|int", "a\n" + strings.Repeat("x", 200) + "\n", fault.Place{Line: 2,
			Column: 1, Record: 1, Field: "f_a", Value: strings.Repeat("x", 80) + "…"}, "is not an int", strings.Repeat("x", 200)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, t.TempDir(), "in.csv", test.content)
			_, err := readAll(t, db, csvByHeader(test.columns, path), 1<<30, 1, Unnumbered)
			require.ErrorContains(t, err, test.message)
			f := fault.Of(err)
			test.place.File = path
			require.Equal(t, test.raw, f.Place.Raw)
			f.Place.Raw = ""
			require.Equal(t, test.place, f.Place)
			require.Equal(t, fault.UserData, f.Kind)
			require.False(t, f.Retryable)
		})
	}
}

// TestReadCSVDeclarations checks faults of the script, found before any file is read.
func TestReadCSVDeclarations(t *testing.T) {
	t.Parallel()
	path := writeFile(t, t.TempDir(), "in.csv", "a,b\nx,1\n")
	tests := map[string]struct {
		change  func(*script.FileReader)
		kind    fault.Kind
		message string
	}{
		"separator": {func(r *script.FileReader) { r.CSV.Separator = 0xA7 }, fault.Script, "one ASCII character"},
		"no header record": {func(r *script.FileReader) { r.CSV.HeaderRecord = -1 }, fault.Script,
			"hdr_line_idx says that there is none"},
		"data before header": {func(r *script.FileReader) { r.CSV.HeaderRecord, r.CSV.FirstDataRecord = 3, 1 },
			fault.Script, "is above the header"},
		"format of a string": {func(r *script.FileReader) { r.Columns[0].Format = "%s" }, fault.Script,
			"cannot have a format"},
		"datetime, no layout": {func(r *script.FileReader) { r.Columns[0].Type = expr.DateTime },
			fault.Script, "column f_a"},
		"bad default": {func(r *script.FileReader) { r.Columns[0].Type, r.Columns[0].Default = expr.Int, "seven" },
			fault.Script, "col_default_value"},
		"index too large": {func(r *script.FileReader) { r.CSV.ByHeader, r.Columns[0].Index = false, 2 },
			fault.UserData, "col_idx 2, but the records have 2 fields"},
		"header out of reach": {func(r *script.FileReader) { r.CSV.HeaderRecord = 5 }, fault.UserData,
			"ends before its header"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := csvByHeader("a|string", path)
			test.change(r)
			plan, err := PlanSlices(t.Context(), r, 1<<30, 1)
			if err == nil {
				_, _, err = ReadSQL(r, plan[0], t.TempDir(), Unnumbered)
			}
			require.ErrorContains(t, err, test.message)
			require.Equal(t, test.kind, fault.Of(err).Kind)
		})
	}
}

func TestReadCSVManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var paths []string
	var want [][]string
	for i := range 40 {
		header, row := "a,b", "%[1]d,x"
		if i/7%2 == 1 { // runs of files with another layout
			header, row = "b,c,a", "x,,%[1]d"
		}
		var b strings.Builder
		b.WriteString(header + "\n")
		for k := range 300 {
			fmt.Fprintf(&b, row+"\n", i*1000+k)
			want = append(want, []string{fmt.Sprint(i*1000 + k), fmt.Sprint(i), fmt.Sprint(k)})
		}
		paths = append(paths, writeFile(t, dir, fmt.Sprintf("f%02d.csv", 99-i), b.String()))
	}
	r := csvByHeader("a|int", paths...)
	for _, threads := range []int{1, 4} {
		for _, batches := range effort.Of([]int{3}, []int{1, 3, 90}, []int{1, 3, 90}) {
			got, err := readAll(t, openDB(t, threads), r, 1, batches, Positioned)
			require.NoError(t, err)
			require.Equal(t, want, got)
			plain, err := readAll(t, openDB(t, threads), r, 1, batches, Unnumbered)
			require.NoError(t, err)
			require.Len(t, plain, len(want))
			for i := range want {
				require.Equal(t, want[i][:1], plain[i])
			}
		}
	}
}

func TestDiagnoseLineOfBigFile(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("id,price\n")
	for i := 2; i <= 300_000; i++ {
		price := fmt.Sprintf("%d.%02d", i, i%100)
		if i == 123_456 || i == 250_000 {
			price = "12.5.5"
		}
		fmt.Fprintf(&b, "%d,%s\n", i, price)
	}
	path := writeFile(t, t.TempDir(), "big.csv", b.String())
	for _, batches := range []int{1, 5} {
		_, err := readAll(t, openDB(t, 2), csvByHeader("id|int price|decimal2", path), 1, batches, Unnumbered)
		require.Equal(t, fault.Place{File: path, Line: 123_456, Column: 8, Record: 123_455, Field: "f_price",
			Value: "12.5.5", Raw: "123456,12.5.5"}, fault.Of(err).Place)
	}
}

func TestDiagnoseKeepsOtherCauses(t *testing.T) {
	t.Parallel()
	db := openDB(t, 1)
	r := csvByHeader("a|int", writeFile(t, t.TempDir(), "in.csv", "a\n1\n"))
	plan, err := PlanSlices(t.Context(), r, 1<<30, 1)
	require.NoError(t, err)
	cause := fmt.Errorf("no memory left")
	require.Same(t, cause, Diagnose(t.Context(), db, r, plan[0], t.TempDir(), cause))
	classified := fault.New(fault.Environment, "disk is full")
	require.Same(t, classified, Diagnose(t.Context(), db, r, plan[0], t.TempDir(), classified))
}

func TestChangedInputIsRefused(t *testing.T) {
	t.Parallel()
	path := writeFile(t, t.TempDir(), "in.csv", "a\n1\n")
	r := csvByHeader("a|int", path)
	plan, err := PlanSlices(t.Context(), r, 1<<30, 1)
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
	_, prepare, err := ReadSQL(r, plan[0], t.TempDir(), Unnumbered)
	require.NoError(t, err)
	require.ErrorContains(t, prepare(t.Context()), "changed after the run planned it")
}

func TestPrepareCopiesOnlyOddFiles(t *testing.T) {
	t.Parallel()
	for content, linked := range map[string]bool{
		"a,b\n1,2\n":              true,
		"\"a\",b\n\"x,y\",2\n3,4": true,
		"a,b\r\n1,2\r\n":          false,
		"\ufeffa,b\n1,2\n":        true, // the mark lies in what is skipped
		"a,b\n1,2\n\n":            false,
		"a,b\n1, \"2\"\n":         false,
		"a,b\n1,\"2\n\"\n":        false,
	} {
		r := csvByHeader("a|string", writeFile(t, t.TempDir(), "in.csv", content))
		plan, err := PlanSlices(t.Context(), r, 1<<30, 1)
		require.NoError(t, err)
		scratch := t.TempDir()
		_, prepare, err := ReadSQL(r, plan[0], scratch, Unnumbered)
		require.NoError(t, err)
		require.NoError(t, prepare(t.Context()))
		require.NoError(t, prepare(t.Context()), "again after a dead attempt")
		names, err := filepath.Glob(scratch + "/csv/*/*.csv")
		require.NoError(t, err)
		require.Len(t, names, 1)
		st, err := os.Lstat(names[0])
		require.NoError(t, err)
		require.Equal(t, linked, st.Mode()&os.ModeSymlink != 0, "%q", content)
	}
}

// TestReadInsideFence reads with DuckDB allowed nothing but the batch's files.
func TestReadInsideFence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	linkTo := writeFile(t, dir, "in.csv", "a,b\n1,2\n")
	link := filepath.Join(dir, "link.csv")
	require.NoError(t, os.Symlink(linkTo, link))
	r := csvByHeader("a|int", link)
	plan, err := PlanSlices(t.Context(), r, 1<<30, 1)
	require.NoError(t, err)
	scratch := t.TempDir()
	query, prepare, err := ReadSQL(r, plan[0], scratch, Unnumbered)
	require.NoError(t, err)
	require.NoError(t, prepare(t.Context()))
	db := openDB(t, 1)
	exec(t, db, "SET allowed_directories = ['"+scratch+"']", "SET allowed_paths = ['"+plan[0][0].Path+"']",
		"SET enable_external_access = false")
	got, err := texts(t.Context(), db, "SELECT * FROM "+query)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1"}}, got)
}

func TestBlanksAreUnicodeWhiteSpace(t *testing.T) {
	t.Parallel()
	for c := rune(0); c <= unicode.MaxRune; c++ {
		require.Equal(t, unicode.IsSpace(c), strings.ContainsRune(blanks, c), "%U", c)
	}
}
