package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app"

	"github.com/alecthomas/kong"
)

// completionCmd prints what a shell needs to complete command lines.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"${enum}."`
}

// The shells' own parts: all that is known is asked of the program.
var (
	//go:embed completion/thalweg.bash
	completionBash string
	//go:embed completion/_thalweg
	completionZsh string
	//go:embed completion/thalweg.fish
	completionFish string
)

// Run implements kong's command.
func (c *completionCmd) Run(a *console) error {
	_, err := fmt.Fprint(a.stdout, map[string]string{"bash": completionBash, "zsh": completionZsh,
		"fish": completionFish}[c.Shell])
	return err
}

// completeCmd answers a shell that asks how a command line may go on.
type completeCmd struct {
	Shell string   `arg:""`
	Words []string `arg:"" optional:"" passthrough:""`
}

// Limits of completion: a shell waits for it.
const (
	completionTime    = 2 * time.Second
	completedRunsMax  = 50
	completedBytesMax = 1 << 20 // of a script
)

// Directives, the last line of an answer.
const (
	completeDone    = ":done"
	completeFiles   = ":files"   // the shell adds names of files
	completeNoSpace = ":nospace" // the word goes on
)

// Run implements kong's command. What fails is that nothing is proposed.
func (c *completeCmd) Run(ctx context.Context, a *console, kctx *kong.Context) error {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	l := newCompletion(kctx.Model.Node, words, c.Shell == "bash")
	for _, one := range l.answer(ctx, a) {
		if !strings.HasPrefix(one.word, l.current) {
			continue
		}
		word := l.prefix + one.word
		if one.what != "" {
			word += "\t" + one.what
		}
		fmt.Fprintln(a.stdout, plain(word))
	}
	_, err := fmt.Fprintln(a.stdout, l.directive)
	return err
}

// candidate is a word that may come next.
type candidate struct{ word, what string }

// completion is a command line that is being typed.
type completion struct {
	node      *kong.Node
	flag      *kong.Flag // whose value is typed; nil: none
	args      []string   // positional ones before the current word
	said      map[string]string
	current   string // what is typed of the word, or of a flag's value
	prefix    string // what comes before current in the word, for shells that want all of it
	directive string
}

// newCompletion reads the words before the one that is typed, and that.
func newCompletion(root *kong.Node, words []string, pieces bool) *completion {
	l := &completion{node: root, said: map[string]string{}, directive: completeDone}
	if pieces { // bash takes --flag=value apart
		words = joined(words)
	}
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	for i := 0; i < last; i++ {
		name, value, whole := strings.Cut(words[i], "=")
		flag := l.flagOf(name)
		switch {
		case flag != nil && whole:
			l.said[flag.Name] = value
		case flag != nil && !flag.IsBool() && i+1 < last:
			i++
			l.said[flag.Name] = words[i]
		case flag != nil && !flag.IsBool():
			l.flag = flag
		case strings.HasPrefix(words[i], "-"):
		default:
			l.word(words[i])
		}
	}
	l.current = words[last]
	if name, value, whole := strings.Cut(l.current, "="); l.flag == nil && whole && l.flagOf(name) != nil {
		l.flag, l.current = l.flagOf(name), value
		if !pieces {
			l.prefix = name + "="
		}
	}
	if i := strings.LastIndexByte(l.current, ','); i >= 0 && l.flag != nil && l.flag.IsSlice() { // lists with commas
		l.prefix, l.current = l.prefix+l.current[:i+1], l.current[i+1:]
	}
	return l
}

// joined puts --flag = value together again.
func joined(words []string) (out []string) {
	for i := 0; i < len(words); i++ {
		if n := len(out); words[i] == "=" && n > 0 && strings.HasPrefix(out[n-1], "--") {
			out[n-1] += "="
			if i+1 < len(words) {
				i++
				out[n-1] += words[i]
			}
			continue
		}
		out = append(out, words[i])
	}
	return out
}

// word is one that is neither a flag nor its value.
func (l *completion) word(text string) {
	for _, child := range l.node.Children {
		if child.Name == text {
			l.node = child
			return
		}
	}
	l.args = append(l.args, text)
}

func (l *completion) flags() (out []*kong.Flag) {
	for _, group := range l.node.AllFlags(true) {
		out = append(out, group...)
	}
	return out
}

func (l *completion) flagOf(name string) *kong.Flag {
	for _, f := range l.flags() {
		if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

// answer lists what may come next.
func (l *completion) answer(ctx context.Context, a *console) (out []candidate) {
	switch {
	case l.flag != nil:
		return l.valuesOf(ctx, a, l.flag.Name, l.flag.Enum, l.flag.Tag.Type)
	case strings.HasPrefix(l.current, "-"):
		for _, f := range l.flags() {
			if !f.Hidden {
				out = append(out, candidate{"--" + f.Name, firstSentence(f.Help)})
			}
		}
		return out
	}
	for _, child := range l.node.Children {
		if !child.Hidden {
			out = append(out, candidate{child.Name, firstSentence(child.Help)})
		}
	}
	if l.node.Type == kong.ApplicationNode {
		out = append(out, candidate{"help", "Show what a command does."})
	}
	if n := len(l.node.Positional); n > 0 {
		arg := l.node.Positional[min(len(l.args), n-1)]
		if len(l.args) < n || arg.IsSlice() || arg.IsCumulative() {
			out = append(out, l.valuesOf(ctx, a, arg.Name, arg.Enum, arg.Tag.Type)...)
		}
	}
	return out
}

// valuesOf lists the values that a flag or an argument may have, by its name.
func (l *completion) valuesOf(ctx context.Context, a *console, name, enum, kind string) (out []candidate) {
	list := func(words []string) []candidate {
		for _, word := range words {
			out = append(out, candidate{word: word})
		}
		return out
	}
	if enum != "" {
		return list(strings.Split(enum, ","))
	}
	switch name {
	case "env", "yes":
		dir, err := os.Getwd()
		if err != nil {
			return nil
		}
		return list(app.Environments(app.FindProject(dir)))
	case "param", "matrix":
		for _, p := range app.Parameters(l.scriptText()) {
			out = append(out, candidate{p.Name + "=", p.Type})
		}
		l.directive = completeNoSpace
		return out
	case "tag":
		return list(app.TagsOf(l.scriptText()))
	case "run", "run-a", "run-b", "parent":
		return l.runs(ctx, a)
	case "node", "start", "from", "to":
		if text := l.scriptText(); text != "" {
			return list(app.NodesOf(text))
		}
		return l.nodes(ctx, a)
	case "table":
		return list(l.tables(ctx))
	case "column":
		l.directive = completeNoSpace
		return list(endingIn(l.tables(ctx), "."))
	case "batch":
		l.directive = completeNoSpace
		for _, n := range l.nodes(ctx, a) {
			out = append(out, candidate{n.word + ":", n.what})
		}
		return out
	case "file-or-table":
		list(l.tables(ctx)) // and files, below
	}
	if kind == "path" || slices.Contains([]string{"script", "scripts", "params", "file", "files",
		"file-or-table", "tests",
		"costs", "compare", "output", "config", "known-hosts", "ca-file", "python", "hooks"}, name) {
		l.directive = completeFiles
	}
	return out
}

// endingIn are words with a mark behind each.
func endingIn(words []string, mark string) (out []string) {
	for _, word := range words {
		out = append(out, word+mark)
	}
	return out
}

// scriptText is the text of the script that was named; "" if it is none of this machine.
func (l *completion) scriptText() string {
	if len(l.node.Positional) == 0 || l.node.Positional[0].Name != "script" || len(l.args) == 0 {
		return ""
	}
	info, err := os.Stat(l.args[0])
	if err != nil || !info.Mode().IsRegular() || info.Size() > completedBytesMax {
		return ""
	}
	text, err := os.ReadFile(l.args[0])
	if err != nil {
		return ""
	}
	return string(text)
}

// open opens the state directory that the command line means. A cluster is not asked: it may be far away.
func (l *completion) open(ctx context.Context) (*app.App, string) {
	get := func(flag, variable, otherwise string) string {
		for _, value := range []string{l.said[flag], os.Getenv(variable)} {
			if value != "" {
				return value
			}
		}
		return otherwise
	}
	if get("cluster", "THALWEG_CLUSTER", "") != "" && l.said["state"] == "" {
		return nil, ""
	}
	dir, workspace := get("state", "THALWEG_STATE", ""), get("workspace", "THALWEG_WORKSPACE", "")
	if name := get("env", "THALWEG_ENV", ""); name != "" {
		here, _ := os.Getwd()
		env, err := app.LoadEnvironment(app.FindProject(here), name, app.Process{})
		if err != nil {
			return nil, ""
		}
		for _, f := range env.Flags {
			switch {
			case f.Name == "cluster":
				return nil, ""
			case f.Name == "state" && l.said["state"] == "":
				dir = f.Value
			case f.Name == "workspace" && l.said["workspace"] == "":
				workspace = f.Value
			}
		}
	}
	if dir == "" {
		dir = app.DefaultDir
	}
	if workspace == "" {
		workspace = app.DefaultWorkspace
	}
	home, err := app.Open(ctx, app.Place{Dir: dir}, app.Process{})
	if err != nil {
		return nil, ""
	}
	return home, workspace
}

// runs lists the latest runs.
func (l *completion) runs(ctx context.Context, _ *console) (out []candidate) {
	home, workspace := l.open(ctx)
	if home == nil {
		return nil
	}
	defer home.Close()
	runs, err := home.Runs.Latest(ctx, workspace, completedRunsMax)
	if err != nil {
		return nil
	}
	for _, r := range runs {
		out = append(out, candidate{fmt.Sprint(r.Run),
			fmt.Sprintf("%s, %s, %s", r.Status, r.Created.Local().Format(time.DateTime), r.ScriptPath)})
	}
	if len(out) > 0 {
		out = append(out, candidate{app.LastRun, "the latest"})
	}
	return out
}

// tables lists the tables that a query can read.
func (l *completion) tables(ctx context.Context) []string {
	home, workspace := l.open(ctx)
	if home == nil {
		return nil
	}
	defer home.Close()
	names, err := home.Data.Tables(ctx, workspace)
	if err != nil {
		return nil
	}
	return names
}

// nodes lists the nodes of the run that was named, or of the last one.
func (l *completion) nodes(ctx context.Context, a *console) (out []candidate) {
	home, workspace := l.open(ctx)
	if home == nil {
		return nil
	}
	defer home.Close()
	ref := runRef(app.LastRun)
	if said := l.said["run"]; said != "" {
		ref = runRef(said)
	} else if len(l.args) > 0 && l.node.Positional[0].Name == "run" {
		ref = runRef(l.args[0])
	}
	run, err := ref.find(ctx, home, workspace)
	if err != nil {
		return nil
	}
	nodes, err := home.Runs.Names(ctx, run.RunKey)
	if err != nil {
		return nil
	}
	for _, n := range nodes {
		out = append(out, candidate{n.Name, string(n.Status)})
	}
	return out
}

// firstSentence is the beginning of a help text.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	first, _, _ = strings.Cut(first, "${")
	return strings.TrimSuffix(strings.TrimSpace(first), ".")
}
