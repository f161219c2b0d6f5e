package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"thalweg/bench/generate"
	"thalweg/internal/base/keeper"
	"thalweg/internal/test/effort"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata/script")

func TestMain(m *testing.M) {
	if keeper.Called(os.Args) { // by its name, testscript would take it for the tests
		syscall.Exit(keeper.Main(os.Args, keeper.Cgroups())) // os.Exit would sleep a second for the race detector
	}
	testscript.Main(m, map[string]func(){"thalweg": main,
		"thalweg-next":         func() { version = "next"; main() },
		"thalweg-other-engine": func() { version, engineSaid = "other", "duckdb-9.9.9"; main() }})
}

// TestScripts runs testdata/script/*.txtar: each is a person's session at the
// command line, with its files and what it prints.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXAMPLES", filepath.Join(root, "examples"))
			e.Setenv("ROOT", root)
			e.Setenv("PYTHON_WITH_LIBRARIES", pythonWithLibraries())
			e.Setenv("ROUND_TRIPS", strconv.Itoa(effort.Of(2, 4, 200)))
			e.Setenv("REAL_DATA", os.Getenv("THALWEG_REAL_DATA"))
			e.Values[s3Key{}] = s3Services{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"tmpfs": cmdTmpfs, "remount": cmdRemount,
			"waitfile":  cmdWaitfile,
			"portfolio": cmdPortfolio, "receiver": cmdReceiver, "servers": cmdServers, "s3get": cmdS3get,
			"s3put": cmdS3put, "s3ls": cmdS3ls, "cassandra": cmdCassandra, "ask": cmdAsk, "redis": cmdRedis},
		Condition: condition,
	})
}

// condition answers what scripts ask beyond testscript's own conditions. A name
// that it does not know is an error: as a plain "no" it would skip in silence.
func condition(cond string) (bool, error) {
	if module, ok := strings.CutPrefix(cond, "module:"); ok {
		return exec.Command(pythonWithLibraries(), "-c", "import "+module).Run() == nil, nil
	}
	switch cond {
	case "root": // who may give files to other users
		return os.Geteuid() == 0, nil
	case "pypy":
		_, err := exec.LookPath("pypy3")
		return err == nil, nil
	case "tmpfs":
		return runtime.GOOS == "linux" && os.Geteuid() == 0 && exec.Command("unshare", "--mount", "true").
			Run() == nil, nil
	case "cassandra":
		return os.Getenv("THALWEG_TEST_CASSANDRA") != "", nil
	case "rabbitmq":
		return os.Getenv("THALWEG_TEST_RABBITMQ") != "", nil
	case "realdata":
		dir := os.Getenv("THALWEG_REAL_DATA")
		if dir == "" {
			return false, nil
		}
		_, err := os.Stat(dir)
		return err == nil, err
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

func TestConditionsThatNobodyKnowsAreErrors(t *testing.T) {
	_, err := condition("pypi")
	require.ErrorContains(t, err, "pypi")
}

// pythonWithLibraries is an interpreter that has numpy and the like, if there is one.
func pythonWithLibraries() string {
	if name := os.Getenv("THALWEG_TEST_LIBRARIES"); name != "" {
		return name
	}
	return "python3"
}

// cmdPortfolio makes the data of examples/portfolio: portfolio DIR FORMAT.
func cmdPortfolio(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: portfolio DIR FORMAT")
	}
	_, err := generate.Portfolio(context.Background(), generate.Options{Accounts: 4, Dir: ts.MkAbs(args[0]),
		Format: args[1], Seed: 1})
	ts.Check(err)
}

// fileWait is longer than any machine takes for what makes the file.
const fileWait = 5 * time.Minute

// cmdWaitfile waits until a file is there, and has what a pattern finds: waitfile FILE [PATTERN].
func cmdWaitfile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: waitfile FILE [PATTERN]")
	}
	pattern, err := regexp.Compile("(?m)" + strings.Join(args[1:], ""))
	ts.Check(err)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(fileWait)
	for {
		if text, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && pattern.Match(text) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s does not appear", strings.Join(args, ": "))
		}
	}
}

// cmdTmpfs mounts a file system of a given size: tmpfs DIR SIZE.
func cmdTmpfs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tmpfs DIR SIZE")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	mount(ts, "-t", "tmpfs", "-o", "size="+args[1], "tmpfs", dir)
	ts.Defer(func() { _ = exec.Command("umount", "-l", dir).Run() })
}

// cmdRemount changes the size: remount DIR SIZE.
func cmdRemount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: remount DIR SIZE")
	}
	mount(ts, "-o", "remount,size="+args[1], ts.MkAbs(args[0]))
}

func mount(ts *testscript.TestScript, args ...string) {
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		ts.Fatalf("mount %v: %v: %s", args, err, out)
	}
}
