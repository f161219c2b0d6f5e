package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "thalweg/"

// banned imports, each with what to use instead.
var banned = map[string]string{
	"log":                   "log/slog, injected",
	"math/rand":             "math/rand/v2 with an injected source",
	"io/ioutil":             "io and os",
	"github.com/pkg/errors": "fmt.Errorf with %w",
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	require.NoError(t, err)
	return dir
}

// sources are the folders whose code and texts these tests read.
var sources = []string{"internal", "cmd", "bench"}

// walk calls visit for each file under top, a folder of dir. What cannot be
// read is an error: a test that reads nothing would hold nothing.
func walk(dir, top string, skip func(name string) bool, visit func(path string) error) error {
	return filepath.WalkDir(filepath.Join(dir, top), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("reading %s: %w", path, err)
		case d.IsDir() && skip(d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		return visit(path)
	})
}

// packagesUnder yields the directories with Go files, relative to dir.
func packagesUnder(dir string) ([]string, error) {
	seen := map[string]bool{}
	for _, top := range sources {
		err := walk(dir, top, func(name string) bool { return name == "testdata" }, func(path string) error {
			if !strings.HasSuffix(path, ".go") {
				return nil
			}
			rel, err := filepath.Rel(dir, filepath.Dir(path))
			seen[rel] = true
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

func packages(t *testing.T) []string {
	t.Helper()
	list, err := packagesUnder(root(t))
	require.NoError(t, err)
	return list
}

// A checkout that is not there, or has moved, fails these tests.
func TestWalkingNothingIsAnError(t *testing.T) {
	_, err := packagesUnder(t.TempDir())
	require.ErrorIs(t, err, fs.ErrNotExist)
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

func TestBannedImports(t *testing.T) {
	for _, pkg := range packages(t) {
		for _, file := range files(t, pkg, false) {
			for _, im := range imports(t, file) {
				if why, bad := banned[im]; bad && !strings.HasPrefix(pkg, "bench") {
					t.Errorf("%s imports %s: use %s", file, im, why)
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
		case !bad, name == "os.Exit" && (f.Name.Name == "main" || strings.HasPrefix(pkg, "bench") || test),
			name == "panic" && test:
		default:
			t.Errorf("%s: %s: %s", fset.Position(call.Pos()), name, why)
		}
		return true
	})
}

// asksTheProcess maps calls whose answers are the process's, not the App's, to the files below cmd that may make them.
var asksTheProcess = map[string][]string{
	"os.Getwd":     {"internal/base/keeper/keeper_linux.go"},
	"os.Setenv":    nil,
	"os.Chdir":     nil,
	"os.Environ":   {"internal/base/keeper/program.go"},
	"os.LookupEnv": {"internal/base/keeper/program.go"},
	// as their drivers do
	"os.Getenv": {"internal/io/database/postgres.go", "internal/io/database/mysql.go", "internal/io/database/redis.go",
		"internal/io/remote/s3.go"},
	"filepath.Glob": {"internal/base/address/address.go", "internal/base/budget/meter.go",
		"internal/base/budget/processes.go", "internal/app/scripttest/run.go"},
}

// TestNothingAsksTheProcess: two Apps in one process have directories and variables of their own.
func TestNothingAsksTheProcess(t *testing.T) {
	for _, pkg := range packages(t) {
		if !strings.HasPrefix(pkg, "internal/") || strings.HasPrefix(pkg, "internal/test/") {
			continue
		}
		for _, file := range files(t, pkg, false) {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			require.NoError(t, err)
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if fn, ok := call.Fun.(*ast.SelectorExpr); ok {
					x, _ := fn.X.(*ast.Ident)
					if x == nil {
						return true
					}
					may, asks := asksTheProcess[x.Name+"."+fn.Sel.Name]
					assert.False(t, asks && !slices.Contains(may, pkg+"/"+filepath.Base(file)),
						"%s calls %s.%s: see runtime.Process", file, x.Name, fn.Sel.Name)
				}
				return true
			})
		}
	}
}

// starters maps the functions that start a process to their replacements in internal/base/keeper, which alone
// may call them.
var starters = map[string]string{
	"exec.Command": "keeper.Start", "exec.CommandContext": "keeper.Start", "exec.LookPath": "keeper.Find",
	"os.StartProcess":  "keeper.Start",
	"syscall.ForkExec": "keeper.Start", "syscall.StartProcess": "keeper.Start", "syscall.Exec": "keeper.Start",
	"unix.Exec": "keeper.Start",
}

// children are the processes that the product starts, by who does.
var children = map[string]string{
	"internal/app/serving/desktop.go":      "what opens a page on the desktop",
	"internal/ops/load/around/beside.go":   "second loads of benches",
	"internal/ops/load/around/perf.go":     "perf, which counts for benches",
	"internal/ops/notify/send.go":          "command hooks",
	"internal/run/python/installed.go":     "interpreters that are asked what they are and have",
	"internal/run/python/process.go":       "interpreters with the code of scripts",
	"internal/run/sandbox/process.go":      "slots of a worker: this program",
	"internal/test/redistest/redistest.go": "servers of Redis for tests",
}

// Each process is started in one place, and is known here.
func TestChildrenAreStartedInOnePlace(t *testing.T) {
	found := map[string]bool{}
	for _, pkg := range packages(t) {
		if strings.HasPrefix(pkg, "bench") {
			continue
		}
		for _, file := range files(t, pkg, false) {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			require.NoError(t, err)
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				x, ok := sel.X.(*ast.Ident)
				if !ok {
					return true
				}
				name := x.Name + "." + sel.Sel.Name
				if with, bad := starters[name]; (bad || name == "exec.Cmd") && pkg != "internal/base/keeper" {
					t.Errorf("%s: %s: %s starts processes", file, name, or(with, "keeper.Program"))
				}
				if name == "keeper.Start" || name == "keeper.Run" {
					found[pkg+"/"+filepath.Base(file)] = true
				}
				return true
			})
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(children)), slices.Sorted(maps.Keys(found)),
		"say here what it is, and give it no more of our environment than it needs")
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// Tests wait with effort.Patience, and hold what they call to times by effort.Promised: a
// machine may be a hundredth as fast as usual for a while.
func TestTestsHavePatience(t *testing.T) {
	for _, pkg := range packages(t) {
		for _, file := range files(t, pkg, true) {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, file, nil, 0)
			require.NoError(t, err)
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 3 {
					return true
				}
				switch types.ExprString(call.Fun) {
				case "require.Eventually":
					if types.ExprString(call.Args[2]) != "effort.Patience" {
						t.Errorf("%s: wait for effort.Patience", fset.Position(call.Pos()))
					}
				case "require.Less", "require.LessOrEqual":
					if strings.HasPrefix(types.ExprString(call.Args[1]), "time.Since(") {
						t.Errorf("%s: use effort.Promised", fset.Position(call.Pos()))
					}
				}
				return true
			})
		}
	}
}

// textSearches are functions with which a text decides.
var textSearches = map[string]bool{"Contains": true, "HasPrefix": true, "HasSuffix": true, "EqualFold": true,
	"Cut": true, "Index": true,
	"MatchString": true, "FindString": true, "FindStringSubmatch": true}

// readsMessages may look into the texts of failures: the classification of DuckDB's,
// and what compares a failure with the text that a person's test expects.
var readsMessages = map[string]bool{"internal/run/engine/faults.go": true, "internal/app/scripttest/run.go": true}

// What is to be done about a failure is said by its fields. Its text is for people
// and may change.
func TestNothingIsDecidedByMessages(t *testing.T) {
	for _, pkg := range packages(t) {
		for _, file := range files(t, pkg, false) {
			if rel, err := filepath.Rel(root(t), file); err != nil || readsMessages[rel] ||
				strings.HasPrefix(pkg, "bench") {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, file, nil, 0)
			require.NoError(t, err)
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && searchesMessage(call) {
					t.Errorf("%s: a decision by the text of a message: give it a field", fset.Position(call.Pos()))
				}
				return true
			})
		}
	}
}

// searchesMessage finds strings.Contains(err.Error(), …), (f.Message, …) and the like.
func searchesMessage(call *ast.CallExpr) bool {
	fn, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !textSearches[fn.Sel.Name] {
		return false
	}
	for _, arg := range call.Args {
		found := false
		ast.Inspect(arg, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			found = found || ok && (s.Sel.Name == "Error" || s.Sel.Name == "Message" || s.Sel.Name == "Msg" ||
				s.Sel.Name == "Detail")
			return true
		})
		if found {
			return true
		}
	}
	return false
}

// wordsThatDoNotBelong in committed text: machine paths and placeholders.
var wordsThatDoNotBelong = regexp.MustCompile(`/work/(main|shared)|\.\./shared|/root/|\bTODO\b|\bFIXME\b|\bXXX\b`)

// generated are folders that a run of an example or a test leaves behind, and that of the built pages.
var generated = map[string]bool{".venv": true, "dist": true, "data": true, "__pycache__": true, ".thalweg": true}

func TestTextsHaveNoMachinePathsOrUnfinishedMarks(t *testing.T) {
	read := 0
	for _, top := range append([]string{"docs", "examples", "scripts", "testdata", "schemas"}, sources...) {
		err := walk(root(t), top, func(name string) bool { return generated[name] }, func(path string) error {
			if strings.HasSuffix(path, "arch_test.go") || strings.Contains(path, "/fuzz/") {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			if m := wordsThatDoNotBelong.Find(data); m != nil {
				t.Errorf("%s contains %q", path, m)
			}
			return nil
		})
		require.NoError(t, err)
	}
	require.Greater(t, read, 500, "the walk has missed most of the project")
}
