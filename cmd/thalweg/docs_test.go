package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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

// TestReadmeCommands runs the README's commands as they are printed, in their order: from the
// project's folder as it is behind make build with bin in the PATH, and with a file of the reader's own.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	own, err := os.ReadFile("../../examples/orders/in/items.csv")
	require.NoError(t, err)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	var commands strings.Builder
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		commands.WriteString(block[1])
	}
	require.Contains(t, commands.String(), "thalweg infer sales.csv ")
	const figures = `grep -o '>[^<]*</text>' | sed -E 's/[0-9.,]+ (ms|s|min|B|KiB)/FIGURE/g; s/begun .* UTC/begun/'`
	archive := &txtar.Archive{
		Comment: []byte("symlink examples -> " + root + "/examples\nexec sh -ex commands\n" +
			"stdout '(?m)^run 1 in workspace main: complete in '\n" +
			"stdout 'o-1 +Bulb E27 +4 +2.75'\n" +
			"stdout 'sales.yaml: 2 nodes, no errors'\n" +
			"stdout 'examples/orders/in/items.csv:4  o-2,Desk,1,249.00'\n" +
			"stderr '6 tests passed'\n" +
			"grep '<svg ' sales.svg\n" +
			"exec sh -e picture\ncmp stdout shown\n"),
		Files: []txtar.File{
			{Name: "commands", Data: []byte(commands.String())},
			{Name: "sales.csv", Data: own},
			// The picture is that of the example's first run, but for its times and sizes.
			{Name: "picture",
				Data: []byte("thalweg run examples/orders/short.yaml --params examples/orders/params.yaml " +
					"--state new >ran\n" +
					"thalweg show --state new --svg | " + figures + "\n" + "<" + root + "/docs/run.svg " +
					figures + " >shown\n")},
		},
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "readme.txtar"), txtar.Format(archive), 0o600))
	testscript.Run(t, testscript.Params{Dir: dir, RequireExplicitExec: true})

	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	targets := regexp.MustCompile(`(?m)^make ([a-z-]+)`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, targets)
	for _, target := range targets {
		require.Regexp(t, `(?m)^`+target[1]+`:`, string(makefile))
	}
}

// The commands of the examples' pages run as they are printed, from the project's folder.
func TestExamplesRunAsTheySay(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	for example, wrote := range map[string]string{"orders": "demo/orders/orders.csv demo/orders/orders.parquet",
		"lookup": "demo/lookup.svg"} {
		text, err := os.ReadFile(filepath.Join(root, "examples", example, "README.md"))
		require.NoError(t, err)
		block := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(string(text))
		require.NotNil(t, block, example)
		archive := &txtar.Archive{
			Comment: []byte("symlink examples -> " + root + "/examples\nexec sh -ex commands\nexists " + wrote + "\n"),
			Files:   []txtar.File{{Name: "commands", Data: []byte(block[1])}},
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, example+".txtar"), txtar.Format(archive), 0o600))
	}
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
	// job.TestEveryCrashPointIsListed is for these
	promises := between(t, "../../docs/guarantees.md", "\n## What is promised\n", "\n## Crash points\n")
	features := between(t, "../../docs/features.md", "\n# What there is\n", "")
	there := 0
	named := regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]+|testdata/script/[a-z_]+\.txtar|ui/test/[a-z]+\.test\.mjs|` + "`statetest`")
	for line := range strings.Lines(promises + features) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| guarantee |") ||
			strings.HasPrefix(line, "| feature |") || strings.HasPrefix(line, "| ---") {
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
			case strings.HasPrefix(name, "ui/"):
				require.FileExists(t, "../../"+name, line)
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
