package serveconfig_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
	"thalweg/internal/base/settings"
	"thalweg/internal/ops/serveconfig"
)

func schema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	text, err := serveconfig.JSONSchema()
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("serve.json", value))
	s, err := c.Compile("serve.json")
	require.NoError(t, err)
	return s, value.(map[string]any)
}

// What loads is valid, and what is not valid does not load.
func TestSchemaAgreesWithTheLoader(t *testing.T) {
	t.Parallel()
	s, _ := schema(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "jobs"), 0o700))
	const head = "version: 1\n"
	for text, loads := range map[string]bool{
		head: true, "version: \"1\"\n": true,
		head + "listen: 0.0.0.0:8431\nhosts: [a, \"b:1\"]\ntls: {certificate: c, key: k}\n":                true,
		head + "hosts: a\nproxies: 10.0.0.7\nlimits: {user_streams: 4, streams: \"5\"}\n":                  true,
		head + "workspaces: {main: {scripts: jobs, parameters: true}, other: {scripts: [jobs]}}\n":         true,
		head + "workspaces: {main: {places: {read: [a], write: b, hosts: h, commands: false}}}\n":          true,
		head + "workspaces: {main: {places: {databases: 'sqlite:///x.db', environment: [A], read: 7}}}\n":  true,
		head + "oidc: {issuer: 'https://a', client_id: x, groups: {g: {workspace: main, role: viewer}}}\n": true,
		head + "oidc: {issuer: 'https://a', client_id: x, groups_claim: c, scopes: [s], groups: {g: [" +
			"{workspace: '*', role: approver, gate_roles: [sales]}]}}\n": true,
		"listen: a\n": false, "version: 2\n": false, head + "listn: a\n": false, head + "tls: {certificate: c}\n": false,
		head + "listen: [a]\n": false, head + "limits: {streams: 0}\n": false, head + "limits: 7\n": false,
		head + "workspaces: {main: {script: jobs}}\n": false, head + "workspaces: {\"a b\": {}}\n": false,
		head + "workspaces: {main: {places: {commands: 1}}}\n": false, head + "workspaces: [main]\n": false,
		head + "oidc: {issuer: 'https://a'}\n": false, head + "workspaces: {main: {places: {reads: a}}}\n": false,
	} {
		cfg, said := serveconfig.Parse("serve.yaml", filepath.Join(dir, "serve.yaml"), text, settings.Options{})
		require.Equal(t, loads, cfg != nil, "%s%v", text, said)
		require.Equal(t, loads, s.Validate(plainly(t, text)) == nil, "%s%v", text, s.Validate(plainly(t, text)))
	}
}

func plainly(t *testing.T, text string) any {
	t.Helper()
	root, problems := document.Read(document.NewSource("serve.yaml", text))
	require.Nil(t, problems)
	return plain(t, root)
}

// plain is a value as the validator takes it.
func plain(t *testing.T, v *document.Value) any {
	switch v.Kind {
	case document.Map:
		out := map[string]any{}
		for _, e := range v.Entries {
			out[e.Name] = plain(t, e.Value)
		}
		return out
	case document.List:
		out := []any{}
		for _, item := range v.Items {
			out = append(out, plain(t, item))
		}
		return out
	case document.String:
		return v.Text
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(v.Text))
	require.NoError(t, err)
	return out
}

// The schema for editors is the one that is printed.
func TestSchemaIsWritten(t *testing.T) {
	t.Parallel()
	printed, err := serveconfig.JSONSchema()
	require.NoError(t, err)
	kept, err := os.ReadFile("../../../" + serveconfig.SchemaID)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(printed), "write it anew: thalweg schema serve >"+serveconfig.SchemaID)
}

// Each key of the schema is known to the loader, which names all that it knows when one is not.
func TestSchemaHasTheKeysOfTheLoader(t *testing.T) {
	t.Parallel()
	_, root := schema(t)
	looked := 0
	var look func(path string, at map[string]any)
	look = func(path string, at map[string]any) {
		if more, is := at["additionalProperties"].(map[string]any); is {
			if forms, several := more["anyOf"].([]any); several {
				more = forms[0].(map[string]any)
			}
			look(path+map[string]string{"workspaces": ".main", "oidc.groups": ".data"}[path], more)
		}
		properties, ok := at["properties"].(map[string]any)
		if !ok {
			return
		}
		looked++
		require.Equal(t, serveconfig.KeysOf(path), slices.Sorted(maps.Keys(properties)), "keys of %q", path)
		for name, below := range properties {
			look(strings.TrimPrefix(path+"."+name, "."), below.(map[string]any))
		}
	}
	look("", root)
	require.Equal(t, 7, looked)
}
