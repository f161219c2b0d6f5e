package script

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := JSONSchema()
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("script", doc))
	s, err := c.Compile("script")
	require.NoError(t, err)
	return s
}

// asJSON gives the script as an editor's validator sees it.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var doc any
	require.NoError(t, yaml.Load([]byte(text), &doc))
	raw, err := json.Marshal(doc)
	require.NoError(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	return out
}

// The file that editors are pointed at is what the binary prints.
// UPDATE_GOLDEN=1 rewrites it.
func TestSchemaFileIsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := JSONSchema()
	require.NoError(t, err)
	path := filepath.Join("../../..", SchemaID)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, want, 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(have), "run UPDATE_GOLDEN=1 go test ./internal/lang/script")
}

// Whatever loads without a diagnostic is valid, as written and as stored.
func TestSchemaAcceptsScripts(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	count := 0
	check := func(name, text string, m memory) {
		s, diags := m.load(t)
		if s == nil || len(diags) > 0 {
			return
		}
		count++
		require.NoError(t, schema.Validate(asJSON(t, string(s.Definition()))), "the definition of %s", name)
		if strings.Contains(text, `"Nodes"`) {
			return // the loader takes keys in any case, a schema cannot
		}
		if strings.Contains(text, "{") && yaml.Load([]byte(text), new(any)) != nil {
			return // YAML only once parameters are put in
		}
		require.NoError(t, schema.Validate(asJSON(t, text)), name)
	}
	for _, pattern := range []string{"testdata/*.txtar", "testdata/short/*.txtar"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			m, scripts := memory{}, map[string]string{}
			for _, f := range archive.Files {
				m[f.Name] = string(f.Data)
				if base := strings.TrimSuffix(f.Name, filepath.Ext(f.Name)); base == "script" || base == "short" ||
					base == "long" {
					scripts[f.Name] = string(f.Data)
				}
			}
			for name, text := range scripts {
				files := memory{}
				for other, text := range m {
					if scripts[other] == "" {
						files[other] = text
					}
				}
				files["script"+filepath.Ext(name)] = text
				check(file+" "+name, text, files)
			}
		}
	}
	require.Greater(t, count, 20)
}

func TestSchemaAcceptsExamples(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	files, err := filepath.Glob("../../../examples/*/*.yaml")
	require.NoError(t, err)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), "nodes:") && !strings.HasSuffix(file, ".test.yaml") {
			found++
			require.NoError(t, schema.Validate(asJSON(t, string(text))), file)
		}
	}
	require.Greater(t, found, 2)
}

func TestSchemaRejects(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	for name, text := range map[string]string{
		"unknown key":         "nodes: {a: {type: table_table, r: {table: x}, w: {name: y}, typ: 1}}",
		"unknown type":        "nodes: {a: {type: table_tabel, r: {table: x}, w: {name: y}}}",
		"key of another type": "nodes: {a: {type: table_table, r: {urls: [x]}, w: {name: y}}}",
		"no lookup":           "nodes: {a: {type: table_lookup_table, r: {table: x}, w: {name: y}}}",
		"number":              "nodes: {a: {type: table_table, r: {table: x, rowset_size: many}, w: {name: y}}}",
		"range":               "nodes: {a: {type: table_table, r: {table: x, rowset_size: -1}, w: {name: y}}}",
		"column type": "nodes: {a: {type: file_table, r: {urls: [x], columns: {id: {col_type: integer}}}, w: " +
			"{name: y}}}",
		"not a map": "[]",
	} {
		require.Error(t, schema.Validate(asJSON(t, text)), name)
	}
}

// Each key says what it is for, and a name stands for one shape only.
func TestKeysAreDocumented(t *testing.T) {
	t.Parallel()
	seen := map[string]*shape{}
	var visit func(f form)
	visit = func(f form) {
		if f.of != nil {
			visit(*f.of)
		}
		for _, x := range f.any {
			visit(x)
		}
		if f.shape == nil || seen[f.shape.name] == f.shape {
			return
		}
		require.Nil(t, seen[f.shape.name], f.shape.name)
		seen[f.shape.name] = f.shape
		for _, k := range f.shape.keys {
			require.NotEmpty(t, k.doc, "%s.%s", f.shape.name, k.name)
			visit(k.form)
		}
	}
	visit(keysOf(rootShape))
	for _, n := range nodeForms() {
		for _, f := range n.parts {
			visit(f)
		}
	}
	require.Len(t, nodeForms(), len(nodeTypes()))
}
