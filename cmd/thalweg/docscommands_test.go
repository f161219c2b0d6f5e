package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Commands and flags that the pages write are there, also where no test runs the line.
func TestPagesWriteCommandsThatAreThere(t *testing.T) {
	t.Parallel()
	flags := flagsOfCommands(t)
	var (
		fenced  = regexp.MustCompile("(?m)^(?:\\$ )?(?:exec )?(?:bin/)?thalweg [^`\n]*")
		spans   = regexp.MustCompile("`(?:bin/)?thalweg [^`\n]*`")
		formats = regexp.MustCompile("^`thalweg (parts|script) [0-9]+`$") // names of forms, not commands
		quoted  = regexp.MustCompile(`"[^"]*"|'[^']*'|#.*`)
	)
	seen := 0
	for path := range mdPages(t) {
		if filepath.Dir(path) == "docs/decisions" { // what was, when it was decided
			continue
		}
		text, err := os.ReadFile(filepath.Join("../..", path))
		require.NoError(t, err)
		for _, line := range append(fenced.FindAllString(string(text), -1), spans.FindAllString(string(text), -1)...) {
			words := strings.Fields(quoted.ReplaceAllString(strings.Trim(line, "`$ "), "TEXT"))[1:]
			if words[0] == "…" || formats.MatchString(line) || strings.HasPrefix(words[0], "-") || strings.ToUpper(words[0]) == words[0] {
				continue
			}
			command := strings.Trim(words[0], ",.;:)|")
			if len(words) > 1 && flags[command+" "+words[1]] != nil {
				command += " " + words[1]
			}
			if !assert.NotNil(t, flags[command], "%s: there is no command %q: %s", path, command, line) {
				continue
			}
			seen++
			checkFlags(t, flags[command], words, path+": "+line)
		}
	}
	require.Greater(t, seen, 200)
	page, err := os.ReadFile("../../docs/commands.md")
	require.NoError(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+(?: [a-z]+)?)[^`]*`.*$").FindAllStringSubmatch(string(page), -1) {
		known := map[string]bool{"version": row[1] == "version"} // --version is a word for that command
		for _, span := range codeSpans.FindAllString(row[0], -1) {
			for path, flags := range flags {
				if strings.HasPrefix(strings.Trim(span, "`")+" ", path+" ") {
					maps.Copy(known, flags)
				}
			}
		}
		if len(known) == 1 {
			continue // not of a table of commands
		}
		for _, span := range codeSpans.FindAllString(row[0], -1) {
			if words := strings.Fields(strings.Trim(span, "`")); len(words) > 0 && strings.HasPrefix(words[0], "--") {
				checkFlags(t, known, words, "docs/commands.md, "+row[1]+": "+span)
			}
		}
	}
}

func checkFlags(t *testing.T, known map[string]bool, words []string, where string) {
	t.Helper()
	for _, word := range words {
		if name := regexp.MustCompile(`^\[?--([a-z][a-z0-9-]*)`).FindStringSubmatch(word); name != nil {
			assert.True(t, known[name[1]], "there is no --%s here: %s", name[1], where)
		}
	}
}

// flagsOfCommands are the commands by their paths, each with the flags that it takes.
func flagsOfCommands(t *testing.T) map[string]map[string]bool {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.Vars{"state": "", "workspace": ""})
	require.NoError(t, err)
	out := map[string]map[string]bool{"help": {}}
	for _, leaf := range parser.Model.Leaves(false) {
		flags := map[string]bool{}
		for _, group := range leaf.AllFlags(false) {
			for _, f := range group {
				flags[f.Name] = true
				if f.Tag.Negatable != "" {
					flags["no-"+f.Name] = true
				}
			}
		}
		path := strings.Join(strings.Fields(leaf.FullPath())[1:], " ")
		out[path] = flags
		if parent, _, nested := strings.Cut(path, " "); nested && out[parent] == nil {
			out[parent] = map[string]bool{}
		}
	}
	return out
}
