package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"thalweg/internal/base/fault"

	"github.com/alecthomas/kong"
)

// helpWidth is the widest that help is, however wide the terminal is.
const helpWidth = 100

// commandGroups are the headings under which --help lists the commands.
var commandGroups = []kong.Group{
	{Key: "scripts", Title: "Write scripts:"},
	{Key: "run", Title: "Run them:"},
	{Key: "look", Title: "Look at runs and tables:"},
	{Key: "decide", Title: "Decide about runs:"},
	{Key: "serve", Title: "Many runs, many machines:"},
	{Key: "thalweg", Title: "Thalweg itself:"},
}

// asksJSON reports whether a command line asks for JSON, also one that cannot be read.
func asksJSON(args []string) bool {
	for i, arg := range args {
		switch {
		case arg == "--":
			return false
		case arg == "--json", arg == "--format=json", arg == "--format=ndjson":
			return true
		case arg == "--format" && i+1 < len(args) && strings.HasSuffix(args[i+1], "json"):
			return true
		}
	}
	return false
}

// rewritten gives what other programs have as flags or commands the form that it has here.
func rewritten(args []string) ([]string, error) {
	if len(args) == 0 {
		return []string{"--help"}, nil
	}
	switch args[0] {
	case "help":
		return append(slices.Clone(args[1:]), "--help"), nil
	case "--version", "-V":
		return append([]string{"version"}, args[1:]...), nil
	case "generate":
		return nil, &fault.Error{Kind: fault.Script, Message: "generate is a program of its own",
			Hint: "in the project's directory: go run ./bench/cmd/thalweg-generate " + strings.Join(args[1:], " ")}
	}
	return joinNegative(nameConsent(args)), nil
}

// Texts of the parser that say something else to people.
var (
	unknownFlag   = regexp.MustCompile(`^unknown flag (--?[^ ,]+)`)
	unexpected    = regexp.MustCompile(`^unexpected argument (.*?)(?:, did you mean .*)?$`)
	expectedWords = regexp.MustCompile(`^(?:expected|missing positional arguments) (.*)$`)
	argument      = regexp.MustCompile(`<[a-z-]+>`)
	noPair        = regexp.MustCompile(`^(--[a-z0-9-]+): expected "<key>=<value>" but got (.*)$`)
)

// usageFault says what is wrong with a command line in one line, and how the command is written.
func usageFault(parser *kong.Kong, args []string, err error) error {
	var parsed *kong.ParseError
	out := &fault.Error{Kind: fault.Script, Message: err.Error(), Hint: "`thalweg --help` lists the commands"}
	if !errors.As(err, &parsed) || parsed.Context == nil {
		return out
	}
	node := parsed.Context.Selected()
	for _, p := range parsed.Context.Path { // a command without what must follow is not selected
		if p.Command != nil {
			node = p.Command
		}
	}
	name := "thalweg"
	if node != nil {
		name += " " + strings.TrimSuffix(commandWords(node), " ")
		out.Hint = usageOf(node)
	}
	text := err.Error()
	var empty *emptyError
	switch m := []string(nil); {
	case errors.As(err, &empty):
		out.Message, out.Hint = fmt.Sprintf("`%s`: %v", name, empty), empty.hint()
	case match(unknownFlag, text, &m):
		out.Message = fmt.Sprintf("`%s` has no flag %s", name, m[1])
		out.SuggestAs("--", strings.TrimLeft(m[1], "-"), flagsOf(parsed.Context))
	case match(unexpected, text, &m) && (node == nil || len(node.Children) > 0):
		out.Message = fmt.Sprintf("`%s` has no command %s", name, m[1])
		if here := elsewhere[strings.ToLower(m[1])]; here != "" && node == nil {
			out.Hint = here
		} else {
			out.Suggest(m[1], childrenOf(parser, node))
		}
	case match(unexpected, text, &m):
		out.Message = fmt.Sprintf("`%s` does not take %s", name, shellWord(m[1]))
	case match(expectedWords, text, &m):
		out.Message = fmt.Sprintf("`%s` needs %s", name, strings.NewReplacer(`"`, "", "<", "", ">",
			"").Replace(argument.ReplaceAllStringFunc(m[1], strings.ToUpper)))
	case match(noPair, text, &m):
		out.Message = fmt.Sprintf("%s wants a name and a value, and got %s", m[1], m[2])
		out.Hint = "write " + m[1] + " NAME=VALUE"
	default:
		out.Message = fmt.Sprintf("`%s`: %s", name, text)
	}
	return out
}

func match(re *regexp.Regexp, text string, m *[]string) bool {
	*m = re.FindStringSubmatch(text)
	return *m != nil
}

// commandWords are the words of a command without those of its arguments.
func commandWords(node *kong.Node) string {
	words := node.Name
	for up := node.Parent; up != nil && up.Type == kong.CommandNode; up = up.Parent {
		words = up.Name + " " + words
	}
	return words
}

// usageOf formats the usage of a command in one line.
func usageOf(node *kong.Node) string {
	words := "thalweg " + commandWords(node)
	var rest []string
	for _, arg := range node.Positional {
		rest = append(rest, strings.ToUpper(strings.NewReplacer("<", "", ">", "").Replace(arg.Summary())))
	}
	if len(node.Children) > 0 {
		var names []string
		for _, c := range node.Children {
			names = append(names, c.Name)
		}
		rest = append(rest, strings.Join(names, "|"))
	}
	return fmt.Sprintf("%s; `%s --help` has every flag",
		strings.Join(append([]string{words}, append(rest, "[flags]")...),
			" "), words)
}

func flagsOf(ctx *kong.Context) (names []string) {
	for _, f := range ctx.Flags() {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	return names
}

func childrenOf(parser *kong.Kong, node *kong.Node) (names []string) {
	if node == nil {
		node = parser.Model.Node
	}
	for _, c := range node.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// negative is a number below zero as a word of its own.
var negative = regexp.MustCompile(`^-[0-9]+$`)

// joinNegative makes a number below zero the value of the flag before it: the flag can then say what it takes.
func joinNegative(args []string) (out []string) {
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if n := len(out) - 1; n >= 0 && negative.MatchString(arg) && strings.HasPrefix(out[n], "--") &&
			!strings.Contains(out[n], "=") {
			out[n] += "=" + arg
			continue
		}
		out = append(out, arg)
	}
	return out
}
