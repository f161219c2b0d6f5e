package infer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/fault"
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
		"others match":  {[]string{"c{d}.csv", "c1d2.csv"}, []string{"c{d}.csv"}, "!rename the file: as c?d?.csv, which would name it in a script, other files are called as well"},
		"a pattern":     {[]string{"c<n>1.csv"}, []string{"c<n>*.csv"}, "!name the files by a pattern with * for such parts"},
		"not there":     {nil, []string{"c{d}.csv"}, "!rename the file, or name it by a pattern"},
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
