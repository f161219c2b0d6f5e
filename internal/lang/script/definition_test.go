package script

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func mustLoad(t *testing.T, m memory) *Script {
	t.Helper()
	s, diags := m.load(t)
	require.False(t, diags.HasErrors(), diags.Render())
	return s
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := mustLoad(t, memory{"script.yaml": oneNode})
	same := map[string]memory{
		"comment":     {"script.yaml": "# hello\n" + oneNode},
		"description": {"script.yaml": strings.Replace(oneNode, "    r:", "    desc: hello\n    r:", 1)},
		"parameter": {"script.yaml": strings.Replace(oneNode, "in.csv", `"{file}"`, 1),
			"params.json": `{"file": "in.csv"}`},
		"spelling": {"script.yaml": strings.Replace(oneNode, "type: file", "Type: file", 1)},
		"json":     {"script.json": string(base.Definition())},
	}
	for name, m := range same {
		s := mustLoad(t, m)
		require.Equal(t, base.Fingerprint, s.Fingerprint, name)
		require.Equal(t, base.Nodes[0].Fingerprint, s.Nodes[0].Fingerprint, name)
	}
	other := map[string]memory{
		"url": {"script.yaml": strings.Replace(oneNode, "in.csv", "in2.csv", 1)},
		"parameter": {"script.yaml": strings.Replace(oneNode, "in.csv", `"{file}"`, 1),
			"params.json": `{"file": "x.csv"}`},
	}
	for name, m := range other {
		s := mustLoad(t, m)
		require.NotEqual(t, base.Fingerprint, s.Fingerprint, name)
		require.NotEqual(t, base.Nodes[0].Fingerprint, s.Nodes[0].Fingerprint, name)
	}
}

func TestFingerprintCoversPulledFiles(t *testing.T) {
	t.Parallel()
	script := oneNode + `  tag:
    type: table_custom_tfm_table
    custom_proc_type: tag_and_denormalize
    r: {table: src}
    p: {tag_field_name: tag, tag_criteria_url: tags.json}
    w: {name: tagged, fields: {tag: {expression: p.tag, type: string}}}
`
	one := mustLoad(t, memory{"script.yaml": script, "tags.json": `{"a": "r.id == 1"}`})
	two := mustLoad(t, memory{"script.yaml": script, "tags.json": `{"a": "r.id == 2"}`})
	require.NotEqual(t, one.Fingerprint, two.Fingerprint)
	require.Equal(t, one.Node("read").Fingerprint, two.Node("read").Fingerprint)
	require.NotEqual(t, one.Node("tag").Fingerprint, two.Node("tag").Fingerprint)
	text, ok := one.Text("tags.json")
	require.True(t, ok)
	require.Equal(t, `{"a": "r.id == 1"}`, text)
}

func TestDefinition(t *testing.T) {
	t.Parallel()
	s := mustLoad(t, memory{"lenient": "", "script.yaml": strings.NewReplacer("in.csv",
		"'sftp://joe:pass@word@host/in.csv?X-Amz-Signature=abc&x=1'", "type: file", "TYPE: file", "    r:",
		"    desc: null\n    start_policy: auto\n    Start_policy: manual\n    r:").Replace(oneNode)})
	require.JSONEq(t, `{"nodes": {"read": {"type": "file_table", "start_policy": "manual",
		"r": {"urls": ["sftp://joe:xxxxx@host/in.csv?X-Amz-Signature=xxxxx&x=1"], "columns": {"id": {"col_type": "int"}}},
		"w": {"name": "src", "fields": {"id": {"expression": "r.id", "type": "int"}}}}}}`, string(s.Definition()))
	require.True(t, json.Valid(s.Definition()))
	require.Equal(t, "sftp://joe:pass@word@host/in.csv?X-Amz-Signature=abc&x=1", s.Nodes[0].Files.URLs[0].URL)
}

func TestExpandURL(t *testing.T) {
	t.Parallel()
	require.Equal(t, "/o/00007_r3.csv", ExpandURL("/o/{batch_idx|string}_r{run_id|string}.csv", 3, 7))
}

func TestCanonicalNumbers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"1": "1", "1.0": "1", "1e2": "100", "0x10": "16", "1_000": "1000",
		"1.5": "1.5", ".5": "0.5", ".inf": `".inf"`, "+2": "2"} {
		require.Equal(t, want, canonicalNumber(in), in)
	}
}
