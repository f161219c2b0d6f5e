package script

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
)

const holed = `nodes: {
  read: {type: file_table, r: {urls: ["a.csv"], columns: {id: int, name: string}}, w: t},
  write: {type: table_file, r: t, w: "/tmp/out/{month}.csv"}
}
`

// loadHoled loads a script with parameters of somebody who may not write scripts.
func loadHoled(name, text string, params map[string]string) (*Script, document.Diagnostics) {
	return Load(context.Background(), Sources{Path: name, Params: params, Literal: true, Read: memory{name: text,
		"f.py": "def f(x):\n  return x\n", "in/x.sql": "SELECT 1 AS a", "more.yaml": "nodes: {}\n"}.read,
		Environment: func(string) (string, bool) { return "env-value", true }})
}

// A parameter has no way out of the text that it stands in, whatever that looks like.
func TestParametersChangeValuesOnly(t *testing.T) {
	t.Parallel()
	const steal = `w1: {type: table_file, r: t, w: {url_template: "/tmp/e.py", columns: [{header: h, expression: r.name}]}}`
	flow := func(where string) string {
		return "nodes:\n  read: {type: file_table, desc: " + where + ", r: {urls: [a.csv], columns: {id: int}}, w: t}\n"
	}
	block := func(where string) string {
		return "nodes:\n  read:\n    desc: " + where +
			"\n    type: file_table\n    r: {urls: [a.csv], columns: {id: int}}\n    w: t\n"
	}
	const anchored = "nodes:\n  a: &a\n    type: file_table\n    r: {urls: [a.csv], columns: {id: int}}\n    w: t\n" +
		"  b:\n    desc: {x}\n    type: table_table\n    r: t\n    w: u\n"
	const aliased = "nodes:\n  a:\n    type: file_table\n    desc: &d words\n    r: {urls: [a.csv], columns: {id: int}}\n" +
		"    w: t\n  b:\n    desc: {x}\n    type: table_table\n    r: t\n    w: {name: u, having: \"w.id > 0\"}\n" +
		"  c:\n    desc: *d\n    type: table_table\n    r: t\n    w: v\n"
	const json = `{"nodes": {"read": {"type": "file_table", "desc": "{x}", "r": {"urls": ["a.csv"], ` +
		`"columns": {"id": "int"}}, "w": "t"}}}`
	judged := 0 // the others are not even YAML any more
	for name, c := range map[string]struct{ file, text, value string }{
		"another node, by flow":       {"s.yaml", strings.ReplaceAll(holed, "{month}", "{x}"), `x.csv"}, ` + steal + `, w2: {type: table_file, r: t, w: "/tmp/zz`},
		"a key":                       {"s.yaml", flow(`"{x}"`), `a", start_policy: "manual`},
		"a key, single quotes":        {"s.yaml", flow(`'{x}'`), `a', start_policy: 'manual`},
		"a key without quotes":        {"s.yaml", flow(`{x}`), `a, start_policy: manual`},
		"a map":                       {"s.yaml", flow(`{x}`), `{a: b}`},
		"a list":                      {"s.yaml", flow(`{x}`), `[a, b]`},
		"a comment over what follows": {"s.yaml", flow(`"{x}"`), `a", r: {urls: [b.csv]}} #`},
		"a key, by line break":        {"s.yaml", block(`{x}`), "a\n    start_policy: manual"},
		"a key, by return":            {"s.yaml", block(`{x}`), "a\r    start_policy: manual"},
		"a key, out of a block":       {"s.yaml", block("|\n      {x}"), "a\r    start_policy: manual"},
		"a key, by next line":         {"s.yaml", block(`"{x}"`), "a\"\u0085    start_policy: \"manual"},
		"another document":            {"s.yaml", block(`{x}`), "a\r---\rnodes: {}"},
		"an alias":                    {"s.yaml", anchored, "*a"},
		"a merge":                     {"s.yaml", strings.Replace(anchored, "desc: {x}", `{x}`, 1), "<<: *a"},
		"a merge key":                 {"s.yaml", strings.Replace(anchored, "desc: {x}", `"{x}": *a`, 1), `<<": *a, "desc`},
		"an anchor again":             {"s.yaml", aliased, "&d other words"},
		"an anchor, and its alias":    {"s.yaml", strings.Replace(aliased, "desc: &d words", "desc: &d {a: b}", 1), "&d other"},
		"a tag":                       {"s.yaml", block(`{x}`), "!!map {a: b}"},
		"JSON: a key":                 {"s.json", json, `a", "start_policy": "manual`},
		"JSON: the same key again":    {"s.json", json, `a", "type": "table_table`},
		"JSON: without quotes":        {"s.json", strings.Replace(json, `"{x}"`, `{x}`, 1), `{"a": 1}`},
		"items that are maps":         {"s.yaml", flow(`"{x|stringlist}"`), `a", {b: "c"}, "d`},
		"out of a list":               {"s.yaml", flow(`"{x|stringlist}"`), `a"], start_policy: ["manual`},
		"an environment value":        {"s.yaml", "environment: {E: {default: a}}\n" + block(`"{x}"`), envOpen + "E" + envClose},
		"one that is escaped":         {"s.yaml", "environment: {E: {default: a}}\n" + block(`"{x}"`), `\ue0e0env.E\ue0e1`},
		"the end of a text":           {"s.yaml", block("in {x} of 5"), "a #"},
	} {
		s, diags := loadHoled(c.file, c.text, map[string]string{"x": c.value})
		require.Nil(t, s, name)
		if !strings.Contains(diags.Render(), "not valid YAML") {
			judged++
			require.Contains(t, diags.Render(), `parameter "x" would change more of the script than this value`, name)
			require.Contains(t, diags.Render(), "{x", name) // it is shown where it stands
		}
		if !strings.Contains(c.text, "environment") {
			s, _ = Load(t.Context(), Sources{Path: c.file, Params: map[string]string{"x": c.value},
				Read: memory{c.file: c.text}.read})
			require.Nil(t, s, "who may write scripts means values, too: %s", name)
		}
	}
	require.GreaterOrEqual(t, judged, 15)
}

// What is no more than a value is one.
func TestParametersAreValues(t *testing.T) {
	t.Parallel()
	const json = `{"nodes": {"read": {"type": "file_table", "desc": "{x}", "r": {"urls": ["a.csv"], ` +
		`"columns": {"id": "int"}}, "w": "t"}}}`
	for where, values := range map[string][]string{
		`"{x}"`:                    {"", "a b", "it's", "a: b", "a # b", "{b}", "[c]", "*a", "Ünïcode", "a\nb", `a\tb`, "valueof", "valueof00000000"},
		`'{x}'`:                    {"", `say "a"`, "a: b"},
		`{x}`:                      {"", "a", "12", "true", "null", `"a"`, "a # b", "&a b"},
		`in {x}`:                   {"", "a", "12", " b "},
		"|\n      {x}\n      more": {"a", `"`, "a: b # c"},
		`"{x|number}"`:             {"12", "0.5", "-3", "0x10"},
		`"{x|bool}"`:               {"true", "False"},
	} {
		for _, value := range values {
			text := "nodes:\n  read:\n    desc: " + where +
				"\n    type: file_table\n    r: {urls: [a.csv], columns: {id: int}}\n    w: t\n"
			_, diags := loadHoled("s.yaml", text, map[string]string{"x": value})
			require.NotContains(t, diags.Render(), "would change more", "%s with %q", where, value)
			require.NotContains(t, diags.Render(), "in code", "%s with %q", where, value)
		}
	}
	for _, value := range []string{"", "a b", "it's", "12"} {
		_, diags := loadHoled("s.json", json, map[string]string{"x": value})
		require.False(t, diags.HasErrors(), diags.Render())
	}
	s, diags := loadHoled("s.yaml", strings.Replace(holed, `["a.csv"]`, `"{all|stringlist}"`, 1),
		map[string]string{"month": "05", "all": "a.csv, b.csv"})
	require.False(t, diags.HasErrors(), diags.Render())
	require.Len(t, s.Node("read").Files.URLs, 2)
}

// In code, a parameter of somebody who may not write scripts is a literal.
func TestParametersInCodeAreLiterals(t *testing.T) {
	t.Parallel()
	node := func(rest string) string {
		return "nodes:\n  read: {type: file_table, r: {urls: [a.csv], columns: {id: int, name: string}}, w: t}\n" + rest + "\n"
	}
	field := func(code string) string {
		return node("  n: {type: table_table, r: t, w: {name: u, fields: {y: {expression: " + code + ", type: int}}}}")
	}
	python := func(code string) string {
		return node("  n: {type: table_custom_tfm_table, custom_proc_type: py_calc, r: t, p: {python_code_urls: [f.py], " +
			"calculated_fields: {y: {expression: " + code + ", type: int}}}, w: {name: u, fields: {y: p.y}}}")
	}
	having := func(code string) string {
		return node("  n: {type: table_table, r: t, w: {name: u, having: " + code + ", fields: [r.id]}}")
	}
	query := func(code string) string { return node("  n: {type: sql, r: t, query: " + code + ", w: u}") }
	for text, values := range map[string]map[string]bool{
		field(`"r.id * {x}"`): {"3": true, "-3": true, "1.5": true, "r.id": false, "2) + (3": false, "2 + 3": false,
			"2//": false, "": false, "len(r.name)": false, "- 3": false, "1e9": false, "010": false},
		field(`"r.id -{x}"`):                                                  {"3": true, "-3": false},
		field(`"r.i{x}"`):                                                     {"d": false, "3": false},
		field(`"{x}"`):                                                        {"3": true, "r.id": false},
		field(`"{x|number}"`):                                                 {"3": true},
		python(`"f(r.id * {x})"`):                                             {"3": true, `1) or os.system("a"`: false, "__import__": false, "True": false},
		python(`"f('{x}')"`):                                                  {"a b": true, "a') + f('": false, `a\`: false},
		having(`'w.name == "{x}"'`):                                           {"a": true, "a; --": true, `a" || "" == "`: false, `a\`: false, "a''": false},
		having("'w.name == `{x}`'"):                                           {"a": true, "a` || `a": false},
		having(`"w.name == \"{x}\""`):                                         {"a": true, `a\" || \"\" == \"`: false, `a\u0022`: false},
		query(`"SELECT '{x}' AS a"`):                                          {"a b": true, "a' || 'b": false, "a;": true},
		query(`"SELECT {x} AS a"`):                                            {"5": true, "true": true, "id": false, "(SELECT 1)": false, "1 --": false, "'a'": false},
		query(`"SELECT \"{x}\" AS a"`):                                        {"id": false},
		query(`"SELECT 1 -- it's {x}\n AS a"`):                                {"a": false},
		query(`"SELECT E'a\\'' || '{x}'"`):                                    {"a": false},
		node(`  n: {type: sql, r: t, query_url: "{x}", w: u}`):                {"in/x.sql": false},
		"include: [\"{x}\"]\n" + node(""):                                     {"more.yaml": false},
		strings.Replace(python("f(r.id)"), "f.py", `"{x}"`, 1):                {"f.py": false},
		strings.Replace(field("r.id"), "y:", `"{x}":`, 1):                     {"z": false},
		strings.Replace(field("r.id"), "type: table_table", `type: "{x}"`, 1): {"distinct_table": false},
		node(`  n: {type: table_table, r: t, w: {name: u, fields: {desc: "{x}"}}}`):   {"r.id": false},
		node(`  n: {type: table_table, r: t, w: {name: u, fields: [{urls: "{x}"}]}}`): {"r.id": false},
		"notify: [{on: [done], command: [touch, \"'{x}'\"]}]\n" + node(""):            {"5": false, "a": false},
	} {
		for value, fits := range values {
			_, diags := loadHoled("s.yaml", text, map[string]string{"x": value})
			said := diags.Render()
			if fits {
				require.NotContains(t, said, "stands in code", "%s with %q", text, value)
				require.NotContains(t, said, "would change", "%s with %q", text, value)
				continue
			}
			require.True(t, diags.HasErrors(), "%s with %q", text, value)
			require.Regexp(t, "stands in code|would change more|not valid YAML", said, "%s with %q", text, value)
		}
	}
	s, diags := Load(t.Context(), Sources{Path: "s.yaml", Read: memory{"s.yaml": field(`"{x}"`)}.read,
		Params: map[string]string{"x": "coalesce(r.id, 0) * 2"}})
	require.False(t, diags.HasErrors(), diags.Render())
	require.NotNil(t, s, "who may write scripts may give code")
}

// The name of a file that a watch finds is anybody's text.
func TestWatchedFilesAreLiterals(t *testing.T) {
	t.Parallel()
	load := func(where, name string) document.Diagnostics {
		text := "nodes:\n  read: {type: file_table, r: {urls: [a.csv], columns: {id: int}}, w: t}\n" +
			"  n: {type: table_table, r: t, w: {name: u, fields: {y: {expression: " + where + ", type: string}}}}\n"
		_, diags := Load(t.Context(), Sources{Path: "s.yaml", Read: memory{"s.yaml": text}.read,
			Offered: map[string]string{ParamWatchedFile: name}})
		return diags
	}
	diags := load(`'"{watched_file}"'`, "/in/Ümlaut (1) - a.csv")
	require.False(t, diags.HasErrors(), diags.Render())
	require.Contains(t, load(`'"{watched_file}"'`, `/in/" + r.name + ".csv`).Render(), "stands in code here")
	require.Contains(t, load(`'"{watched_file}"'`, "/in/', type: int}, z: {expression: '1").Render(), "would change more")
	require.Contains(t, load(`"{watched_file}"`, "r.name").Render(), "stands in code here")
}

// An answer is somebody's who may only decide.
func TestAnswersAreLiterals(t *testing.T) {
	t.Parallel()
	text := "nodes:\n  read: {type: file_table, r: {urls: [a.csv], columns: {id: int, name: string}}, w: {name: a, " +
		"approval: {answers: {x: {type: string, default: \"1\"}}}}}\n" +
		"  b: {type: table_table, r: a, w: {name: b, having: \"w.id > {x}\", fields: [r.id]}}\n"
	load := func(answer string) document.Diagnostics {
		_, diags := Load(t.Context(), Sources{Path: "s.yaml", Read: memory{"s.yaml": text}.read,
			Answers: map[string]string{"x": answer}})
		return diags
	}
	diags := load("5")
	require.False(t, diags.HasErrors(), diags.Render())
	require.Contains(t, load("5 || true").Render(), "stands in code here")
}

// Whatever a parameter is, either the script does not load, or it has the nodes and the code that it has.
func FuzzParametersChangeValuesOnly(f *testing.F) {
	const text = `nodes:
  read: {type: file_table, desc: '{x}', r: {urls: ["in/{x}.csv"], columns: {id: int, name: string}}, w: t}
  n:
    type: table_table
    desc: {x}
    r: t
    w:
      name: u
      having: 'w.name == "{x}" && w.id > 0'
      fields: {id: {expression: "coalesce(r.id, 0)", type: int}, name: {expression: 'coalesce(r.name, "")', type: string}}
  m:
    desc: |
      {x}
    type: table_table
    r: u
    w: v
  write: {type: table_file, r: v, w: "/tmp/out/{x}.csv"}
`
	for _, seed := range []string{"a", "", `x.csv"}, w1: {type: table_file, r: t, w: "/tmp/e.py"}, w2: {type: table_file, r: ` +
		`t, w: "/tmp/zz`, `a"`, "a'", `a\`, "a\rb: c", "a #", "*a", "&a", "{b}", "]", `\" || true || \"`, "5", "true",
		"\u0085", "!!str a", "a: b", "valueof00000000", "|", "> a", "%", "- a", "? a", `\x22`, "''"} {
		f.Add(seed)
	}
	shape := func(s *Script) string {
		var b strings.Builder
		for _, n := range s.Nodes {
			fmt.Fprintln(&b, n.Name, n.Type, names(sources(n)), n.PythonCode())
			if n.Table == nil {
				continue
			}
			for _, field := range n.Table.Fields {
				fmt.Fprintln(&b, field.Name, field.Expr.Source())
			}
			if n.Table.Having != nil { // a text more or less is a value
				fmt.Fprintln(&b, strings.Count(n.Table.Having.Source(), `"`), strings.Contains(n.Table.Having.Source(),
					`w.name == "`), strings.HasSuffix(n.Table.Having.Source(), `" && w.id > 0`))
			}
		}
		return b.String()
	}
	s, diags := loadHoled("s.yaml", text, map[string]string{"x": "a"})
	require.False(f, diags.HasErrors(), diags.Render())
	want := shape(s)
	f.Fuzz(func(t *testing.T, value string) {
		s, diags := loadHoled("s.yaml", text, map[string]string{"x": value})
		require.Equal(t, diags.HasErrors(), s == nil)
		if s != nil {
			require.Equal(t, want, shape(s), "%q", value)
		}
	})
}
