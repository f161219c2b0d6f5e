package conformance

import (
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

var update = flag.Bool("update", false, "rewrite the expectations of the cases; read the diff")

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// allCases lists the files of the cases.
func allCases(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(caseDir, "*", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// caseName is section/name.
func caseName(file string) string {
	return filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".txtar")
}

// quickSample is the number of cases of which -short runs one.
const quickSample = 4

// TestCases runs every case; with -short, a sample over all sections.
func TestCases(t *testing.T) {
	t.Parallel()
	for i, file := range allCases(t) {
		if i%effort.Of(quickSample, 1, 1) != 0 {
			continue
		}
		t.Run(caseName(file), func(t *testing.T) {
			t.Parallel()
			c, err := readCase(file)
			require.NoError(t, err)
			if c.has(fileExpressions) {
				runExpressions(t, c)
				return
			}
			runCase(t, c)
		})
	}
}

// TestChaosCasesFused runs the cases that write files and fail nowhere once
// more, with no table stored that need not be: the files are the same.
func TestChaosCasesFused(t *testing.T) {
	t.Parallel()
	ran := 0
	for i, file := range allCases(t) {
		if i%effort.Of(fusedQuick, fusedSample, 1) != 0 {
			continue
		}
		c, err := readCase(file)
		require.NoError(t, err)
		if c.first(fileExpressions, fileError, filePrefix, fileTableSQL, fileRuns) != "" || *update {
			// tables are looked at, or read by later runs; other failures are in runner.TestEphemeralFailsAsStored
			continue
		}
		ran++
		t.Run(caseName(file), func(t *testing.T) {
			t.Parallel()
			c.fused = true
			runCase(t, c)
		})
	}
	require.Positive(t, ran)
}

// Every so many cases are run with --ephemeral.
const (
	fusedQuick  = 60
	fusedSample = 12
)

// runCase runs a case with a script and compares all that came of it.
func runCase(t *testing.T, c *testCase) {
	t.Helper()
	b := newBench(t, c)
	b.fused = c.fused
	b.execute(c)
	got := b.results(c)
	want := c.wanted()
	if prefix, ok := want[filePrefix]; ok && !*update {
		require.True(t, strings.HasPrefix(got[fileError], strings.TrimSuffix(prefix, "\n")),
			"the failure is\n%s\nand should begin with\n%s", got[fileError], prefix)
		delete(want, filePrefix)
		delete(got, fileError)
	}
	if *update {
		c.rewrite(t, want, got)
		return
	}
	for name, text := range want {
		require.Contains(t, got, name, "there is no %s", name)
		require.Equal(t, text, got[name], "%s", name)
	}
	for name, text := range got {
		require.Contains(t, want, name, "%s is not expected:\n%s", name, text)
	}
}

// wanted lists the expectations of a case.
func (c *testCase) wanted() map[string]string {
	out := map[string]string{}
	for name, text := range c.files {
		if slices.Contains([]string{fileError, filePrefix, fileWarnings}, name) || strings.HasPrefix(name, wantDir) {
			out[name] = text
		}
	}
	return out
}

// results gathers what came of a case under the names of the expectations. A
// file that the case asks about by a query needs no expectation of its own.
func (b *bench) results(c *testCase) map[string]string {
	b.t.Helper()
	out := map[string]string{}
	for name, text := range b.leftFiles() {
		asked, _, _ := strings.Cut(name, "/") // a directory of files has one name
		if !strings.Contains(c.files[fileFileSQL], asked) || c.has(wantDir+name) {
			out[wantDir+name] = text
		}
	}
	if len(b.failures) > 0 {
		out[fileError] = strings.Join(b.failures, "\n")
	}
	if b.warnings != "" {
		out[fileWarnings] = b.warnings
	}
	if q := c.files[fileTableSQL]; q != "" {
		out[wantTables] = b.tables(q)
	}
	if q := c.files[fileFileSQL]; q != "" {
		out[wantFiles] = b.queryFiles(q)
	}
	return out
}

// rewrite replaces the expectations of a case by what came of it.
func (c *testCase) rewrite(t *testing.T, want, got map[string]string) {
	t.Helper()
	if _, ok := want[filePrefix]; ok {
		got[filePrefix] = want[filePrefix] // a person chose where it ends
		delete(got, fileError)
	}
	var files []txtar.File
	done := map[string]bool{}
	for _, f := range c.archive.Files {
		if _, expectation := want[f.Name]; !expectation {
			files = append(files, f)
			continue
		}
		if text, ok := got[f.Name]; ok {
			files = append(files, txtar.File{Name: f.Name, Data: []byte(text)})
			done[f.Name] = true
		}
	}
	var names []string
	for name := range got {
		if !done[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		files = append(files, txtar.File{Name: name, Data: []byte(got[name])})
	}
	c.archive.Files = files
	require.NoError(t, os.WriteFile(c.file, txtar.Format(c.archive), 0o644))
}
