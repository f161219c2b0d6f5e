package outfile_test

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/outfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

func sheetOf(t *testing.T, lines string) (path string, err error) {
	t.Helper()
	dir := t.TempDir()
	w := &script.FileWriter{Form: script.FormExcel, Sheet: "Data", Columns: []*script.OutputColumn{
		{Name: "n", Header: "n", Type: expr.Int}, {Name: "f", Header: "=f", Type: expr.Float},
		{Name: "d", Header: "d", Type: expr.DateTime},
		{Name: "b", Header: "b", Type: expr.Bool}, {Name: "s", Header: "a <header> & more", Type: expr.String},
		{Name: "c", Header: "c", Type: expr.Decimal}}}
	path = filepath.Join(dir, "out.xlsx")
	_, err = outfile.Write(t.Context(), &writer{tries: []io.Reader{strings.NewReader(lines)}},
		outfile.Output{Writer: w, Rows: "SELECT", Path: path, Scratch: dir})
	return path, err
}

// TestSheetsHoldWhatIsWritten reads cells as they are stored.
func TestSheetsHoldWhatIsWritten(t *testing.T) {
	t.Parallel()
	path, err := sheetOf(t, `[1,0.30000000000000004,"2024-01-31T10:11:12.123",true,"=1+1",1.50]`+"\n"+
		`[-999999999999999,1e+300,"9999-12-31T23:59:59.999",false," _x0041_ <b>&\r\n\tü 𝄞 ",-9999999999999.99]`+
		"\n[null,null,null,null,null,null]\n"+`[0,-0.0,"1900-03-01T00:00:00",true,"",12345678901234.0000]`+"\n")
	require.NoError(t, err)
	f, err := excelize.OpenFile(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	rows, err := f.GetRows("Data", excelize.Options{RawCellValue: true})
	require.NoError(t, err)
	require.Equal(t, [][]string{
		{"n", "=f", "d", "b", "a <header> & more", "c"},
		{"1", "0.30000000000000004", "45322.424445868055", "1", "=1+1", "1.5"},
		{"-999999999999999", "1e+300", "2958465.9999999884", "0", " _x0041_ <b>&\r\n\tü 𝄞 ", "-9999999999999.99"},
		nil,
		{"0", "-0", "61", "1", "", "12345678901234"},
	}, rows)
	formula, err := f.GetCellFormula("Data", "E2")
	require.NoError(t, err)
	require.Empty(t, formula)
}

// TestSheetsRefuseWhatTheyCannotHold: never a silent change.
func TestSheetsRefuseWhatTheyCannotHold(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`[1000000000000001,1,null,true,"",1]`: "row 2, column n: Excel keeps 15 " +
			"digits of a number, and 1000000000000001 has more",
		`[1,"NaN",null,true,"",1]`: "row 2, column f: a sheet has no NaN",
		`[1,1,"1900-02-28T23:59:59",true,"",1]`: "row 2, column d: Excel has no dates " +
			"before March 1900, such as 1900-02-28T23:59:59",
		`[1,1,"0000-03-01T00:00:00",true,"",1]`: "row 2, column d: Excel has no dates " +
			"before March 1900, such as 0000-03-01T00:00:00",
		`[1,1,"-0001-03-01T00:00:00",true,"",1]`: "row 2, column d: Excel has no dates " +
			"before March 1900, such as -0001-03-01T00:00:00",
		`[1,1,"10000-01-01T00:00:00",true,"",1]`: "row 2, column d: Excel has no dates " +
			"after 9999, such as 10000-01-01T00:00:00",
		`[1,1,null,true,"\u0000",1]`: "row 2, column s: a cell cannot have " +
			"the character U+0000",
		`[1,1,null,true,"` + strings.Repeat("x", script.SheetTextMax+1) +
			`",1]`: "row 2, column s: a cell has at most 32767 characters, and a text has more: " +
			strings.Repeat("x", 40) + "…",
		`[1,1,null,true,"",12345678901234567.89]`: "row 2, column c: Excel keeps 15 " +
			"digits of a number, and 12345678901234567.89 has more",
		`[1,1,null,true,"` + strings.Repeat("𝄞", script.SheetTextMax/2+1) +
			`",1]`: "row 2, column s: a cell has at most 32767 characters, and a text has more: " +
			strings.Repeat("𝄞", 40) + "…",
	} {
		_, err := sheetOf(t, line+"\n")
		var f *fault.Error
		require.ErrorAs(t, err, &f, line)
		require.Equal(t, want, f.Message)
		require.Equal(t, fault.UserData, f.Kind)
		require.NotEmpty(t, f.Hint)
	}
}
