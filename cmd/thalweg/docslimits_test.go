package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/format"
)

// Each number of docs/limits.md that names where the code keeps it is that number.
func TestLimitsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/limits.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| ([^|]+) \\| ([^|]+) \\| [^|]*\\| `([a-z]+)\\.([A-Za-z]+)` \\|$").
		FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(rows), 40)
	require.Equal(t, strings.Count(string(page), "` |\n"), len(rows), "a row that names the code is not understood")
	for _, row := range rows { // the first number is the limit, what follows a default
		dir := "../../internal/*/" + row[3]
		if row[3] == "main" {
			dir = "."
		}
		n := constantOf(t, dir, row[4])
		spellings := []string{format.Count(n), strings.TrimSuffix(strings.ReplaceAll(format.Size(n), ".0 ", " "), " B")}
		if n >= int64(time.Second) {
			spellings = append(spellings, fmt.Sprintf("%d s", n/int64(time.Second)),
				fmt.Sprintf("%d min", n/int64(time.Minute)))
		}
		said := regexp.MustCompile(`[0-9][0-9,]*( [KMG]iB| s\b| min\b)?`).FindAllString(row[2], -1)
		require.NotEmpty(t, said, row[1])
		require.Subset(t, spellings, said[:1], "%s: %s.%s is %d, the page says %s", row[1], row[3], row[4], n, row[2])
	}
}

// constantOf is a constant of a package as its source says it.
func constantOf(t *testing.T, dir, name string) int64 {
	t.Helper()
	paths, err := filepath.Glob(dir + "/*.go")
	require.NoError(t, err)
	for _, path := range paths {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, spec := range d.Specs {
				s, ok := spec.(*ast.ValueSpec)
				if !ok || s.Names[0].Name != name || len(s.Values) != 1 {
					continue
				}
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				source := string(text[fset.Position(s.Values[0].Pos()).Offset:fset.Position(s.Values[0].End()).Offset])
				source = strings.NewReplacer("time.Second", "1000000000", "time.Minute", "60000000000").Replace(source)
				value, err := types.Eval(fset, nil, token.NoPos, source)
				require.NoError(t, err, name)
				n, exact := constant.Int64Val(value.Value)
				require.True(t, exact, name)
				return n
			}
		}
	}
	require.Fail(t, "no such constant", "%s in %s", name, dir)
	return 0
}
