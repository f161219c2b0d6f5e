package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/action"
)

// settings collects the names of settings in texts.
type settings struct{ names map[string]bool }

func (settings) Action(action.Action, bool) string { return "" }

func (s settings) Setting(arg action.Arg) string { s.names[arg.Name] = true; return "" }

// TestActionsAreThoseOfTheCommands: each action that the packages below propose is a command, each of its
// arguments a flag or a word of that, and each setting a flag of some command.
func TestActionsAreThoseOfTheCommands(t *testing.T) {
	t.Parallel()
	k, err := newParser(t.Context(), &console{}, &cli{}, func(int) {})
	require.NoError(t, err)
	takes, flags := map[string]map[string]bool{}, map[string]bool{}
	for _, leaf := range k.Model.Leaves(true) {
		names := flagsOfAll(k.Model)[commandWords(leaf)]
		for name := range names {
			flags[name] = true
		}
		for _, word := range leaf.Positional {
			names[word.Name] = true
		}
		takes[commandWords(leaf)] = names
	}
	seen := 0
	proposed := func(at token.Position, a action.Action) {
		seen++
		names, ok := takes[strings.ReplaceAll(a.Verb, "-", " ")]
		require.True(t, ok, "%s: %s is no command", at, a.Verb)
		for _, arg := range a.Args {
			require.True(t, names[arg.Name], "%s: %s takes no %s", at, a.Verb, arg.Name)
		}
	}
	set := settings{map[string]bool{}}
	eachSource(t, func(files *token.FileSet, n ast.Node) {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				for _, a := range action.In(strings.ReplaceAll(text, "%d", "1")) {
					proposed(files.Position(n.Pos()), a)
				}
				action.Render(strings.ReplaceAll(text, "%d", "1"), set)
			}
		case *ast.CallExpr:
			if a, ok := actionOf(n); ok {
				proposed(files.Position(n.Pos()), a)
			}
		}
	})
	require.Greater(t, seen, 40)
	for name := range set.names {
		require.True(t, flags[name] || flags[strings.TrimPrefix(name, "no-")], "no command has a flag --%s", name)
	}
}

// actionOf reads the verb and the names that a call of Do or Beside makes an action of, where they are literals.
func actionOf(call *ast.CallExpr) (a action.Action, ok bool) {
	fun, is := call.Fun.(*ast.SelectorExpr)
	if !is || fun.Sel.Name != "Do" && fun.Sel.Name != "Beside" || len(call.Args) == 0 {
		return a, false
	}
	for i, arg := range call.Args {
		lit, is := arg.(*ast.BasicLit)
		switch {
		case i > 0 && i%2 == 0: // a value
		case !is || lit.Kind != token.STRING:
			return a, false
		case i == 0:
			a.Verb, _ = strconv.Unquote(lit.Value)
		default:
			name, _ := strconv.Unquote(lit.Value)
			a.Args = append(a.Args, action.Arg{Name: name})
		}
	}
	if of, is := fun.X.(*ast.Ident); fun.Sel.Name == "Do" && (!is || of.Name != "action") {
		a.Args = append(a.Args, action.Arg{Name: "run"})
	}
	return a, true
}

// eachSource gives every node of the Go code of this folder and of internal, without tests.
func eachSource(t *testing.T, see func(*token.FileSet, ast.Node)) {
	t.Helper()
	for _, dir := range []string{".", "../../internal"} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "test" || d.Name() == "testdata" || d.Name() == "action"):
				return fs.SkipDir
			case d.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
				return nil
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool { see(files, n); return true })
			return nil
		}))
	}
}
