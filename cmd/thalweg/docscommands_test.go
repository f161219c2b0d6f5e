package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
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
			if words[0] == "…" || formats.MatchString(line) || strings.HasPrefix(words[0], "-") ||
				strings.ToUpper(words[0]) == words[0] {
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
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+(?: [a-z]+)?)[^`]*`.*$").
		FindAllStringSubmatch(string(page),
			-1) {
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

// unrun are pages with blocks of commands that no test runs as they are printed, and why. What
// they write of thalweg is looked at above.
var unrun = map[string]string{
	"deploy":     "asks machines of AWS: make deploy-check plans and installs them here",
	"fleet":      "needs Cassandra and a broker: testdata/cluster has the commands",
	"installing": "changes the machine: scripts/release-check installs what is released",
	"serving":    "serves until it is told to end, and asks as people who sign in: TestFirstWalk",
	"services":   "starts services, and containers",
	"schedules":  "serves until it is told to end: testdata/script/scheduler.txtar",
}

// The commands of the pages that are no examples of their own run as they are printed, each
// block as a program of the shell, with what testdata/pages puts there before.
func TestPagesCommandsRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
		before := filepath.Join("testdata/pages", name+".txtar")
		if unrun[name] != "" || len(blocks) == 0 {
			require.NoFileExists(t, before)
			continue
		}
		require.FileExists(t, before, "%s has commands that no test runs", page)
		archive, err := txtar.ParseFile(before)
		require.NoError(t, err)
		for i, block := range blocks {
			file := fmt.Sprintf("block%d", i+1)
			require.Contains(t, string(archive.Comment), file, "%s: nothing runs\n%s", before, block[1])
			archive.Files = append(archive.Files, txtar.File{Name: file, Data: []byte(block[1])})
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".txtar"), txtar.Format(archive), 0o600))
	}
	testscript.Run(t, testscript.Params{Dir: dir, RequireExplicitExec: true})
}
