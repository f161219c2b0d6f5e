package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// textMemory is the --memory of the test, and how much more a process may take
// for texts, which DuckDB does not count.
const (
	textMemoryBytes   = 512 << 20
	textMemoryPercent = 130
)

// longTexts are expressions over r.k of 8 bytes and r.s of 10 KB of which each
// row would take up to terabytes. fits: they give results after all.
func longTexts() []struct {
	name, expression string
	fits, sample     bool
} {
	nested := func(times int, inner, from, to string) string {
		return strings.Repeat("strings.ReplaceAll(", times) + inner + strings.Repeat(", `"+from+"`, `"+to+"`)", times)
	}
	return []struct {
		name, expression string
		fits, sample     bool
	}{
		{"doubled 40 times", nested(40, "r.k", "a", "aa"), false, true},
		{"doubled 10 times", nested(10, "r.k", "a", "aa"), true, false},
		{"grown at the end", nested(60, "r.k", "x", "xx"), true, false},
		{"between all characters", "strings.ReplaceAll(r.s, ``, `" + strings.Repeat("long ", 400) + "`)", false, false},
		{"itself in itself", "strings.ReplaceAll(r.s, `o`, r.s)", false, false},
		{"what is replaced is a field", "strings.ReplaceAll(r.s, r.k, r.s + r.s)", true, false},
		{"a chain", strings.Repeat("r.s + ", 59) + "r.s", false, true},
		{"a chain of branches", strings.Repeat("iif(r.k == ``, r.k, r.s) + ", 59) + "r.s", false, false},
		{"chains in chains", "strings.ReplaceAll(" + strings.Repeat("r.s + ", 59) + "r.s, `a`, " +
			strings.Repeat("r.s + ",
				59) + "r.s)", false, false},
		{"branches in a format", "fmt.Sprintf(`" + strings.Repeat("%s", 60) + "`" +
			strings.Repeat(", iif(r.k == ``, r.k, r.s)", 60) + ")", false, false},
		{"wide", "fmt.Sprintf(`" + strings.Repeat("%1000s", 100) + "`" + strings.Repeat(", r.k", 100) +
			")", false, false},
		{"less wide", "fmt.Sprintf(`" + strings.Repeat("%100s", 100) + "`" + strings.Repeat(", r.k", 100) +
			")", true, false},
		{"printed by Go", "fmt.Sprintf(`" + strings.Repeat("%[1]q", 60) + "`, r.s)", false, false},
		{"printed by Go, in a format of its own", "fmt.Sprintf(strings.ReplaceAll(r.s, `w`, `%[1]s`), r.s)", false,
			false},
		{"a constant", "r.k + " + nested(16, "`aaaaaaaa`", "a", "aa"), false, false},
		{"a condition", "iif(len(" + nested(40, "r.k", "a", "aa") + ") > 3, r.k, r.k)", false, false},
		{"a page, escaped", "strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(r.s, `&`, `&amp;`), `<`, " +
			"`&lt;`), `>`, `&gt;`)", true, false},
	}
}

// TestChaosTextMemory computes texts that would not fit into memory, in
// batches of 2,048 rows: results or a message, within the budget.
func TestChaosTextMemory(t *testing.T) {
	const script = `nodes:
  texts:
    type: file_table
    r: {urls: [../in.csv], types: {k: string, s: string}}
    w: {name: texts, fields: [{n: 'len(EXPRESSION) + 0'}]}
`
	const rows = 6000
	all := t.TempDir()
	in, err := os.Create(filepath.Join(all, "in.csv"))
	require.NoError(t, err)
	// Not all in memory: a child begins with the largest memory that its parent had.
	fmt.Fprintln(in, "k,s")
	for i := range rows {
		fmt.Fprintf(in, "aaaa%d,row %d%s\n", i+1000, i, strings.Repeat(" with <text> of its own", 450))
	}
	require.NoError(t, in.Close())
	for _, c := range longTexts() {
		if !effort.All() && !c.sample {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			dir, err := os.MkdirTemp(all, "")
			require.NoError(t, err)
			text := strings.ReplaceAll(script, "EXPRESSION", c.expression)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(text), 0o600))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			run := thalweg(ctx, dir, "run", "script.yaml", "--memory", "512MB")
			said, err := run.CombinedOutput()
			usage := run.ProcessState.SysUsage().(*syscall.Rusage)
			t.Logf("%d MiB, %s", usage.Maxrss>>10, run.ProcessState.UserTime())
			const most = textMemoryBytes * textMemoryPercent / 100
			require.Less(t, usage.Maxrss<<10, int64(most), "%s", said)
			if c.fits {
				require.NoError(t, err, "%s", said)
				return
			}
			require.Equal(t, exitUsers, run.ProcessState.ExitCode(), "%s", said)
			require.Contains(t, string(said),
				"are the most that its share of the memory holds (give more memory, or fewer cores)")
		})
	}
}
