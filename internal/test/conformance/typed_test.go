package conformance

import (
	"slices"
	"strings"

	"thalweg/internal/base/action"
)

// typed renders actions and settings as they are typed, without what a command line knows of its place.
type typed struct{}

// words lists the arguments that are words of a command; run is one of some.
var words = []string{"gate", "script", "query", "file", "dir"}

// Action implements action.Renderer.
func (typed) Action(a action.Action, _ bool) string {
	line := "thalweg " + strings.ReplaceAll(a.Verb, "-", " ")
	for _, arg := range a.Args {
		if !slices.Contains(words, arg.Name) &&
			(arg.Name != "run" || slices.Contains([]string{"nodes", "checks"}, a.Verb)) {
			line += " --" + arg.Name
		}
		switch {
		case strings.Contains(arg.Value, " "):
			line += " '" + arg.Value + "'"
		case arg.Value != "":
			line += " " + arg.Value
		}
	}
	return "`" + line + "`"
}

// Setting implements action.Renderer.
func (typed) Setting(s action.Arg) string { return strings.TrimSpace("--" + s.Name + " " + s.Value) }
