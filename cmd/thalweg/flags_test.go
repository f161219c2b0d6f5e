package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// TestNothingEmptySelects gives every option and every argument of every command values that are empty: none may be
// taken for all there is.
func TestNothingEmptySelects(t *testing.T) {
	t.Chdir(t.TempDir())
	k, err := newParser(t.Context(), &console{stdout: io.Discard, stderr: io.Discard}, &cli{}, func(int) {})
	require.NoError(t, err)
	tried := 0
	for _, leaf := range k.Model.Leaves(true) {
		command := strings.Fields(commandWords(leaf))
		for _, flags := range leaf.AllFlags(true) {
			for _, f := range flags {
				if f.IsBool() || f.Name == "help" {
					continue
				}
				for i, value := range emptyValues(f.Value) {
					tried++
					given := append(withArguments(leaf, command), "--"+f.Name+"="+value)
					if i == 0 {
						require.Equal(t, "", notRefused(t, given, "--"+f.Name))
						given = append(withArguments(leaf, command), "--"+f.Name, value)
					}
					var empty *emptyError
					_, err := k.Parse(given)
					require.ErrorAs(t, err, &empty, "%q", given)
				}
			}
		}
		for i, arg := range leaf.Positional {
			for _, value := range emptyValues(arg) {
				tried++
				args := withArguments(leaf, command)
				args[len(command)+i] = value
				require.Equal(t, "", notRefused(t, args, "<"+arg.Name+">"))
			}
		}
	}
	require.Greater(t, tried, 400)
}

// emptyValues returns the empty and blank values to try for an option or argument.
func emptyValues(v *kong.Value) []string {
	_, optional := mayBeEmpty[v.Name]
	switch {
	case v.IsMap() && optional:
		return []string{"", "  ", "=x", " =x"}
	case v.IsMap():
		return []string{"", "  ", "=x", "x="}
	case optional:
		return nil
	case slices.Contains(mayBeBlank, v.Name):
		return []string{""}
	case v.IsSlice() && v.Flag != nil && v.Tag.Sep != -1:
		return []string{"", " ", ",", "a,", ",a", "a,,b", "a, ,b", " , "}
	}
	return []string{"", " ", "\t\n"}
}

// withArguments is a command with a word for each of its arguments.
func withArguments(leaf *kong.Node, command []string) []string {
	args := slices.Clone(command)
	for _, arg := range leaf.Positional {
		word := "1"
		if arg.Tag.Enum != "" {
			word, _, _ = strings.Cut(arg.Tag.Enum, ",")
		}
		args = append(args, word)
	}
	return args
}

// notRefused says how a command line was not refused as one with an empty value.
func notRefused(t *testing.T, args []string, named string) string {
	t.Helper()
	var out bytes.Buffer
	code := run(t.Context(), args, &console{stdout: io.Discard, stderr: &out})
	if said := out.String(); code != exitUsers || !strings.Contains(said, named) || !strings.Contains(said, "empty") {
		return fmt.Sprintf("%q ends with %d: %s", args, code, said)
	}
	return ""
}

// TestWhatMayBeEmptyIsThere holds the lists of exceptions against the options that there are.
func TestWhatMayBeEmptyIsThere(t *testing.T) {
	t.Parallel()
	k, err := newParser(t.Context(), &console{stdout: io.Discard, stderr: io.Discard}, &cli{}, func(int) {})
	require.NoError(t, err)
	there := map[string]bool{}
	require.NoError(t, kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if v, ok := node.(*kong.Value); ok {
			there[v.Name] = true
		}
		return next(nil)
	}))
	for name := range mayBeEmpty {
		require.True(t, there[name], name)
	}
	for _, name := range mayBeBlank {
		require.True(t, there[name], name)
	}
}
