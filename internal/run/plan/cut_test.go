package plan

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// referenceHash is keyHashSQL in Go. Components are NULL (nil), int64 (also of
// decimals, in hundredths, and of moments, in milliseconds), bool, float64 and string.
func referenceHash(key ...any) uint32 {
	var sum int64
	for i, c := range key {
		var n int64
		switch v := c.(type) {
		case nil:
			continue
		case bool:
			if v {
				n = 1
			}
		case int64:
			n = v
		case float64:
			text := strconv.FormatFloat(v, 'g', -1, 64)
			switch {
			case math.IsNaN(v):
				text = "nan"
			case v == 0:
				text = "0"
			case v == math.Trunc(v) && math.Abs(v) < 1e15:
				text = strconv.FormatFloat(v, 'f', 1, 64)
			case math.IsInf(v, 0):
				text = strings.ToLower(strings.TrimPrefix(text, "+"))
			}
			n = textNumber(text)
		case string:
			n = textNumber(v)
		}
		low, high := hashFactors(i)
		sum += (n&math.MaxUint32*low + n>>32&math.MaxUint32*high) & hashTerm
	}
	return uint32((sum ^ sum>>32) & math.MaxUint32 * hashFinal)
}

func textNumber(s string) int64 {
	sum := md5.Sum([]byte(s))
	return int64(binary.LittleEndian.Uint32(sum[:4]))
}

// openDB is a DuckDB that may read dir.
func openDB(t testing.TB, dir string) *engine.Instance {
	in, err := engine.OpenInstance(context.Background(), engine.InstanceConfig{Threads: 1, SpillDir: t.TempDir(),
		Paths: []string{dir}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, in.Close()) })
	return in
}

// The numbers in this test are those by which stored rows are found again. If
// it fails, the hash has changed: by a new release of DuckDB, or by a change
// here. The hash must not change; another one needs another name in plans.
func TestHashOfKeysIsPinned(t *testing.T) {
	t.Parallel()
	db := openDB(t, t.TempDir())
	for _, tc := range []struct {
		types []expr.Type
		keys  []string
		ref   []any
		want  uint32
	}{
		{[]expr.Type{expr.Int}, []string{"CAST(0 AS BIGINT)"}, []any{int64(0)}, 0},
		{[]expr.Type{expr.Int}, []string{"CAST(1 AS BIGINT)"}, []any{int64(1)}, 1485337547},
		{[]expr.Type{expr.Int}, []string{"CAST(-1 AS BIGINT)"}, []any{int64(-1)}, 95910329},
		{[]expr.Type{expr.Int}, []string{"CAST(9223372036854775807 AS BIGINT)"},
			[]any{int64(math.MaxInt64)}, 3482846876},
		{[]expr.Type{expr.Int}, []string{"CAST(-9223372036854775808 AS BIGINT)"},
			[]any{int64(math.MinInt64)}, 3813018925},
		{[]expr.Type{expr.Int}, []string{"CAST(NULL AS BIGINT)"}, []any{nil}, 0},
		{[]expr.Type{expr.Decimal}, []string{"CAST(-12.34 AS DECIMAL(18,2))"}, []any{int64(-1234)}, 1236471224},
		{[]expr.Type{expr.Bool}, []string{"true"}, []any{true}, 1485337547},
		{[]expr.Type{expr.DateTime}, []string{"TIMESTAMP '2024-02-29 12:34:56.789'"}, []any{int64(1709210096789)},
			3289545615},
		{[]expr.Type{expr.String}, []string{"''"}, []any{""}, 2442396386},
		{[]expr.Type{expr.String}, []string{"'José'"}, []any{"José"}, 2627258046},
		{[]expr.Type{expr.String}, []string{"'\U0001F600 of more than twelve bytes'"},
			[]any{"\U0001F600 of more than twelve bytes"}, 2557632297},
		{[]expr.Type{expr.Float}, []string{"CAST(0 AS DOUBLE)"}, []any{0.0}, 1427153411},
		{[]expr.Type{expr.Float}, []string{"CAST('-0.0' AS DOUBLE)"}, []any{0.0}, 1427153411},
		{[]expr.Type{expr.Float}, []string{"CAST('NaN' AS DOUBLE)"}, []any{math.NaN()}, 1606620700},
		{[]expr.Type{expr.Float}, []string{"-CAST('NaN' AS DOUBLE)"}, []any{math.NaN()}, 1606620700},
		{[]expr.Type{expr.Float}, []string{"CAST('-Infinity' AS DOUBLE)"}, []any{math.Inf(-1)}, 3732300581},
		{[]expr.Type{expr.Float}, []string{"CAST(0.1 AS DOUBLE) + 0.2"},
			[]any{0.1 + math.Nextafter(0.2, 1)}, 3107252183},
		{[]expr.Type{expr.Float}, []string{"CAST(1e22 AS DOUBLE)"}, []any{1e22}, 2273138855},
		{[]expr.Type{expr.Int, expr.String}, []string{"CAST(1 AS BIGINT)", "'2'"}, []any{int64(1), "2"}, 3189481533},
		{[]expr.Type{expr.Int, expr.Int}, []string{"CAST(1 AS BIGINT)", "CAST(2 AS BIGINT)"}, []any{int64(1), int64(2)},
			4274771781},
		{[]expr.Type{expr.Int, expr.Int}, []string{"CAST(2 AS BIGINT)", "CAST(1 AS BIGINT)"},
			[]any{int64(2), int64(1)}, 70424915},
	} {
		cols := make([]string, len(tc.keys))
		names := make([]string, len(tc.keys))
		for i, k := range tc.keys {
			names[i] = fmt.Sprintf("k%d", i)
			cols[i] = k + " AS " + names[i]
		}
		var got int64
		from := " FROM (SELECT " + strings.Join(cols, ", ") + " FROM range(1))"
		require.NoError(t, queryRow(context.Background(), db, "SELECT "+keyHashSQL(names, tc.types)+from, &got),
			"%v", tc.keys)
		require.Equal(t, referenceHash(tc.ref...), uint32(got), "%v", tc.keys)
		require.Equal(t, tc.want, uint32(got), "%v", tc.keys)
	}
}

// A table in buckets, written by this version or an earlier one, or none, is
// read by cuts of the same, of more and of fewer buckets, and by another key.
func TestEachRowIsReadInOneCut(t *testing.T) {
	t.Parallel()
	const rows, buckets = 5_000, 8
	dir := t.TempDir()
	db := openDB(t, dir)
	columns := []Column{{Name: "k", Type: "int"}, {Name: "s", Type: "string", Nullable: true}}
	key, other := expr.Order{{Field: "k"}}, expr.Order{{Field: "s", IgnoreCase: true}}
	source := fmt.Sprintf("SELECT i * 1000 AS k, CASE WHEN i %% 7 > 0 THEN 'Text ' || i %% 100 END AS s, i AS __o0 "+
		"FROM range(%d) AS r(i)", rows)
	types := Layout{Columns: columns}.types()
	write := func(path, query string) {
		require.NoError(t, db.Exec(context.Background(),
			fmt.Sprintf("COPY (%s) TO %s (FORMAT parquet, ROW_GROUP_SIZE 2048)",
				query, sqltext.String(path))))
	}
	tables := map[string]*Table{}
	paths := Paths{}
	add := func(name string, layout Layout, bucket int, query string) {
		t := tables[name]
		if t == nil {
			t = &Table{Layout: layout}
			t.Layout.Columns, t.Layout.OrderCols = columns, 1
			tables[name] = t
		}
		part := state.Part{Key: fmt.Sprintf("%s-%d", name, len(t.Parts)), Bucket: bucket, Rows: rows}
		paths[part.Key] = filepath.Join(dir, part.Key+".parquet")
		write(paths[part.Key], query)
		t.Parts = append(t.Parts, part)
	}
	for i := range 2 { // of two batches
		half := fmt.Sprintf("SELECT * FROM (%s) AS q WHERE __o0 %% 2 = %d", source, i)
		add("plain", Layout{}, -1, half)
		add("sorted", Layout{Buckets: buckets, Hash: keyHash, Key: key, BucketKey: bucketKey(keyHash, key, types)}, -1,
			fmt.Sprintf("SELECT *, %s AS __b FROM (%s) AS q ORDER BY __b, __o0",
				bucketSQL(keyHash, []string{"q.k"}, []expr.Type{expr.Int}, buckets), half))
		old := Layout{Buckets: buckets, BucketKey: bucketKey("", key, types)}
		if i == 1 {
			add("old", old, -1, half) // a batch that this version did of a run that an earlier one began
			continue
		}
		for b := range buckets {
			add("old", old, b, fmt.Sprintf("SELECT * FROM (%s) AS q WHERE %s = %d", half,
				bucketSQL("", []string{"q.k"}, []expr.Type{expr.Int}, buckets), b))
		}
	}
	// What came by key lies as it came; a batch that did not, beside it, in buckets.
	byKey := Layout{Buckets: buckets, Hash: keyHash, Key: key, BucketKey: bucketKey(keyHash, key, types)}
	for i, name := range []string{"by key", "by key", "mixed", "mixed"} {
		half := fmt.Sprintf("SELECT * FROM (%s) AS q WHERE __o0 // %d = %d", source, rows/2, i%2)
		if name == "mixed" && i%2 == 1 {
			add(name, byKey, -1,
				fmt.Sprintf("SELECT * REPLACE (__o0 + %d AS __o0), %s AS __b FROM (%s) AS q ORDER BY __b, __o0",
					int64(orderStride), bucketSQL(keyHash, []string{"q.k"}, []expr.Type{expr.Int}, buckets), half))
			continue
		}
		add(name, byKey, -1, "SELECT * EXCLUDE (__o0) FROM ("+half+") ORDER BY k")
		part := &tables[name].Parts[i%2]
		noted := keyBlocks{Key: byKey.BucketKey, Rows: 500}
		for at := rows / 2 * (i % 2); at < rows/2*(i%2+1); at += 500 {
			noted.Blocks = append(noted.Blocks, engine.KeyBlock{Min: fmt.Sprint(at * 1000),
				Max: fmt.Sprint((at + 499) * 1000)})
		}
		var err error
		part.Batch, part.Rows = i%2, rows/2
		part.Keys, err = json.Marshal(noted)
		require.NoError(t, err)
	}
	settled := *tables["by key"]
	settled.Settle()
	require.False(t, settled.Scattered())
	tables["mixed"].Settle()
	require.True(t, tables["mixed"].Scattered() && tables["mixed"].Layout.OrderCols == 1)
	tables["settled"] = &settled
	for name, table := range tables {
		for _, by := range []expr.Order{key, other} {
			for _, hash := range []string{keyHash, ""} {
				for _, n := range []int{1, 2, 8, 16} {
					var queries []string
					k := keyed{table, by}
					cuts := k.cuts(n)
					if hash == "" {
						for b := range cuts {
							cuts[b] = Cut{Buckets: len(cuts), Bucket: b}
						}
					}
					require.Equal(t, hash != "" && n > 1 && name == "settled" && by[0].Field == "k",
						cuts[0].Range != nil, name)
					for b, cut := range cuts {
						require.NoError(t, cut.check())
						s := k.scan(cut, paths)
						s.fields, s.order = []string{"k", "s"}, true
						q := fmt.Sprintf("SELECT r.*, %d AS cut FROM (%s) AS r", b, s.sql())
						if f := k.filter(cut, "r"); f != "" {
							q += " WHERE " + f
						}
						queries = append(queries, q)
					}
					var read, distinct, split int64
					require.NoError(t, queryRow(context.Background(), db, fmt.Sprintf(
						"SELECT count(*), count(DISTINCT __o0), (SELECT count(*) FROM (SELECT 1 FROM (%[1]s) AS r "+
							"GROUP BY %[2]s HAVING count(DISTINCT cut) > 1)) FROM (%[1]s)",
						strings.Join(queries, " UNION ALL "), strings.Join(table.Layout.keySQL(by, "r"), ", ")), &read,
						&distinct, &split))
					what := fmt.Sprintf("table %s by %v in %d cuts of %q", name, by, n, hash)
					require.EqualValues(t, rows, read, what)
					require.EqualValues(t, rows, distinct, what)
					require.Zero(t, split, "%s: rows of one key are in two cuts", what)
				}
			}
		}
	}
	fewer := keyed{tables["old"], key}.slices(Cut{Buckets: 16, Bucket: 9})
	require.Len(t, fewer, 2, "of an earlier version's parts only the bucket's are read")
}

func TestBucketsOfKeysAreEven(t *testing.T) {
	t.Parallel()
	const rows, buckets = 64_000, 64
	for name, key := range map[string]func(i int64) []any{
		"numbers":            func(i int64) []any { return []any{i} },
		"days":               func(i int64) []any { return []any{i * 86_400_000} },
		"powers of two":      func(i int64) []any { return []any{i << 20} },
		"negative":           func(i int64) []any { return []any{-i * 100} },
		"texts":              func(i int64) []any { return []any{fmt.Sprintf("ACCOUNT-%06d", i)} },
		"pairs":              func(i int64) []any { return []any{i % 100, i / 100} },
		"a constant and one": func(i int64) []any { return []any{"EUR", i} },
	} {
		counts := make([]int, buckets)
		for i := range int64(rows) {
			counts[referenceHash(key(i)...)>>(keyHashBits-6)]++
		}
		for b, n := range counts {
			require.InDelta(t, rows/buckets, n, rows/buckets/2, "%s: bucket %d", name, b)
		}
	}
}

func TestHashIsTheSameForAllNumbersAndTexts(t *testing.T) {
	t.Parallel()
	db := openDB(t, t.TempDir())
	rapid.Check(t, func(t *rapid.T) {
		n, s := rapid.Int64().Draw(t, "n"), rapid.StringN(0, 30, -1).Draw(t, "s")
		s = strings.ReplaceAll(s, "\x00", "")
		var got int64
		sql := keyHashSQL([]string{"n", "s"}, []expr.Type{expr.Int, expr.String})
		require.NoError(t, queryRow(context.Background(), db,
			fmt.Sprintf("SELECT %s FROM (SELECT CAST(%s AS BIGINT) AS n, %s AS s FROM range(1))", sql,
				sqltext.String(fmt.Sprint(n)), sqltext.String(s)), &got))
		require.Equal(t, referenceHash(n, s), uint32(got))
	})
}

func TestWorkOfAnotherHashIsRefused(t *testing.T) {
	t.Parallel()
	var old Work // as versions stored it that named no hash
	require.NoError(t, old.Decode(state.BatchSpec{Work: []byte(`{"buckets": 4, "bucket": 3}`)}))
	require.Equal(t, Cut{Buckets: 4, Bucket: 3}, old.Cut)
	require.Equal(t, engine.Version == unnamedHashVersion, old.check() == nil,
		"only the release that made the buckets finds them again")
	require.NoError(t, Cut{}.check())
	require.NoError(t, Cut{Buckets: 4, Hash: keyHash}.check())
	require.ErrorContains(t, Cut{Buckets: 4, Hash: "thalweg-2"}.check(), "by thalweg-2")
}
