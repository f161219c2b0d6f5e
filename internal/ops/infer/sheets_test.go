package infer

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"
)

// workbook writes rows; those that are nil are left empty.
func workbook(t *testing.T, rows ...[]any) string {
	t.Helper()
	f := excelize.NewFile()
	for y, row := range rows {
		for x, v := range row {
			at, err := excelize.CoordinatesToCellName(x+1, y+1)
			require.NoError(t, err)
			if text, ok := v.(formula); ok {
				require.NoError(t, f.SetCellFormula("Sheet1", at, string(text)))
			} else if v != nil {
				require.NoError(t, f.SetCellValue("Sheet1", at, v))
			}
		}
	}
	path := filepath.Join(t.TempDir(), "in.xlsx")
	require.NoError(t, f.SaveAs(path))
	require.NoError(t, f.Close())
	return path
}

type row = []any

// TestSheetsAndErrors: other sheets and cells with errors are said.
func TestSheetsAndErrors(t *testing.T) {
	t.Parallel()
	f := excelize.NewFile()
	require.NoError(t, f.SetCellValue("Sheet1", "A1", "v"))
	require.NoError(t, f.SetCellValue("Sheet1", "A2", 1.5))
	require.NoError(t, f.SetCellFormula("Sheet1", "A3", "1/0"))
	for _, name := range []string{"Notes", "Old", "Empty"} {
		_, err := f.NewSheet(name)
		require.NoError(t, err)
		if name != "Empty" {
			require.NoError(t, f.SetCellValue(name, "A1", "x"))
		}
	}
	require.NoError(t, f.SetSheetVisible("Old", false))
	path := filepath.Join(t.TempDir(), "in.xlsx")
	require.NoError(t, f.SaveAs(path))
	require.NoError(t, f.Close())
	p, err := Files(t.Context(), []string{withError(t, path)}, options(t))
	require.NoError(t, err)
	require.Equal(t, int64(2), p.Rows)
	require.Equal(t, []string{"#DIV/0!"}, p.Columns[0].NullTexts)
	var got []string
	for _, d := range p.Doubts {
		got = append(got, string(d.Kind)+" "+strings.ReplaceAll(d.Text, filepath.Dir(p.Files[0])+"/", ""))
	}
	require.Equal(t, []string{
		`left out sheet "Notes" of in.xlsx: a node reads one sheet, excel: {sheet: Notes}`,
		`left out sheet "Old" of in.xlsx (hidden): a node reads one sheet, excel: {sheet: Old}`,
		`guessed column "v": cells with errors are NULL (1 of #DIV/0!): see null_text`,
	}, got)
	loads(t, p)
}

// withError computes the formula 1/0 of a workbook, as Excel does.
func withError(t *testing.T, path string) string {
	t.Helper()
	archive, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer archive.Close()
	out := filepath.Join(t.TempDir(), "in.xlsx")
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		to, err := w.Create(f.Name)
		require.NoError(t, err)
		text = regexp.MustCompile(`<c r="A3"[^>]*><f>1/0</f>.*?</c>`).ReplaceAll(text,
			[]byte(`<c r="A3" t="e"><f>1/0</f><v>#DIV/0!</v></c>`))
		_, err = to.Write(text)
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(w.Close(), os.WriteFile(out, b.Bytes(), 0o600)))
	return out
}

// formula is a cell's that no program has computed.
type formula string

// TestHeadersOfSheets: the header is found below titles, and what is left out is named.
func TestHeadersOfSheets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows   []row
		header Header
		area   string
		names  string
		notes  []string // what is in each
	}{
		"plain": {rows: []row{{"id", "amt"}, {1, 2.5}}, names: "id amt"},
		"years": {rows: []row{{2023, 2024}, {1, 2}}, names: "_2023 _2024"},
		"titles": {rows: []row{{"Sales 2024"}, {"by shop"}, nil, {"id", "amt", "shop"}, {1, 2.5, "a"},
			{2, 3, "b"}}, area: "A4", names: "id amt shop",
			notes: []string{"row 4 was taken for the header, 2 rows are above it"}},
		"a wide title": {rows: []row{{"Report", "Q1"}, {"a", "b", "c", "d"}, {"x", "y", "z", 1}, {"x", "y", nil, 2}},
			area: "A2", names: "a b c d", notes: []string{"a row is above it"}},
		"only texts": {rows: []row{{"Staff"}, {"name", "city", "team"}, {"Ann", "Bern", "x"}, {"Bob", "Thun", "y"}},
			area: "A2", names: "name city team", notes: []string{"row 2 was taken"}},
		"two columns": {rows: []row{{"Prices"}, {"item", "price"}, {"a", 1}, {"b", 2}}, area: "A2", names: "item price",
			notes: []string{"row 2 was taken"}},
		"a gap in a header": {rows: []row{{nil, "city"}, {"Ann", "Bern"}, {"Bob", "Thun"}}, names: "city",
			notes: []string{"column A of"}},
		"two, set apart": {rows: []row{{"Staff"}, nil, {"name", "city"}, {"Ann", "Bern"}}, area: "A3",
			names: "name city", notes: []string{"row 3 was taken"}},
		"not at the left": {rows: []row{{nil, "Sales"}, nil, {nil, nil, "id", "amt"}, {nil, nil, 1, 2.5}}, area: "A3",
			names: "id amt", notes: []string{"row 3 was taken"}},
		"without headers": {rows: []row{{"id"}, {1, 2.5, "x"}, {2, 3, "y"}}, names: "id",
			notes: []string{"columns B, C of in.xlsx have values and no header: they are left out"}},
		"an index": {rows: []row{{nil, "a", "b"}, {0, 1, 2}, {1, 2, 3}}, names: "a b",
			notes: []string{"column A of in.xlsx has values and no header: it is left out"}},
		"sparse rows": {rows: []row{{"id", "a", "b", "c"}, {1}, {2}, {3, nil, 4}}, names: "id a b c"},
		"a title of all columns": {rows: []row{{"Report", "Region"}, {"id", "amt"}, {1, 2.5}, {2, 3}},
			names: "Report Region",
			notes: []string{`row 2 of in.xlsx, "id", "amt", may be the header: its names are above values, those of ` +
				`row 1 are not (see range)`}},
		"above groups": {rows: []row{{nil, "Q1", nil, "Q2"}, {"shop", "cost", "gain", "cost", "fee"}, {"x", 1, 2, 3, 4},
			{"y", 1, 2, 3, 4}}, area: "A3", names: "shop cost gain cost_2 fee",
			notes: []string{"row 2 was taken", "columns are read by their letters, because headers are there " +
				"twice in row 2"}},
		"doubled, and gaps": {rows: []row{{"n", "n", "{x}", "none"}, {1, "a", 3, nil, 5}, {nil, nil, nil, nil, 6}},
			area: "A2", names: "n n_2 x none E",
			notes: []string{"because headers are there twice in row 1"}},
		"a header is said": {rows: []row{{"x"}, {1, 2, 3}, {4, 5, 6}}, header: HeaderYes, area: "A2", names: "_1 _2 _3",
			notes: []string{"row 2 was taken"}},
		"no header, by order": {rows: []row{{"Sales"}, {"id", "amt", "x"}, {1, 2.5, 3}}, header: HeaderNo,
			names: "A B C"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := workbook(t, c.rows...)
			o := options(t)
			o.Header = c.header
			p, err := Files(t.Context(), []string{path}, o)
			require.NoError(t, err)
			require.Equal(t, c.area, p.Range())
			var names []string
			for _, col := range p.Columns {
				names = append(names, col.Name)
			}
			require.Equal(t, c.names, strings.Join(names, " "))
			require.Len(t, p.Notes, len(c.notes), p.Notes)
			for i, note := range c.notes {
				require.Contains(t, strings.ReplaceAll(p.Notes[i], path, "in.xlsx"), note)
				if strings.Contains(note, "headers are there twice") {
					require.Contains(t, p.Doubts, Doubt{Guessed, p.Notes[i]})
				}
			}
			loads(t, p)
		})
	}
}

// TestRowsOfUnnamedColumns: rows that scripts cannot see are counted, and a header that is the only row is said.
func TestRowsOfUnnamedColumns(t *testing.T) {
	t.Parallel()
	first := workbook(t, row{"a", "b"}, row{1, 2, 3}, row{nil, nil, 4}, row{nil, nil, 5}, row{2})
	none := workbook(t, row{"qty"}, row{nil, -213})
	only := workbook(t, row{nil}, row{true})
	empty := workbook(t, row{"a", "b"})
	p, err := Files(t.Context(), []string{first, none, only, empty}, options(t))
	require.NoError(t, err)
	require.Equal(t, int64(2), p.Rows)
	var got []string
	for _, d := range p.Doubts {
		got = append(got, string(d.Kind)+" "+d.Text)
	}
	require.Equal(t, []string{
		"left out column C of " + first +
			" has values and no header: it is left out ({{set no-header}} reads columns by their letters)",
		"left out 2 rows of " + first +
			" with values only in columns that are left out: they are left out with them ({{set no-header}} reads " +
			"columns by their letters)",
		"left out column B of " + none +
			" has values and no header: it is left out ({{set no-header}} reads columns by their letters)",
		"left out 1 row of " + none +
			" with values only in columns that are left out: it is left out with them ({{set no-header}} reads " +
			"columns by their letters)",
		"guessed the only row of " + only + " was taken for a header ({{set no-header}} if it is data)",
	}, got)
}

// TestSheetsTogether: a file whose table begins elsewhere is left out, and a comment says so.
func TestSheetsTogether(t *testing.T) {
	t.Parallel()
	table := []row{{"id", "amt"}, {1, 2.5}, {2, 3}}
	titled := workbook(t, append([]row{{"Sales"}, nil}, table...)...)
	same := workbook(t, append([]row{{"Sales"}, {"of shops"}}, table...)...)
	bare := workbook(t, table...)
	p, err := Files(t.Context(), []string{titled, same, bare}, options(t))
	require.NoError(t, err)
	require.Equal(t, []string{titled, same}, p.Files)
	require.Equal(t, "A3", p.Range())
	require.Equal(t, []string{"row 3 was taken for the header, a row is above it: see range",
		bare + " is left out: its header is in row 1, so it needs a node of its own"}, p.Notes)
	require.Equal(t, int64(4), p.Rows)

	packed := titled + ".gz"
	text, err := os.ReadFile(titled)
	require.NoError(t, err)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(text)
	require.NoError(t, errors.Join(err, z.Close(), os.WriteFile(packed, b.Bytes(), 0o600)))
	_, err = Files(t.Context(), []string{packed}, options(t))
	require.ErrorContains(t, err, "a workbook that is compressed")

	// What is doubled in one of files with other headers is left out of all.
	twice, once := workbook(t, row{"id", "a", "a"}, row{1, 2, 3}), workbook(t, row{"a", "id"}, row{4, 5}, row{6})
	for _, list := range [][]string{{twice, once}, {once, twice}} {
		p, err := Files(t.Context(), list, options(t))
		require.NoError(t, err)
		require.Len(t, p.Columns, 1)
		require.Equal(t, "id 1 … 5", p.Columns[0].Name+" "+p.Columns[0].Evidence)
		require.Contains(t, p.Doubts,
			Doubt{LeftOut, "column B of " + twice +
				` has the header of another one, "a": it is left out ({{set no-header}} reads columns by their letters)`})
		require.Contains(t, p.Doubts, Doubt{LeftOut, `column "a" of ` + once +
			`: another file has two columns of that name`})
		require.Contains(t, p.Doubts,
			Doubt{LeftOut, "1 row of " + once +
				" with values only in columns that are left out: it is left out with them ({{set no-header}} reads " +
				"columns by their letters)"})
		require.Equal(t, int64(2), p.Rows)
	}
	_, err = Files(t.Context(), []string{workbook(t, row{"a", "a"}), workbook(t, row{"a", "a"})}, options(t))
	require.ErrorContains(t, err, "no column of the file has a name of its own")
}
