package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// fence finds a fenced block that has a file's name behind its language.
var fence = regexp.MustCompile("(?ms)^```[a-z]* ([A-Za-z0-9_./-]+)\n(.*?)^```$")

// TestDocs runs the examples of the pages in docs that have blocks with names
// of files: those are the files of an example, want/NAME what is in NAME
// after the run. Several scripts on a page are several examples; one whose
// blocks are the same as an earlier one's need not repeat them. Blocks named
// commands have the command lines, by default thalweg run script.yaml; with them
// an example needs no script.
func TestDocs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var pages []string
	for _, pattern := range []string{"../../docs/*.md", "../../docs/nodes/*.md", "../../README.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	count := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for i, archive := range examples(string(text)) {
			count++
			name := fmt.Sprintf("%s_%d.txtar", strings.TrimSuffix(filepath.Base(page), ".md"), i+1)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), txtar.Format(archive), 0o600))
		}
		if filepath.Base(filepath.Dir(page)) == "nodes" {
			require.Regexp(t, fence, string(text), "%s has no example", page)
		}
	}
	require.NotZero(t, count)
	testscript.Run(t, testscript.Params{Dir: dir, RequireExplicitExec: true})
}

// examples makes scripts of a page.
func examples(page string) []*txtar.Archive {
	var out []*txtar.Archive
	files := map[string]string{}
	var names []string
	flush := func() {
		if files["script.yaml"] != "" || files["commands"] != "" {
			out = append(out, example(names, files))
		}
	}
	for _, m := range fence.FindAllStringSubmatch(page, -1) {
		name, text := m[1], m[2]
		if name == "script.yaml" && files[name] != "" {
			flush()
			for n := range files { // inputs stay, results and commands do not
				if strings.HasPrefix(n, "want/") || n == "commands" {
					delete(files, n)
				}
			}
		}
		if files[name] == "" {
			names = append(names, name)
		}
		if name == "commands" { // several blocks are run in their order
			text = files[name] + text
		}
		files[name] = text
	}
	flush()
	return out
}

func example(names []string, files map[string]string) *txtar.Archive {
	commands := files["commands"]
	if commands == "" {
		commands = "thalweg run script.yaml\n"
	}
	var script strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(commands), "\n") {
		fmt.Fprintf(&script, "exec %s\n", strings.TrimPrefix(line, "$ "))
	}
	a := &txtar.Archive{}
	done := map[string]bool{"commands": true}
	for _, name := range names {
		text := files[name]
		if done[name] || text == "" {
			continue
		}
		done[name] = true
		if made, ok := strings.CutPrefix(name, "want/"); ok {
			fmt.Fprintf(&script, "exec diff -b %s %s\n", made, name) // headers end in CRLF, which a page cannot show
		}
		a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	a.Comment = []byte(script.String())
	return a
}

// TestReadmeCommands runs the README's commands as they are printed, from the
// project's folder as it is after make build: each by itself (behind the run, if it
// asks about a run), so that none leans on what another one happened to leave, and
// then all of them in their order.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(string(text))
	require.NotNil(t, block, "README.md has no block of commands")
	examples, err := filepath.Abs("../../examples")
	require.NoError(t, err)
	dir := t.TempDir()
	place := func(name string, commands []string, then string) {
		archive := &txtar.Archive{
			Comment: []byte("symlink examples -> " + examples + "\nchmod 755 bin/thalweg\nexec sh -e commands\n" + then),
			Files: []txtar.File{
				{Name: "commands", Data: []byte(strings.Join(commands, "\n") + "\n")},
				{Name: "bin/thalweg", Data: []byte("#!/bin/sh\nexec thalweg \"$@\"\n")},
			},
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".txtar"), txtar.Format(archive), 0o600))
	}
	commands := strings.Split(strings.TrimSpace(block[1]), "\n")
	aboutRuns := regexp.MustCompile(`^bin/thalweg (sql|runs|history|show|why|nodes|batches|checks)\b`)
	begin := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "bin/thalweg run ") })
	require.GreaterOrEqual(t, begin, 0)
	for i, command := range commands {
		alone := []string{command}
		if aboutRuns.MatchString(command) {
			alone = []string{commands[begin], command}
		}
		place(fmt.Sprintf("readme_%02d", i), alone, "")
	}
	place("readme_all", commands, "stdout '(?m)^5 *$'\n"+
		"stdout 'examples/orders/short.yaml: 5 nodes, no errors'\n"+
		"exists demo/items.yaml demo/orders.svg demo/orders/orders.csv\n")
	testscript.Run(t, testscript.Params{Dir: dir, RequireExplicitExec: true})
}

// Each promise of docs/guarantees.md names a test that exists.
func TestGuaranteesNameTheirTests(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	require.NoError(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	}))
	promises := between(t, "../../docs/guarantees.md", "\n## What is promised\n", "\n## Crash points\n") // worker.TestEveryCrashPointIsListed is for these
	features := between(t, "../../docs/features.md", "\n# What there is\n", "")
	there := 0
	named := regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]+|testdata/script/[a-z_]+\.txtar|` + "`statetest`")
	for line := range strings.Lines(promises + features) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| guarantee |") || strings.HasPrefix(line, "| feature |") || strings.HasPrefix(line, "| ---") {
			continue
		}
		if strings.Contains(line, " | yes | ") {
			there++
		}
		names := named.FindAllString(line, -1)
		if strings.Contains(line, " | no | ") {
			require.Empty(t, names, line)
			continue
		}
		require.NotEmpty(t, names, line)
		for _, name := range names {
			switch {
			case strings.HasPrefix(name, "testdata/"):
				require.FileExists(t, name, line)
			case strings.HasPrefix(name, "Test"):
				require.True(t, tests[name], "there is no %s: %s", name, line)
			}
		}
	}
	require.GreaterOrEqual(t, there, 20, "features that are there")
}

// between is the part of a page between two of its lines; without an end all that follows.
func between(t *testing.T, path, begin, end string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	_, rest, found := strings.Cut("\n"+string(page), begin)
	require.True(t, found, path)
	if end != "" {
		rest, _, found = strings.Cut(rest, end)
		require.True(t, found, path)
	}
	return rest
}
