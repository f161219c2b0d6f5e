package serveconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/allow"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/settings"
	"thalweg/internal/ops/serveconfig"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"jobs/a.yaml", "jobs/deep/b.json", "jobs/.hidden/c.yaml", "jobs/.d.yaml", "jobs/in.csv",
		"more/a.yaml", "outside.yaml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(at(name)), 0o700))
		require.NoError(t, os.WriteFile(at(name), nil, 0o600))
	}
	require.NoError(t, os.Symlink(at("outside.yaml"), at("jobs/link.yaml")))
	text := `version: 1
listen: "0.0.0.0:8431"
hosts: [data.example.com]
tls: {certificate: cert.pem, key: key.pem}
limits: {user_streams: 400}
workspaces:
  main: {scripts: [jobs, more], parameters: true}
  other: {}
`
	require.NoError(t, os.WriteFile(at("serve.yaml"), []byte(text), 0o600))
	c, diags, err := serveconfig.Load(at("serve.yaml"), settings.Options{})
	require.NoError(t, err)
	require.Empty(t, diags)
	require.Equal(t, at("cert.pem"), c.TLS.Certificate)
	require.Equal(t, int64(2), c.Place("listen").Line)
	require.True(t, c.Workspaces["main"].Parameters)
	limits := serveconfig.DefaultLimits()
	limits.UserStreams = 400
	require.Equal(t, limits, c.Limits, "what is not named is the default's")
	require.False(t, c.Workspaces["other"].Parameters)
	all, err := c.ScriptsOf("main")
	require.NoError(t, err)
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"a.yaml", "deep/b.json"}, names, "no links, nothing hidden, each name once")
	one, err := c.ScriptOf("main", "a.yaml")
	require.NoError(t, err)
	require.Equal(t, "jobs", filepath.Base(filepath.Dir(one.Path)), "the first directory's")
	for _, name := range []string{"../outside.yaml", "link.yaml", "/etc/passwd", "", at("jobs/a.yaml")} {
		_, err = c.ScriptOf("main", name)
		require.ErrorContains(t, err, "no script", name)
	}
	_, err = c.ScriptOf("other", "a.yaml")
	require.ErrorContains(t, err, "no script")
}

// The places of a workspace are absolute, as they are named and as their links lead.
func TestPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "real"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "jobs"), 0o700))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
	c, diags := serveconfig.Parse("serve.yaml", filepath.Join(dir, "serve.yaml"), `
version: 1
workspaces:
  main:
    scripts: jobs
    places: {read: [link, 's3://b/in/'], write: out, databases: 'sqlite://x.db', environment: [A, B], hosts: 'h:1'}
  other: {}
`, settings.Options{})
	require.False(t, diags.HasErrors(), diags)
	at := func(name string) string { return filepath.Join(dir, name) }
	require.Equal(t, &allow.Policy{Read: []string{at("link"), at("real"), "s3://b/in/", at("jobs")},
		Write: []string{at("out")}, Kept: []string{at("jobs"), at("serve.yaml")},
		Databases: []string{"sqlite://" + at("x.db")}, Environment: []string{"A", "B"}, Hosts: []string{"h:1"}},
		c.Policy("main"))
	require.Nil(t, c.Policy("other"))
	c.Workspaces["main"].Places.Write = []string{at("jobs/out")}
	require.NoError(t, os.MkdirAll(at("jobs/out"), 0o700))
	for _, name := range []string{"jobs/a.yaml", "jobs/out/written.yaml"} {
		require.NoError(t, os.WriteFile(at(name), nil, 0o600))
	}
	all, err := c.ScriptsOf("main")
	require.NoError(t, err)
	require.Len(t, all, 1, "runs could have written the other")
	require.Nil(t, c.Policy("none"))
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"listen: 127.0.0.1:1":                                                 "the version is missing",
		"version: 2":                                                          `version "2" is not known`,
		"version: 1\nlisten: here":                                            `serve.yaml:2:9: error: "here" is no address`,
		"version: 1\nlisten: 0.0.0.0:1":                                       "other machines without encryption",
		"version: 1\nlitsen: x":                                               `unknown key "litsen"`,
		"version: 1\ntls: {certificate: x}":                                   "tls has no key",
		"version: 1\nproxies: [proxy]":                                        "not the address of a machine",
		"version: 1\nhosts: ['a/b']":                                          "not a name of a host",
		"version: 1\nworkspaces: {main: {scripts: /none}}":                    `"/none" is no directory`,
		"version: 1\nworkspaces: {'a b': {}}":                                 "no name of a workspace",
		"version: 1\nworkspaces: [main]":                                      "workspaces is a map",
		"version: 1\nworkspaces: {main: {parameters: maybe}}":                 `"maybe" is not true or false`,
		"version: 1\nworkspaces: {main: {places: {reed: x}}}":                 `unknown key "reed"`,
		"version: 1\nworkspaces: {main: {places: {read: 's3://b/*/x'}}}":      "no beginning of addresses",
		"version: 1\nworkspaces: {main: {places: {read: 'postgres://h/d'}}}":  "the address of a database",
		"version: 1\nworkspaces: {main: {places: {write: 'https://me@h/x'}}}": "no beginning of addresses",
		"version: 1\nworkspaces: {main: {places: {hosts: 'https://h'}}}":      "not a host",
		"version: 1\nworkspaces: {main: {places: {databases: '/x.db'}}}":      "not the address of a database",
		"version: 1\nworkspaces: {main: {places: {environment: 'A*'}}}":       "not a name of a variable",
		"version: 1\nworkspaces: {main: {places: {commands: 1}}}":             "is not true or false",
		"version: 1\noidc: {issuer: 'https://x', client_id: a}":               "oidc has no groups",
		"version: 1\noidc: {issuer: 'http://x'}":                              "no address of an issuer",
		"version: 1\noidc: {client_secret: '{env.NO_SUCH}'}":                  "the environment has no NO_SUCH",
		"version: 1\noidc: {groups: [x]}":                                     "oidc.groups is a map",
		"version: 1\nlimits: {user_streams: 0}":                               "not a whole number from 1 to 10000",
		"version: 1\nlimits: {streams_user: 7}":                               `unknown key "streams_user"`,
		"[]":                                                                  "a server configuration is a map",
	} {
		_, diags := serveconfig.Parse("serve.yaml", "/x/serve.yaml", text, settings.Options{})
		require.True(t, diags.HasErrors(), text)
		require.Contains(t, fmt.Sprint(diags), want, text)
	}
}

// A script that is a link by now is not read.
func TestTextOfAScriptThatIsSwapped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "jobs", "sub"), 0o700))
	path := filepath.Join(dir, "jobs", "sub", "a.yaml")
	require.NoError(t, os.WriteFile(path, []byte("nodes: {}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("nodes: {secret: {}}\n"), 0o600))
	c := &serveconfig.Config{Workspaces: map[string]serveconfig.Workspace{"main": {Scripts: []string{filepath.Join(dir, "jobs")}}}}
	all, err := c.ScriptsOf("main")
	require.NoError(t, err)
	require.Len(t, all, 1)
	text, err := all[0].Text()
	require.NoError(t, err)
	require.Equal(t, "nodes: {}\n", text)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(filepath.Join(dir, "secret"), path))
	_, err = all[0].Text()
	require.Error(t, err)
}

// Whoever starts a script by its path is told its name.
func TestScriptByItsPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"jobs/a.yaml", "jobs/sub/a.yaml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("nodes: {}\n"), 0o600))
	}
	c := &serveconfig.Config{Workspaces: map[string]serveconfig.Workspace{"main": {Scripts: []string{filepath.Join(dir, "jobs")}}}}
	for given, want := range map[string]string{filepath.Join(dir, "jobs", "a.yaml"): `"a.yaml"`, "./a.yaml": `"a.yaml"`,
		"jobs/sub/a.yaml": `"sub/a.yaml"`, "/elsewhere/sub/a.yaml": `"sub/a.yaml"`} {
		_, err := c.ScriptOf("main", given)
		require.Contains(t, fault.Of(err).Hint, "its name, which is "+want, given)
	}
	_, err := c.ScriptOf("main", "other.yaml")
	require.NotContains(t, fault.Of(err).Hint, "its name")
}
