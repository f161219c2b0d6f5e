package main

import (
	"cmp"
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"thalweg/internal/app"
	"thalweg/internal/app/view"

	"github.com/alecthomas/kong"
)

// commandPlace adds what a command line has said of the place to the commands that are
// proposed to people, so that theirs can be typed as they are: which state, environment
// and workspace, and which values a script has.
type commandPlace struct {
	typed  []typedFlag
	server bool                              // the place is one: flags of hereOnly do not go with it
	script string                            // that was named, as a word for a shell; "": none
	within func(words string) string         // as what flags are written; nil: as they are
	takes  func() map[string]map[string]bool // flags of each command
}

// typedFlag is a flag of the command line, with its value as it was typed.
type typedFlag struct{ name, words string }

// placeFlagNames are the flags that proposed commands have, too; scriptFlagNames those that they have about the same
// script.
var (
	placeFlagNames  = []string{"state", "cluster", "workspace", "env", "server"}
	scriptFlagNames = []string{"params", "param", "lenient"}
)

// placeOf reads what was said on the command line. config is the configuration that names the
// cluster where --cluster does not; "": none.
func placeOf(commands func() *kong.Application, kctx *kong.Context, args []string, config string) commandPlace {
	p := commandPlace{takes: sync.OnceValue(func() map[string]map[string]bool { return flagsOfAll(commands()) })}
	for _, at := range kctx.Path {
		switch {
		case at.Flag != nil && !at.Resolved:
			seen := slices.ContainsFunc(p.typed, func(f typedFlag) bool { return f.name == at.Flag.Name })
			if !seen && (typedFlag{name: at.Flag.Name}).order() >= 0 {
				p.typed = append(p.typed, asTyped(at.Flag, args)...)
			}
		case at.Positional != nil && at.Positional.Name == "script":
			p.script = shellWord(at.Positional.Target.String())
		}
	}
	if config != "" {
		p.typed = append(p.typed, typedFlag{"cluster", " --cluster " + shellWord(config)})
	}
	slices.SortStableFunc(p.typed, func(a, b typedFlag) int { return cmp.Compare(a.order(), b.order()) })
	return p
}

// flagsOfAll has the flags of each command, by its words.
func flagsOfAll(model *kong.Application) map[string]map[string]bool {
	takes := map[string]map[string]bool{}
	for _, leaf := range model.Leaves(true) {
		flags := map[string]bool{}
		for _, group := range leaf.AllFlags(true) {
			for _, f := range group {
				flags[f.Name] = true
			}
		}
		takes[commandWords(leaf)] = flags
	}
	return takes
}

// asTyped finds a flag among the arguments, each time that it is there.
func asTyped(f *kong.Flag, args []string) (out []typedFlag) {
	add := func(value string) { out = append(out, typedFlag{f.Name, " --" + f.Name + " " + shellWord(value)}) }
	for i, arg := range args {
		value, whole := strings.CutPrefix(arg, "--"+f.Name+"=")
		switch {
		case arg == "--":
			return out
		case arg == "--"+f.Name && f.IsBool():
			out = append(out, typedFlag{f.Name, " " + arg})
		case whole:
			add(value)
		case arg == "--"+f.Name && i+1 < len(args):
			add(args[i+1])
		}
	}
	return out
}

func (f typedFlag) order() int {
	return slices.Index(slices.Concat(scriptFlagNames, placeFlagNames), f.name)
}

// proposed finds commands in what people are told: between accents, or in a sentence.
var proposed = regexp.MustCompile(
	"`thalweg ((?:cluster |hooks )?[a-z]+)[^`]*`|\\bthalweg ((?:cluster |hooks )?[a-z]+)\\b")

// here adds the place to the commands of a text: behind them where it can be seen where they end, else
// behind their names.
func (p commandPlace) here(text string) string {
	if len(p.typed) == 0 {
		return text
	}
	var b strings.Builder
	from := 0
	for _, m := range proposed.FindAllStringSubmatchIndex(text, -1) {
		end := m[1]
		var words string
		if m[2] >= 0 {
			end--
			words = p.wordsFor(text[m[2]:m[3]], text[m[0]:end])
		} else {
			rest, _, _ := strings.Cut(text[m[4]:], "thalweg ")
			rest, _, _ = strings.Cut(rest, "\n")
			words = p.wordsFor(text[m[4]:m[5]], rest)
		}
		if p.within != nil {
			words = p.within(words)
		}
		b.WriteString(text[from:end] + words)
		from = end
	}
	return b.String() + text[from:]
}

// line writes an action as a command that is typed for this place. Arguments that are no flags of the
// command are its words, in their order.
func (p commandPlace) line(a view.Action) string {
	command := strings.ReplaceAll(a.Verb, "-", " ")
	words, flags := "", ""
	for _, arg := range a.Args {
		switch flag := p.isFlag(command, arg.Name); {
		case p.server && slices.Contains(hereOnly, arg.Name):
		case flag && arg.Value == "":
			flags += " --" + arg.Name
		case flag:
			flags += " --" + arg.Name + " " + shellWord(arg.Value)
		case arg.Value != "":
			words += " " + shellWord(arg.Value)
		}
	}
	line := "thalweg " + command + words + flags
	return line + p.wordsFor(command, line)
}

// wordNames are the arguments that are words of a command whose flags are not known yet.
var wordNames = []string{"run", "gate", "script", "query", "file", "dir"}

func (p commandPlace) isFlag(command, name string) bool {
	if p.takes == nil {
		return !slices.Contains(wordNames, name)
	}
	return p.takes()[command][name]
}

// Action implements action.Renderer: within a sentence a command is between accents.
func (p commandPlace) Action(a view.Action, alone bool) string {
	line := p.line(a)
	if !alone {
		line = "`" + line + "`"
	}
	if p.within != nil {
		return p.within(line)
	}
	return line
}

// Setting implements action.Renderer.
func (p commandPlace) Setting(s view.Arg) string {
	flag := "--" + s.Name
	if s.Value != "" {
		flag += " " + s.Value
	}
	if p.within != nil {
		return p.within(flag)
	}
	return flag
}

// text renders the actions and settings of a text, and adds the place to its commands.
func (p commandPlace) text(text string) string { return view.RenderActions(p.here(text), p) }

// wordsFor are the flags that a command has to be told, and does not say itself.
func (p commandPlace) wordsFor(command, line string) (words string) {
	if len(p.typed) == 0 {
		return ""
	}
	flags := p.takes()[command]
	says := func(name string) bool { return strings.Contains(line+" ", " --"+name+" ") }
	same := p.script != "" && strings.Contains(line+" ", " "+p.script+" ")
	for _, f := range p.typed {
		switch {
		case !flags[f.name], says(f.name):
		case f.name == "server" && !answered(command):
		case slices.Contains(scriptFlagNames, f.name) && !same:
		case (f.name == "cluster" || f.name == "state") && (says("cluster") || says("state")):
		default:
			words += f.words
		}
	}
	return words
}

// elsewhere is the place for who reads of it in another directory, or in a shell with other variables: all of it is
// said, whether it was typed, named by a variable, or is the default.
func (p commandPlace) elsewhere(kctx *kong.Context, env *app.Environment) commandPlace {
	values, typed := map[string]string{}, map[string]bool{}
	for _, f := range kctx.Flags() {
		if slices.Contains(placeFlagNames, f.Name) {
			values[f.Name] = f.Target.String()
		}
	}
	for _, f := range p.typed {
		typed[f.name] = true
	}
	out := commandPlace{takes: p.takes}
	say := func(name, value string) {
		out.typed = append(out.typed, typedFlag{name, " --" + name + " " + shellWord(value)})
	}
	has := func(name string) bool {
		return env != nil && !typed["state"] && !typed["cluster"] &&
			slices.ContainsFunc(env.Flags, func(f app.EnvironmentFlag) bool { return f.Name == name })
	}
	switch {
	case has("state") || has("cluster"): // the environment says which
	case values["cluster"] != "":
		say("cluster", absolute(values["cluster"]))
	case values["state"] != "":
		say("state", absolute(values["state"]))
	}
	if name := values["workspace"]; name != "" && name != app.DefaultWorkspace {
		say("workspace", name)
	}
	if env != nil {
		say("env", env.Name)
	}
	return out
}

// absolute is a path as it is seen from everywhere.
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// placedWriter renders the actions of all that is written for people, and adds the place to its commands.
type placedWriter struct {
	at commandPlace
	w  io.Writer
}

// Write implements io.Writer.
func (p placedWriter) Write(b []byte) (int, error) {
	at, text := p.at, string(b)
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		at.within = withinJSON
	}
	if _, err := io.WriteString(p.w, at.text(text)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// withinJSON is a text as it stands within one of JSON.
func withinJSON(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // into memory, of a text
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// place lets all that is told from now on name the place in its commands. What a worker or scheduler says is read
// elsewhere.
func (a *console) place(at commandPlace, kctx *kong.Context) {
	a.at, a.away = at, at.elsewhere(kctx, a.environment)
	if words, _, _ := strings.Cut(kctx.Command(), " "); words == "worker" || words == "scheduler" {
		a.at = a.away
	}
	a.stdout, a.stderr = placedWriter{a.at, a.stdout}, placedWriter{a.at, a.stderr}
}

// command writes an action as a command that is typed for this place.
func (a *console) command(do view.Action) string { return a.at.line(do) }

// shellWord quotes a word for a shell where it has to be.
func shellWord(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_-+.,:=/@%", r))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
