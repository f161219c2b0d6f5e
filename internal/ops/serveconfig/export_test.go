package serveconfig

import (
	"slices"

	"thalweg/internal/base/document"
	"thalweg/internal/base/settings"
)

// everything has each section once, so that the loader asks for all its keys.
const everything = `version: 1
tls: {}
limits: {}
oidc: {groups: {data: {}}}
workspaces: {main: {places: {}}}
`

// KeysOf are the keys that the loader knows below a path.
func KeysOf(path string) []string {
	r := &reader{settings.New("serve.yaml", "", settings.Options{}), &Config{Workspaces: map[string]Workspace{}}}
	r.Ask()
	root, _ := document.Read(document.NewSource("serve.yaml", everything))
	r.root(root)
	return slices.Sorted(slices.Values(r.Asked()[path]))
}
