package script

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
)

func TestDiagnosticJSON(t *testing.T) {
	t.Parallel()
	_, diags := memory{"script.yaml": "nodes:\n  a: {type: file_tabel, r: {urls: [x], columns: {i: " +
		"int}}, w: a}\n"}.load(t)
	text, err := json.Marshal(diags)
	require.NoError(t, err)
	var got []map[string]any
	require.NoError(t, json.Unmarshal(text, &got))
	require.Len(t, got, 1)
	require.Equal(t, map[string]any{
		"severity": "error", "file": "script.yaml", "line": 2.0, "column": 13.0, "end_line": 2.0, "end_column": 23.0,
		"path": "nodes.a.type", "message": `there is no node type "file_tabel"`, "hint": `did you mean "file_table"?`,
		"source": "  a: {type: file_tabel, r: {urls: [x], columns: {i: int}}, w: a}",
	}, got[0])
}

func TestErrCarriesKindAndPlace(t *testing.T) {
	t.Parallel()
	_, diags := memory{"script.yaml": "nodes: [a]\nx: 1\n"}.load(t)
	require.Len(t, diags.Warnings(), 1)
	f := fault.Of(diags.Err())
	require.Equal(t, fault.Script, f.Kind)
	require.Equal(t, fault.Place{File: "script.yaml", Line: 1, Column: 8, Field: "nodes"}, f.Place)
	require.Contains(t, f.Detail, "^^^"[:1])
	require.NoError(t, diags.Warnings().Err())
}

func TestErrOfUnreadableFile(t *testing.T) {
	t.Parallel()
	broken := &fault.Error{Kind: fault.Environment, Retryable: true, Message: "the network is down"}
	_, diags := Load(context.Background(), Sources{Path: "s3://b/script.yaml",
		Read: func(context.Context, string) ([]byte,
			error) {
			return nil, broken
		}})
	f := fault.Of(diags.Err())
	require.Equal(t, fault.Environment, f.Kind)
	require.True(t, f.Retryable)
	require.ErrorIs(t, diags.Err(), error(broken))

	_, diags = Load(context.Background(),
		Sources{Path: "x.yaml", Read: func(context.Context, string) ([]byte, error) { return nil, errors.New("odd") }})
	require.Equal(t, fault.Environment, fault.Of(diags.Err()).Kind, "a reader that does not classify its errors")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, diags = Load(ctx, Sources{Path: "load_test.go"})
	require.Equal(t, fault.Canceled, fault.Of(diags.Err()).Kind)
}

func TestLocalFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "script.yaml")
	script := strings.Replace(oneNode, "type: file_table", `type: table_custom_tfm_table
    custom_proc_type: py_calc
    p: {python_code_urls: [calc.py], calculated_fields: {x: {expression: f(r.id), type: int}}}`, 1)
	script = strings.Replace(script, "r: {urls: [in.csv], columns: {id: {col_type: int}}}", "r: {table: src}", 1)
	script = strings.Replace(script, "name: src", "name: out", 1) + strings.TrimPrefix(oneNode, "nodes:\n")
	script = strings.Replace(script, "  read:", "  calc:", 1)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o600))
	_, diags := Load(context.Background(), Sources{Path: path})
	require.Contains(t, diags.Render(), "cannot read calc.py: opening the file: no such file")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "calc.py"), []byte("def f(x): return x\n"), 0o600))
	s, diags := Load(context.Background(), Sources{Path: path})
	require.Empty(t, diags, "a relative name is looked for beside the script too")
	require.Equal(t, "def f(x): return x\n", s.Node("calc").PyCalc.Code[0].Text)
	_, ok := s.Text(filepath.Join(dir, "calc.py"))
	require.True(t, ok)

	_, diags = Load(context.Background(), Sources{Path: "file://" + path})
	require.Empty(t, diags)
	_, diags = Load(context.Background(), Sources{Path: "s3://b/script.yaml"})
	require.Equal(t, fault.Environment, fault.Of(diags.Err()).Kind)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	_, diags := memory{"script.yaml": "nodes: {}\n#" + strings.Repeat("x", document.MaxBytes)}.load(t)
	require.Contains(t, diags.Render(), "larger than 16 MiB")

	_, diags = memory{"script.yaml": strings.Repeat("# {x}\n", MaxReferencesCount+1)}.load(t)
	require.Contains(t, diags.Render(), "too many references")

	_, diags = memory{"script.yaml": strings.Repeat("# {x}\n", 1000), "params.json": `{"x": "` +
		strings.Repeat("y", 20_000) + `"}`}.load(t)
	require.Contains(t, diags.Render(), "with its parameters is larger")

	_, diags = memory{"script.yaml": "nodes:\n" + strings.Repeat("  a: 1\n", 3*document.MaxDiagnosticsCount)}.load(t)
	require.Len(t, diags, document.MaxDiagnosticsCount+1)
}
