package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "thalweg/"

// allowed lists what each package may import of this module. The core (script,
// expr, plan, engine, worker, pipeline) knows the interfaces of the seams and
// none of their implementations.
var allowed = map[string]string{
	"internal/archtest":          "",
	"internal/conformance":       "",
	"internal/fault":             "",
	"internal/remote":            "address fault",
	"internal/remote/remotetest": "",
	"internal/address":           "fault",
	"internal/sqltext":           "",
	"internal/budget":            "",
	"internal/similar":           "",
	"internal/expr":              "similar sqltext",
	"internal/script":            "address expr fault similar",
	"internal/files":             "address expr fault script sqltext",
	"internal/python":            "expr fault",
	"internal/state":             "fault",
	"internal/state/statetest":   "state fault",
	"internal/state/sqlite":      "state fault",
	"internal/parts":             "fault",
	"internal/parts/partstest":   "fault parts",
	"internal/parts/local":       "parts fault",
	"internal/queue":             "state",
	"internal/queue/queuetest":   "queue state",
	"internal/queue/inproc":      "queue state",
	"internal/engine":            "expr fault python sqltext",
	"internal/query":             "address engine expr fault files script similar sqltext",
	"internal/plan":              "address budget engine expr fault files python script sqltext state",
	"internal/worker":            "fault queue state",
	"internal/pipeline":          "address budget engine expr fault files parts plan python remote script sqltext state worker",
	"internal/generate":          "fault sqltext",
	"internal/infer":             "address engine expr fault files script sqltext",
	"internal/scripttest":        "engine expr fault local remote script similar sqltext state",
	"internal/bench":             "fault generate",
	"internal/local": "address budget engine fault files parts parts/local pipeline plan python query queue/inproc remote script sqltext state state/sqlite " +
		"worker",
	"internal/graph": "address script",
	"cmd/thalweg":    "address scripttest budget infer graph engine fault generate local plan remote script similar sqltext state worker",
}

// banned imports, each with what to use instead.
var banned = map[string]string{
	"log":                   "log/slog, injected",
	"math/rand":             "math/rand/v2 with an injected source",
	"io/ioutil":             "io and os",
	"github.com/pkg/errors": "fmt.Errorf with %w",
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// packages yields the directories with Go files, relative to the root.
func packages(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	for _, top := range []string{"internal", "cmd", "bench"} {
		_ = filepath.WalkDir(filepath.Join(root(t), top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if strings.HasSuffix(path, ".go") {
				rel, err := filepath.Rel(root(t), filepath.Dir(path))
				require.NoError(t, err)
				seen[rel] = true
			}
			return nil
		})
	}
	var out []string
	for p := range seen {
		out = append(out, p)
	}
	sort.Strings(out)
	return out
}

func files(t *testing.T, pkg string, tests bool) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root(t), pkg, "*.go"))
	require.NoError(t, err)
	var out []string
	for _, f := range all {
		if strings.HasSuffix(f, "_test.go") == tests {
			out = append(out, f)
		}
	}
	return out
}

func imports(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	require.NoError(t, err)
	var out []string
	for _, im := range f.Imports {
		path, err := strconv.Unquote(im.Path.Value)
		require.NoError(t, err)
		out = append(out, path)
	}
	return out
}

func TestImportsPointOneWay(t *testing.T) {
	for _, pkg := range packages(t) {
		list, known := allowed[pkg]
		if strings.HasPrefix(pkg, "bench") {
			continue // measuring programs may use anything that a user may
		}
		if !known {
			t.Errorf("%s is new: add it to the table of allowed imports", pkg)
			continue
		}
		may := map[string]bool{}
		for _, name := range strings.Fields(list) {
			may["internal/"+name] = true
		}
		for _, file := range files(t, pkg, false) {
			for _, im := range imports(t, file) {
				if why, bad := banned[im]; bad {
					t.Errorf("%s imports %s: use %s", file, im, why)
				}
				if inner, ours := strings.CutPrefix(im, module); ours && !may[inner] {
					t.Errorf("%s imports %s, which %s may not", file, inner, pkg)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItPromises(t *testing.T) {
	for _, pkg := range packages(t) {
		found := false
		for _, file := range files(t, pkg, false) {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
			require.NoError(t, err)
			found = found || f.Doc != nil && len(f.Doc.Text()) > 80
		}
		if len(files(t, pkg, false)) > 0 && !found {
			t.Errorf("%s has no package documentation", pkg)
		}
	}
}

// forbiddenCalls are calls that hide failures or wait blindly.
var forbiddenCalls = map[string]string{
	"time.Sleep": "wait for the condition",
	"os.Exit":    "only main ends the process",
	"panic":      "return an error",
}

func TestForbiddenCalls(t *testing.T) {
	for _, pkg := range packages(t) {
		for _, tests := range []bool{false, true} {
			for _, file := range files(t, pkg, tests) {
				checkCalls(t, pkg, file, tests)
			}
		}
	}
}

func checkCalls(t *testing.T, pkg, file string, test bool) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := ""
		switch fn := call.Fun.(type) {
		case *ast.Ident:
			name = fn.Name
		case *ast.SelectorExpr:
			if x, ok := fn.X.(*ast.Ident); ok {
				name = x.Name + "." + fn.Sel.Name
			}
		}
		why, bad := forbiddenCalls[name]
		switch {
		case !bad, name == "os.Exit" && (strings.HasPrefix(pkg, "cmd/") || strings.HasPrefix(pkg, "bench") || test), name == "panic" && test:
		default:
			t.Errorf("%s: %s: %s", fset.Position(call.Pos()), name, why)
		}
		return true
	})
}

// wordsThatDoNotBelong in committed text: machine paths and placeholders.
var wordsThatDoNotBelong = regexp.MustCompile(`/work/(main|shared)|/root/|\bTODO\b|\bFIXME\b|\bXXX\b`)

func TestTextsHaveNoMachinePathsOrUnfinishedMarks(t *testing.T) {
	for _, dir := range []string{"internal", "cmd", "docs", "examples", "scripts", "bench"} {
		_ = filepath.WalkDir(filepath.Join(root(t), dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if d.IsDir() {
				if d.Name() == ".venv" || d.Name() == "data" || d.Name() == "__pycache__" || d.Name() == ".thalweg" {
					return filepath.SkipDir
				}
				return nil
			}
			if strings.HasSuffix(path, "arch_test.go") || strings.Contains(path, "/fuzz/") {
				return nil
			}
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			if m := wordsThatDoNotBelong.Find(data); m != nil {
				t.Errorf("%s contains %q", path, m)
			}
			return nil
		})
	}
}
