package main

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// sharedFlags are the groups of flags that many commands take, by how the page calls them.
var sharedFlags = []struct {
	name string
	of   any
}{
	{"state", &struct{ stateFlags }{}},
	{"work", &struct{ engineFlags }{}},
	{"files", &struct{ remoteFlags }{}},
}

// morePages are the pages that say more of commands.
var morePages = map[string]string{
	"approvals":   "approvals.md",
	"approve":     "approvals.md#deciding",
	"audit":       "operating.md#who-did-what",
	"bench":       "bench.md",
	"capacity":    "capacity.md",
	"check":       "checks.md#trying-a-check",
	"checks":      "checks.md",
	"cluster":     "fleet.md",
	"completion":  "#completion",
	"cost":        "cost.md",
	"dev":         "serving.md#developing-a-script",
	"diff":        "operating.md#what-changed-between-two-runs",
	"doctor":      "fleet.md#what-is-wrong",
	"drop":        "operating.md#drop-runs",
	"events":      "events.md",
	"gc":          "operating.md#make-room",
	"hooks":       "hooks.md",
	"infer":       "infer.md",
	"invalidate":  "operating.md#declare-a-run-invalid",
	"lineage":     "lineage.md#columns",
	"matrix":      "operating.md",
	"retry":       "operating.md#do-parts-of-a-run-again",
	"run":         "#parts-of-a-script",
	"scheduler":   "schedules.md",
	"schema":      "scripts.md#editors",
	"show":        "operating.md#what-a-run-did",
	"simulate":    "simulate.md",
	"sql":         "#queries",
	"table-index": "nodes/table_file.md#index",
	"test":        "testing.md",
	"trace":       "lineage.md",
	"why":         "operating.md#why-a-run-is-not-further",
	"worker":      "#several-processes",
}

// The table of docs/commands.md is made of the structs of which --help is made, too.
func TestCommandsPage(t *testing.T) {
	t.Parallel()
	const page = "../../docs/commands.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	between := regexp.MustCompile(`(?s)(<!-- made by go test ./cmd/thalweg -run TestCommandsPage -update -->\n).*?(<!-- end -->)`)
	require.Regexp(t, between, string(text))
	want := between.ReplaceAllString(string(text), "${1}"+strings.ReplaceAll(commandsTable(t), "$", "$$")+"${2}")
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "go test ./cmd/thalweg -run TestCommandsPage -update")
}

func commandsTable(t *testing.T) string {
	t.Helper()
	shared := map[string]string{}
	var groups []string
	for _, g := range sharedFlags {
		var names []string
		for _, f := range flagsOfGrammar(t, g.of) {
			shared[f.Name] = g.name
			names = append(names, "`--"+f.Name+"`")
		}
		groups = append(groups, fmt.Sprintf("- *%s*: %s\n", g.name, strings.Join(names, ", ")))
	}
	k, err := kong.New(&cli{}, kong.Vars{"state": ".thalweg", "workspace": "main"})
	require.NoError(t, err)
	var b strings.Builder
	for _, group := range commandGroups {
		fmt.Fprintf(&b, "\n| %s | does | flags |\n| --- | --- | --- |\n",
			strings.ToLower(strings.TrimSuffix(group.Title, ":")))
		for _, leaf := range k.Model.Leaves(true) {
			if groupOf(leaf) == group.Key {
				b.WriteString(commandRow(leaf, shared))
			}
		}
	}
	return "\nGroups of flags that many commands take:\n\n" + strings.Join(groups, "") + b.String() + "\n"
}

// groupOf is the group of a command, or of the command that it belongs to.
func groupOf(n *kong.Node) string {
	for ; n != nil; n = n.Parent {
		if n.Group != nil {
			return n.Group.Key
		}
	}
	return ""
}

func commandRow(leaf *kong.Node, shared map[string]string) string {
	usage := commandWords(leaf)
	for _, arg := range leaf.Positional {
		usage += " " + strings.ToUpper(strings.NewReplacer("<", "", ">", "").Replace(arg.Summary()))
	}
	does := leaf.Help
	if page := morePages[strings.Fields(usage)[0]]; page != "" {
		name, _, _ := strings.Cut(page, "#")
		does += fmt.Sprintf(" ([%s](%s))", cmp.Or(strings.TrimSuffix(name, ".md"), "below"), page)
	}
	var names, own, groups []string
	for _, f := range slices.Concat(leaf.AllFlags(true)...) {
		if !slices.Contains([]string{"help", "json", "env", "yes"}, f.Name) {
			names = append(names, f.Name)
		}
	}
	for _, g := range sharedFlags {
		whole := true
		for name, of := range shared {
			whole = whole && (of != g.name || slices.Contains(names, name))
		}
		if whole {
			groups = append(groups, "*"+g.name+"*")
			names = slices.DeleteFunc(names, func(name string) bool { return shared[name] == g.name })
		}
	}
	for _, name := range names {
		own = append(own, "`--"+name+"`")
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", usage, strings.ReplaceAll(does, "|", "\\|"),
		strings.Join(append(own, groups...), ", "))
}

// flagsOfGrammar lists the flags of a struct.
func flagsOfGrammar(t *testing.T, grammar any) (out []*kong.Flag) {
	t.Helper()
	k, err := kong.New(reflect.New(reflect.TypeOf(grammar).Elem()).Interface(),
		kong.Vars{"state": ".thalweg", "workspace": "main"},
		kong.NamedMapper("path", kong.MapperFunc(decodePath)))
	require.NoError(t, err)
	for _, f := range k.Model.Flags {
		if f.Name != "help" {
			out = append(out, f)
		}
	}
	return out
}
