package script

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
	"thalweg/internal/base/secret"
)

// parts is oneScript in several files.
func parts() memory {
	return memory{
		"script.yaml": "include: [lib/common.json, lib/policies.yaml]\nnodes:\n" +
			"  tag:\n    type: table_custom_tfm_table\n    custom_proc_type: tag_and_denormalize\n    r: src\n    p: " +
			"{tag_field_name: tag, tag_criteria_url: tags.json}\n    w: tagged\n",
		"lib/common.json": `{"include": ["deep/read.yaml"]}`,
		"lib/policies.yaml": "include: [deep/read.yaml]\ndependency_policies: {standard_one: {is_default: true, " +
			"rules: [{cmd: go, expression: nrs.run_is_current}]}}\n",
		"lib/deep/read.yaml": "nodes:\n  read: {type: file_table, r: {urls: ['{dir}/in.csv'], columns: {id: int}}, " +
			"w: src}\n  calc: {type: table_custom_tfm_table, custom_proc_type: py_calc, r: src, p: " +
			"{python_code_urls: [calc.py], calculated_fields: {x: {expression: f(r.id), type: int}}}, w: calc}\n",
		"lib/deep/calc.py": "def f(x): return x\n",
		"tags.json":        `{"a": "r.id == 1"}`,
		"params.yaml":      "dir: /in\n",
	}
}

func TestInclude(t *testing.T) {
	t.Parallel()
	s := mustLoad(t, parts())
	require.Equal(t, "read calc tag", nodeNames(s.Nodes), "what is included comes first, once")
	require.Equal(t, "/in/in.csv", s.Node("read").Files.URLs[0].URL)
	require.Equal(t, "lib/deep/read.yaml", s.Node("read").Pos.File)
	require.Equal(t, "def f(x): return x\n", s.Node("calc").PyCalc.Code[0].Text, "beside the file that names it")
	require.Equal(t, "standard_one", s.Node("tag").Policy.Name)
	require.NotContains(t, string(s.Definition()), "include")

	// One file with the same content is the same script.
	one := memory{"script.json": string(s.Definition()), "calc.py": "def f(x): return x\n",
		"tags.json": parts()["tags.json"]}
	same := mustLoad(t, one)
	require.JSONEq(t, string(s.Definition()), string(same.Definition()))
	for _, n := range s.Nodes {
		require.Equal(t, n.Fingerprint, same.Node(n.Name).Fingerprint, n.Name)
	}

	changed := parts()
	changed["lib/deep/read.yaml"] = strings.Replace(changed["lib/deep/read.yaml"], "in.csv", "in2.csv", 1)
	require.NotEqual(t, s.Fingerprint, mustLoad(t, changed).Fingerprint)
	comment := parts()
	comment["lib/deep/read.yaml"] = "# why\n" + comment["lib/deep/read.yaml"]
	require.Equal(t, s.Fingerprint, mustLoad(t, comment).Fingerprint)
}

func TestIncludeProblems(t *testing.T) {
	t.Parallel()
	m := memory{
		"script.yaml": "include: [a.yaml, gone.yaml, '', '{env.X}', 1.txt]\nnodes:\n  read: {type: file_table, r: " +
			"{urls: [x], columns: {id: int}}, w: src}\n  bad: {type: table_table, r: tagged, w: bad}\n",
		"a.yaml": "include: [b.yaml]\nnodes:\n  read: {type: file_table, r: {urls: [x], columns: {id: it}}, w: " +
			"src2}\n  other: {type: table_table, r: sr, w: other}\n",
		"b.yaml": "include: [a.yaml]\ndependency_policies: []\nnodse: {}\n",
		"1.txt":  "x",
	}
	_, diags := m.load(t)
	var got []string
	for _, d := range diags {
		got = append(got, d.String())
	}
	require.Equal(t, []string{
		`script.yaml:1:19: error: cannot read gone.yaml: no such file`,
		`script.yaml:1:30: error: the file's name is empty`,
		`script.yaml:1:34: error: include takes no environment values`,
		`script.yaml:3:3: error: "read" is defined in two files`,
		`script.yaml:4:31: error: no node creates table "tagged"`,
		`a.yaml:3:57: error: there is no type "it"`,
		`a.yaml:4:33: error: no node creates table "sr"`,
		`b.yaml:1:11: error: files include each other in a cycle`,
		`b.yaml:2:22: error: dependency_policies must be a map of names, found a list`,
		`b.yaml:3:1: error: unknown key "nodse"`,
		`1.txt: error: the format is unknown`,
	}, got)
	require.Equal(t, "a.yaml:3:3", find(diags, "two files").Related[0].String())
	require.Equal(t, "a.yaml:1:11", find(diags, "cycle").Related[0].String())
}

func find(diags document.Diagnostics, text string) document.Diagnostic {
	for _, d := range diags {
		if strings.Contains(d.Message, text) {
			return d
		}
	}
	return document.Diagnostic{}
}

func TestIncludeDepth(t *testing.T) {
	t.Parallel()
	m := memory{"script.yaml": "include: [f1.yaml]\n"}
	for i := 1; i <= MaxIncludeLevels+1; i++ {
		m["f"+indexText(i)+".yaml"] = "include: [f" + indexText(i+1) + ".yaml]\n"
	}
	_, diags := m.load(t)
	require.Contains(t, diags.Render(), "too deeply: the limit is 16 levels")
	require.NotContains(t, diags.Render(), "f18.yaml")
}

// env looks a variable up in the environment of these tests.
func env(name string) (string, bool) {
	values := map[string]string{"DIR": "/data: x", "N": "7", "YES": "True", "TOKEN": "s3cr3t-value", "EMPTY": "",
		"BAD": "\xff"}
	v, ok := values[name]
	return v, ok
}

func loadEnv(t *testing.T, m memory, params map[string]string) (*Script, document.Diagnostics) {
	t.Helper()
	return Load(t.Context(), Sources{Path: "script.yaml", Read: m.read, Columns: m.columns, Environment: env,
		Params: params})
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	s, diags := loadEnv(t, memory{"script.yaml": `
environment:
  DIR: {}
  N: {}
  REGION: {default: "eu"}
  TOKEN: {secret: true}
nodes:
  read:
    type: file_table
    r:
      urls: ["{env.DIR}/a.csv", '{ env.REGION }.csv', "https://host/x?t={env.TOKEN}"]
      columns: {id: int}
    w: {name: src, fields: {id: r.id, where: '"{env.REGION}{env.DIR}"'}}
  write:
    type: table_file
    r: {table: src, expected_batches_total: "{env.N|number}"}
    w:
      url_template: {env.DIR}/{batch_idx}.csv # {env.COMMENT} is not looked at
      columns: [id]
`}, nil)
	require.Empty(t, diags, diags.Render())
	urls := s.Node("read").Files.URLs
	require.Equal(t, "/data: x/a.csv", urls[0].URL)
	require.Equal(t, "eu.csv", urls[1].URL)
	require.Equal(t, `"eu/data: x"`, s.Node("read").Table.Field("where").Expr.Source())
	require.Equal(t, 7, s.Node("write").Reader.ExpectedBatches)
	require.Equal(t, "/data: x/{batch_idx|string}.csv", s.Node("write").Out.URL)

	require.Equal(t, "https://host/x?t={env.TOKEN}", urls[2].URL, "a secret is not in the model")
	require.Equal(t, "https://host/x?t=s3cr3t-value", s.Reveal(urls[2].URL))
	require.Equal(t, "cannot open https://host/x?t={env.TOKEN}", s.Hide("cannot open https://host/x?t=s3cr3t-value"))
	require.NotContains(t, string(s.Definition()), "s3cr3t")
	require.Contains(t, string(s.Definition()), `"environment":{"TOKEN":{"secret":true}}`)
	require.NotContains(t, string(s.Definition()), "REGION")
}

func TestEnvironmentProblems(t *testing.T) {
	t.Parallel()
	_, diags := loadEnv(t, memory{"script.yaml": `environment:
  DIR: {}
  N: {secrt: true}
  YES: {}
  GONE: {}
  BAD: {}
  TOKEN: {secret: true}
  PLAIN: {secret: true, default: x}
  "a b": {}
nodes:
  read:
    type: file_table
    desc: "{env.TOKEN}"
    r: {urls: ["{env.DRI}", "/tmp/{env.TOKEN}", "x{env.GONE}"], columns: {id: int, "{env.DIR}": string}, ` +
		`csv: {hdr_line_idx: "{env.YES|number}", separator: "{env.N|nmber}"}}
    w: {name: src, fields: {id: '{env.TOKEN}', b: "1{env.N|number}"}}
`}, nil)
	var got []string
	for _, d := range diags {
		got = append(got, d.String())
	}
	require.Equal(t, []string{
		`script.yaml:3:7: error: unknown key "secrt"`,
		`script.yaml:5:3: error: the environment variable GONE is not set`,
		`script.yaml:6:3: error: the environment variable BAD is not UTF-8 text of at most 64 KiB`,
		`script.yaml:8:34: error: a secret cannot have its value in the script`,
		`script.yaml:9:3: error: "a b" is not the name of an environment value`,
		`script.yaml:13:11: error: a secret can be used in addresses of http://, https:// and databases only`,
		`script.yaml:14:16: error: the environment value "DRI" is not declared`,
		`script.yaml:14:29: error: a secret can be used in addresses of http://, https:// and databases only`,
		`script.yaml:14:84: error: a name cannot be an environment value`,
		`script.yaml:14:126: error: the environment variable YES is not a number`,
		`script.yaml:14:157: error: environment value "N": there is no type "nmber"`,
		`script.yaml:15:33: error: a secret can be used in addresses of http://, https:// and databases only`,
		`script.yaml:15:51: error: a number environment value must stand alone`,
	}, got)
	require.NotContains(t, diags.Render(), "s3cr3t")
	text, err := json.Marshal(diags)
	require.NoError(t, err)
	require.NotContains(t, string(text), "s3cr3t")

	_, diags = loadEnv(t,
		memory{"script.yaml": "nodes: {read: {type: file_table, r: {urls: [\"{env.DIR}/x\"], columns: " +
			"{id: int}}, w: src}}\n"}, nil)
	require.Contains(t, diags.Render(), "declare it: environment: {DIR: {}}")
}

func TestEnvironmentValuesAreNotParsed(t *testing.T) {
	t.Parallel()
	s, diags := Load(t.Context(),
		Sources{Path: "script.yaml",
			Read: memory{"script.yaml": "environment: {X: {}}\n" + strings.Replace(oneNode, "in.csv",
				"'{env.X}'", 1)}.read,
			Environment: func(string) (string, bool) { return "a', b: [{env.X}", true }})
	require.Empty(t, diags, diags.Render())
	require.Equal(t, "a', b: [{env.X}", s.Nodes[0].Files.URLs[0].URL)
}

func TestParamsOfCommandLine(t *testing.T) {
	t.Parallel()
	script := memory{"script.yaml": `
nodes:
  read:
    type: file_table
    r: {urls: "{urls|stringlist}", columns: {id: int}, csv: {hdr_line_idx: "{n|number}"}}
    w: {name: "t{n}"}
  look: {type: table_lookup_table, r: t5, l: {table: t5, on: id, join_type: left, group: "{g|bool}"}, w: {name: l, fields: {id: r.id}}}
`}
	s, diags := loadEnv(t, script, map[string]string{"urls": "a.csv, b.csv", "n": "5", "g": "TRUE"})
	require.Empty(t, diags, diags.Render())
	require.Equal(t, 5, s.Node("read").Files.CSV.HeaderRecord)
	require.Equal(t, "b.csv", s.Node("read").Files.URLs[1].URL)
	require.True(t, s.Node("look").Lookup.Group)

	_, diags = loadEnv(t, script, map[string]string{"urls": "a.csv", "n": "five", "g": "1", "h": ""})
	require.Contains(t, diags.Render(), `no reference to parameter "h"`)
	require.Contains(t, diags.Render(), `parameter "n" of the command line is not a number: "five"`)
	require.Contains(t, diags.Render(), `parameter "g" of the command line is not a bool: "1"`)
}

// A secret may be part of another one, or look like a reference to it.
func TestSecretsWithinSecrets(t *testing.T) {
	t.Parallel()
	s := &Script{secrets: map[string]string{"A": "pass", "B": "pass-word", "C": "{env.A}-x"}, hidden: secret.New()}
	for name, value := range s.secrets {
		s.hidden.Add(value, envReference(name))
	}
	require.Equal(t, "{env.B} {env.A} {env.C}", s.Hide("pass-word pass {env.A}-x"))
	require.Equal(t, "pass-word pass {env.A}-x", s.Reveal("{env.B} {env.A} {env.C}"))
}
