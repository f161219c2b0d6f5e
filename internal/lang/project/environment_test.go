package project

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/secret"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), DefaultName)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAll(t *testing.T) {
	t.Parallel()
	path := write(t, "environments:\n  dev:\n  prod:\n    protected: true\n    cluster: c.yaml\n    workspace: w\n    "+
		"params: /p.yaml\n    values: {a: 1, list: [x, y]}\n"+
		"    env: {R: eu, S: {variable: V}, F: {file: s.txt}}\n    flags: {memory: 1GB}\n")
	dir := filepath.Dir(path)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.txt"), []byte("of the file\n"), 0o600))
	known := secret.New()
	env, diags, err := Load(path, "prod",
		Options{Known: known, Lookup: func(name string) (string, bool) { return "of " + name, name == "V" }})
	require.NoError(t, err)
	require.Empty(t, diags)
	require.True(t, env.Protected)
	flags := map[string]string{}
	for _, f := range env.Flags {
		flags[f.Name] = f.Value
	}
	require.Equal(t, map[string]string{"cluster": filepath.Join(dir, "c.yaml"), "workspace": "w", "params": "/p.yaml",
		"memory": "1GB"}, flags)
	require.Equal(t, map[string]string{"a": "1", "list": "x,y"}, env.Values)
	require.Equal(t, []Variable{{"R", "eu", false}, {"S", "of V", true}, {"F", "of the file", true}}, env.Env)
	require.Equal(t, "{env.F}", known.Text("of the file"))
	require.Equal(t, []string{"dev", "prod"}, Names(path))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.Equal(t, path, Find(filepath.Join(dir, "sub")))
	plain, diags, err := Load(path, "dev", Options{})
	require.NoError(t, err)
	require.Empty(t, diags)
	require.False(t, plain.Protected)
}

// Each mistake names its place.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"{protected: yes please}":           "protected is true or false",
		"{protcted: true}":                  `unknown key "protcted"`,
		"{state: a, cluster: b}":            "not both",
		"{state: a, server: https://b}":     "not both",
		"{server: ''}":                      "must be a text",
		"{state: []}":                       "must be a text",
		"{params: {a: b}}":                  "parameters by name are below the key values",
		"{values: {db_password: hunter22}}": "the value of db_password is a secret",
		"{env: {PGPASSWORD: hunter22}}":     "the value of PGPASSWORD is a secret",
		"{env: {A: {variable: NONE}}}":      "the environment has no variable NONE",
		"{env: {A: {file: none.txt}}}":      "cannot be read: no such file",
		"{env: {A: {}}}":                    "says where its value comes from",
		"{env: {A: {valt: x}}}":             `unknown key "valt"`,
		"{flags: {state: x}}":               "state is not among the flags",
		"{values: {a: {b: c}}}":             "a parameter is a text",
		"{values: {a: ['x,y']}}":            "without commas",
		"[a]":                               "an environment is a map",
	} {
		path := write(t, "environments: {e: "+body+"}\n")
		env, diags, err := Load(path, "e", Options{Lookup: func(string) (string, bool) { return "", false }})
		require.NoError(t, err, body)
		require.Nil(t, env, body)
		require.Contains(t, diags.Render(), want, body)
		require.Contains(t, diags.Render(), DefaultName+":1:", body)
		require.NotContains(t, diags.Render(), "hunter22", body)
	}
	for text, want := range map[string]string{
		"environments: {}":                `has no environment "e"`,
		"dev: {}":                         `unknown key "dev"`,
		"{}":                              "has no environments",
		"environments: {prod: {}, d: {}}": "it has prod, d",
	} {
		_, _, err := Load(write(t, text), "e", Options{})
		require.Error(t, err, text)
		require.Contains(t, err.Error()+fault.Of(err).Hint, want)
	}
	_, _, err := Load(filepath.Join(t.TempDir(), "none"), "e", Options{})
	require.ErrorContains(t, err, "there is no file")
	_, diags, err := Load(write(t, "a: [\n"), "e", Options{})
	require.NoError(t, err)
	require.True(t, diags.HasErrors())
}
