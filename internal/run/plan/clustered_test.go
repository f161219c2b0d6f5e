package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// drawKey draws one key of a type as SQL, NULL included, from few enough values
// that they come more than once.
func drawKey(t *rapid.T, typ expr.Type) string {
	if rapid.IntRange(0, 9).Draw(t, "null") == 0 {
		return "NULL"
	}
	switch typ {
	case expr.Int:
		return fmt.Sprintf("CAST('%d' AS BIGINT)", rapid.OneOf(rapid.Int64(), rapid.Int64Range(-5, 5)).Draw(t, "n"))
	case expr.Decimal:
		return fmt.Sprintf("CAST(CAST('%d' AS HUGEINT) AS DECIMAL(20,0)) / 100",
			rapid.OneOf(rapid.Int64Range(-1e15, 1e15),
				rapid.Int64Range(-9, 9)).Draw(t, "cents"))
	case expr.DateTime:
		return fmt.Sprintf("make_timestamp_ms(%d)", rapid.OneOf(rapid.Int64Range(-6e13, 2e14),
			rapid.Int64Range(-9, 9)).Draw(t, "ms"))
	}
	same := strings.Repeat(rapid.SampledFrom([]string{"", "x", "é", "􏿿", "😀"}).Draw(t, "rune"),
		rapid.IntRange(0, keyRunes+2).Draw(t, "times"))
	return sqltext.String(same + rapid.SampledFrom([]string{"", "a", "b", "A", "é", "􏿿"}).Draw(t, "end"))
}

// Whatever the keys are, a part that lies by key is read by ranges so that each
// row is in one, and rows of one key in the same.
func TestRangesOfKeysHaveEachRowOnce(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	tried, kept := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		if tried++; tried > effort.Of(1000, 25, 10) { // each opens DuckDB
			return
		}
		dir, err := os.MkdirTemp(base, "")
		require.NoError(t, err)
		typ := rapid.SampledFrom([]expr.Type{expr.String, expr.Int, expr.Decimal, expr.DateTime}).Draw(t, "type")
		key := expr.Order{{Field: "k"}}
		if typ == expr.String && rapid.Bool().Draw(t, "ignore case") {
			key[0].IgnoreCase = true
		}
		layout := Layout{Columns: []Column{{Name: "k", Type: typ.String(), Nullable: true}, {Name: "n", Type: "int"}},
			OrderCols: 1, Buckets: 4, Hash: keyHash, Key: key}
		layout.BucketKey = bucketKey(keyHash, key, layout.types())
		table, paths, total := &Table{Layout: layout}, Paths{}, 0
		for part := range rapid.IntRange(1, 3).Draw(t, "parts") {
			values := make([]string, rapid.IntRange(1, 40).Draw(t, "rows"))
			for i := range values {
				values[i] = fmt.Sprintf("(%s, %d)", drawKey(t, typ), total)
				total++
			}
			query := fmt.Sprintf("SELECT CAST(c0 AS %s) AS k, CAST(c1 AS BIGINT) AS n FROM (VALUES %s) AS v(c0, "+
				"c1) ORDER BY 1", typ.SQL(), strings.Join(values, ", "))
			cluster := (&Planner{}).clusterOf(&script.Node{}, Inputs{}, layout, 3)
			stage := func(context.Context) (string, error) {
				return filepath.Join(dir, fmt.Sprintf("%d.parquet", part)), nil
			}
			res, err := engine.Execute(context.Background(),
				engine.InstanceConfig{Threads: 1, SpillDir: filepath.Join(dir, "spill"), Paths: []string{dir}}, nil,
				engine.Task{Name: "test", Query: query,
					Output: engine.Output{Part: &engine.PartOutput{Stage: stage, Cluster: cluster,
						BucketSQL: "0", NumberSQL: "row_number() OVER ()", SortedBy: []string{engine.BucketColumn}}}})
			require.NoError(t, err)
			w := res.Written[0]
			p := state.Part{Key: fmt.Sprint(part), Batch: part, Bucket: -1, Rows: w.Rows, Keys: w.Keys}
			paths[p.Key] = w.Path
			table.Parts = append(table.Parts, p)
		}
		table.Settle()
		k := keyed{table, key}
		cuts := k.ranges(rapid.IntRange(2, 12).Draw(t, "ranges"))
		if cuts == nil {
			return
		}
		kept++
		in, err := engine.OpenInstance(context.Background(),
			engine.InstanceConfig{Threads: 1, SpillDir: filepath.Join(dir, "read"), Paths: []string{dir}})
		require.NoError(t, err)
		defer func() { require.NoError(t, in.Close()) }()
		var queries []string
		if one := rapid.IntRange(0, len(cuts)).Draw(t, "cut finer"); one < len(cuts) { // for want of memory
			for _, piece := range cutKeys(Work{Cut: cuts[one]}) {
				cuts = append(cuts, piece.Cut)
			}
			cuts = slices.Delete(cuts, one, one+1)
		}
		for i, c := range cuts {
			s := k.scan(c, paths)
			s.fields = []string{"k", "n"}
			queries = append(queries, fmt.Sprintf("SELECT r.*, %d AS cut FROM (%s) AS r WHERE %s", i, s.sql(),
				k.filter(c, "r")))
		}
		var rows, distinct, split int
		require.NoError(t, queryRow(context.Background(), in, fmt.Sprintf(
			"SELECT count(*), count(DISTINCT n), (SELECT count(*) FROM (SELECT 1 FROM (%[1]s) AS r GROUP BY %[2]s "+
				"HAVING count(DISTINCT cut) > 1)) FROM (%[1]s)",
			strings.Join(queries, " UNION ALL "), k.keySQL("r")[0]), &rows, &distinct, &split))
		require.Equal(t, total, rows)
		require.Equal(t, total, distinct)
		require.Zero(t, split)
	})
	require.Positive(t, kept, "no table was cut into ranges")
}

func TestRangesAreOfEqualSize(t *testing.T) {
	t.Parallel()
	key := expr.Order{{Field: "k"}}
	table := &Table{Layout: Layout{Columns: []Column{{Name: "k", Type: "string"}}, Hash: keyHash, Buckets: 8, Key: key}}
	for part := range 10 { // each has all keys, as exports of one day have
		b := keyBlocks{Key: bucketKey(keyHash, key, table.Layout.types()), Rows: 100}
		for i := range 50 {
			b.Blocks = append(b.Blocks, engine.KeyBlock{Min: fmt.Sprintf("A%03d", 2*i),
				Max: fmt.Sprintf("A%03d", 2*i+1)})
		}
		data, err := json.Marshal(b)
		require.NoError(t, err)
		table.Parts = append(table.Parts, state.Part{Key: fmt.Sprint(part), Rows: 5000, Keys: data})
	}
	table.Settle()
	k := keyed{table, key}
	cuts := k.ranges(25)
	require.Len(t, cuts, 25)
	for _, c := range cuts {
		rows, _ := sliceRows(table, k.slices(c))
		require.EqualValues(t, 2000, rows, "only the blocks of the range are read")
	}
	require.Nil(t, k.ranges(200), "there are too few keys")
	require.Nil(t, keyed{table, expr.Order{{Field: "other"}}}.ranges(2))
}
