package script

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

const sqlScript = `
nodes:
  load:
    type: file_table
    r:
      urls: [in.csv]
      columns: {id: {col_type: int, csv: {col_hdr: id}}}
    w: {name: source, fields: {id: {expression: r.id, type: int}}}
  second:
    type: sql
    r: {tables: {f: first}}
    query: FROM f
    w: {name: second SECOND}
  q:
    type: sql
    r: [source, source]
    query: SELECT id FROM source
    w: {name: first FIRST}
`

// Without anybody who understands queries declared fields do, inferred ones do not.
func TestSQLWithoutDescriber(t *testing.T) {
	t.Parallel()
	text := func(first, second string) string {
		return strings.NewReplacer("FIRST", first, "SECOND", second, "[source, source]", "[source]").Replace(sqlScript)
	}
	s, diags := memory{"script.yaml": text(", fields: {id: int}", ", fields: {id: 'int?'}")}.load(t)
	require.Empty(t, diags, diags.Render())
	require.Equal(t, "load q second", nodeNames(s.Topological()))
	require.Equal(t, "q", nodeNames(s.Node("second").Sources(s)))
	require.Equal(t, "load", nodeNames(s.StartNodes()))
	require.True(t, s.Node("second").Table.Field("id").Nullable)
	require.Nil(t, s.Node("q").Query.Info)

	_, diags = memory{"script.yaml": text("", ", fields: {id: int}")}.load(t)
	require.Len(t, diags.Errors(), 1)
	require.Contains(t, diags[0].Message, "fields is missing")
}

// fakeDescriber gives the columns of the first table.
type fakeDescriber struct {
	asked  []QueryText
	closed int
	err    error
}

func (f *fakeDescriber) Describe(_ context.Context, q QueryText) (*QueryInfo, []QueryProblem, error) {
	f.asked = append(f.asked, q)
	info := &QueryInfo{SQL: q.Text}
	for _, field := range q.Tables[0].Fields {
		info.Columns = append(info.Columns, QueryColumn{Name: field.Name, SQLType: "BIGINT",
			Fits: []expr.Type{expr.Int, expr.Decimal}})
	}
	return info, nil, f.err
}

func (f *fakeDescriber) Close() error { f.closed++; return nil }

// Queries are described in the order of their data, by one describer.
func TestSQLFieldsAreInferredInOrder(t *testing.T) {
	t.Parallel()
	fake := &fakeDescriber{}
	text := strings.NewReplacer("FIRST", "", "SECOND", ", fields: {id: decimal2}", "[source, source]",
		"source").Replace(sqlScript)
	src := Sources{Path: "script.yaml", Read: memory{"script.yaml": text}.read}
	src.Describe = func(context.Context) (Describer, error) { return fake, nil }
	s, diags := Load(context.Background(), src)
	require.Empty(t, diags, diags.Render())
	require.Len(t, fake.asked, 2)
	require.Equal(t, "source", fake.asked[0].Tables[0].Name)
	require.Equal(t, "f", fake.asked[1].Tables[0].Name)
	require.Equal(t, 1, fake.closed)
	require.Equal(t, expr.Int, s.Node("q").Table.Field("id").Type)
	require.True(t, s.Node("q").Table.Field("id").Nullable)
	require.Equal(t, expr.Decimal, s.Node("second").Table.Field("id").Type)

	fake.err = errors.New("no engine")
	_, diags = Load(context.Background(), src)
	require.Contains(t, diags[0].Message, "the query could not be checked: no engine")
}

// A table that is named twice, and one that a node makes itself.
func TestSQLTables(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("FIRST", ", fields: {id: int}", "SECOND", ", fields: {id: int}").Replace(sqlScript)
	_, diags := memory{"script.yaml": text}.load(t)
	require.Contains(t, diags.Render(), `occurs twice`)
	text = strings.NewReplacer("FIRST", ", fields: {id: int}", "SECOND", ", fields: {id: int}", "[source, source]",
		"[second]").Replace(sqlScript)
	_, diags = memory{"script.yaml": text}.load(t)
	require.Contains(t, diags.Render(), "cycle")
}
