package scripts

import (
	"slices"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/script"
)

// Parameter is a parameter that a script declares.
type Parameter = script.Parameter

// Parameters lists the parameters of a script's text, also of one that has mistakes.
func Parameters(text string) []Parameter { return script.Parameters(text) }

// NodesOf lists the names of the nodes of a script's text, likewise.
func NodesOf(text string) (out []string) {
	for _, e := range nodeEntries(text) {
		out = append(out, e.Name)
	}
	return out
}

// TagsOf lists the tags of its nodes, in order.
func TagsOf(text string) (out []string) {
	for _, e := range nodeEntries(text) {
		for _, key := range e.Value.Entries {
			if key.Name != "tags" {
				continue
			}
			if key.Value.Scalar() {
				out = append(out, strings.Split(key.Value.Text, ",")...)
			}
			for _, item := range key.Value.Items {
				out = append(out, item.Text)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// NameOf returns what a script's text calls the script, "" if nothing; ok is false, with no name, if the text
// alone does not say.
func NameOf(text string) (name string, ok bool) {
	root, fail := document.Read(document.NewSource("script.yaml", text)) // YAML reads JSON, too
	if fail != nil {
		return "", false
	}
	for _, e := range root.Entries {
		if e.Name == "name" && e.Value.Present() {
			name = strings.TrimSpace(e.Value.Text)
		}
	}
	if strings.Contains(name, "{") { // which is a parameter
		return "", false
	}
	return name, true
}

// LinesOf returns the lines in which the nodes of a script's text begin.
func LinesOf(text string) map[string]int {
	out := map[string]int{}
	for _, e := range nodeEntries(text) {
		out[e.Name] = e.Key.Src.Pos(e.Key.Off).Line
	}
	return out
}

// nodeEntries are the nodes of a script, also of one that has mistakes.
func nodeEntries(text string) []*document.Entry {
	root, fail := document.Read(document.NewSource("script.yaml", text)) // YAML reads JSON, too
	if fail != nil {
		return nil
	}
	for _, e := range root.Entries {
		if e.Name == "nodes" {
			return e.Value.Entries
		}
	}
	return nil
}
