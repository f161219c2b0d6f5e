package peek_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"thalweg/internal/app/peek"
	"thalweg/internal/base/fault"
	"thalweg/internal/test/effort"
)

func (b *bench) download(d peek.Download) (string, error) {
	var out bytes.Buffer
	err := b.pool.Download(b.t.Context(), tester, d, &out)
	return out.String(), err
}

func TestDownloads(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	b := newBench(t, peek.Limits{})
	run := b.run(values, map[string]string{"values.csv": valuesCSV()}, nil)
	table := &peek.Table{Run: run, Table: "vals"}
	text, err := b.download(peek.Download{Table: table, Format: peek.CSV})
	require.NoError(t, err)
	require.Equal(t, "n,s,f,d,t,l\n"+
		"-9223372036854775808,+x,NaN,-0.01,1969-12-31 23:59:59.999,\"[-9223372036854775808,-9223372036854775808]\"\n"+
		"0,\"\",0,0.00,2000-01-01 00:00:00,\"[0,0]\"\n"+
		"5,\"a \"\"quoted\"\", text\nof two lines\",-2.25,7.10,2000-01-01 00:00:00,\"[5,5]\"\n"+
		"9223372036854775807,=1+1,1.5,12345678901234.56,2024-01-02 03:04:05.678,\"[9223372036854775807,9223372036854775807]\"\n"+
		",,,,,\"[null,null]\"\n", text)
	safe, err := b.download(peek.Download{Table: table, Format: peek.CSV, Spreadsheet: true})
	require.NoError(t, err)
	require.Equal(t, strings.NewReplacer(",=1+1", ",'=1+1", ",+x", ",'+x").Replace(text), safe, "numbers stay numbers")
	text, err = b.download(peek.Download{Table: table, Format: peek.NDJSON})
	require.NoError(t, err)
	require.Equal(t, `{"n":-9223372036854775808,"s":"+x","f":"NaN","d":"-0.01","t":"1969-12-31 23:59:59.999",`+
		`"l":[-9223372036854775808,-9223372036854775808]}`, strings.Split(text, "\n")[0])

	text, err = b.download(peek.Download{Table: table, Format: peek.XLSX})
	require.NoError(t, err)
	book, err := excelize.OpenReader(strings.NewReader(text))
	require.NoError(t, err)
	defer func() { require.NoError(t, book.Close()) }()
	cells, err := book.GetRows("rows", excelize.Options{RawCellValue: true})
	require.NoError(t, err)
	require.Equal(t, []string{"9223372036854775807", "=1+1", "1.5", "12345678901234.56", "2024-01-02 03:04:05.678",
		"[9223372036854775807,9223372036854775807]"}, cells[4])
	formula, err := book.GetCellFormula("rows", "B5")
	require.NoError(t, err)
	require.Empty(t, formula)
	for cell, typ := range map[string]excelize.CellType{"A5": excelize.CellTypeInlineString, "A3": excelize.CellTypeUnset,
		"B5": excelize.CellTypeInlineString, "D2": excelize.CellTypeUnset, "C2": excelize.CellTypeInlineString} {
		is, err := book.GetCellType("rows", cell)
		require.NoError(t, err)
		require.Equal(t, typ, is, cell)
	}
	shown, err := book.GetCellValue("rows", "D4")
	require.NoError(t, err)
	require.Equal(t, "7.10", shown)

	text, err = b.download(peek.Download{Table: table, Format: peek.Parquet})
	require.NoError(t, err)
	file, err := parquet.OpenFile(strings.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	require.EqualValues(t, 5, file.NumRows())

	text, err = b.download(peek.Download{Format: peek.CSV, SQL: &peek.SQL{Workspace: "main",
		SQL: "SELECT count(*) AS n, max(n) AS m FROM vals"}})
	require.NoError(t, err)
	require.Equal(t, "n,m\n5,9223372036854775807\n", text)
	text, err = b.download(peek.Download{Format: peek.CSV, Table: &peek.Table{Run: run, Table: "vals",
		Columns: []string{"n"}, Where: "n >= 0", Sort: []peek.SortBy{{Column: "n", Desc: true}}, Rows: 2}})
	require.NoError(t, err)
	require.Equal(t, "n\n9223372036854775807\n5\n", text)
}

// Of large tables all rows come, in their order, and no more than is allowed.
func TestLargeDownloads(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	b := newBench(t, peek.Limits{DownloadBytes: 4 << 20})
	const rows = 200_000
	run := b.run(numbers, map[string]string{"numbers.csv": csvOf(rows)}, nil)
	for format, lines := range map[peek.Format]func(int) string{
		peek.CSV:    func(i int) string { return fmt.Sprint(i) },
		peek.NDJSON: func(i int) string { return fmt.Sprintf(`{"n":%d}`, i) },
	} {
		text, err := b.download(peek.Download{Table: &peek.Table{Run: run, Table: "numbers"}, Format: format})
		require.NoError(t, err)
		list := strings.Split(strings.TrimPrefix(text, "n\n"), "\n")
		require.Len(t, list, rows+1)
		for i, line := range list[:rows] {
			require.Equal(t, lines(i), line)
		}
	}
	text, err := b.download(peek.Download{Format: peek.CSV,
		SQL: &peek.SQL{Workspace: "main", SQL: "SELECT range AS n, repeat('x', 100) AS x FROM range(1000000)"}})
	require.Equal(t, fault.TooMany, fault.Of(err).Code)
	require.Len(t, text, 4<<20)
	for sql, want := range map[string]string{
		"SELECT 'ok' AS a UNION ALL SELECT repeat('x', 40000)": "row 3, column a: a cell has at most 32767 characters",
		"SELECT chr(1) AS a": "row 2, column a: a cell cannot have the character U+0001",
		"SELECT nope":        "nope", "SELECT 1; SELECT 2": "one query that only reads is needed",
	} {
		_, err = b.download(peek.Download{Format: peek.XLSX, SQL: &peek.SQL{Workspace: "main", SQL: sql}})
		require.ErrorContains(t, err, want)
		require.Equal(t, fault.Script, fault.Of(err).Kind)
	}
	_, err = b.download(peek.Download{Format: "pdf", Table: &peek.Table{Run: run, Table: "numbers"}})
	require.ErrorContains(t, err, "there is no format")
}

// gone is a reader that leaves behind its first bytes.
type gone struct{}

var errLeft = errors.New("the reader has left")

func (gone) Write([]byte) (int, error) { return 0, errLeft }

func TestAReaderThatLeaves(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{})
	long := peek.Download{Format: peek.CSV, SQL: &peek.SQL{Workspace: "main",
		SQL: "SELECT range FROM range(3000000)"}}
	require.ErrorIs(t, b.pool.Download(t.Context(), tester, long, gone{}), errLeft)
	ctx, leave := context.WithCancel(t.Context())
	err := b.pool.Download(ctx, tester, long, leaver(leave))
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
	page, err := b.query("SELECT 1")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1"}}, texts(page))
}

// leaver ends its context with the first bytes, and takes them.
type leaver func()

func (l leaver) Write(p []byte) (int, error) {
	l()
	return len(p), nil
}
