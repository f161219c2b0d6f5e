package files

import (
	"archive/zip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/test/effort"
)

// corpusFile holds the expected rows of a file of the corpus; see testdata/parquet/generate.py.
type corpusFile struct {
	About struct {
		Writer, Type, Encoding, Codec, Pages string
		Checksums                            bool
	}
	Columns map[string][]any // text, nil, or {"refuse": part of the reason}
}

// sampleOne returns n: one of n files of the corpus is read, unless all are asked for.
func sampleOne() int { return effort.Of(40, 8, 1) }

// TestChaosParquetCorpus reads files of several writers over all types,
// encodings, codecs and versions of pages, and crafted ones that no writer of
// today makes: a sample, or all with THALWEG_CHAOS=1.
func TestChaosParquetCorpus(t *testing.T) {
	t.Parallel()
	checkCorpus(t, unzipCorpus(t))
}

// TestChaosParquetFresh does the same with files that are made now, by
// whatever version of pyarrow is there.
func TestChaosParquetFresh(t *testing.T) {
	t.Parallel()
	if !effort.All() {
		t.Skip("files are made with pyarrow for THALWEG_CHAOS=1 only; TestChaosParquetCorpus reads such files")
	}
	python := os.Getenv("THALWEG_PYARROW")
	if python == "" {
		python = "python3"
	}
	if out, err := osexec.CommandContext(t.Context(), python, "-c", "import pyarrow").CombinedOutput(); err != nil {
		t.Skipf("%s has no pyarrow (THALWEG_PYARROW names another interpreter): %s", python,
			strings.TrimSpace(string(out)))
	}
	dir := t.TempDir()
	out, err := osexec.CommandContext(t.Context(), python, "testdata/parquet/generate.py", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	checkCorpus(t, dir)
}

func unzipCorpus(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	archive, err := zip.OpenReader("testdata/parquet/corpus.zip")
	require.NoError(t, err)
	defer archive.Close()
	for _, f := range archive.File {
		in, err := f.Open()
		require.NoError(t, err)
		raw, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(f.Name)), raw, 0o600))
	}
	return dir
}

// readCorpus reads what the files of a corpus hold, by their names.
func readCorpus(t *testing.T, dir string) (corpus map[string]corpusFile) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &corpus))
	return corpus
}

// refusedSplit is the reason for which files of the corpus are refused because of their encoding.
const refusedSplit = "its encoding BYTE_STREAM_SPLIT of FIXED_LEN_BYTE_ARRAY is not supported"

func checkCorpus(t *testing.T, dir string) {
	t.Helper()
	corpus := readCorpus(t, dir)
	require.Greater(t, len(corpus), 300)
	db := openDB(t, 2)
	for i, name := range slices.Sorted(maps.Keys(corpus)) {
		if i%sampleOne() != 0 {
			continue
		}
		for _, problem := range checkCorpusFile(t.Context(), t, db, filepath.Join(dir, name), corpus[name]) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// checkCorpusFile reads the columns that are read together, and those that are
// refused one by one; as the file needs it, and through views.
func checkCorpusFile(ctx context.Context, t *testing.T, db *sql.Conn, path string,
	want corpusFile) (problems []string) {
	t.Helper()
	columns, err := parquetColumns(Input{Path: path, URL: path})
	if err != nil {
		return []string{err.Error()}
	}
	groups := [][]script.FileColumn{nil, nil}
	for _, own := range columns {
		c := own
		if c.Type = longType(own.Type); c.Type != own.Type && !strings.Contains(own.Kind, "NANOS") &&
			refusal(want.Columns[c.Name]) == "" {
			groups[1] = append(groups[1], own) // what the long form's type cannot hold may fit
		}
		switch values, ok := want.Columns[c.Name]; {
		case !ok || c.Type == expr.Invalid:
			problems = append(problems, fmt.Sprintf("column %q (%s) is not expected", c.Name, c.Kind))
		case refusal(values) != "":
			groups = append(groups, []script.FileColumn{c})
		default:
			groups[0] = append(groups[0], c)
		}
	}
	for _, group := range groups {
		if len(group) == 0 {
			continue
		}
		for _, views := range []bool{false, true} {
			got, err := readCorpusColumns(ctx, t, db, path, group, views)
			if problem := compareCorpus(group, want, got, err); problem != "" {
				problems = append(problems, fmt.Sprintf("views %t: %s", views, problem))
			}
		}
	}
	return problems
}

// longType returns the type that scripts declared before there were dates and decimals with digits.
func longType(t expr.Type) expr.Type {
	switch {
	case t == expr.Date || t == expr.Instant:
		return expr.DateTime
	case t.IsDecimal():
		return expr.Decimal
	}
	return t
}

// refusal is the reason for which one of values must be refused.
func refusal(values []any) string {
	for _, v := range values {
		if refuse, ok := v.(map[string]any); ok {
			return refuse["refuse"].(string)
		}
	}
	return ""
}

// readCorpusColumns reads columns, datetimes as microseconds, and the row
// numbers; with views through one whether the file needs it or not.
func readCorpusColumns(ctx context.Context, t *testing.T, db *sql.Conn, path string, columns []script.FileColumn,
	views bool) ([][]string, error) {
	t.Helper()
	r := &script.FileReader{URLs: urls(path), Parquet: true}
	var values []string
	for i, c := range columns {
		name := fmt.Sprintf("v%d", i)
		r.Columns = append(r.Columns, &script.InputColumn{Name: name, Parquet: c.Name, Type: c.Type, Nullable: true})
		if c.Type == expr.DateTime || c.Type == expr.Instant {
			name = "epoch_us(" + name + ")"
		}
		if c.Type == expr.Date {
			name = "epoch_us(CAST(" + name + " AS TIMESTAMP))"
		}
		values = append(values, "CAST("+name+" AS VARCHAR)")
	}
	batches, err := PlanSlices(ctx, r, 1<<30, 1)
	if err != nil {
		return nil, err
	}
	dir := t.TempDir()
	plan, err := planParquet(r, batches[0], filepath.Join(dir, "views"), views)
	if err != nil {
		return nil, err
	}
	query, err := plan.sql(true)
	if err != nil {
		return nil, err
	}
	if err := plan.prepare(ctx); err != nil {
		return nil, err
	}
	rows, err := texts(ctx, db, "SELECT "+strings.Join(values, ", ")+", CAST("+RowColumn+" AS VARCHAR) FROM "+query)
	if err != nil {
		return nil, Diagnose(ctx, db, r, batches[0], dir, err)
	}
	return rows, nil
}

// compareCorpus compares the rows or the refusal of columns with what is wanted.
func compareCorpus(columns []script.FileColumn, want corpusFile, got [][]string, err error) string {
	if reason := refusal(want.Columns[columns[0].Name]); reason != "" {
		switch {
		case err == nil:
			return fmt.Sprintf("column %q is read as %v, not refused", columns[0].Name, got)
		case fault.Of(err).Kind != fault.UserData || !strings.Contains(err.Error(), reason):
			return "refused for another reason: " + err.Error()
		}
		return ""
	}
	if err != nil {
		if want.About.Encoding == "split" && strings.Contains(err.Error(), refusedSplit) {
			return ""
		}
		return err.Error()
	}
	for k, c := range columns {
		values := want.Columns[c.Name]
		if len(got) != len(values) {
			return fmt.Sprintf("%d rows, not %d", len(got), len(values))
		}
		for i := range values {
			if !sameCorpusValue(c.Type, values[i], got[i][k]) {
				return fmt.Sprintf("column %q (%s), row %d is %q, not %v", c.Name, c.Kind, i, got[i][k], values[i])
			}
			if number := got[i][len(columns)]; number != strconv.Itoa(i) {
				return fmt.Sprintf("row %d has the number %s", i, number)
			}
		}
	}
	return ""
}

// sameCorpusValue compares a canonical text with DuckDB's text of a value.
func sameCorpusValue(typ expr.Type, want any, got string) bool {
	text, ok := want.(string)
	if !ok {
		return want == nil && got == "NULL"
	}
	switch longType(typ) {
	case expr.Float:
		x, err := strconv.ParseFloat(text, 64)
		y, err2 := strconv.ParseFloat(got, 64)
		return err == nil && err2 == nil && (math.Float64bits(x) == math.Float64bits(y) || x != x && y != y)
	case expr.Decimal:
		if strings.Contains(got, ".") {
			got = strings.TrimRight(strings.TrimRight(got, "0"), ".")
		}
		return got == text
	}
	return got == text
}
