package script

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"thalweg/internal/base/document"
	"thalweg/internal/test/effort"
)

// FuzzLoad checks that no script and no parameters make Load panic, hang, or
// return half a result, and that all that it says can be shown.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(f, err)
	short, err := filepath.Glob("testdata/short/*.txtar")
	require.NoError(f, err)
	files = append(files, short...)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(f, err)
		script, params, isJSON := "", "", false
		for _, a := range archive.Files {
			switch {
			case strings.HasPrefix(a.Name, "script."), a.Name == "short.yaml":
				script, isJSON = string(a.Data), strings.HasSuffix(a.Name, ".json")
			case strings.HasPrefix(a.Name, "params."):
				params = string(a.Data)
			}
		}
		f.Add(script, params, isJSON)
	}
	f.Add("include: [common.yaml]\nenvironment: {X: {default: a}}\n"+oneNode+"    desc: {env.X}\n", "", false)
	f.Fuzz(func(t *testing.T, script, params string, isJSON bool) {
		m := memory{"common.yaml": strings.ReplaceAll(strings.ReplaceAll(oneNode, "src", "other"), "read", "other"),
			"header.csv": "name,Price,type\n", "items.csv": "order_id,price,qty\n",
			"params.yaml": params, "script.yaml": script, "calc.py": "def f(a, b=1): pass\n",
			"tags.json": `{"a": "r.id == 1"}`}
		if isJSON {
			m = memory{"params.json": params, "script.json": script, "header.csv": "name,Price\n"}
		}
		started := time.Now()
		s, diags := m.load(t)
		effort.Promised(t, started, 10*time.Second)
		require.Equal(t, s == nil, diags.HasErrors())
		_ = diags.Render()
		_, err := json.Marshal(diags)
		require.NoError(t, err)
		if s == nil {
			return
		}
		require.True(t, json.Valid(s.Definition()))
		for _, n := range s.Topological() {
			require.NotNil(t, n)
			_ = n.Sources(s)
		}
		_, _ = s.Affected(nil)
	})
}

// FuzzParams puts any parameters into a script that refers to all kinds of them.
func FuzzParams(f *testing.F) {
	const script = `nodes:
  read:
    type: file_table
    desc: "{text} { other | string }"
    r: {urls: "{list|stringlist}", csv: {hdr_line_idx: "{number|number}"}, columns: {id: {col_type: int}}}
    w: {name: src, having: "w.id > {text}", fields: {id: {expression: r.id, type: int}}}
  write:
    type: table_file
    start_policy: "{policy}"
    r: {table: src}
    w: {url_template: "{dir}/{batch_idx}.csv", columns: [{name: id, expression: r.id, type: int, csv: {header: "{text}", format: "%d"}}]}
  group:
    type: table_lookup_table
    r: {table: src}
    l: {index_name: "{text}", join_on: r.id, join_type: left, group: "{flag|bool}"}
    w: {name: grouped, fields: {id: {expression: r.id, type: int}}}
`
	f.Add("text: '1'\nother: b\nlist: [a.csv]\nnumber: 0\npolicy: auto\ndir: /tmp\nflag: true\n", false)
	f.Add(`{"text": "}\"\n{", "other": "{text|string}", "list": [], "number": 1.5e300, "policy": "manual", "dir": `+
		`"$DIR", "flag": false}`, true)
	f.Add("text: &a [x, *a]\nnumber: .inf\nlist: {a: b}\n<<: {dir: x}\n", false)
	f.Fuzz(func(t *testing.T, params string, isJSON bool) {
		m := memory{"script.yaml": script, "params.yaml": params}
		if isJSON {
			m = memory{"script.yaml": script, "params.json": params}
		}
		started := time.Now()
		s, diags := m.load(t)
		effort.Promised(t, started, 10*time.Second)
		require.Equal(t, s == nil, diags.HasErrors())
		_ = diags.Render()
		_, err := json.Marshal(diags)
		require.NoError(t, err)
	})
}

// FuzzPython checks the scanning of Python code and expressions.
func FuzzPython(f *testing.F) {
	f.Add("def f(a, *b, c=1, **d) -> int:\n    '''x'''\n", "f(r.a, p.b) + f'{r.c:>{p.d}}'")
	f.Add("from x import (a as b,\n c)\n@d\nclass E: pass\n", "[x for x in r.y if (lambda a, b=1: a)(x)]")
	f.Fuzz(func(t *testing.T, code, text string) {
		m := newPyModule()
		m.add(document.NewSource("x.py", code))
		e := parsePyExpression(text)
		require.LessOrEqual(t, e.end, len(text))
		for _, r := range e.refs {
			require.LessOrEqual(t, r.start, r.end)
			require.LessOrEqual(t, r.end, len(text))
			require.True(t, strings.HasSuffix(text[r.start:r.end], r.Field))
		}
		for _, c := range e.calls {
			require.Equal(t, c.name, text[c.start:c.end])
			if fn := m.functions[c.name]; fn != nil {
				_ = fn.accepts(c)
			}
		}
	})
}

func largeScript(nodes int) string {
	lines := []string{"n0 auto"}
	for i := 1; i < nodes; i++ {
		lines = append(lines, strings.ReplaceAll("n# auto n", "#", indexText(i))+indexText(i/2))
	}
	text := graph(lines...)
	var fields strings.Builder
	for i := range 40 {
		fields.WriteString(strings.ReplaceAll("f#: {expression: 'int.iif(r.id > # && r.id < 1000, r.id * 2 + #, "+
			"int(len(\"a\")))', type: int}, ", "#", indexText(i)))
	}
	return strings.ReplaceAll(text, "fields: {id:", "fields: {"+fields.String()+"id:")
}

func TestLargeScriptIsFast(t *testing.T) {
	// The target is 0.3 s; this only notices what grows faster than the script.
	const nodes, parts, most = 200, 5, 2.5
	small, large := time.Hour, time.Hour // of a processor: others may use it, too
	for range 3 {
		small = min(small, parts*loadTime(t, nodes/parts))
		large = min(large, loadTime(t, nodes))
	}
	t.Logf("%d scripts of %d nodes: %s; one of %d: %s", parts, nodes/parts, small, nodes, large)
	require.Less(t, large.Seconds(), most*small.Seconds())
}

// loadTime measures the processor time of loading a script with so many nodes.
func loadTime(t *testing.T, nodes int) time.Duration {
	t.Helper()
	m := memory{"script.yaml": largeScript(nodes)}
	began := processorTime(t)
	s, diags := m.load(t)
	took := processorTime(t) - began
	require.Empty(t, diags)
	require.Len(t, s.Nodes, nodes)
	return took
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var r unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func BenchmarkLoad200Nodes(b *testing.B) {
	m := memory{"script.yaml": largeScript(200)}
	b.SetBytes(int64(len(m["script.yaml"])))
	for b.Loop() {
		if s, diags := Load(context.Background(), Sources{Path: "script.yaml", Read: m.read}); s == nil {
			b.Fatal(diags.Render())
		}
	}
}
