package files_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// nestedGen makes nested types and values of them, as DuckDB writes them.
type nestedGen struct{ *rand.Rand }

func (g nestedGen) typ(depth int) expr.Type {
	leaves := append(expr.ColumnTypes(), expr.DecimalOf(2, 1), expr.DecimalOf(4, 3), expr.DecimalOf(9, 3),
		expr.DecimalOf(38, 10))
	switch n := g.IntN(4); {
	case depth == 0 || depth < 3 && n < 2:
		return leaves[g.IntN(len(leaves))]
	case n%2 == 0:
		return expr.ListOf(g.typ(depth - 1))
	}
	names := []string{"a", "B", `with "quotes" ü`, "list", "end"}
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var members []expr.Member
	for _, name := range names[:1+g.IntN(3)] {
		members = append(members, expr.Member{Name: name, Type: g.typ(depth - 1)})
	}
	return expr.StructOf(members)
}

func (g nestedGen) value(t expr.Type) string {
	if g.IntN(5) == 0 {
		return "NULL"
	}
	if inner, ok := t.Element(); ok {
		items := make([]string, g.IntN(4))
		for i := range items {
			items[i] = g.value(inner)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	if members := t.Members(); members != nil {
		parts := make([]string, len(members))
		for i, m := range members {
			parts[i] = sqltext.Ident(m.Name) + " := CAST(" + g.value(m.Type) + " AS " + m.Type.SQL() + ")"
		}
		return "struct_pack(" + strings.Join(parts, ", ") + ")"
	}
	one := func(list ...string) string { return sqltext.String(list[g.IntN(len(list))]) }
	switch t {
	case expr.String:
		return one("", "NULL", `it's "\n`, "a\tb\nc", "日本 \U0001F332", "null", "[1]")
	case expr.Int:
		return one("0", "-1", "9223372036854775807", "-9223372036854775808", "42")
	case expr.Float:
		return one("0.1", "-1e300", "5e-324", "inf", "-inf", "nan", "3")
	case expr.Bool:
		return one("true", "false")
	case expr.DateTime:
		return one("2024-02-29 01:02:03.004", "0001-01-01", "1969-12-31 23:59:59.999", "9999-12-31 23:59:59.999")
	case expr.Instant:
		return one("2024-02-29 01:02:03.000004+00", "1969-12-31 23:59:59.999999+00", "9999-12-31 23:59:59.999999+00")
	case expr.Date:
		return one("0001-01-01", "9999-12-31", "1970-01-01")
	case expr.Decimal:
		return one("0.00", "-0.01", "9999999999999999.99", "12.5")
	}
	digits, scale := t.Digits()
	most := strings.Repeat("9", digits-scale) + "." + strings.Repeat("9", scale)
	return one("0", "-"+most, most, "1.5", "0."+strings.Repeat("0", scale-1)+"1")
}

// arrowTool writes a file again as pyarrow does, or fails where files have other values, each as pyarrow reads it.
const arrowTool = `
import math, sys
import pyarrow.parquet as pq
def same(a, b):
    if isinstance(a, float) and math.isnan(a): return isinstance(b, float) and math.isnan(b)
    if isinstance(a, list): return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict): return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return a == b and type(a) == type(b)
first = pq.read_table(sys.argv[2])
if sys.argv[1] == "write":
    pq.write_table(first, sys.argv[3], write_page_checksum=True, row_group_size=7)
for path in sys.argv[3:]:
    other = pq.read_table(path)
    assert other.column_names == first.column_names, other.column_names
    for name in first.column_names:
        for row, (a, b) in enumerate(zip(first[name].to_pylist(), other[name].to_pylist(), strict=True)):
            assert same(a, b), "%s, %s, row %d: %r and %r" % (path, name, row, a, b)
`

// arrowPython is an interpreter with pyarrow, "" if there is none.
func arrowPython() string {
	for _, name := range []string{os.Getenv("THALWEG_TEST_LIBRARIES"), "python3"} {
		if name != "" && exec.Command(name, "-c", "import pyarrow.parquet").Run() == nil {
			return name
		}
	}
	return ""
}

// TestChaosNestedTablesStayTheSame: lists and structs go through file_table, sql
// and py_table into Parquet files in which DuckDB and pyarrow, where it is there, read the same.
func TestChaosNestedTablesStayTheSame(t *testing.T) {
	t.Parallel()
	g := nestedGen{rand.New(rand.NewPCG(61, 0))}
	db := files.OpenDB(t, 1)
	python := arrowPython()
	arrow := func(args ...string) {
		if python != "" {
			out, err := exec.CommandContext(t.Context(), python, append([]string{"-c", arrowTool}, args...)...).
				CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
	for range effort.Of(1, 1, 40) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "same.py"), []byte("def same(rows):\n    return rows\n"),
			0o600))
		nodes := object{}
		tables := effort.Of(1, 2, 5)
		for n := range tables {
			nestedNodes(t, g, db, nodes, dir, n)
			if in := filepath.Join(dir, fmt.Sprintf("in%d.parquet", n)); python != "" {
				arrow("write", in, in+".again")
				require.NoError(t, os.Rename(in+".again", in))
			}
		}
		runNodes(t, dir, nodes)
		for n := range tables {
			name := func(what string) string { return filepath.Join(dir, fmt.Sprintf("%s%d.parquet", what, n)) }
			for _, out := range []string{name("copy"), name("sql"), name("py")} {
				var differ int
				a, b := "SELECT * FROM read_parquet("+sqltext.String(name("in"))+")", "SELECT * FROM read_parquet("+
					sqltext.String(out)+")"
				query := fmt.Sprintf("SELECT count(*) FROM ((%[1]s EXCEPT ALL %[2]s) UNION ALL (%[2]s EXCEPT "+
					"ALL %[1]s))", a, b)
				require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&differ))
				require.Zero(t, differ, out)
			}
			arrow("compare", name("in"), name("copy"), name("sql"), name("py"))
		}
	}
}

// nestedNodes writes a table of random types and values, and makes nodes that copy it in three ways.
func nestedNodes(t *testing.T, g nestedGen, db files.Querier, nodes object, dir string, n int) {
	t.Helper()
	name := func(what string) string { return filepath.Join(dir, fmt.Sprintf("%s%d.parquet", what, n)) }
	types, returns := []expr.Type{expr.Int}, object{}
	for range 1 + g.IntN(3) {
		for typ := expr.Int; ; {
			if typ = g.typ(3); typ.Nested() {
				types = append(types, typ)
				break
			}
		}
	}
	var rows []string
	for row := range g.IntN(30) + 1 {
		cells := []string{fmt.Sprintf("CAST(%d AS BIGINT) AS c0", row)}
		for i, typ := range types[1:] {
			cells = append(cells, fmt.Sprintf("CAST(%s AS %s) AS c%d", g.value(typ), typ.SQL(), i+1))
		}
		rows = append(rows, "SELECT "+strings.Join(cells, ", "))
	}
	for i, typ := range types {
		returns[fmt.Sprintf("c%d", i)] = typ.String()
	}
	result, err := db.QueryContext(t.Context(), "COPY ("+strings.Join(rows, " UNION ALL ")+") TO "+
		sqltext.String(name("in"))+" (FORMAT parquet)")
	require.NoError(t, err)
	for result.Next() {
	}
	require.NoError(t, result.Close())
	table := fmt.Sprintf("t%d", n)
	nodes["read_"+table] = object{"type": "file_table", "r": object{"urls": []string{name("in")}, "types": object{}},
		"w": table}
	nodes["sql_"+table] = object{"type": "sql", "r": table, "query": "SELECT * FROM " + table, "w": table + "s"}
	nodes["py_"+table] = object{"type": "py_table", "r": table, "w": table + "p",
		"p": object{"python_code_urls": []string{filepath.Join(dir, "same.py")}, "function": "same", "batch": "table",
			"returns": returns}}
	for what, from := range map[string]string{"copy": table, "sql": table + "s", "py": table + "p"} {
		nodes[what+"_out_"+table] = object{"type": "table_file", "r": from, "w": name(what)}
	}
}
