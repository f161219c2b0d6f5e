package scripttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thalweg/internal/app/runtime"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
)

const suiteScript = `
nodes:
  load:
    type: file_table
    r:
      urls: [orders.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns:
        id: {col_type: string, csv: {col_hdr: id}}
        amount: {col_type: decimal2, csv: {col_hdr: amount}, nullable: true}
    w:
      name: orders
      fields:
        id: {expression: r.id, type: string}
        amount: {expression: r.amount, type: decimal2, nullable: true}
  double:
    type: table_table
    r: {table: orders}
    w:
      name: doubled
      fields:
        id: {expression: r.id, type: string}
        amount: {expression: r.amount + r.amount, type: decimal2, nullable: true}
        rest: {expression: 'strings.ReplaceAll(r.id, "x", "")', type: string, nullable: true}
        ratio: {expression: 10 / len(r.id), type: int}
  write:
    type: table_file
    r: {table: doubled}
    w: {url_template: out.csv, columns: [id, amount]}
`

// suite writes a script and a test file beside it.
func suite(t *testing.T, tests string) (path, script string) {
	t.Helper()
	dir := t.TempDir()
	script = filepath.Join(dir, "orders.yaml")
	require.NoError(t, os.WriteFile(script, []byte(suiteScript), 0o600))
	path = PathFor(script)
	require.NoError(t, os.WriteFile(path, []byte("tests:\n"+tests), 0o600))
	return path, script
}

// process is what the tests may use.
var process = runtime.Process{Interpreter: "python3", MemoryBytes: 512 << 20}

func TestWhatACaseFinds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, tests string
		differences []string // each is part of one; none: the case passes
	}{
		{name: "equal rows in any order", tests: `
  - node: double
    given: {orders: [{id: a, amount: 1.5}, {id: b, amount: null}]}
    expect: [{id: b, amount: ~}, {id: a, amount: 3}]`},
		{name: "only the named columns count", tests: `
  - node: double
    given: {orders: [{id: a, amount: 1}]}
    expect: [{id: a}]`},
		{name: "another value", tests: `
  - node: double
    given: {orders: [{id: a, amount: 1}]}
    expect: [{id: a, amount: 2.01}]`, differences: []string{`expected  id="a" amount=2.01`,
			`found     id="a" amount=2.00`}},
		{name: "a row too many and one too few", tests: `
  - node: double
    given: {orders: [{id: a, amount: 1}, {id: a, amount: 1}]}
    expect: [{id: a, amount: 2}]`, differences: []string{`found     id="a" amount=2.00`}},
		{name: "NULL is not zero", tests: `
  - node: double
    given: {orders: [{id: a}]}
    expect: [{id: a, amount: 0}]`, differences: []string{"expected", "found"}},
		{name: "text that looks like NULL", tests: `
  - node: double
    given: {orders: [{id: "null", amount: 1}]}
    expect: [{id: "null", amount: 2}]`},
		{name: "CSV text with a quote inside of a field", tests: `
  - node: double
    given: {orders: "id,amount\n5\" pipe,1\n"}
    expect: [{id: "5\" pipe", amount: 2}]`},
		{name: "CSV text with a line end of two characters in quotes", tests: `
  - node: double
    given: {orders: "id,amount\n\"a\r\nb\",1\n"}
    expect: [{id: "a\r\nb", amount: 2}]`},
		{name: "CSV text with an empty text that is no NULL", tests: `
  - node: double
    given: {orders: [{id: x, amount: 1}]}
    expect: "id,rest\nx,\"\"\n"`},
		{name: "no rows", tests: `
  - node: double
    given: {orders: []}
    expect: []`},
		{name: "a file's lines", tests: `
  - nodes: [load, double, write]
    given: {load: "id,amount\nb,1\n"}
    expect: {write: "id,amount\nb,3.00\n"}`, differences: []string{"line 2 is b,2.00, where b,3.00 is expected"}},
		{name: "an expected failure", tests: `
  - node: double
    given: {orders: [{id: ""}]}
    expect_error: division by zero`},
		{name: "a failure with another text", tests: `
  - node: double
    given: {orders: [{id: ""}]}
    expect_error: out of paper`, differences: []string{"out of paper"}},
		{name: "a failure that nobody expects", tests: `
  - node: double
    given: {orders: [{id: ""}]}
    expect: []`, differences: []string{"division by zero"}},
		{name: "a failure that does not come", tests: `
  - node: double
    given: {orders: [{id: a}]}
    expect_error: division by zero`, differences: []string{"it succeeded"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path, script := suite(t, test.tests)
			s, err := Load(path, script, nil)
			require.NoError(t, err)
			require.Len(t, s.Cases, 1)
			work := t.TempDir()
			res, err := Run(t.Context(), s, s.Cases[0], Options{Process: process, WorkDir: work})
			require.NoError(t, err)
			left, err := os.ReadDir(work)
			require.NoError(t, err)
			require.Empty(t, left, "a case leaves nothing")
			if len(test.differences) == 0 {
				require.Empty(t, res.Differences)
				return
			}
			all := strings.Join(res.Differences, "\n")
			require.NotEmpty(t, all)
			for _, want := range test.differences {
				require.Contains(t, all, want)
			}
		})
	}
}

// Mistakes in a test file are named with their place: found on reading it, or
// when its case begins.
func TestMistakesInTestFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, tests, message string
		line                 int64
	}{
		{name: "no expectation", tests: "  - node: double\n    given: {orders: []}\n", message: "expect", line: 2},
		{name: "both expectations", tests: "  - node: double\n    expect: []\n    expect_error: x\n",
			message: "expect", line: 2},
		{name: "an unknown key", tests: "  - node: double\n    gives: {}\n    expect: []\n", message: "gives", line: 3},
		{name: "an unknown node", tests: "  - node: dubble\n    expect: []\n", message: `no node "dubble"`, line: 2},
		{name: "an unknown field",
			tests:   "  - node: double\n    given:\n      orders:\n        - {id: a, amont: 1}\n    expect: []\n",
			message: `no field "amont"`, line: 5},
		{name: "a value of another type",
			tests:   "  - node: double\n    given: {orders: [{id: a, amount: 1.234}]}\n    expect: []\n",
			message: "not a value of type decimal2", line: 3},
		{name: "CSV text with a quote that is not closed",
			tests:   "  - node: double\n    given: {orders: \"id,amount\\na,1\\n\\\"b,2\\nc,3\\n\"}\n    expect: []\n",
			message: "line 3 of it: field 1 begins with a quote that is not closed", line: 3},
		{name: "CSV text with a record that is too short",
			tests:   "  - node: double\n    given: {orders: \"id,amount\\na\\n\"}\n    expect: []\n",
			message: "line 2 of it: the record has 1 fields", line: 3},
		{name: "rows that nothing reads",
			tests:   "  - node: double\n    given: {orders: [], order: []}\n    expect: []\n",
			message: "none of its nodes reads", line: 3},
		{name: "a table without rows", tests: "  - node: double\n    expect: []\n",
			message: "gives no rows for table orders", line: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path, script := suite(t, test.tests)
			s, err := Load(path, script, nil)
			if err == nil {
				_, err = Run(t.Context(), s, s.Cases[0], Options{Process: process, WorkDir: t.TempDir()})
			}
			require.Error(t, err)
			f := fault.Of(err)
			require.Equal(t, fault.Script, f.Kind, "%v", err)
			require.Contains(t, f.Message, test.message)
			require.Equal(t, path, f.Place.File)
			require.Equal(t, test.line, f.Place.Line, "%v", err)
		})
	}
}
