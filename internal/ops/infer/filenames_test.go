package infer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
)

// TestFileNames: files whose names mean something else in a script are in it by patterns, if these name no others.
func TestFileNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []string
		given []string
		want  string // of the urls in the script, or what a refusal says after "!"
	}{
		"braces":        {[]string{"c{d}.csv"}, []string{"c{d}.csv"}, "c?d?.csv"},
		"parts":         {[]string{"c<d>.csv"}, []string{"c<d>.csv"}, "c?d?.csv"},
		"one sign":      {[]string{"c<d.csv"}, []string{"c<d.csv"}, "c<d.csv"},
		"with brackets": {[]string{"c[1]{d}.csv"}, []string{"c[1]{d}.csv"}, "c[1]?d?.csv"},
		"one is out":    {[]string{"a{1}.csv", "b.csv:2"}, []string{"a{1}.csv", "b.csv:2"}, "a?1?.csv"},
		"of a pattern":  {[]string{"a{1}.csv", "b.csv:2"}, []string{"*.csv*"}, "a?1?.csv"},
		"others match": {[]string{"c{d}.csv", "c1d2.csv"}, []string{"c{d}.csv"},
			"!rename the file: as c?d?.csv, which would name it in a script, other files are called as well"},
		"a pattern": {[]string{"c<n>1.csv"}, []string{"c<n>*.csv"},
			"!name the files by a pattern with * for such parts"},
		"not there": {nil, []string{"c{d}.csv"}, "!rename the file, or name it by a pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, f := range c.files {
				text := "a,b\n1,2\n"
				if strings.HasSuffix(f, "2") { // it is left out
					text = "a;b;c\n1;2;3\n"
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte(text), 0o600))
			}
			var given []string
			for _, f := range c.given {
				given = append(given, filepath.Join(dir, f))
			}
			p, err := Files(t.Context(), given, options(t))
			if hint, refused := strings.CutPrefix(c.want, "!"); refused {
				require.Contains(t, strings.ReplaceAll(fault.Of(err).Hint, dir+"/", ""), hint)
				return
			}
			require.NoError(t, err)
			s := loads(t, p)
			require.Len(t, s.Nodes[0].Files.URLs, 1)
			require.Equal(t, filepath.Join(dir, c.want), s.Nodes[0].Files.URLs[0].URL)
			require.Equal(t, int64(1), p.Rows)
		})
	}
}

// TestAlikeKeys: columns of several files whose names differ only in case are named, whatever the files are.
func TestAlikeKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	parquet := []string{filepath.Join(dir, "a.parquet"), filepath.Join(dir, "b.parquet")}
	makeParquet(t, parquet[0], `SELECT 1 AS "ID"`)
	makeParquet(t, parquet[1], `SELECT 2 AS id`)
	for name, paths := range map[string][]string{
		"JSON":    {write(t, "a.ndjson", "{\"ID\": 1}\n"), write(t, "b.ndjson", "{\"id\": 2}\n")},
		"sheets":  {workbook(t, row{"ID"}, row{1}), workbook(t, row{"id"}, row{2})},
		"Parquet": parquet,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Files(t.Context(), paths, options(t))
			require.NoError(t, err)
			require.Len(t, p.Doubts, 1, p.Doubts)
			require.Contains(t, p.Doubts[0].Text, `column "id" of `+paths[1]+` may be column "ID" of `+paths[0])
			loads(t, p)
		})
	}
}

// TestProposedOutput: what a script writes is none of its inputs, and no file that is there.
func TestProposedOutput(t *testing.T) {
	for name, c := range map[string]struct {
		given string
		there []string
		want  string
	}{
		"a new file":          {"a.csv", nil, "out/a.csv"},
		"the input":           {"out/z.csv", nil, "out/z_out.csv"},
		"a file that exists":  {"a.csv", []string{"out/a.csv"}, "out/a_out.csv"},
		"two that exist":      {"a.csv", []string{"out/a.csv", "out/a_out.csv"}, "out/a_out_2.csv"},
		"one of a pattern":    {"out/*.csv", []string{"out/b.csv"}, "results/out.csv"},
		"one of many folders": {"*/z.csv", []string{"in/z.csv"}, "out/z_out.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			there := c.there
			if !strings.Contains(c.given, "*") {
				there = append([]string{c.given}, there...)
			}
			for _, f := range there {
				require.NoError(t, os.MkdirAll(filepath.Dir(f), 0o700))
				require.NoError(t, os.WriteFile(f, []byte("a,b\n1,2\n"), 0o600))
			}
			p, err := Files(t.Context(), []string{c.given}, options(t))
			require.NoError(t, err)
			var b strings.Builder
			require.NoError(t, p.WriteScript(&b, false))
			require.Contains(t, b.String(), "\n    w: "+c.want+"\n")
			loads(t, p)
		})
	}
}
