package expr_test

import (
	"database/sql"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

const (
	diffRows    = 64
	diffBatch   = 32 // expressions in one SELECT
	diffQuick   = 4_000
	diffDefault = 20_000
	diffChaos   = 250_000
)

// diffCases returns the number of (expression, row) pairs to compare: THALWEG_DIFF_CASES or the default.
func diffCases(t *testing.T) int {
	text := os.Getenv("THALWEG_DIFF_CASES")
	if text == "" {
		return effort.Of(diffQuick, diffDefault, diffChaos)
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "THALWEG_DIFF_CASES")
	return n
}

// diffSeed is the seed of the generator: THALWEG_DIFF_SEED or 1.
func diffSeed(t *testing.T) uint64 {
	text := os.Getenv("THALWEG_DIFF_SEED")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "THALWEG_DIFF_SEED")
	return n
}

// trial is an expression, what it should give for each row, and its SQL.
type trial struct {
	src, sql string
	want     []any
	skip     []int // rows that must raise, or may
	must     []int // rows that must raise
}

// TestChaosExpressions compares compiled SQL with the reference over generated expressions and rows.
func TestChaosExpressions(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 7))}
	cases, rejected, expressions := 0, 0, 0
	for cases < diffCases(t) {
		rows := make([]map[string]any, diffRows)
		for i := range rows {
			rows[i] = g.row()
		}
		fillTable(t, db, rows)
		var trials []trial
		for range diffBatch {
			tr, ok := makeTrial(t, g, rows)
			expressions++
			if !ok {
				rejected++
				continue
			}
			trials = append(trials, tr)
			cases += diffRows
		}
		runTrials(t, db, trials, rows)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d cases, %d expressions, %d of them refused at load", cases, expressions, rejected)
	require.Less(t, rejected*3, expressions, "the generator makes too many expressions that Check refuses")
}

// fillTable creates table r with an id.
func fillTable(t *testing.T, db *sql.DB, rows []map[string]any) {
	t.Helper()
	var b strings.Builder
	b.WriteString("CREATE OR REPLACE TABLE r AS SELECT * FROM (VALUES ")
	for i, row := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d", i)
		for _, c := range genColumns() {
			sql := valueSQL(row["r."+c])
			if t, ok := row["r."+c].(time.Time); ok && c == "z" {
				sql = expr.ZonedSQL(sql, sqltext.String(t.Format(zonedLayout)))
			}
			b.WriteString(", " + sql)
		}
		b.WriteString(")")
	}
	b.WriteString(") v(id, " + strings.Join(genColumns(), ", ") + ")")
	_, err := db.Exec(b.String())
	require.NoError(t, err)
}

func valueSQL(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case int64:
		return sqltext.Int(v)
	case float64:
		return "CAST('" + strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+")) + "' AS DOUBLE)"
	case string:
		return sqltext.String(v)
	case bool:
		return sqltext.Bool(v)
	case *big.Rat:
		return "CAST('" + v.FloatString(2) + "' AS DECIMAL(18,2))"
	case time.Time:
		return "make_timestamp(" + sqltext.Int(v.UnixMicro()) + ")"
	}
	panic(fmt.Sprintf("%T", v))
}

func makeTrial(t *testing.T, g generator, rows []map[string]any) (trial, bool) {
	typ := pick(g, plainTypes()...)
	round := g.IntN(3) > 0
	tr := trial{src: g.of(typ, 1+g.IntN(4))}
	e, err := expr.Parse(tr.src)
	require.NoError(t, err, tr.src)
	c, err := e.Check(genScope(), expr.Mode{Round: round, Nullable: genNullable, Zoned: genZoned})
	if err != nil {
		requireRaises(t, tr.src, rows, round, err)
		return tr, false
	}
	require.Equal(t, typ, c.Type(), tr.src)
	tr.sql = c.SQL(column, "")
	for i, row := range rows {
		v, mayRaise, err := reference(tr.src, row, round)
		if err != nil && !besideNull(c, row) {
			tr.must = append(tr.must, i)
		}
		if v == nil && err == nil && !mayRaise {
			require.True(t, c.Nullable(), "%s is said to be never NULL, but is for %v", tr.src, row)
		}
		if err != nil || mayRaise {
			tr.skip = append(tr.skip, i)
		}
		tr.want = append(tr.want, v)
	}
	return tr, true
}

// besideNull reports whether something in the expression is NULL: what stands
// beside it need not be computed, so it need not raise.
func besideNull(c *expr.Compiled, row map[string]any) bool {
	return nullLiteral.MatchString(c.Source()) ||
		slices.ContainsFunc(c.Refs(), func(r expr.Ref) bool { return row[r.String()] == nil })
}

// nullLiteral finds null, but not is_null.
var nullLiteral = regexp.MustCompile(`\bnull\b`)

// requireRaises: what Check refuses must be a limit of types or raise somewhere.
func requireRaises(t *testing.T, src string, rows []map[string]any, round bool, refused error) {
	t.Helper()
	for _, limit := range []string{"different zones", "digits", "division by zero", "outside the range", "is not a",
		"does not match"} {
		if strings.Contains(refused.Error(), limit) {
			return
		}
	}
	require.NoError(t, refused, src)
}

// guarded is the trial's SQL, NULL for the rows that it is not compared for.
// That also proves that an error does not leave a CASE branch that is not taken.
func (tr trial) guarded() string {
	if len(tr.skip) == 0 {
		return tr.sql
	}
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(tr.skip), " ", ", "), "[]")
	return "CASE WHEN id NOT IN (" + ids + ") THEN " + tr.sql + " END"
}

func runTrials(t *testing.T, db *sql.DB, trials []trial, rows []map[string]any) {
	t.Helper()
	if len(trials) == 0 {
		return
	}
	columns := make([]string, len(trials))
	for i, tr := range trials {
		columns[i] = tr.guarded()
	}
	got, err := query(db, columns, "ORDER BY id")
	if err != nil {
		for _, tr := range trials { // find the culprit
			if _, err := query(db, []string{tr.guarded()}, "ORDER BY id"); err != nil {
				t.Errorf("%s\n%v\n%s", tr.src, err, tr.sql)
				return
			}
		}
		t.Errorf("together only: %v", err)
		return
	}
	for i, tr := range trials {
		compareTrial(t, tr, got, i, rows)
		if len(tr.must) > 0 && i%8 == 0 {
			row := tr.must[0]
			_, err := query(db, []string{tr.sql}, fmt.Sprintf("WHERE id = %d", row))
			if err == nil {
				t.Errorf("%s\nmust raise for %v\n%s", tr.src, rows[row], tr.sql)
			}
		}
	}
}

func query(db *sql.DB, columns []string, tail string) ([][]any, error) {
	rows, err := db.Query("SELECT " + strings.Join(columns, ",\n") + " FROM r " + tail)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out [][]any
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, values)
	}
	return out, rows.Err()
}

func compareTrial(t *testing.T, tr trial, got [][]any, column int, rows []map[string]any) {
	t.Helper()
	skip := map[int]bool{}
	for _, i := range tr.skip {
		skip[i] = true
	}
	for i, want := range tr.want {
		if skip[i] || same(got[i][column], want) {
			continue
		}
		t.Errorf("%s\nrow  %v\ngot  %v\nwant %v\n%s", tr.src, rows[i], got[i][column], show(want), tr.sql)
		return
	}
}

func show(v any) any {
	if d, ok := v.(dec); ok {
		return decText(d)
	}
	return v
}

func same(got, want any) bool {
	switch w := want.(type) {
	case float64:
		g, ok := got.(float64)
		return ok && (math.Float64bits(g) == math.Float64bits(w) || math.IsNaN(g) && math.IsNaN(w))
	case time.Time:
		g, ok := got.(time.Time)
		return ok && g.UnixMicro() == w.UnixMicro()
	case dec:
		g, ok := got.(duckdb.Decimal)
		return ok && new(big.Rat).SetFrac(g.Value, pow(int(g.Scale))).Cmp(w.rat) == 0
	}
	return got == want
}
