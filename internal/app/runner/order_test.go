package runner_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// Rows of orderedInputs: so many files that several threads read them at once.
const (
	orderedFiles       = 16
	orderedRows        = 500 // of a file
	orderedNullTexts   = 20  // column n7 has seven texts that mean NULL
	orderedDistinctKey = 41
)

// orderedTypes are the types of columns, how a CSV file has the i-th value of
// one, and how it is written again.
var orderedTypes = []struct {
	name, in, out string
	value         func(i int) string
}{
	{"int", "", "%d", func(i int) string { return strconv.Itoa(i % 97) }},
	{"bool", "", "%t", func(i int) string { return strconv.FormatBool(i%3 == 0) }},
	{"float", "", "%.2f", func(i int) string { return fmt.Sprintf("%.2f", float64(i%89)+0.25) }},
	{"decimal2", "", "%s", func(i int) string { return fmt.Sprintf("%d.%02d", i%83, i%100) }},
	{"datetime", "2006-01-02", "2006-01-02",
		func(i int) string { return fmt.Sprintf("2024-%02d-%02d", 1+i%12, 1+i%28) }},
	{"string", "", "%s", func(i int) string { return "v" + strconv.Itoa(i%79) }},
}

// nullText is the k-th text that means NULL.
func nullText(k int) string { return "<" + strings.Repeat("-", k) + ">" }

// orderedTable returns the rows of the inputs, read without any database: the header, then the rows
// with NULL as an empty cell.
func orderedTable() [][]string {
	table := make([][]string, 0, orderedFiles*orderedRows+1)
	header := []string{"id"}
	for _, t := range orderedTypes {
		header = append(header, "c_"+t.name)
	}
	for k := range orderedNullTexts {
		header = append(header, fmt.Sprintf("n%d", k+1))
	}
	table = append(table, header)
	for i := range orderedFiles * orderedRows {
		row := []string{strconv.Itoa(i)}
		for c := range len(header) - 1 {
			t := orderedTypes[c%len(orderedTypes)]
			text := t.value(i*31 + c)
			if c >= len(orderedTypes) && (i+c)%3 == 0 {
				text = ""
			}
			row = append(row, text)
		}
		table = append(table, row)
	}
	return table
}

// orderedInputs writes the table as CSV files, with a text that means NULL in
// place of the empty cells.
func orderedInputs(t *testing.T, dir string) [][]string {
	t.Helper()
	table := orderedTable()
	for f := range orderedFiles {
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		require.NoError(t, w.Write(table[0]))
		for i := f * orderedRows; i < (f+1)*orderedRows; i++ {
			row := slices.Clone(table[i+1])
			for c := range row {
				if k := c - len(orderedTypes); k > 0 && row[c] == "" {
					row[c] = nullText(i % k)
				}
			}
			require.NoError(t, w.Write(row))
		}
		w.Flush()
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("in_%02d.csv", f)), b.Bytes(), 0o644))
	}
	return table
}

// orderedScript reads the inputs and writes them again in every way that must
// keep their order. FORM is how the input columns are declared.
func orderedScript(parquet bool) string {
	var in, fields, out strings.Builder
	for c, name := range orderedTable()[0] {
		typ, format, print, null := "int", "", "%d", ""
		if c > 0 {
			t := orderedTypes[(c-1)%len(orderedTypes)]
			typ, format, print = t.name, t.in, t.out
		}
		if c > len(orderedTypes) {
			null = ", nullable: true"
		}
		switch {
		case parquet:
			fmt.Fprintf(&in, "        %s: { parquet: { col_name: %s }, col_type: %s%s }\n", name, name, typ, null)
		default:
			words := ""
			if k := c - len(orderedTypes); k > 0 {
				var texts []string
				for i := range k {
					texts = append(texts, strconv.Quote(nullText(i)))
				}
				words = ", null_text: [" + strings.Join(texts, ", ") + "]"
			}
			if format != "" {
				words += fmt.Sprintf(", col_format: %q", format)
			}
			fmt.Fprintf(&in, "        %s: { csv: { col_hdr: %s%s }, col_type: %s%s }\n", name, name, words, typ, null)
		}
		fmt.Fprintf(&fields, "        %s: { expression: r.%s, type: %s%s }\n", name, name, typ, null)
		fmt.Fprintf(&out, "        - { csv: { header: %s, format: %q }, name: %s, expression: r.%s, type: %s%s }\n",
			name, print, name, name, typ, null)
	}
	return strings.NewReplacer("INPUT\n", in.String(), "FIELDS\n", fields.String(), "COLUMNS\n",
		out.String()).Replace(orderedNodes(parquet))
}

func orderedNodes(parquet bool) string {
	source := "urls: [\"DIR/in_*.csv\"]\n      csv: { hdr_line_idx: 0, first_data_line_idx: 1 }"
	if parquet {
		source = "urls: [\"DIR/in_*.parquet\"]"
	}
	return `
nodes:
  load:
    type: file_table
    r:
      ` + source + `
      columns:
INPUT
    w:
      name: loaded
      fields:
FIELDS
  keep:
    type: table_table
    r: { table: loaded }
    w:
      name: kept
      having: w.id % 5 != 0
      fields:
        id: { expression: r.id, type: int }
        key: { expression: r.c_int, type: int }
        b: { expression: r.c_bool, type: bool }
        s: { expression: r.c_string + "/" + string(r.id), type: string }
  tag:
    type: table_custom_tfm_table
    custom_proc_type: tag_and_denormalize
    r: { table: kept }
    p:
      tag_field_name: tag
      tag_criteria: { all: r.id >= 0, even: r.id % 2 == 0, none: r.id < 0, odd: r.id % 2 == 1, b: r.b }
    w:
      name: tagged
      fields:
        id: { expression: r.id, type: int }
        tag: { expression: p.tag, type: string }
  first:
    type: distinct_table
    rerun_policy: fail
    r: { table: loaded }
    w:
      name: first
      fields:
        key: { expression: r.id % 41, type: int }
        id: { expression: r.id, type: int }
        b: { expression: r.c_bool, type: bool }
      indexes:
        idx_first: unique(key)
  f_loaded:
    type: table_file
    r: { table: loaded }
    w:
      url_template: OUT/loaded.csv
      columns:
COLUMNS
  f_parquet:
    type: table_file
    r: { table: loaded, expected_batches_total: 4 }
    w:
      url_template: "OUT/in_{batch_idx|string}.parquet"
      columns: PARQUET
  f_kept: { type: table_file, r: kept, w: OUT/kept.csv }
  f_tagged: { type: table_file, r: tagged, w: OUT/tagged.csv }
  f_first: { type: table_file, r: first, w: OUT/first.csv }
  f_ties: { type: table_file, r: kept, w: { url_template: OUT/ties.csv, order: b, columns: [id, b] } }
  f_top: { type: table_file, r: kept, w: { url_template: OUT/top.csv, top: { order: "key(desc)", limit: 100 }, ` +
		`columns: [id, key] } }
`
}

// orderedWant computes what the script writes.
func orderedWant(table [][]string) map[string][][]string {
	want := map[string][][]string{"loaded.csv": table}
	kept, tagged, first := [][]string{{"id", "key", "b", "s"}}, [][]string{{"id", "tag"}},
		[][]string{{"key", "id", "b"}}
	for i, row := range table[1:] {
		if i < orderedDistinctKey {
			first = append(first, []string{strconv.Itoa(i), row[0], row[2]})
		}
		if i%5 == 0 {
			continue
		}
		kept = append(kept, []string{row[0], row[1], row[2], row[6] + "/" + row[0]})
		tagged = append(tagged, []string{row[0], "all"})
		tagged = append(tagged, []string{row[0], []string{"even", "odd"}[i%2]})
		if row[2] == "true" {
			tagged = append(tagged, []string{row[0], "b"})
		}
	}
	ties, top := [][]string{{"id", "b"}}, [][]string{{"id", "key"}}
	for _, row := range kept[1:] {
		ties, top = append(ties, []string{row[0], row[2]}), append(top, []string{row[0], row[1]})
	}
	slices.SortStableFunc(ties[1:], func(a, b []string) int { return cmp.Compare(a[1], b[1]) })
	slices.SortStableFunc(top[1:], func(a, b []string) int { return cmp.Compare(number(b[1]), number(a[1])) })
	want["kept.csv"], want["tagged.csv"], want["first.csv"], want["ties.csv"], want["top.csv"] = kept, tagged, first,
		ties, top[:101]
	return want
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// TestChaosRowsKeepTheirOrder reads columns of every type, with up to twenty texts
// that mean NULL, on several threads and in several cuts, from CSV and from
// the Parquet files that it made of them, and compares with the rows as they
// were written.
func TestChaosRowsKeepTheirOrder(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	inputs := t.TempDir()
	want := orderedWant(orderedInputs(t, inputs))
	ctx, audit := audited(t)
	cuts := []struct {
		name           string
		slots, threads int
		small          int64
	}{
		{"four threads", 1, 4, 1 << 30},
		{"eight threads", 1, 8, 1 << 30},
		{"small batches on two threads each", 2, 4, 256 << 10},
	}
	for _, tc := range cuts[effort.Of(2, 1, 0):] {
		for range effort.Of(1, 1, 8) {
			dir := t.TempDir()
			runOrdered(ctx, t, filepath.Join(dir, "csv"), inputs, false, tc.slots, tc.threads, tc.small, want)
			runOrdered(ctx, t, filepath.Join(dir, "parquet"), filepath.Join(dir, "csv", "out"), true,
				tc.slots, tc.threads, tc.small, want)
		}
	}
	require.Greater(t, audit.statements, effort.Of(20, 40, 60))
}

func runOrdered(ctx context.Context, t *testing.T, dir, inputs string, parquet bool, slots, threads int, small int64,
	want map[string][][]string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	columns := orderedTable()[0]
	text := replaceAll(orderedScript(parquet), "DIR", inputs, "OUT", filepath.Join(dir, "out"), "PARQUET",
		"["+strings.Join(columns, ", ")+"]")
	path := filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	home, err := instance.Open(context.Background(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: path, Workspace: "main",
		Process: runtime.Process{MemoryBytes: 1 << 30, Cores: slots, Tune: func(b *budget.Budget) {
			b.Slots, b.Cores, b.BatchBytes, b.SmallBytes, b.BroadcastBytes = slots, threads, small, small, small
		}}})
	require.NoError(t, err)
	require.Nil(t, sum.Failure)
	require.Equal(t, state.Complete, sum.Status)
	require.NoError(t, home.Close())
	for name, rows := range want {
		data, err := os.ReadFile(filepath.Join(dir, "out", name))
		require.NoError(t, err)
		got, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
		require.NoError(t, err, name)
		require.Equal(t, len(rows), len(got), name)
		for i := range rows {
			require.Equal(t, rows[i], got[i], "%s line %d, %d threads, Parquet %t", name, i+1, threads, parquet)
		}
	}
}
