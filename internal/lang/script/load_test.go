package script

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// memory serves the files of a test case.
type memory map[string]string

func (m memory) read(_ context.Context, name string) ([]byte, error) {
	text, ok := m[name]
	if !ok {
		return nil, fault.New(fault.Environment, "no such file")
	}
	return []byte(text), nil
}

func TestReadLocalRefusesPipes(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe.yaml")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	_, err := ReadLocal(t.Context(), nil, pipe)
	require.ErrorContains(t, err, "not a regular file")
}

// load loads a case: the first file named script.* is the script, params.* the parameters.
func (m memory) load(t *testing.T) (*Script, document.Diagnostics) {
	t.Helper()
	src := Sources{Read: m.read, Columns: m.columns}
	for name := range m {
		switch {
		case strings.HasPrefix(name, "script."):
			src.Path = name
		case strings.HasPrefix(name, "params."):
			src.ParamsPath = name
		case name == "lenient": // a file that says so by being there
			src.Lenient = true
		}
	}
	return Load(context.Background(), src)
}

// TestCases loads each script in testdata and compares what people see with
// the file named want. UPDATE_GOLDEN=1 rewrites those files.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	update := os.Getenv("UPDATE_GOLDEN") != ""
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			files, want := memory{}, ""
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				require.NotContains(t, files, f.Name, "file names in an archive must be unique")
				files[f.Name] = string(f.Data)
			}
			s, diags := files.load(t)
			got := diags.Render()
			if s != nil {
				got += "ok\n" + summary(s)
			}
			require.NotEqual(t, s == nil, !diags.HasErrors(), "a script comes exactly without errors")
			if update {
				updateCase(t, file, archive, got)
				return
			}
			require.Equal(t, want, got)
		})
	}
}

func updateCase(t *testing.T, file string, archive *txtar.Archive, got string) {
	t.Helper()
	var files []txtar.File
	for _, f := range archive.Files {
		if f.Name != "want" {
			files = append(files, f)
		}
	}
	archive.Files = append(files, txtar.File{Name: "want", Data: []byte(got)})
	require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
}

// summary writes what matters of a loaded script.
func summary(s *Script) string {
	var b strings.Builder
	summarizeServing(&b, s)
	for _, g := range s.Gates {
		fmt.Fprintf(&b, "gate %s always=%t by=%q message=%q show=%q timeout=%s guards=%q\n", g.Name, g.Always, g.By,
			g.Message, names(g.Show), g.Timeout, names(g.Guards))
		for _, a := range g.Answers {
			fmt.Fprintf(&b, "  answer %s %s = %q %q [%s, %s] %q\n", a.Name, a.Type, a.Default, a.Message,
				a.Min, a.Max, a.OneOf)
		}
	}
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "%s %s %s/%s", n.Name, n.Type, n.StartPolicy, n.RerunPolicy)
		if n.Policy != nil {
			fmt.Fprintf(&b, " policy=%s", n.Policy.Name)
		}
		if n.MaxBatchMSec != 0 {
			fmt.Fprintf(&b, " max_ms=%d", n.MaxBatchMSec)
		}
		b.WriteByte('\n')
		summarizeInput(&b, n)
		summarizeOutput(&b, n)
		summarizeChecks(&b, n)
	}
	for _, p := range s.Policies {
		fmt.Fprintf(&b, "policy %s default=%v order=%s\n", p.Name, p.Default, orderText(p.Order))
		if p.Name == StandardPolicyName {
			continue
		}
		for _, r := range p.Rules {
			fmt.Fprintf(&b, "  %s: %s\n", r.Cmd, r.Expr.Source())
		}
	}
	return b.String()
}

func summarizeInput(b *strings.Builder, n *Node) {
	if f := n.Files; f != nil {
		fmt.Fprintf(b, "  files parquet=%v header=%d data=%d separator=%q byheader=%v\n", f.Parquet, f.CSV.HeaderRecord,
			f.CSV.FirstDataRecord, f.CSV.Separator, f.CSV.ByHeader)
		for _, u := range f.URLs {
			fmt.Fprintf(b, "    %s\n", u.URL)
		}
		for _, c := range f.Columns {
			fmt.Fprintf(b, "    r.%s %s index=%d header=%q format=%q default=%q parquet=%q", c.Name, c.Type,
				c.Index, c.Header, c.Format, c.Default, c.Parquet)
			if c.Nullable {
				fmt.Fprintf(b, " nullable texts=%q quoted=%v", c.NullTexts, c.QuotedEmptyNull)
			}
			b.WriteByte('\n')
		}
	}
	if r := n.Reader; r != nil {
		fmt.Fprintf(b, "  reads %s of %s batches=%d rows=%d\n", r.Creators[0].Table.Name, r.Creators[0].Name,
			r.ExpectedBatches, r.RowsetSize)
	}
	if k := n.Lookup; k != nil {
		fmt.Fprintf(b, "  looks up %s on %v group=%v left=%v", k.Index.Name, k.JoinOn, k.Group, k.Left)
		if k.Filter != nil {
			fmt.Fprintf(b, " filter=%s", k.Filter.Source())
		}
		if k.NullsMatch {
			b.WriteString(" nulls=match")
		}
		b.WriteByte('\n')
	}
	if c := n.PyCalc; c != nil {
		for _, f := range c.Fields {
			fmt.Fprintf(b, "  p.%s %s = %s %v%s\n", f.Name, f.Type, f.Expr, f.Refs, nullable(f.Nullable))
		}
	}
	if t := n.PyTable; t != nil {
		fmt.Fprintf(b, "  function %s(%s %v) group by %v whole=%v\n", t.Function, t.Input, t.Columns,
			t.GroupBy, t.Whole)
		for _, a := range t.Arguments {
			fmt.Fprintf(b, "    %s = %s\n", a.Name, a.JSON)
		}
		for _, f := range t.Returns {
			fmt.Fprintf(b, "  p.%s %s nullable=%v\n", f.Name, f.Type, f.Nullable)
		}
	}
	if g := n.Tag; g != nil {
		for _, c := range g.Criteria {
			fmt.Fprintf(b, "  p.%s %s if %s\n", g.Field, c.Tag, c.Expr.Source())
		}
	}
}

func nullable(yes bool) string {
	if yes {
		return " nullable"
	}
	return ""
}

func summarizeOutput(b *strings.Builder, n *Node) {
	if w := n.Table; w != nil {
		fmt.Fprintf(b, "  table %s\n", w.Name)
		for _, f := range w.Fields {
			fmt.Fprintf(b, "    w.%s %s = %s default=%q%s", f.Name, f.Type, f.Expr.Source(), f.Default,
				nullable(f.Nullable))
			if f.NullUnmatched {
				b.WriteString(" unmatched=null")
			}
			b.WriteByte('\n')
		}
		if w.Having != nil {
			fmt.Fprintf(b, "    having %s\n", w.Having.Source())
		}
		for _, ix := range w.Indexes {
			fmt.Fprintf(b, "    index %s unique=%v %s\n", ix.Name, ix.Unique, orderText(ix.Key))
		}
	}
	if w := n.Out; w != nil {
		fmt.Fprintf(b, "  file %s perbatch=%v parquet=%v codec=%s separator=%q\n", w.URL, w.PerBatch(),
			w.Parquet, w.Codec, w.Separator)
		for _, c := range w.Columns {
			fmt.Fprintf(b, "    w.%s %s = %s header=%q format=%q parquet=%q%s", c.Name, c.Type,
				c.Expr.Source(), c.Header, c.Format, c.Parquet, nullable(c.Nullable))
			if c.NullText != "" {
				fmt.Fprintf(b, " null=%q", c.NullText)
			}
			b.WriteByte('\n')
		}
		if w.Having != nil {
			fmt.Fprintf(b, "    having %s\n", w.Having.Source())
		}
		switch {
		case w.LimitRows > 0:
			fmt.Fprintf(b, "    top %d by %s\n", w.LimitRows, orderText(w.Order))
		case w.Order != nil:
			fmt.Fprintf(b, "    order by %s\n", orderText(w.Order))
		}
	}
}

func summarizeServing(b *strings.Builder, s *Script) {
	if s.Deadline != "" {
		fmt.Fprintf(b, "deadline %s\n", s.Deadline)
	}
	for _, h := range s.Notify {
		fmt.Fprintf(b, "notify %v url=%s command=%q template=%q headers=%v timeout=%s\n", h.On, h.URL,
			h.Command, h.Template, h.Headers, h.Timeout)
	}
	for _, sc := range s.Schedules {
		fmt.Fprintf(b, "schedule %q %s %s catch_up=%s overlap=%s %v\n", sc.Name, sc.Times, sc.Times.Zone(), sc.CatchUp,
			sc.Overlap, sc.Params)
	}
	for _, w := range s.Watches {
		fmt.Fprintf(b, "watch %q %s stable_for=%s marker=%s existing=%s %v\n", w.Name, w.Files, w.StableFor, w.Marker,
			w.Existing, w.Params)
	}
}

func summarizeChecks(b *strings.Builder, n *Node) {
	for _, c := range n.Checks {
		fmt.Fprintf(b, "  check %q %s %s max_rows=%d fields=%v", c.Name, c.Kind, c.Severity, c.MaxRows, c.Fields)
		for what, x := range map[string]*expr.Compiled{"where": c.Where, "expression": c.Expr} {
			if x != nil {
				fmt.Fprintf(b, " %s=%s", what, x.Source())
			}
		}
		switch c.Kind {
		case CheckRange:
			fmt.Fprintf(b, " from %+v to %+v", c.Min, c.Max)
		case CheckValues:
			fmt.Fprintf(b, " %v", c.Values)
		case CheckRows:
			fmt.Fprintf(b, " %d to %d, %v%%", c.RowsMin, c.RowsMax, c.Change)
		case CheckFreshness:
			fmt.Fprintf(b, " newer=%v %v", c.Newer, c.MaxAge)
		case CheckReferences:
			fmt.Fprintf(b, " %s%v", c.Target.Name, c.To)
		case CheckReconcile:
			fmt.Fprintf(b, " %s = %s of %s by %v %v within %s", c.Value.Source(), c.Equals.Source(),
				c.Target.Name, c.By, c.ByEq, c.Tolerance)
		}
		b.WriteByte('\n')
	}
	for _, t := range n.CheckedTables() {
		fmt.Fprintf(b, "  compares with %s\n", t.Name)
	}
}
