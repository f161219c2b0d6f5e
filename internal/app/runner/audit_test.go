package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/engine"
)

// orderAudit looks at the plan of every statement that DuckDB is given. Its
// rows are in canonical order, or they carry it in columns __o0 …, or it is
// one of the few that are named here. What reads a table that carries its order
// sorts by all of its columns, or carries them on.
type orderAudit struct {
	report     func(format string, args ...any)
	mu         sync.Mutex
	carried    map[string]int // path of a part -> order columns that it has
	statements int
	sorted     int // statements that sort what carries its order
	free       int // statements that carry it on
}

// audited is a context under which all statements are audited.
func audited(t *testing.T) (context.Context, *orderAudit) {
	a := &orderAudit{report: t.Errorf, carried: map[string]int{}}
	return engine.WithTrace(context.Background(), a.look), a
}

var (
	looked = regexp.MustCompile(`^(SELECT|FROM|WITH|COPY|INSERT|CREATE (OR REPLACE )?(TEMP )?TABLE [^(]* AS) `)
	quoted = regexp.MustCompile(`'((?:[^']|'')*)'`)
	// Of these no order is seen: they are about the catalog, count, make a set
	// that is asked for members, or have one row.
	unordered = regexp.MustCompile(
		`duckdb_functions\(\)|duckdb_views\(\)|^CREATE OR REPLACE TEMP TABLE __verdicts |` +
			`^SELECT \(SELECT count\(\*\)|^SELECT max\(hash\(w\)\)`)
	// What py_calc reads: its formulas see one row at a time, and meet them again
	// by their position in the same parts.
	rowByRow = regexp.MustCompile(
		`^SELECT .* FROM \(SELECT [^()]* FROM read_parquet\(\[[^]]*\], hive_partitioning = false, ` +
			`union_by_name = false\)( WHERE file_row_number [^()]*)?\)$`)
)

func (a *orderAudit) look(in *engine.Instance, statement string) {
	statement = strings.TrimSpace(statement)
	if !looked.MatchString(statement) || unordered.MatchString(statement) {
		return
	}
	ctx := context.Background()
	plan, err := engine.PlanOf(ctx, in, statement)
	if err != nil {
		return // it fails itself
	}
	columns := a.columns(in, statement)
	carries := strings.Contains(statement, " AS __o0")
	name := plan.LosesOrder(true)
	keys, sorted := sortKeys(plan)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.statements++
	switch {
	case name != "" && !carries:
		a.report("operator %s loses the order of %s", name, statement)
	case name != "", columns > 0 && !sorted && carries:
		a.free++
	case columns > 0 && !sorted && scans(plan) && !rowByRow.MatchString(statement):
		a.report("rows that carry their order in %d columns are read as they come by %s", columns, statement)
	case columns > 0 && sorted:
		a.sorted++
		if last := fmt.Sprintf("__o%d", columns-1); len(keys) < columns || !strings.Contains(statement, last) {
			a.report("rows that carry their order in %d columns are sorted by %v in %s", columns, keys, statement)
		}
	}
}

// columns returns the most order columns of the parts that a statement reads.
func (a *orderAudit) columns(in *engine.Instance, statement string) int {
	most := 0
	for _, match := range quoted.FindAllStringSubmatch(statement, -1) {
		path := strings.ReplaceAll(match[1], "''", "'")
		if !strings.Contains(path, "/parts/data/") {
			continue
		}
		a.mu.Lock()
		n, known := a.carried[path]
		a.mu.Unlock()
		if !known {
			rows, err := in.Query(context.Background(), "SELECT count(*) FROM parquet_schema("+sqltext.String(path)+
				") WHERE regexp_full_match(name, '__o[0-9]+')")
			if err != nil {
				a.report("look at part %s: %v", path, err)
				continue
			}
			for rows.Next() {
				if err := rows.Scan(&n); err != nil {
					a.report("look at part %s: %v", path, err)
				}
			}
			if err := rows.Close(); err != nil {
				a.report("look at part %s: %v", path, err)
			}
			a.mu.Lock()
			a.carried[path] = n
			a.mu.Unlock()
		}
		most = max(most, n)
	}
	return most
}

// sortKeys gives what the rows of a plan are sorted by last, if they are.
func sortKeys(s engine.Step) (keys []string, sorted bool) {
	switch strings.TrimSpace(s.Name) {
	case "ORDER_BY", "TOP_N":
		switch by := s.Info["Order By"].(type) {
		case string:
			keys = []string{by}
		case []any:
			for _, k := range by {
				keys = append(keys, fmt.Sprint(k))
			}
		}
		return keys, true
	}
	if len(s.Children) != 1 {
		return nil, false
	}
	return sortKeys(s.Children[0])
}

// scans reports whether the rows of a plan come from files, unsorted and one by one.
func scans(s engine.Step) bool {
	switch strings.TrimSpace(s.Name) {
	case "READ_PARQUET":
		return true
	case "ORDER_BY", "TOP_N", "UNGROUPED_AGGREGATE":
		return false
	}
	return slices.ContainsFunc(s.Children, scans)
}

// TestAuditSees shows the audit what it is there for.
func TestAuditSees(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	part := filepath.Join(dir, "parts", "data", "p.parquet")
	require.NoError(t, os.MkdirAll(filepath.Dir(part), 0o755))
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{Threads: 2, SpillDir: filepath.Join(dir, "spill"),
		Paths: []string{dir}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, in.Close()) })
	require.NoError(t, in.Exec(ctx, "COPY (SELECT i, i AS __o0, i AS __o1 FROM range(10) AS r(i)) TO "+
		sqltext.String(part)))
	from := " FROM read_parquet([" + sqltext.String(part) + "])"
	for _, tc := range []struct{ name, statement, report string }{
		{"sorted", "SELECT i" + from + " ORDER BY __o0, __o1", ""},
		{"sorted by more", "SELECT i" + from + " ORDER BY i % 2, __o0, __o1", ""},
		{"counted", "SELECT max(i)" + from, ""},
		{"carried on", "SELECT i, __o0 AS __o0, __o1 AS __o1" + from, ""},
		{"joined and carried on", "SELECT a.i, a.__o0 AS __o0 FROM (SELECT *" + from + ") AS a JOIN (SELECT *" + from +
			") AS b ON a.i = b.i", ""},
		{"as it comes", "SELECT i" + from, "read as they come"},
		{"sorted by too little", "SELECT i" + from + " ORDER BY __o0", "are sorted by"},
		{"sorted by something else", "CREATE TEMP TABLE x AS SELECT i" + from + " ORDER BY i, i + 1", "are sorted by"},
		{"joined", "SELECT a.i FROM (SELECT *" + from + ") AS a JOIN (SELECT *" + from + ") AS b ON a.i = b.i",
			"operator HASH_JOIN"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var reports []string
			a := &orderAudit{carried: map[string]int{},
				report: func(format string, args ...any) { reports = append(reports, fmt.Sprintf(format, args...)) }}
			a.look(in, tc.statement)
			require.Equal(t, 1, a.statements)
			if tc.report == "" {
				require.Empty(t, reports)
				return
			}
			require.Len(t, reports, 1)
			require.Contains(t, reports[0], tc.report)
		})
	}
}
