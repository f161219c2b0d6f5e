package conformance

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// caseDir is the directory of the cases, relative to this package.
const caseDir = "../../../testdata/conformance"

// sectionLine is the first line of a case.
var sectionLine = regexp.MustCompile(`^section: ([0-9]+(?:\.[0-9]+)*)$`)

// Files of a case with a meaning of their own; every other file is an input.
const (
	fileRuns        = "runs"        // what is run; default: one run without start nodes
	fileInputSQL    = "inputs.sql"  // DuckDB statements that make inputs
	fileExpressions = "expressions" // one expression a line, instead of a script's outputs
	fileRow         = "row"         // the row that expressions see
	fileError       = "want.error"
	filePrefix      = "want.error.prefix"
	fileWarnings    = "want.warnings"
	fileTableSQL    = "want.sql"  // queries over the tables, as thalweg sql takes them
	fileFileSQL     = "files.sql" // queries over the files in the case's directory
	wantTables      = "want/sql.csv"
	wantFiles       = "want/files.csv"
	wantDir         = "want/"
	encodedSuffix   = ".b64"
	dirMark         = "$DIR"
)

var ownNames = []string{fileRuns, fileInputSQL, fileExpressions, fileRow, fileError, filePrefix, fileWarnings,
	fileTableSQL, fileFileSQL}

// markedDir finds an excerpt of a script whose marks depend on the length of $DIR.
var markedDir = regexp.MustCompile(`(?m)^    .*\$DIR.*\n {4,}\^`)

// testCase is a parsed case.
type testCase struct {
	file    string
	section string
	archive *txtar.Archive
	files   map[string]string
	runs    []step
	rowCSV  string // the row of an expressions case as a file
	fused   bool   // run it with --ephemeral
}

// step is one line of the file runs.
type step struct {
	script, params   string
	start            []string
	lenient          bool
	from             []int64 // runs to read tables from
	stop             string  // the node at whose beginning the run is stopped
	copyFrom, copyTo string  // a copy instead of a run
	resume           bool    // go on with the last run instead
	reuse            bool    // take over what has not changed
	waits            bool    // it waits for somebody in the end
	approve, role    string  // a gate of the last run that is decided instead
	answers          map[string]string
}

// readCase parses a case and refuses one that is wrong in itself.
func readCase(file string) (*testCase, error) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		return nil, err
	}
	c := &testCase{file: file, archive: archive, files: map[string]string{}}
	first, rest, _ := strings.Cut(string(archive.Comment), "\n")
	m := sectionLine.FindStringSubmatch(first)
	if m == nil {
		return nil, fmt.Errorf("the first line must be \"section: N.M\", not %q", first)
	}
	c.section = m[1]
	if strings.TrimSpace(rest) == "" {
		return nil, fmt.Errorf("a sentence must say what is pinned")
	}
	if folder := filepath.Base(filepath.Dir(file)); folder != c.section {
		return nil, fmt.Errorf("a case of section %s is in the folder %s", c.section, folder)
	}
	for _, f := range archive.Files {
		if _, twice := c.files[f.Name]; twice {
			return nil, fmt.Errorf("two files named %s", f.Name)
		}
		if !fs.ValidPath(f.Name) {
			return nil, fmt.Errorf("%s is not a name of a file in the case's directory", f.Name)
		}
		c.files[f.Name] = string(f.Data)
	}
	if err := c.readRuns(); err != nil {
		return nil, err
	}
	return c, c.checkNames()
}

// checkNames finds files that nothing can use.
func (c *testCase) checkNames() error {
	for name := range c.files {
		switch {
		case slices.Contains(ownNames, name), strings.HasPrefix(name, wantDir), name == "script.yaml",
			name == "script.json":
		case name == "want", strings.HasPrefix(name, "want."):
			return fmt.Errorf("%s means nothing: expectations are %s, %s, %s, %s and %sNAME", name,
				fileError, filePrefix, fileWarnings, fileTableSQL, wantDir)
		case !c.mentioned(name):
			return fmt.Errorf("%s is used by nothing", name)
		}
	}
	for have, need := range map[string]string{wantTables: fileTableSQL, wantFiles: fileFileSQL,
		fileRow: fileExpressions} {
		if c.has(have) && !c.has(need) {
			return fmt.Errorf("%s without %s", have, need)
		}
	}
	if c.has(fileError) && c.has(filePrefix) {
		return fmt.Errorf("%s and %s", fileError, filePrefix)
	}
	for _, name := range []string{fileError, fileWarnings} {
		if line := markedDir.FindString(c.files[name]); line != "" {
			return fmt.Errorf("%s marks a place in a line with $DIR, which is of another length elsewhere: %s", name,
				line)
		}
	}
	if c.script() == "" && !c.has(fileExpressions) {
		return fmt.Errorf("there is no script.yaml or script.json")
	}
	return nil
}

// mentioned reports whether another file of the case names this one.
func (c *testCase) mentioned(name string) bool {
	if name == c.params() {
		return true
	}
	plain := strings.TrimSuffix(name, encodedSuffix)
	for other, text := range c.files {
		if other != name && !strings.HasPrefix(other, "want") &&
			(strings.Contains(text, plain) || strings.Contains(text, filepath.Base(plain))) {
			return true
		}
	}
	return false
}

func (c *testCase) has(name string) bool { _, ok := c.files[name]; return ok }

// first gives the first of the names that is a file of the case.
func (c *testCase) first(names ...string) string {
	for _, n := range names {
		if c.has(n) {
			return n
		}
	}
	return ""
}

func (c *testCase) script() string { return c.first("script.yaml", "script.json") }
func (c *testCase) params() string { return c.first("params.yaml", "params.json") }

// readRuns parses the file runs: a line is "start=a,b", "stop=c", "copy FROM
// TO", and may name runs to read tables from (from=1) and other files:
// "script=other.yaml params=other.json start=a". A run that waits is "run
// waits"; "approve=GATE role=R answer=NAME=VALUE" and "resume" let it go on.
func (c *testCase) readRuns() error {
	text, ok := c.files[fileRuns]
	if !ok {
		c.runs = []step{{script: c.script(), params: c.params()}}
		return nil
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		words := strings.Fields(line)
		s := step{script: c.script(), params: c.params()}
		if len(words) == 3 && words[0] == "copy" {
			s.copyFrom, s.copyTo = words[1], words[2]
			c.runs = append(c.runs, s)
			continue
		}
		for _, w := range words {
			if err := s.take(w); err != nil {
				return fmt.Errorf("%s: %w", fileRuns, err)
			}
		}
		c.runs = append(c.runs, s)
	}
	return nil
}

// take reads one word of a line of the file runs.
func (s *step) take(word string) (err error) {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "run":
	case "start":
		s.start = strings.Split(value, ",")
	case "lenient":
		s.lenient = true
	case "script":
		s.script = value
	case "params":
		s.params = value
	case "from":
		var run int64
		run, err = strconv.ParseInt(value, 10, 64)
		s.from = append(s.from, run)
	case "stop":
		s.stop = value
	case "resume":
		s.resume = true
	case "reuse":
		s.reuse = true
	case "waits":
		s.waits = true
	case "approve":
		s.approve = value
	case "role":
		s.role = value
	case "answer":
		name, answer, _ := strings.Cut(value, "=")
		if s.answers == nil {
			s.answers = map[string]string{}
		}
		s.answers[name] = answer
	default:
		err = fmt.Errorf("what is %q?", word)
	}
	return err
}

// isInput reports whether a file of the case is written to its directory.
func (c *testCase) isInput(name string) bool {
	return !slices.Contains(ownNames, name) && !strings.HasPrefix(name, wantDir)
}
