package records

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"thalweg/internal/lang/filespec"
	"thalweg/internal/test/effort"
)

// sheetCSV writes the rows of a workbook that fill makes.
func sheetCSV(t *testing.T, fill func(f *excelize.File), spec filespec.Spec) (string, error) {
	t.Helper()
	f := excelize.NewFile()
	fill(f)
	data, err := f.WriteToBuffer()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	var out bytes.Buffer
	n, err := Excel(t.Context(), &out, bytes.NewReader(data.Bytes()), int64(data.Len()), spec)
	require.EqualValues(t, out.Len(), n)
	return out.String(), err
}

func set(t *testing.T, f *excelize.File, sheet string, cells map[string]any) {
	t.Helper()
	for at, v := range cells {
		require.NoError(t, f.SetCellValue(sheet, at, v))
	}
}

func TestSheets(t *testing.T) {
	t.Parallel()
	fill := func(f *excelize.File) {
		_, err := f.NewSheet("Data")
		require.NoError(t, err)
		set(t, f, "Sheet1", map[string]any{"A1": "a", "A2": 7})
		set(t, f, "Data", map[string]any{"B3": "n", "C3": " t ", "D3": "b", "E3": "d", "B4": 1.5, "C4": "x\n\"y\"",
			"D4": true,
			"E4": time.Date(2024, 1, 31, 10, 5, 6, 500_000_000, time.UTC), "B6": 123456789012345,
			"C6": 0.1, "D6": false, "Z6": "beside", "B7": "x", "A8": "outside"})
		require.NoError(t, f.SetCellFormula("Data", "C7", "1+1"))
	}
	columns := []filespec.Column{{Path: "n", Kind: filespec.Number}, {Path: "t", Kind: filespec.Text},
		{Path: "b", Kind: filespec.Bool}, {Path: "d", Kind: filespec.Time, Layout: filespec.ExcelLayout}}
	for name, c := range map[string]struct {
		spec        filespec.Spec
		want, fails string
	}{
		"range": {filespec.Spec{Columns: columns, Sheet: "Data", Range: "B3:E6"},
			"4,\"1.5\",\"x\n\"\"y\"\"\",\"true\",\"2024-01-31 10:05:06.500\"\n6,\"123456789012345\",\"0.1\",\"false\",\n", ""},
		"all": {filespec.Spec{Columns: columns[:1], Number: 2},
			"4,\"1.5\"\n6,\"123456789012345\"\n7:0,\"cell B7 of sheet \"\"Data\"\": \"\"x\"\" is no number\",\"B: \"\"x\"\", " +
				"C: \"\"\"\"\"\n", ""},
		"whole": {filespec.Spec{Columns: []filespec.Column{{Path: "n", Kind: filespec.Whole}}, Number: 2,
			Range: "A:C4"},
			"4:0,\"cell B4 of sheet \"\"Data\"\": 1.5 is no whole number\",\"B: \"\"1.5\"\", C: \"\"x\\n\\\"\"y\\\"\"\"\"\"\n",
			""},
		"formula": {filespec.Spec{Columns: columns[1:2], Sheet: "Data", Range: "B3:C7"},
			"4,\"x\n\"\"y\"\"\"\n6,\"0.1\"\n7:0,\"cell C7 of sheet \"\"Data\"\": it has a formula without a value: open the " +
				"file in Excel or LibreOffice and save it\",\"B: \"\"x\"\", C: \"\"\"\"\"\n", ""},
		"day only": {filespec.Spec{Columns: []filespec.Column{{Path: "d", Kind: filespec.Time, Layout: "2006-01-02"}},
			Sheet: "Data", Range: "B3:E4"},
			"4:0,\"cell E4 of sheet \"\"Data\"\": 2024-01-31 10:05:06.500 is more than \"\"2006-01-02\"\" can say\",\"B: " +
				"\"\"1.5\"\", C: \"\"x\\n\\\"\"y\\\"\"\"\", D: \"\"true\"\", E: \"\"2024-01-31 10:05:06.5\"\"\"\n", ""},
		"first": {filespec.Spec{Columns: []filespec.Column{{Path: "a", Kind: filespec.Whole}}}, "2,\"7\"\n", ""},
		"letters": {filespec.Spec{Columns: []filespec.Column{{Path: "B", Kind: filespec.Text}}, Sheet: "Data",
			Range: "B4", NoHeader: true},
			"4,\"1.5\"\n6,\"123456789012345\"\n7,\"x\"\n", ""},
		"optional": {filespec.Spec{Columns: []filespec.Column{{Path: "a", Kind: filespec.Whole},
			{Path: "z", Kind: filespec.Text, Optional: true}}},
			"2,\"7\",\n", ""},
		"missing": {filespec.Spec{Columns: []filespec.Column{{Path: "z", Kind: filespec.Text}}}, "",
			`missing column "z"; row 1 of sheet "Sheet1", which is taken for its header, has: "a"`},
		"no sheet":  {filespec.Spec{Columns: columns, Sheet: "data"}, "", `the workbook has no sheet "data"`},
		"no number": {filespec.Spec{Columns: columns, Number: 3}, "", `the workbook has no sheet number 3`},
		"no header": {filespec.Spec{Columns: columns, Range: "A100"}, "", `sheet "Sheet1" has no header: it is empty`},
		"null texts": {filespec.Spec{Columns: []filespec.Column{{Path: "n", Kind: filespec.Number,
			Nulls: []string{"x"}},
			{Path: "Z", Kind: filespec.Text, Optional: true}}, Sheet: "Data", Range: "B3:B7"},
			"4,\"1.5\",\n6,\"123456789012345\",\n7,,\n", ""},
	} {
		got, err := sheetCSV(t, fill, c.spec)
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, strings.ReplaceAll(c.want, "A: \"\"outside\"\"", ""), got, name)
	}
	for _, text := range []string{"\x1f\x8b\b", "\x28\xb5\x2f\xfd\x04"} {
		_, err := Excel(t.Context(), &bytes.Buffer{}, strings.NewReader(text), int64(len(text)), filespec.Spec{})
		require.ErrorContains(t, err, "the file is compressed, and workbooks are not read so", text)
	}
	for _, text := range []string{"", "no zip", "PK\x03\x04"} {
		_, err := Excel(t.Context(), &bytes.Buffer{}, strings.NewReader(text), int64(len(text)), filespec.Spec{})
		require.ErrorContains(t, err, "no Excel workbook", text)
	}
}

// Whole numbers have all of the digits that a program wrote, and a formula beside an empty value has none.
func TestCells(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"9007199254740993": "9007199254740993",
		"-12345678901234567890": "-12345678901234567890", "0": "0", "007": "7",
		"1.1000000000000001": "1.1", "9.0071992547409905E+15": "9007199254740990", "-0": "-0"} {
		require.Equal(t, want, number(text), text)
	}
	for _, c := range []struct {
		kind, value  string
		has, formula bool
		want         byte
	}{{"", "", true, true, 'f'}, {"", "", false, true, 'f'}, {"n", "", true, true, 'f'}, {"str", "", true, true, 's'},
		{"", "", true, false, 0}, {"", "2", true, true, 'n'}} {
		got, err := (&sheetReader{}).valueOf(cell{}, c.kind, c.value, c.has, c.formula, "A1")
		require.NoError(t, err)
		require.Equal(t, c.want, got.kind, "%+v", c)
	}
}

// Random tables that another program has written are read as they are.
func TestSheetsOfOthers(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for range effort.Of(5, 20, 200) {
		rows, columns := rng.IntN(20), 1+rng.IntN(8)
		want := make([][]string, rows)
		spec := filespec.Spec{}
		kinds := make([]int, columns)
		for c := range columns {
			kinds[c] = rng.IntN(4)
			kind := []filespec.Kind{filespec.Text, filespec.Number, filespec.Bool, filespec.Time}[kinds[c]]
			spec.Columns = append(spec.Columns,
				filespec.Column{Path: fmt.Sprintf("c%d", c), Kind: kind, Layout: filespec.ExcelLayout})
		}
		got, err := sheetCSV(t, func(f *excelize.File) {
			for c := range columns {
				at, _ := excelize.CoordinatesToCellName(c+1, 1)
				set(t, f, "Sheet1", map[string]any{at: fmt.Sprintf("c%d", c)})
			}
			for r := range rows {
				for c := range columns {
					v, text := anyCell(rng, kinds[c])
					if want[r] = append(want[r], text); v != nil {
						at, _ := excelize.CoordinatesToCellName(c+1, r+2)
						set(t, f, "Sheet1", map[string]any{at: v})
					}
				}
			}
		}, spec)
		require.NoError(t, err)
		read, err := csv.NewReader(strings.NewReader(got)).ReadAll()
		require.NoError(t, err)
		at := 0
		for r := range rows {
			if strings.Join(want[r], "") == "" && (at == len(read) || read[at][0] != strconv.Itoa(r+2)) {
				continue // a row without values
			}
			require.Equal(t, append([]string{strconv.Itoa(r + 2)}, want[r]...), read[at])
			at++
		}
		require.Len(t, read, at)
	}
}

// anyCell is a value, nil for none, and what is read of it.
func anyCell(rng *rand.Rand, kind int) (any, string) {
	if rng.IntN(5) == 0 {
		return nil, ""
	}
	switch kind {
	case 0:
		texts := []string{"x", "a,b", `"q"`, "two\nlines", " lead", "trail ", "ä€𝄞", "=1+1", "#N/A",
			"_x", "007", "TRUE", "1e5", strings.Repeat("long ", 500)}
		text := texts[rng.IntN(len(texts))]
		return text, text
	case 1:
		numbers := []float64{0, 1, -1, 0.1, 1e15, 123456789012345, -0.05, 1e300, 5e-324,
			math.Round(rng.NormFloat64()*1e6) / 1e6, float64(rng.IntN(1e9)) / 100}
		n := numbers[rng.IntN(len(numbers))]
		return n, number(strconv.FormatFloat(n, 'g', -1, 64))
	case 2:
		b := rng.IntN(2) == 0
		return b, strconv.FormatBool(b)
	}
	moment := time.Date(1900+rng.IntN(300), time.Month(1+rng.IntN(12)), 1+rng.IntN(28), rng.IntN(24), rng.IntN(60),
		rng.IntN(60), rng.IntN(1000)*1_000_000, time.UTC)
	return moment, moment.Format(filespec.ExcelLayout)
}

func TestStyles(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]style{"General": plain, "0.00": plain, "0%": plain, "#,##0 [$€-407]": plain,
		`"day" 0`: plain, "yyyy-mm-dd": day, "d. mmm": day, "mmmm": day,
		"m/d/yy h:mm": dayTime, "hh:mm:ss": clock, "[h]:mm": elapsed, "[HH]:MM:SS": elapsed, "[mm]:ss": elapsed,
		"[Red][ss].0;-[ss]": elapsed, "[$-F400]h:mm:ss": clock, "[magenta]0": plain, "h:mm;[h]:mm": clock,
		"[Red]0": plain, `0 "s"`: plain, `\d0`: plain, "mm:ss.0": clock, "@": plain, "yyyy;@": day} {
		require.Equal(t, want, styleOf(164, map[int]string{164: format}), format)
	}
	for _, c := range []struct {
		days string
		from bool
		want string
	}{{"1", false, "1900-01-01"}, {"59", false, "1900-02-28"}, {"61", false, "1900-03-01"},
		{"45322", false, "2024-01-31"},
		{"0", true, "1904-01-01"}, {"43860", true, "2024-01-31"}, {"2958465.5", false, "9999-12-31"}} {
		got, err := (&workbook{from04: c.from}).moment(c.days)
		require.NoError(t, err)
		require.Equal(t, c.want, got.Format("2006-01-02"), c.days)
	}
	for _, days := range []string{"60", "-1", "3e9", "x"} {
		_, err := (&workbook{}).moment(days)
		require.Error(t, err, days)
	}
}

// An elapsed time goes on beyond a day, and is a number of days.
func TestElapsed(t *testing.T) {
	t.Parallel()
	own := "[mm]:ss"
	for name, c := range map[string]struct {
		days   float64
		format excelize.Style
		kind   filespec.Kind
		from04 bool
		want   string
	}{
		"beyond a day": {days: 1.5, format: excelize.Style{NumFmt: 46}, kind: filespec.Text, want: "36:00:00"},
		"within a day": {days: 0.25, format: excelize.Style{NumFmt: 46}, kind: filespec.Text, want: "06:00:00"},
		"minutes":      {days: 1.5, format: excelize.Style{CustomNumFmt: &own}, kind: filespec.Text, want: "36:00:00"},
		"milliseconds": {days: 100 + 1.5/86_400, format: excelize.Style{NumFmt: 46}, kind: filespec.Text,
			want: "2400:00:01.5"},
		"nothing": {format: excelize.Style{NumFmt: 46}, kind: filespec.Text, want: "00:00:00"},
		"negative of 1904": {days: -1.5, format: excelize.Style{NumFmt: 46}, kind: filespec.Text, from04: true,
			want: "-36:00:00"},
		"negative": {days: -1.5, format: excelize.Style{NumFmt: 46}, kind: filespec.Text,
			want: "-1.5 is no elapsed time"},
		"a number":       {days: 1.5, format: excelize.Style{NumFmt: 46}, kind: filespec.Number, want: "1.5"},
		"a negative one": {days: -1.5, format: excelize.Style{NumFmt: 46}, kind: filespec.Number, want: "-1.5"},
		"whole days":     {days: 2, format: excelize.Style{NumFmt: 46}, kind: filespec.Whole, want: "2"},
		"a datetime": {days: 1.5, format: excelize.Style{NumFmt: 46}, kind: filespec.Time,
			want: "36:00:00 is an elapsed time, and no datetime"},
		"a time of day": {days: 0.25, format: excelize.Style{NumFmt: 21}, kind: filespec.Text, want: "06:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := sheetCSV(t, func(f *excelize.File) {
				require.NoError(t, f.SetWorkbookProps(&excelize.WorkbookPropsOptions{Date1904: &c.from04}))
				set(t, f, "Sheet1", map[string]any{"A1": "d", "A2": c.days})
				style, err := f.NewStyle(&c.format)
				require.NoError(t, err)
				require.NoError(t, f.SetCellStyle("Sheet1", "A2", "A2", style))
			}, filespec.Spec{Columns: []filespec.Column{{Path: "d", Kind: c.kind, Layout: filespec.ExcelLayout}}})
			require.NoError(t, err)
			if !strings.Contains(c.want, "is") {
				c.want = "2,\"" + c.want + "\"\n"
			}
			require.Contains(t, got, c.want)
		})
	}
}

func TestLookExcel(t *testing.T) {
	t.Parallel()
	f := excelize.NewFile()
	set(t, f, "Sheet1", map[string]any{"A1": "i", "B1": "f", "C1": "d", "D1": "s", "E1": "b", "A2": 1, "B2": 1,
		"C2": time.Now(), "D2": "x", "E2": true, "A3": 2, "B3": 1.5, "D3": 3, "G3": "x", "F4": 1})
	data, err := f.WriteToBuffer()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	rows, err := TopRows(t.Context(), bytes.NewReader(data.Bytes()), int64(data.Len()), filespec.Spec{Range: "B3"}, 1)
	require.NoError(t, err)
	require.Equal(t, []SheetRow{{3, []int{2, 4, 7}, []string{"1.5", "3", "x"}}}, rows)
	got, err := LookExcel(t.Context(), bytes.NewReader(data.Bytes()), int64(data.Len()), filespec.Spec{})
	require.NoError(t, err)
	require.Equal(t, []Found{{Key: "i", Value: Integer, Letters: "A"}, {Key: "f", Value: Fraction, Letters: "B"},
		{Key: "d", Value: Moment, Letters: "C"}, {Key: "s", Value: Any, Letters: "D"},
		{Key: "b", Value: Truth, Letters: "E"}, {Value: Any, Letters: "G", Row: 3}, {Value: Integer,
			Letters: "F", Row: 4}},
		got)
}
