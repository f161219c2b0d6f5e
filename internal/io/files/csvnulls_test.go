package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// nullColumn makes a nullable column of the first field. texts are separated by |.
func nullColumn(typ expr.Type, texts string, quotedNull bool, def string) *script.InputColumn {
	return &script.InputColumn{Name: "c", Header: "c", Type: typ, Default: def, Nullable: true,
		NullTexts:       strings.Split(texts, "|"),
		QuotedEmptyNull: quotedNull, Pos: document.Pos{File: "s.yaml", Line: 20, Col: 7}}
}

// inForms writes lines of two fields so that each way of bringing a file to
// DuckDB is taken: a link, a copy, pieces, a rewritten file.
func inForms(lines []string) map[string]string {
	plain := "c,d\n" + strings.Join(lines, ",x\n") + ",x\n"
	var swapped strings.Builder
	swapped.WriteString("d,c\n")
	for _, l := range lines {
		swapped.WriteString("x," + l + "\n")
	}
	return map[string]string{
		"link":        plain,
		"last column": swapped.String(),
		"no line end": strings.TrimSuffix(swapped.String(), "\n"),
		"copy":        strings.ReplaceAll(plain, "\n", "\r\n"),
		"copy last":   strings.ReplaceAll(swapped.String(), "\n", "\r\n"),
		"pieces":      strings.Replace(plain, "d\n", "\"d\"\n", 1) + "0,\"a\nb\"\n",
		"odd":         plain + "0,a\"b\n",
		"odd last":    swapped.String() + "a\"b,0\n",
		"odd blank":   strings.ReplaceAll(plain, "x\n", "x\n\n") + "0,1\r\n",
		"odd multi":   strings.ReplaceAll(plain, "x\n", "\"x\ny\"\n") + "0,a\"b\n",
		"odd no end":  "a,b,d,c\n\"\",,\"x\n\"," + strings.Join(lines, "\n\"\",,\"x\r\n\","),
	}
}

func TestCSVNulls(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	texts := []string{``, `""`, `" "`, ` `, `NA`, `"NA"`, `a`}
	numbers := []string{``, `""`, `" "`, ` `, `7`, `NA`, `"NA"`, `"7"`}
	tests := map[string]struct {
		column *script.InputColumn
		lines  []string
		want   []string
	}{
		"text": {nullColumn(expr.String, "", false, ""), texts,
			[]string{"NULL", "", " ", " ", "NA", "NA", "a"}},
		"text, quoted null": {nullColumn(expr.String, "", true, ""), texts, []string{"NULL", "NULL", " ", " ", "NA",
			"NA", "a"}},
		"text NA": {nullColumn(expr.String, "NA", false, ""), texts,
			[]string{"", "", " ", " ", "NULL", "NA", "a"}},
		"text NA, default": {nullColumn(expr.String, "NA", false, "def"), texts,
			[]string{"def", "def", " ", " ", "NULL",
				"NA", "a"}},
		"text NA, quoted null": {nullColumn(expr.String, "NA", true, "def"), texts,
			[]string{"def", "NULL", " ", " ", "NULL",
				"NULL", "a"}},
		"text NA or empty": {nullColumn(expr.String, "NA|", false, ""), texts, []string{"NULL", "", " ", " ", "NULL",
			"NA", "a"}},
		"int": {nullColumn(expr.Int, "|NA", false, ""), numbers, []string{"NULL", "NULL", "NULL", "NULL",
			"7", "NULL", "NULL", "7"}},
		"int NA": {nullColumn(expr.Int, "NA", false, ""), numbers, []string{"NULL", "NULL", "NULL", "NULL", "7",
			"NULL", "NULL", "7"}},
		"int NA, default": {nullColumn(expr.Int, "NA", false, "5"), numbers, []string{"5", "5", "5", "5", "7", "NULL",
			"NULL", "7"}},
		"int NA, quoted null": {nullColumn(expr.Int, "NA", true, "5"), numbers,
			[]string{"5", "NULL", "5", "5", "7", "NULL",
				"NULL", "7"}},
		"int 7": {nullColumn(expr.Int, "7|NA", false, "5"), numbers,
			[]string{"5", "5", "5", "5", "NULL", "NULL", "NULL", "7"}},
		"int 7, quoted null": {nullColumn(expr.Int, "7|NA", true, "5"), numbers, []string{"5", "NULL", "5", "5", "NULL",
			"NULL", "NULL", "NULL"}},
		"text with quotes": {nullColumn(expr.String, "\"|NA", false, ""), []string{`""""`, `NA`, `a`},
			[]string{`"`, "NULL", "a"}},
		"marks": {nullColumn(expr.String, "NA|-", false, ""), []string{"\x10NA", "\"\x10NA\"", "\x10",
			"\x10\x10-", `"-"`, `NA`, `"NA,"`}, []string{"\x10NA", "\x10NA", "\x10", "\x10\x10-", "-", "NULL", "NA,"}},
	}
	for name, test := range tests {
		for form, content := range inForms(test.lines) {
			t.Run(name+"/"+form, func(t *testing.T) {
				path := writeFile(t, t.TempDir(), "in.csv", content)
				r := &script.FileReader{URLs: urls(path), CSV: script.CSVReader{Separator: ',', ByHeader: true},
					Columns: []*script.InputColumn{test.column}}
				got, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
				require.NoError(t, err)
				require.GreaterOrEqual(t, len(got), len(test.want))
				for i, want := range test.want {
					require.Equal(t, want, got[i][0], "line %d", i)
				}
				if test.column.Type != expr.String {
					// its instance needs more than this one has: internal/run/engine reads such columns around bad rows
					return
				}
				sound, bad, _ := tolerantRead(t, db, r, 1<<30)
				require.Empty(t, bad)
				for i := range got {
					require.Equal(t, got[i][0], sound[i][0], "line %d", i)
				}
			})
		}
	}
}

// A field that is read twice, once as nullable.
func TestCSVNullsBeside(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	for form, content := range inForms([]string{``, `""`}) {
		t.Run(form, func(t *testing.T) {
			path := writeFile(t, t.TempDir(), "in.csv", content)
			other := &script.InputColumn{Name: "o", Header: "c", Type: expr.String}
			number := &script.InputColumn{Name: "n", Header: "c", Type: expr.Int, Default: "3"}
			r := &script.FileReader{URLs: urls(path), CSV: script.CSVReader{Separator: ',', ByHeader: true},
				Columns: []*script.InputColumn{other, nullColumn(expr.String, "", false, ""), number}}
			got, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
			require.NoError(t, err)
			require.Equal(t, [][]string{{"", "NULL", "3"}, {"", "", "3"}}, got[:2])
		})
	}
}

// A field with a quoted null text is read by columns for which it is none.
func TestCSVQuotedNullTextBeside(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	for form, content := range inForms([]string{`NA`, `"NA"`, `5`, "\x105", `"-"`, `-`}) {
		t.Run(form, func(t *testing.T) {
			path := writeFile(t, t.TempDir(), "in.csv", content)
			other := &script.InputColumn{Name: "o", Header: "c", Type: expr.String}
			dash := nullColumn(expr.String, "-", false, "")
			dash.Name = "d"
			both := nullColumn(expr.String, "-|NA", true, "")
			both.Name = "b"
			r := &script.FileReader{URLs: urls(path), CSV: script.CSVReader{Separator: ',', ByHeader: true},
				Columns: []*script.InputColumn{other, nullColumn(expr.String, "NA", false, ""), dash, both}}
			got, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
			require.NoError(t, err)
			require.Equal(t, [][]string{{"NA", "NULL", "NA", "NULL"}, {"NA", "NA", "NA", "NULL"}, {"5", "5", "5", "5"},
				{"\x105", "\x105", "\x105", "\x105"},
				{"-", "-", "-", "NULL"}, {"-", "-", "NULL", "NULL"}}, got[:6])
		})
	}
}

// Only a file with a text in quotes that would else be NULL is rewritten.
func TestCSVQuotedNullTextIsRewritten(t *testing.T) {
	t.Parallel()
	for content, rewritten := range map[string]bool{
		"NA\n":               false,
		"\"NAN\"\nNA\n":      false,
		"\"NA\"\n":           true,
		"\"a\nb\"\n\"NA\"\n": true,
		"\x10\n":             true,
	} {
		for _, nulls := range []string{"NA", ""} {
			r := csvTexts(1, writeFile(t, t.TempDir(), "in.csv", content))
			r.Columns[0].Nullable, r.Columns[0].NullTexts = true, []string{nulls}
			plan, err := PlanSlices(t.Context(), r, 1<<20, 1)
			require.NoError(t, err)
			dir := t.TempDir()
			_, prepare, err := ReadSQL(r, plan[0], dir, Unnumbered)
			require.NoError(t, err)
			require.NoError(t, prepare(t.Context()))
			files, err := filepath.Glob(filepath.Join(dir, "csv", "*", "*.csv"))
			require.NoError(t, err)
			require.Len(t, files, 1)
			text, err := os.ReadFile(files[0])
			require.NoError(t, err)
			require.Equal(t, rewritten && nulls != "", strings.Contains(string(text), "\"\x10"), "%q %q", content, text)
		}
	}
}

// A text is found that the window of the scan has in two parts.
func TestCSVQuotedNullTextAcrossBlocks(t *testing.T) {
	t.Parallel()
	db := openDB(t, 1)
	for _, head := range []string{"", `"` + strings.Repeat("y\n", scanBlockBytes) + `",`} {
		for shift := range 8 {
			text := head + strings.Repeat("x", scanBlockBytes-len(head)%scanBlockBytes-shift-2) + `,"NA"` + "\n"
			columns := 2 + strings.Count(head, ",")
			r := csvTexts(columns, writeFile(t, t.TempDir(), "in.csv", text))
			last := r.Columns[columns-1]
			last.Nullable, last.NullTexts = true, []string{"NA"}
			got, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
			require.NoError(t, err)
			require.Len(t, got, 1)
			require.Equal(t, "NA", got[0][columns-1])
		}
	}
}

// An empty cell of an ordinary column is never NULL, whichever columns are read.
func TestCSVEmptyIsNotNull(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	path := writeFile(t, t.TempDir(), "in.csv", "a,b,c\n1,,\n,\"\",\"\"\n")
	for _, header := range []string{"a", "b", "c"} {
		got, err := readAll(t, db, csvByHeader(header+"|string", path), 1<<30, 1, Unnumbered)
		require.NoError(t, err)
		for _, row := range got {
			require.NotEqual(t, "NULL", row[0], header)
		}
	}
}

// What is no value of a nullable column is still an error, with its place.
func TestCSVNullsFault(t *testing.T) {
	t.Parallel()
	db := openDB(t, 2)
	for _, column := range []*script.InputColumn{nullColumn(expr.Int, "|NA", false, ""),
		nullColumn(expr.Int, "NA", true, "5")} {
		for form, content := range inForms([]string{``, `""`, `NA`, `"NA"`, `na`}) {
			t.Run(form, func(t *testing.T) {
				path := writeFile(t, t.TempDir(), "in.csv", content)
				r := &script.FileReader{URLs: urls(path), CSV: script.CSVReader{Separator: ',', ByHeader: true},
					Columns: []*script.InputColumn{column}}
				_, err := readAll(t, db, r, 1<<30, 1, Unnumbered)
				require.ErrorContains(t, err, `column c: "na" is not an int`)
				require.Equal(t, int64(5), fault.Of(err).Place.Record)
			})
		}
	}
}

// Columns that read one field may tell "" from nothing in it, or not.
func TestNeverNull(t *testing.T) {
	t.Parallel()
	text := nullColumn(expr.String, "", false, "")
	number := &script.InputColumn{Name: "n", Type: expr.Int}
	for name, c := range map[string]struct {
		columns []*script.InputColumn
		fields  []int
		want    map[int]bool
	}{
		"none tells":         {[]*script.InputColumn{number, number}, []int{0, 1}, map[int]bool{}},
		"another field":      {[]*script.InputColumn{text, number}, []int{0, 1}, map[int]bool{0: false, 1: true}},
		"the same field":     {[]*script.InputColumn{text, number}, []int{0, 0}, map[int]bool{0: false}},
		"the same, reversed": {[]*script.InputColumn{number, text}, []int{0, 0}, map[int]bool{0: false}},
	} {
		require.Equal(t, c.want, neverNull(&script.FileReader{Columns: c.columns},
			func(column int) int { return c.fields[column] }), name)
	}
}
