package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// environmentFlags are of all commands.
type environmentFlags struct {
	Env    string  `help:"Environment of the nearest thalweg.yaml." env:"THALWEG_ENV" placeholder:"NAME" group:"Environments"`
	Server string  `help:"Ask this server instead of a state directory." env:"THALWEG_SERVER" placeholder:"URL" group:"Environments"`
	Yes    consent `help:"Do it without asking; --yes NAME in the environment NAME." group:"Environments"`
}

// consent is --yes: alone, or with the name of an environment.
type consent struct {
	given bool
	name  string
}

// IsBool implements kong.BoolMapperValue: a word behind the flag belongs to it only as --yes=NAME.
func (c *consent) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (c *consent) Decode(ctx *kong.DecodeContext) error {
	c.given = true
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	if err := checkFilled(ctx); err != nil {
		return err
	}
	return ctx.Scan.PopValueInto("name", &c.name)
}

// nameConsent gives --yes the word behind it where that names an environment: where one is chosen, or the project has
// it.
func nameConsent(args []string) []string {
	at := slices.Index(args, "--yes")
	end := slices.Index(args, "--")
	if at < 0 || at+1 >= len(args) || end >= 0 && end <= at+1 || strings.HasPrefix(args[at+1], "-") {
		return args
	}
	chosen := os.Getenv("THALWEG_ENV") != "" || slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--env" || strings.HasPrefix(arg, "--env=")
	})
	if dir, err := os.Getwd(); !chosen &&
		(err != nil || !slices.Contains(app.Environments(app.FindProject(dir)), args[at+1])) {
		return args
	}
	return slices.Concat(args[:at], []string{"--yes=" + args[at+1]}, args[at+2:])
}

// settle puts an environment in force for the command that is parsed.
func (f environmentFlags) settle(a *console, kctx *kong.Context) error {
	a.typed = typedFlags(kctx)
	if f.Env == "" {
		if f.Yes.name != "" {
			return &fault.Error{Kind: fault.Script, Message: "--yes names an environment, and none is chosen",
				Hint: "write --env " + f.Yes.name + ", too"}
		}
		a.confirmed = f.Yes.given
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	path := app.FindProject(dir)
	if path == "" {
		return &fault.Error{Kind: fault.Script, Message: "there is no " + app.ProjectFile +
			" with environments, here or in a directory above",
			Hint: "make one: environments: {" + f.Env + ": {state: .thalweg}}; docs/environments.md has all keys"}
	}
	if rel, err := filepath.Rel(dir, path); err == nil {
		path = rel
	}
	env, err := app.LoadEnvironment(path, f.Env, a.process())
	if err != nil {
		return err
	}
	switch {
	case f.Yes.name != "" && f.Yes.name != env.Name:
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("--yes %s does not name the environment, which is %s",
				f.Yes.name, env.Name), Hint: "if " + env.Name + " is meant, write --yes " + env.Name}
	case f.Yes.given && f.Yes.name == "" && env.Protected:
		return &fault.Error{Kind: fault.Script, Message: "--yes does not name the environment, which is protected",
			Hint: "if " + env.Name + " is meant, write --yes " + env.Name}
	}
	a.environment, a.confirmed = env, f.Yes.given
	for _, v := range env.Env {
		if err := os.Setenv(v.Name, v.Value); err != nil {
			return &fault.Error{Kind: fault.Script, Message: path + ": under env, " + view.Quote(v.Name) +
				" cannot be the name of a variable", Err: err,
				Hint: "use letters, digits and underscores"}
		}
	}
	return apply(env, path, a.typed, a.commands, kctx)
}

// typedFlags names the flags of the command line itself: not those that variables and
// environments give.
func typedFlags(kctx *kong.Context) map[string]bool {
	typed := map[string]bool{}
	for _, p := range kctx.Path {
		if p.Flag != nil && !p.Resolved {
			typed[p.Flag.Name] = true
		}
	}
	return typed
}

// apply gives the flags of the command the environment's values, where the command line says nothing.
func apply(env *app.Environment, path string, said map[string]bool, commands func() *kong.Application,
	kctx *kong.Context) error {
	var known []string
	for _, leaf := range commands().Leaves(true) {
		for _, group := range leaf.AllFlags(true) {
			for _, flag := range group {
				known = append(known, flag.Name)
			}
		}
	}
	flags := map[string]*kong.Flag{}
	for _, flag := range kctx.Flags() {
		flags[flag.Name] = flag
	}
	for _, want := range env.Flags {
		flag := flags[want.Name]
		switch {
		case !slices.Contains(known, want.Name):
			f := &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("%s: environment %s: no command has the flag %s", path,
					env.Name, view.Quote(want.Name))}
			return f.Suggest(want.Name, known)
		case flag == nil || said[want.Name] || want.Name == "cluster" && said["state"] || want.Name == "state" &&
			said["cluster"] || want.Name == "server" && (said["state"] || said["cluster"]):
			continue
		}
		if err := flag.Parse(kong.Scan().PushTyped(want.Value, kong.FlagValueToken), flag.Target); err != nil {
			var empty *emptyError
			if errors.As(err, &empty) {
				err = empty
			}
			return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%s: environment %s: %v", path, env.Name, err)}
		}
	}
	preferDirectory(env, said, flags)
	if flag := flags["param"]; flag != nil {
		given, _ := flag.Target.Interface().(map[string]string)
		if given == nil {
			given = map[string]string{}
		}
		for name, value := range env.Values {
			if _, ok := given[name]; !ok {
				given[app.SpareParam+name] = value
			}
		}
		flag.Target.Set(reflect.ValueOf(given))
	}
	return nil
}

// preferDirectory lets the environment's state directory count instead of a cluster that a variable names, and either
// of them instead of a server that one names.
func preferDirectory(env *app.Environment, said map[string]bool, flags map[string]*kong.Flag) {
	has := func(name string) bool {
		return slices.ContainsFunc(env.Flags, func(f app.EnvironmentFlag) bool { return f.Name == name })
	}
	if flag := flags["cluster"]; flag != nil && has("state") && !said["cluster"] {
		flag.Target.SetString("")
	}
	if flag := flags["server"]; flag != nil && (has("state") || has("cluster")) && !said["server"] {
		flag.Target.SetString("")
	}
}

// replaced is one thing that a command replaces or takes away.
type replaced = view.Replaced

// protected reports whether an environment is chosen that is.
func (a *console) protected() bool { return a.environment != nil && a.environment.Protected }

// confirm asks, in an environment that is protected, before something is replaced. Without a terminal it refuses,
// unless --yes has named the environment.
func (a *console) confirm(ctx context.Context, does string, what []replaced) error {
	if !a.protected() || len(what) == 0 {
		return nil
	}
	name := a.environment.Name
	lines := linesOf(what)
	if a.confirmed {
		a.note("%s is protected; as --yes %s says, this %s %s", name, name, does, strings.Join(lines, ", "))
		return nil
	}
	ask, done := a.questions()
	defer done()
	if ask == nil {
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("environment %s is protected, and there is no terminal to ask at", name),
			Hint:    "if this is meant, add --yes " + name, Detail: "it " + does + "\n" + strings.Join(lines, "\n")}
	}
	fmt.Fprintf(ask, "%s is protected. This %s\n  %s\n", a.mark(name, bold), does, strings.Join(lines, "\n  "))
	return expect(ctx, ask, name)
}

// confirmTaking asks before something is taken away that does not come back: as confirm in an environment that is
// protected, and elsewhere where somebody can answer.
func (a *console) confirmTaking(ctx context.Context, does string, what []replaced) error {
	if a.protected() || a.confirmed || len(what) == 0 {
		return a.confirm(ctx, does, what)
	}
	ask, done := a.questions()
	defer done()
	if ask == nil {
		return nil
	}
	fmt.Fprintf(ask, "This %s\n  %s\n", does, strings.Join(linesOf(what), "\n  "))
	return expect(ctx, ask, "yes")
}

// expect goes on if a word is typed.
func expect(ctx context.Context, ask io.Writer, word string) error {
	fmt.Fprintf(ask, "Type %s to go on: ", word)
	answer, err := readLine(ctx, os.Stdin)
	if err != nil {
		return err
	}
	if strings.TrimSpace(answer) != word {
		return &fault.Error{Kind: fault.Script, Message: "nothing was done: " + word + " was not typed"}
	}
	return nil
}

// linesOf has a line of each thing.
func linesOf(what []replaced) []string {
	lines := make([]string, len(what))
	for i, w := range what {
		if lines[i] = plain(w.What); w.Note != "" {
			lines[i] += "  (" + plain(w.Note) + ")"
		}
	}
	return lines
}

// questions returns the terminal on which questions are asked; nil without a terminal to read
// answers from. done closes it.
func (a *console) questions() (to io.Writer, done func()) {
	switch {
	case !term.IsTerminal(int(os.Stdin.Fd())):
		return nil, func() {}
	case term.IsTerminal(int(os.Stderr.Fd())):
		return a.stderr, func() {}
	}
	screen, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0) // standard error goes to a file
	if err != nil {
		return nil, func() {}
	}
	return a.known.Writer(screen), func() { _ = screen.Close() }
}

// answerBytesMax bounds what is typed.
const answerBytesMax = 1 << 10

// readLine reads a line, or gives up when the command is interrupted. The
// goroutine then ends with the process: nothing else ends a read of a terminal.
func readLine(ctx context.Context, from io.Reader) (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := bufio.NewReader(io.LimitReader(from, answerBytesMax)).ReadString('\n')
		if err == io.EOF {
			err = nil
		}
		got <- answer{text, err}
	}()
	select {
	case one := <-got:
		return one.text, one.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// confirmOutputs asks in a protected environment before the output files of a run are replaced.
func (c *runCmd) confirmOutputs(ctx context.Context, a *console, place *workplace, opts app.RunOptions) error {
	switch {
	case a.environment == nil || !a.environment.Protected:
		return nil
	case c.Resume:
		return a.confirm(ctx, "goes on with", []replaced{{What: "a run, which writes its files"}})
	case len(c.Matrix) > 0:
		return a.confirm(ctx, "replaces", []replaced{{What: "the files of all cells of --matrix that are there"}})
	}
	if a.server != "" {
		return a.confirm(ctx, "starts", []replaced{{What: "a run, which writes its files"}})
	}
	s, _, err := c.valid(ctx, a)
	if err != nil {
		return err
	}
	what, err := place.home.Replaces(ctx, s, opts)
	if err != nil {
		return err
	}
	return a.confirm(ctx, "replaces", what)
}
