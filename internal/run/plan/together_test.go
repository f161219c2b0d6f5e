package plan

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// TestTogether reads several tables as one: whole, in slices and by key; their
// rows come table by table, whatever order each of them carries.
func TestTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDB(t, dir)
	paths := Paths{}
	table := func(name string, layout Layout, parts ...string) *Table {
		out := &Table{Layout: layout, Node: &script.Node{Name: name, Table: &script.TableWriter{Name: name}},
			Writer: name}
		for i, query := range parts {
			key := fmt.Sprintf("%s-%d", name, i)
			paths[key] = filepath.Join(dir, key+".parquet")
			require.NoError(t, db.Exec(context.Background(), fmt.Sprintf("COPY (%s) TO %s (FORMAT parquet)", query,
				sqltext.String(paths[key]))))
			out.Parts = append(out.Parts, state.Part{Key: key, Rows: 2, RawBytes: 100, Bucket: -1})
		}
		return out
	}
	k, v, note := Column{Name: "k", Type: "int"}, Column{Name: "v", Type: "string"},
		Column{Name: "Note", Physical: "Note_1", Type: "string", Nullable: true}
	fields := []*script.Field{{Name: "k", Type: expr.Int}, {Name: "v", Type: expr.String},
		{Name: "Note", Type: expr.String, Nullable: true}}
	plain := table("plain", Layout{Columns: []Column{k, v}}, "SELECT 1 AS k, 'a' AS v UNION ALL SELECT 2, 'b'",
		"SELECT 1 AS k, 'c' AS v UNION ALL SELECT 3, 'd'")
	other := table("other", Layout{Columns: []Column{v, k, note}},
		"SELECT 'e' AS v, 2 AS k, 'x' AS Note_1 UNION ALL SELECT 'f', 1, NULL")
	deep := table("deep", Layout{Columns: []Column{k, v}, OrderCols: 2},
		"SELECT 1 AS k, 'h' AS v, 7 AS __o0, NULL AS __o1 UNION ALL SELECT 3, 'g', 7, 1")
	sorted := table("sorted", Layout{Columns: []Column{k, v}, OrderCols: 1,
		Sort: []SortColumn{{Column: "v", Desc: true}}},
		"SELECT 1 AS k, 'y' AS v, create_sort_key('y', 'DESC NULLS LAST') AS __o0 UNION ALL SELECT 2, 'z', "+
			"create_sort_key('z', 'DESC NULLS LAST')")

	read := func(all *Table, s scan, where string) (out string) {
		s.table, s.fields, s.order, s.paths = all, []string{"k", "v", "Note"}, true, paths
		require.NoError(t, queryRow(context.Background(), db,
			fmt.Sprintf("SELECT coalesce(string_agg(v || coalesce(Note, ''), '' ORDER BY %s), '') FROM (%s) AS r%s",
				strings.Join(prefixed("r", s.orderCols()), ", "), s.sql(), where), &out))
		return out
	}
	all := Together(fields, []*Table{plain, other})
	require.False(t, all.Scattered())
	require.Equal(t, "plain, other", all.Name())
	require.Equal(t, other, all.Holder(2))
	require.Equal(t, "abcdexf", read(all, scan{slices: wholeTable(all)}, ""))
	require.Equal(t, "bcd", read(all, scan{slices: []PartSlice{{Part: 0, From: 1, To: 2}, {Part: 1}}}, ""))
	require.Equal(t, plain, Together(fields, []*Table{plain}))

	scattered := Together(fields, []*Table{sorted, deep, plain, other})
	require.True(t, scattered.Scattered())
	require.Equal(t, "zygh"+"abcdexf", read(scattered, scan{slices: wholeTable(scattered)}, ""))
	got := ""
	for bucket := range 4 {
		by, cut := keyed{scattered, expr.Order{{Field: "k"}}}, Cut{Buckets: 4, Bucket: bucket, Hash: keyHash}
		got += read(scattered, by.scan(cut, paths), " WHERE "+by.filter(cut, "r"))
	}
	require.Len(t, got, len("zyghabcdexf"))

	w := Work{Parts: []PartSlice{{Part: 4}, {Part: 2, From: 1}}}
	w.name(Inputs{Reader: scattered})
	require.NoError(t, w.Locate(Inputs{Reader: all, Query: Together(nil, []*Table{other, plain})}),
		"the tables of a query, in its order")
	require.Equal(t, []PartSlice{{Part: 0, Key: "other-0"}, {Part: 1, Key: "plain-0", From: 1}}, w.Parts)
}

// TestRowsOfPiecesKeepTheirOrder: a batch that was cut into pieces has several
// parts whose rows lie as they came, beside others that do not: the rows of a
// later piece come behind those of an earlier one.
func TestRowsOfPiecesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDB(t, dir)
	paths := Paths{}
	table := &Table{Layout: Layout{Columns: []Column{{Name: "v", Type: "string"}}, OrderCols: 1, Buckets: 2,
		Hash: keyHash}}
	add := func(batch int, keys, query string) {
		key := fmt.Sprintf("part-%d", len(table.Parts))
		paths[key] = filepath.Join(dir, key+".parquet")
		require.NoError(t, db.Exec(context.Background(), fmt.Sprintf("COPY (%s) TO %s (FORMAT parquet)", query,
			sqltext.String(paths[key]))))
		p := state.Part{Key: key, Batch: batch, Rows: 2, Bucket: -1}
		if keys != "" {
			p.Keys = []byte(keys)
		}
		table.Parts = append(table.Parts, p)
	}
	add(0, "{}", "SELECT 'a' AS v UNION ALL SELECT 'b'")
	add(0, "{}", "SELECT 'c' AS v UNION ALL SELECT 'd'")
	add(1, "{}", "SELECT 'e' AS v UNION ALL SELECT 'f'")
	add(1, "{}", "SELECT 'g' AS v UNION ALL SELECT 'h'")
	add(2, "{}", "SELECT 'i' AS v UNION ALL SELECT 'j'")
	add(3, "", fmt.Sprintf("SELECT 'l' AS v, %[1]d + 2 AS __o0 UNION ALL SELECT 'k', %[1]d + 1", 3*int64(orderStride)))
	table.Settle()
	require.True(t, table.Scattered())
	s := scan{table: table, slices: wholeTable(table), fields: []string{"v"}, order: true, paths: paths}
	var out string
	require.NoError(t, queryRow(context.Background(), db,
		fmt.Sprintf("SELECT string_agg(v, '' ORDER BY __o0) FROM (%s) AS r", s.sql()), &out))
	require.Equal(t, "abcdefghijkl", out)
	var distinct int
	require.NoError(t, queryRow(context.Background(), db, fmt.Sprintf("SELECT count(DISTINCT __o0) FROM (%s) AS r",
		s.sql()), &distinct))
	require.Equal(t, 12, distinct)
}
