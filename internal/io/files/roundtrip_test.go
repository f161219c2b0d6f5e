package files

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/test/effort"
)

// roundTable is a table that is written and has to read back equal.
type roundTable struct {
	w    *script.FileWriter
	null string      // what stands for NULL in nullable columns
	rows [][]*string // the texts that are written; nil: NULL
	path string
}

// drawTable makes a table of 1 to 300 columns of all types. Its texts have
// quotes, separators, line ends of all kinds, unicode, blanks, texts that
// readers take for nulls; values of all types may equal what stands for NULL.
func drawTable(rnd *rand.Rand, path string) roundTable {
	columns := 1 + rnd.IntN(6)
	switch rnd.IntN(10) {
	case 0:
		columns = 1
	case 1:
		columns = 1 + rnd.IntN(300)
	}
	pieces := []string{"a", "B7", " ", "\t", `"`, `""`, ",", ";", "|", "\n", "\r\n", "\r", "'", `\`, "#",
		"é", "日本", "🙂", "\u00a0", "\ufeff", "null", "NA", "nan", "0", "-1.50", "=1+1", "\u2028", "\x01"}
	text := func() string {
		var b strings.Builder
		for range rnd.IntN(5) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		return b.String()
	}
	w := &script.FileWriter{Separator: []string{",", ";", "\t", "|"}[rnd.IntN(4)], CRLF: rnd.IntN(3) == 0,
		Quote: []string{script.QuoteMinimal, script.QuoteMinimal, script.QuoteAll}[rnd.IntN(3)]}
	nulls := []string{"", "", "NA", "null", "-", "0", "true", "-1.50"}
	null := nulls[rnd.IntN(len(nulls))]
	for i := range columns {
		c := &script.OutputColumn{Name: fmt.Sprintf("c%d", i), Type: expr.String,
			Header: fmt.Sprintf("%sh%d", text(), i)}
		if rnd.IntN(2) == 0 {
			c.Type = roundTypes[rnd.IntN(len(roundTypes))]
		}
		if c.Type == expr.DateTime {
			c.Format = roundLayout
		}
		if (columns > 1 || null != "") && rnd.IntN(3) == 0 {
			c.Nullable, c.NullText = true, null
		}
		w.Columns = append(w.Columns, c)
	}
	t := roundTable{w: w, null: null, path: path}
	for range rnd.IntN(20) {
		row := make([]*string, columns)
		for i, c := range w.Columns {
			s := drawValue(rnd, c.Type)
			if c.Type == expr.String {
				if s = text(); rnd.IntN(8) == 0 {
					s = null
				}
			}
			if !c.Nullable || rnd.IntN(4) > 0 {
				row[i] = &s
			}
		}
		t.rows = append(t.rows, row)
	}
	return t
}

var roundTypes = []expr.Type{expr.Int, expr.Float, expr.Decimal, expr.Bool, expr.DateTime}

// roundLayout is one that DuckDB reads, too.
const roundLayout = "2006-01-02 15:04:05.000"

// drawValue is a value of a type as it is printed.
func drawValue(rnd *rand.Rand, typ expr.Type) string {
	n := rnd.IntN(4000) - 2000
	if rnd.IntN(4) == 0 {
		n = []int{0, 0, 1, -150}[rnd.IntN(4)]
	}
	switch typ {
	case expr.Int:
		return strconv.Itoa(n)
	case expr.Float:
		return strconv.FormatFloat(float64(n)/8, 'f', -1, 64)
	case expr.Decimal:
		return strings.Replace(fmt.Sprintf("%+d.%02d", n/100, max(n, -n)%100), "+",
			map[bool]string{true: "-", false: ""}[n < 0], 1)
	case expr.Bool:
		return strconv.FormatBool(n%2 == 0)
	case expr.DateTime:
		return time.UnixMilli(int64(n) * 1_234_567_890).UTC().Format(roundLayout)
	default:
		return ""
	}
}

// sql is the table as a query.
func (t roundTable) sql() string {
	cells := func(row []*string) string {
		out := make([]string, len(t.w.Columns))
		for i, c := range t.w.Columns {
			value := "NULL"
			if row != nil && row[i] != nil {
				value = sqltext.String(*row[i])
			}
			out[i] = "CAST(" + value + " AS " + c.Type.SQL() + ") AS " + c.Name
		}
		return "SELECT " + strings.Join(out, ", ")
	}
	if len(t.rows) == 0 {
		return cells(nil) + " WHERE false"
	}
	selects := make([]string, len(t.rows))
	for i, row := range t.rows {
		selects[i] = cells(row)
	}
	return strings.Join(selects, " UNION ALL ")
}

// texts are the cells, NULL as null.
func (t roundTable) texts(null string) [][]string {
	var out [][]string
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = null
			if cell != nil {
				cells[i] = *cell
			}
		}
		out = append(out, cells)
	}
	return out
}

// pandasReads reads the files named in its input and prints their cells.
const pandasReads = `
import json, sys, pandas
out = []
for path, separator in json.load(sys.stdin):
    frame = pandas.read_csv(path, sep=separator, header=None, dtype=str, keep_default_na=False, na_filter=False)
    out.append(frame.values.tolist())
json.dump(out, sys.stdout)
`

// pandasPython finds a Python that has pandas: THALWEG_PANDAS_PYTHON, or python3.
func pandasPython(ctx context.Context) string {
	for _, name := range []string{os.Getenv("THALWEG_PANDAS_PYTHON"), "python3"} {
		if name != "" && osexec.CommandContext(ctx, name, "-c", "import pandas").Run() == nil {
			return name
		}
	}
	return ""
}

// TestChaosCSVRoundTrip writes random tables and reads them back here, with
// DuckDB in strict mode, and with pandas.
func TestChaosCSVRoundTrip(t *testing.T) {
	t.Parallel()
	tables := effort.Of(10, 25, 1000)
	const seed = 13
	rnd := rand.New(rand.NewPCG(seed, 0))
	db, dir := openDB(t, 2), t.TempDir()
	var forPandas [][2]string
	var all []roundTable
	leftOut := 0
	for n := range tables {
		table := drawTable(rnd, filepath.Join(dir, fmt.Sprintf("%04d.csv", n)))
		query, err := WriteSQL(table.w, table.sql(), table.path)
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), query.SQL())
		require.NoError(t, err)
		requireRead(t, db, table)
		if table.duckDBMisreads() {
			leftOut++
		} else {
			requireStrict(t, db, table)
		}
		forPandas = append(forPandas, [2]string{table.path, table.w.Separator})
		all = append(all, table)
	}
	t.Logf("left out: DuckDB with %d of %d tables, whose CRLF files have another line break inside quotes of the "+
		"header before any other",
		leftOut, tables)
	require.Less(t, leftOut, tables/2)
	python := pandasPython(t.Context())
	if python == "" {
		t.Log("left out: reading with pandas, because neither THALWEG_PANDAS_PYTHON nor python3 has it")
		return
	}
	input, err := json.Marshal(forPandas)
	require.NoError(t, err)
	cmd := osexec.CommandContext(t.Context(), python, "-c", pandasReads)
	cmd.Stdin = strings.NewReader(string(input))
	raw, err := cmd.Output()
	var exit *osexec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("%s: %s", err, exit.Stderr)
	}
	require.NoError(t, err)
	var got [][][]string
	require.NoError(t, json.Unmarshal(raw, &got))
	for n, table := range all {
		require.Equal(t, append([][]string{table.headers()}, table.texts(table.null)...), got[n], "table %d", n)
	}
}

func (t roundTable) headers() []string {
	out := make([]string, len(t.w.Columns))
	for i, c := range t.w.Columns {
		out[i] = c.Header
	}
	return out
}

// requireRead reads the table here, in one batch and cut into several.
func requireRead(t *testing.T, db *sql.Conn, table roundTable) {
	t.Helper()
	r := &script.FileReader{URLs: urls(table.path), CSV: script.CSVReader{Separator: table.w.Separator[0],
		FirstDataRecord: 1}}
	for i, c := range table.w.Columns {
		r.Columns = append(r.Columns, &script.InputColumn{Name: c.Name, Index: i, Type: c.Type, Format: c.Format,
			Nullable: c.Nullable})
		if c.Nullable {
			r.Columns[i].NullTexts = []string{table.null}
		}
	}
	want, err := texts(t.Context(), db, "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ("+table.sql()+")")
	require.NoError(t, err)
	for _, target := range []int64{1 << 20, 50} {
		got, err := readAll(t, db, r, target, 4, Unnumbered)
		require.NoError(t, err)
		require.Equal(t, want, got, "%s", table.path)
	}
}

// duckDBMisreads reports a file whose lines end in CRLF, but whose first line
// break is another one, inside quotes of the header: DuckDB 1.5.5 takes the
// first break that it meets for that of the lines (docs/decisions/0013).
func (t roundTable) duckDBMisreads() bool {
	if !t.w.CRLF {
		return false
	}
	for _, cell := range t.headers() {
		if i := strings.IndexAny(cell, "\r\n"); i >= 0 {
			return !strings.HasPrefix(cell[i:], "\r\n")
		}
	}
	return false
}

// requireStrict reads the table with DuckDB alone, with and without its header.
func requireStrict(t *testing.T, db *sql.Conn, table roundTable) {
	t.Helper()
	columns := make([]string, len(table.w.Columns))
	for i, c := range table.w.Columns {
		columns[i] = sqltext.String(c.Name) + ": 'VARCHAR'"
	}
	lineEnd := `new_line = '\n', `
	if table.w.CRLF {
		lineEnd = "" // given as '\r\n' it loses rows: docs/decisions/0013
	}
	read := func(header bool) [][]string {
		got, err := texts(t.Context(), db, "SELECT COLUMNS(*) FROM read_csv("+sqltext.String(table.path)+", "+
			"auto_detect = false, strict_mode = true, "+
			fmt.Sprintf("header = %t, ", header)+lineEnd+`quote = '"', escape = '"', allow_quoted_nulls = false, `+
			"nullstr = "+sqltext.String(table.null)+", delim = "+sqltext.String(table.w.Separator)+
			", columns = {"+strings.Join(columns, ", ")+"})")
		require.NoError(t, err, "%s", table.path)
		return got
	}
	got := read(false)
	require.NotEmpty(t, got)
	require.Equal(t, table.headers(), got[0], "%s", table.path)
	require.Equal(t, append([][]string(nil), got[1:]...), append([][]string(nil), read(true)...), "%s", table.path)
	want := table.texts("NULL")
	for i, row := range want {
		for k, c := range table.w.Columns {
			if !c.Nullable && row[k] == table.null && table.w.Quote == script.QuoteMinimal &&
				(len(row) > 1 || row[k] != "") {
				want[i][k] = "NULL" // for DuckDB in every column
			}
		}
	}
	require.Equal(t, want, append([][]string(nil), got[1:]...), "%s", table.path)
}
