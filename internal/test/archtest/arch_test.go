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

	"github.com/stretchr/testify/require"
)

const module = "thalweg/"

// allowed lists what each package may import of this module. The core (script,
// expr, plan, engine, worker, pipeline) knows the interfaces of the seams and
// none of their implementations.
var allowed = map[string]string{
	"internal/test/archtest":              "",
	"internal/test/conformance":           "",
	"internal/test/property":              "",
	"internal/test/roundtrip":             "",
	"internal/test/sets":                  "",
	"internal/test/fleet":                 "",
	"internal/test/effort":                "",
	"internal/base/fault":                 "",
	"internal/io/unpack":                  "base/fault",
	"internal/io/outfile":                 "lang/expr base/fault io/files lang/script base/sqltext io/unpack",
	"internal/io/records":                 "base/fault io/unpack",
	"internal/io/copies":                  "base/address io/database base/durable base/fault io/files io/records io/remote io/unpack",
	"internal/io/database":                "base/address base/fault base/sqltext",
	"internal/io/remote":                  "base/address base/fault",
	"internal/test/remotetest":            "",
	"internal/store/cassandra":            "base/fault base/secure",
	"internal/base/secure":                "",
	"internal/test/securetest":            "",
	"internal/ops/doctor":                 "base/budget store/cassandra base/fault base/figures store/parts store/queue/rabbitmq store/state",
	"internal/test/cassandratest":         "store/cassandra",
	"internal/base/address":               "base/fault",
	"internal/base/sqltext":               "",
	"internal/run/adapt":                  "",
	"internal/run/pace":                   "run/adapt base/fault store/parts",
	"internal/base/awake":                 "",
	"internal/base/budget":                "base/awake",
	"internal/base/similar":               "",
	"internal/base/figures":               "",
	"internal/ops/metrics":                "run/adapt base/budget run/executor base/fault store/parts store/queue run/slot store/state run/worker",
	"internal/ops/history":                "base/fault base/figures run/gate store/state",
	"internal/lang/expr":                  "base/similar base/sqltext",
	"internal/base/secret":                "base/address base/fault",
	"internal/base/document":              "base/fault base/secret base/similar",
	"internal/ops/notify":                 "base/address base/awake base/calendar base/fault run/gate base/keeper base/message io/remote lang/script base/secret store/state run/worker",
	"internal/ops/schedule":               "base/address base/calendar base/fault io/remote lang/script store/state run/worker",
	"internal/base/message":               "",
	"internal/base/calendar":              "",
	"internal/lang/script":                "base/address base/calendar base/document lang/expr base/fault base/message io/records base/secret base/similar io/unpack",
	"internal/io/files":                   "base/address base/document lang/expr base/fault io/parquetfile io/records lang/script base/similar base/sqltext io/unpack",
	"internal/io/parquetfile":             "",
	"internal/base/keeper":                "base/awake",
	"internal/run/python":                 "base/awake lang/expr base/fault base/keeper",
	"internal/store/state":                "base/fault",
	"internal/test/statetest":             "test/effort store/state test/statetest/explore test/statetest/hostile base/fault",
	"internal/test/statetest/explore":     "store/state test/statetest/hostile run/supervise",
	"internal/test/statetest/hostile":     "store/state base/fault",
	"internal/store/state/sqlite":         "base/durable store/state store/state/sqlite/pagesum base/fault",
	"internal/store/state/cassandra":      "store/cassandra base/fault store/state store/state/backoff",
	"internal/store/state/backoff":        "",
	"internal/store/state/sqlite/pagesum": "",
	"internal/store/parts":                "base/fault",
	"internal/test/partstest":             "base/fault store/parts",
	"internal/base/durable":               "",
	"internal/test/durabletest":           "base/durable",
	"internal/store/parts/local":          "base/durable store/parts base/fault",
	"internal/store/parts/cassandra":      "store/cassandra base/fault store/parts",
	"internal/store/parts/s3":             "base/address base/fault store/parts io/remote",
	"internal/store/parts/cache":          "store/parts base/fault",
	"internal/store/queue":                "store/state",
	"internal/test/queuetest":             "store/queue store/state",
	"internal/test/queuetest/hub":         "store/queue store/queue/inproc",
	"internal/store/queue/inproc":         "store/queue store/state",
	"internal/store/queue/rabbitmq":       "base/address base/fault store/queue store/queue/inproc base/secure store/state",
	"internal/run/engine":                 "lang/expr base/fault run/python base/sqltext",
	"internal/run/query":                  "base/address base/document run/engine lang/expr base/fault io/files lang/script base/similar base/sqltext",
	"internal/run/plan":                   "base/address base/document base/budget run/engine lang/expr base/fault io/files io/outfile io/parquetfile run/python lang/script base/sqltext store/state",
	"internal/store/state/patient":        "store/state base/fault",
	"internal/run/gate":                   "base/fault store/state",
	"internal/run/worker":                 "base/fault run/gate store/state",
	"internal/run/coordinator":            "base/fault run/gate store/queue store/state run/worker",
	"internal/run/executor":               "base/awake base/fault store/queue store/state run/worker",
	"internal/test/workertest":            "base/durable store/state run/worker",
	"internal/run/supervise":              "base/fault store/state",
	"internal/ops/simulate":               "run/coordinator run/executor base/fault store/queue store/state store/state/backoff store/state/sqlite run/worker",
	"internal/lang/matrix":                "base/fault",
	"internal/lang/environment":           "base/document base/fault base/secret base/similar",
	"internal/run/reuse":                  "base/address base/budget run/engine io/files run/plan run/python lang/script",
	"internal/run/pipeline":               "base/address base/budget io/copies io/database base/durable run/engine lang/expr base/fault io/files run/gate io/outfile store/parts run/plan run/python io/remote run/reuse lang/script base/sqltext store/state run/supervise io/unpack run/worker",
	"internal/ops/collect":                "base/fault run/gate store/parts run/pipeline run/plan store/state run/supervise run/worker",
	"internal/ops/compare":                "base/budget run/engine lang/expr base/fault store/parts run/pipeline run/plan base/similar base/sqltext store/state",
	"internal/ops/lineage":                "base/address run/engine lang/expr base/fault base/figures io/files io/outfile store/parts run/pipeline run/plan run/query lang/script base/similar base/sqltext store/state",
	"internal/lang/starter":               "base/fault",
	"internal/ops/infer":                  "base/address base/document run/engine lang/expr base/fault base/figures io/files io/records lang/script base/similar base/sqltext io/unpack",
	"internal/app/scripttest":             "run/engine lang/expr base/fault io/files app/local io/remote lang/script base/secret base/similar base/sqltext store/state io/unpack",
	"internal/run/slot":                   "base/awake base/budget io/copies base/fault base/keeper store/parts io/remote store/state run/worker",
	"internal/ops/cluster":                "base/address base/document base/fault run/pace base/secret",
	"internal/app/local": "run/adapt base/address base/calendar store/cassandra ops/cluster ops/collect io/database ops/doctor base/document base/budget base/durable run/engine lang/expr base/fault base/figures io/files run/gate base/keeper ops/lineage lang/matrix base/message ops/notify io/outfile run/pace ops/schedule store/parts store/parts/cache store/parts/cassandra store/parts/local store/parts/s3 run/pipeline run/plan run/python run/query store/queue store/queue/inproc store/queue/rabbitmq io/remote lang/script base/secret base/similar run/slot base/sqltext store/state store/state/cassandra store/state/sqlite " +
		"store/state/patient run/coordinator run/executor run/supervise run/worker",
	"internal/lang/graph": "base/address lang/script",
	"cmd/thalweg":         "run/adapt base/address base/calendar ops/cluster ops/collect ops/compare ops/doctor base/document lang/environment base/figures ops/history base/keeper app/scripttest ops/simulate base/budget ops/infer lang/graph run/engine base/fault run/gate ops/lineage app/local lang/matrix base/message ops/metrics ops/notify run/pace run/plan store/queue io/remote ops/schedule lang/script base/secret base/similar run/slot base/sqltext lang/starter store/state run/supervise run/worker",
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

// Every entry of the table stands for code: one that does not is a leftover,
// or the walk has missed it.
func TestTheTableNamesWhatIsThere(t *testing.T) {
	list := packages(t)
	for pkg := range allowed {
		require.Contains(t, list, pkg)
	}
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

// starters are what may start a process, in the one place that decides what it gets of ours
// and when it ends: internal/base/keeper.
var starters = map[string]string{
	"exec.Command": "keeper.Start", "exec.CommandContext": "keeper.Start", "exec.LookPath": "keeper.Find", "os.StartProcess": "keeper.Start",
	"syscall.ForkExec": "keeper.Start", "syscall.StartProcess": "keeper.Start", "syscall.Exec": "keeper.Start", "unix.Exec": "keeper.Start",
}

// children are the processes that the product starts, by who does.
var children = map[string]string{
	"internal/ops/notify/send.go":      "command hooks",
	"internal/run/python/installed.go": "interpreters that are asked what they are and have",
	"internal/run/python/process.go":   "interpreters with the code of scripts",
	"internal/run/slot/process.go":     "slots of a worker: this program",
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
	require.Equal(t, slices.Sorted(maps.Keys(children)), slices.Sorted(maps.Keys(found)), "say here what it is, and give it no more of our environment than it needs")
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
var textSearches = map[string]bool{"Contains": true, "HasPrefix": true, "HasSuffix": true, "EqualFold": true, "Cut": true, "Index": true,
	"MatchString": true, "FindString": true, "FindStringSubmatch": true}

// readsMessages may look into the texts of failures: the classification of DuckDB's,
// and what compares a failure with the text that a person's test expects.
var readsMessages = map[string]bool{"internal/run/engine/faults.go": true, "internal/app/scripttest/run.go": true}

// What is to be done about a failure is said by its fields. Its text is for people
// and may change.
func TestNothingIsDecidedByMessages(t *testing.T) {
	for _, pkg := range packages(t) {
		for _, file := range files(t, pkg, false) {
			if rel, err := filepath.Rel(root(t), file); err != nil || readsMessages[rel] || strings.HasPrefix(pkg, "bench") {
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
			found = found || ok && (s.Sel.Name == "Error" || s.Sel.Name == "Message" || s.Sel.Name == "Msg" || s.Sel.Name == "Detail")
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

// generated are folders that a run of an example or a test leaves behind.
var generated = map[string]bool{".venv": true, "data": true, "__pycache__": true, ".thalweg": true}

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
