package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

const mistakesDir = "testdata/mistakes"

// fewestMistakes is the least number of mistakes in the folder.
const fewestMistakes = 60

// TestMistakes runs testdata/mistakes/*.txtar: each is a mistake that people make, and what
// Thalweg says of it. UPDATE_GOLDEN=1 rewrites what it says.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(mistakesDir, "*.txtar"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), fewestMistakes)
	testscript.Run(t, testscript.Params{
		Dir:                 mistakesDir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mistake": cmdMistake, "pack": cmdPack, "cut": cmdCut},
		Condition: condition,
	})
}

// cmdMistake runs a command that a mistake makes fail, and compares its standard error with the
// file called message: mistake CODE COMMAND ARGS…
//
// The message has to name a place and a way out, and --json has to say the same, which is looked
// at of some, and of all in make chaos.
func cmdMistake(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: mistake CODE COMMAND ARGS…")
	}
	got := stderrOf(ts, args[0], args[1:])
	if os.Getenv("UPDATE_GOLDEN") != "" {
		rewriteMessage(ts, got)
	} else if want := ts.ReadFile("message"); got != want {
		ts.Fatalf("it says:\n%s\nwant:\n%s", got, want)
	}
	if !namesPlace(got, args[1:]) {
		ts.Fatalf("this names no place:\n%s", got)
	}
	if !wayOut.MatchString(got) {
		ts.Fatalf("this has no way out:\n%s", got)
	}
	if !slices.Contains(withoutTwin, args[2]) &&
		crc32.ChecksumIEEE([]byte(ts.Name()))%uint32(effort.Of(12, 6, 1)) == 0 {
		twinSays(ts, args[0], append(slices.Clone(args[1:]), "--json"), got)
	}
}

// withoutTwin are commands that have no --json.
var withoutTwin = []string{"infer", "init", "fmt"}

// unprivileged is the command by which root gives up its right to use all files.
var unprivileged = []string{"setpriv", "--bounding-set", "-dac_override,-dac_read_search"}

// stderrOf is the standard error of a command that ends with code, without what differs from run to run.
func stderrOf(ts *testscript.TestScript, code string, args []string) string {
	if os.Geteuid() == 0 {
		args = append(slices.Clone(unprivileged), args...)
	}
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	if got := ts.ReadFile("stderr"); exit == nil || strconv.Itoa(exit.ExitCode()) != code {
		ts.Fatalf("%v, want exit code %s:\n%s", err, code, got)
	}
	return steady(ts.ReadFile("stderr"), ts.Getenv("WORK"))
}

// passing matches the lines of a run's progress.
var passing = regexp.MustCompile(`(?m)^(?: *[0-9.]+ m?s  .*|run \d+ started in .*)\n`)

// said holds a failure as JSON tells it.
type said struct {
	Message, Hint string
	Diagnostics   []said
}

// whenRun is a time at which a test was run.
var whenRun = regexp.MustCompile(`20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:Z|\.\d+Z)?`)

// interpreterPath matches the path of a machine's Python.
var interpreterPath = regexp.MustCompile(`interpreter /\S*/python3[.\d]*`)

func steady(text, work string) string {
	text = interpreterPath.ReplaceAllString(text, "interpreter $$PYTHON")
	return strings.ReplaceAll(whenRun.ReplaceAllString(passing.ReplaceAllString(text, ""), "TIME"), work, "$WORK")
}

var (
	inFile = regexp.MustCompile(
		`line \d+, column \d+ of the query|\S\.(?:csv|db|gz|json|ndjson|parquet|py|xlsx|yaml|zip|zst|dat)\b|\$WORK/`)
	wayOut = regexp.MustCompile(`(?m)^  hint: \S`)
)

// namesPlace reports whether a message names a file, or what is wrong of the command line.
func namesPlace(text string, args []string) bool {
	if inFile.MatchString(text) {
		return true
	}
	first, _, _ := strings.Cut(text, "\n")
	return slices.ContainsFunc(args[1:], func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return strings.Contains(first, name)
	})
}

var digits = regexp.MustCompile(`\d+`)

// twinSays checks that a command says with --json what its message says, in fields of their own.
func twinSays(ts *testscript.TestScript, code string, args []string, message string) {
	stderrOf(ts, code, args)
	out := strings.TrimSpace(ts.ReadFile("stderr"))
	if out == "" { // validate answers the question whether a script is right
		out = strings.TrimSpace(ts.ReadFile("stdout"))
	}
	var twin struct {
		Error       said
		Diagnostics []said
	}
	if err := json.Unmarshal([]byte(out[strings.LastIndex(out, "\n")+1:]), &twin); err != nil {
		ts.Fatalf("--json: the last line is no JSON: %v", err)
	}
	texts := []string{}
	for _, d := range append(twin.Diagnostics, twin.Error.Diagnostics...) {
		texts = append(texts, d.Message, d.Hint)
	}
	if len(texts) == 0 {
		texts = []string{twin.Error.Message, twin.Error.Hint}
	}
	numberless := digits.ReplaceAllString(strings.ReplaceAll(message, "\n  ", "\n"), "0") // runs have numbers
	for _, text := range texts {
		text = steady(text, ts.Getenv("WORK"))
		if !strings.Contains(numberless, digits.ReplaceAllString(text, "0")) {
			ts.Fatalf("--json says what the message does not: %s", text)
		}
	}
}

// rewriteMessage puts what a command said into the file of the mistake.
func rewriteMessage(ts *testscript.TestScript, got string) {
	name := filepath.Join(mistakesDir, ts.Name()+".txtar")
	a, err := txtar.ParseFile(name)
	ts.Check(err)
	a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == "message" })
	a.Files = append(a.Files, txtar.File{Name: "message", Data: []byte(got)})
	ts.Check(os.WriteFile(name, txtar.Format(a), 0o644))
}

// cmdPack compresses a file: pack gzip|zstd FROM TO.
func cmdPack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: pack gzip|zstd FROM TO")
	}
	var out bytes.Buffer
	plain := []byte(ts.ReadFile(args[1]))
	switch args[0] {
	case "gzip":
		w := gzip.NewWriter(&out)
		_, err := w.Write(plain)
		ts.Check(err)
		ts.Check(w.Close())
	case "zstd":
		w, err := zstd.NewWriter(&out)
		ts.Check(err)
		_, err = w.Write(plain)
		ts.Check(err)
		ts.Check(w.Close())
	default:
		ts.Fatalf("pack: no %s", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), out.Bytes(), 0o644))
}

// cmdCut takes bytes from the end of a file: cut FILE BYTES.
func cmdCut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cut FILE BYTES")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	name := ts.MkAbs(args[0])
	info, err := os.Stat(name)
	ts.Check(err)
	ts.Check(os.Truncate(name, info.Size()-n))
}
