package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/sources"
)

// expressionLine is a line of the file expressions: EXPRESSION | TYPE | RESULT.
type expressionLine struct {
	index            int // of the line in the file
	expr, typ, want  string
	refused, failing bool // the result is "refused: …" (at load time) or "fails: …" (in a run)
}

const (
	cellSeparator = " | "
	refusedMark   = "refused: "
	failsMark     = "fails: "
	fieldsMark    = "$FIELDS" // in a case's script: all fields e1, e2, …
	exprMark      = "$EXPR"   // in a case's script: one expression; one run for each
	typeMark      = "$TYPE"
)

// lineForm is that of a line; expressions may have the operator | in them.
var lineForm = regexp.MustCompile(`^(.*?) \| (string|int|float|decimal2|bool|datetime) \|(?: (.*))?$`)

// readExpressions parses the lines; empty ones and those that begin with # have no meaning.
func readExpressions(text string) ([]*expressionLine, error) {
	var out []*expressionLine
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		m := lineForm.FindStringSubmatch(line)
		if m == nil || m[3] == "" && !*update {
			return nil, fmt.Errorf("line %d of %s: not EXPRESSION | TYPE | RESULT: %s", i+1, fileExpressions, line)
		}
		e := &expressionLine{index: i, expr: m[1], typ: m[2], want: m[3]}
		e.refused, e.failing = strings.HasPrefix(e.want, refusedMark), strings.HasPrefix(e.want, failsMark)
		out = append(out, e)
	}
	return out, nil
}

// runExpressions evaluates each line and reports each as a test of its own.
func runExpressions(t *testing.T, c *testCase) {
	t.Helper()
	lines, err := readExpressions(c.files[fileExpressions])
	require.NoError(t, err)
	require.NotEmpty(t, lines)
	template, err := expressionScript(c)
	require.NoError(t, err)
	got := map[*expressionLine]string{}
	if strings.Contains(template, exprMark) {
		for _, e := range lines {
			got[e] = evaluateOne(t, c, template, e)
		}
	} else {
		evaluateAll(t, c, template, lines, got)
	}
	if *update {
		updateExpressions(t, c, lines, got)
		return
	}
	for _, e := range lines {
		t.Run(e.expr, func(t *testing.T) { require.Equal(t, e.want, got[e], "%s as %s", e.expr, e.typ) })
	}
}

const valueKind = "value"

// kindOf returns the kind of a result: refused, fails or a value; "" for none yet.
func kindOf(result string) string {
	switch {
	case result == "":
		return ""
	case strings.HasPrefix(result, refusedMark):
		return refusedMark
	case strings.HasPrefix(result, failsMark):
		return failsMark
	}
	return valueKind
}

// updateExpressions rewrites the messages, and the results that are left
// empty. A value is a person's to change.
func updateExpressions(t *testing.T, c *testCase, lines []*expressionLine, got map[*expressionLine]string) {
	t.Helper()
	text := strings.Split(strings.TrimRight(c.files[fileExpressions], "\n"), "\n")
	for _, e := range lines {
		if k := kindOf(e.want); e.want != got[e] && k != "" && (k != kindOf(got[e]) || k == valueKind) {
			assert.Fail(t, "the result is another", "%s as %s: %s, not %s", e.expr, e.typ, got[e], e.want)
			continue
		}
		text[e.index] = e.expr + cellSeparator + e.typ + cellSeparator + got[e]
	}
	for i, f := range c.archive.Files {
		if f.Name == fileExpressions {
			c.archive.Files[i].Data = []byte(strings.Join(text, "\n") + "\n")
		}
	}
	require.NoError(t, os.WriteFile(c.file, txtar.Format(c.archive), 0o644))
}

// evaluateAll runs all lines that can be fields of one table together. Those
// that are refused or fail are taken out, the failing ones evaluated alone.
func evaluateAll(t *testing.T, c *testCase, template string, lines []*expressionLine, got map[*expressionLine]string) {
	t.Helper()
	var left []*expressionLine
	for _, e := range lines {
		if !e.failing {
			left = append(left, e)
		}
	}
	b := newBench(t, c)
	err := b.runText(fields(template, left))
	var invalid *sources.InvalidScriptError
	if errors.As(err, &invalid) {
		takeRefused(t, invalid, lines, &left, got)
		err = b.runText(fields(template, left))
	}
	if err == nil {
		if len(left) > 0 {
			b.readFields(left, got)
		}
		left = nil
	}
	for _, e := range lines {
		if _, ok := got[e]; !ok {
			got[e] = evaluateOne(t, c, fields(template, []*expressionLine{e}), e)
		}
	}
}

// fieldPath finds the number of a field in a diagnostic's path.
var fieldPath = regexp.MustCompile(`\.fields\.e(\d+)(?:\.|$)`)

// takeRefused takes the lines that do not load out of left.
func takeRefused(t *testing.T, invalid *sources.InvalidScriptError, lines []*expressionLine, left *[]*expressionLine,
	got map[*expressionLine]string) {
	t.Helper()
	byIndex := map[int]*expressionLine{}
	for _, e := range lines {
		byIndex[e.index] = e
	}
	for _, d := range invalid.Diagnostics.Errors() {
		m := fieldPath.FindStringSubmatch(d.Path)
		require.NotNil(t, m, "a problem that is not an expression's:\n%s", d.Render())
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		if e := byIndex[n]; got[e] == "" {
			got[e] = refusedMark + d.Message
		}
	}
	kept := (*left)[:0]
	for _, e := range *left {
		if got[e] == "" {
			kept = append(kept, e)
		}
	}
	*left = kept
}

// evaluateOne runs a script for one line.
func evaluateOne(t *testing.T, c *testCase, template string, e *expressionLine) string {
	t.Helper()
	b := newBench(t, c)
	err := b.runText(strings.ReplaceAll(strings.ReplaceAll(template, exprMark, quoteYAML(e.expr)), typeMark, e.typ))
	var invalid *sources.InvalidScriptError
	switch {
	case errors.As(err, &invalid):
		return refusedMark + invalid.Diagnostics.Errors()[0].Message
	case err != nil:
		return failsMark + fieldNumber.ReplaceAllString(firstLine(b.plain(err.Error())), "field e")
	}
	got := map[*expressionLine]string{}
	b.readFields([]*expressionLine{e}, got)
	return got[e]
}

// fieldNumber is the name that a failure gives to an expression: it depends on the line.
var fieldNumber = regexp.MustCompile(`\bfield e[0-9]+\b`)

func firstLine(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }

// runText runs a script given as text. The error is an invalid script's, or
// the failure of the run.
func (b *bench) runText(text string) error {
	b.t.Helper()
	path := filepath.Join(b.dir, "script.yaml")
	require.NoError(b.t, os.WriteFile(path, []byte(strings.ReplaceAll(text, dirMark, b.dir)), 0o644))
	sum, err := runner.Run(context.Background(), b.home, runner.Options{ScriptPath: path,
		Workspace: instance.DefaultWorkspace,
		Process: runtime.Process{MemoryBytes: caseMemoryBytes, Cores: caseCores, Interpreter: "python3",
			Logger: quiet}})
	if err == nil && sum.Failure != nil {
		err = errors.New(sum.Failure.Message)
	}
	return err
}

// resultColumn matches the columns of the table expressions that hold results.
var resultColumn = regexp.MustCompile(`^(e[0-9]*|always)$`)

// readFields reads the results of expressions: the values of each over all
// rows of the table expressions, sorted by its other columns.
func (b *bench) readFields(lines []*expressionLine, got map[*expressionLine]string) {
	b.t.Helper()
	names := map[string]bool{}
	var order, columns []string
	for _, row := range b.query("DESCRIBE expressions").Rows {
		name := fmt.Sprint(row[0])
		names[name] = true
		if !resultColumn.MatchString(name) {
			order = append(order, name)
		}
	}
	for _, e := range lines {
		name := fieldName(e)
		if len(lines) == 1 && names["e"] {
			name = "e"
		}
		require.True(b.t, names[name], "the table expressions has no column %s", name)
		if e.typ == "decimal2" || e.typ == "datetime" || e.typ == "bool" {
			name = "CAST(" + name + " AS VARCHAR)" // all digits, and the time of midnight too
		}
		columns = append(columns, name)
	}
	text := "SELECT " + strings.Join(columns, ", ") + " FROM expressions"
	if len(order) > 0 {
		text += " ORDER BY " + strings.Join(order, ", ")
	}
	res := b.query(text)
	for i, e := range lines {
		var cells []string
		for _, row := range res.Rows {
			cells = append(cells, cellText(row[i]))
		}
		got[e] = strings.Join(cells, ", ")
		if len(cells) == 0 {
			got[e] = "(no rows)"
		}
	}
}

func (b *bench) query(text string) inspect.QueryResult {
	b.t.Helper()
	res, err := inspect.Query(context.Background(), b.home, inspect.QueryOptions{Workspace: instance.DefaultWorkspace,
		SQL: text, Process: runtime.Process{MemoryBytes: caseMemoryBytes}})
	require.NoError(b.t, err)
	return res
}

func fieldName(e *expressionLine) string { return fmt.Sprintf("e%d", e.index) }

// fields writes the lines as fields of a table into a script.
func fields(template string, lines []*expressionLine) string {
	var parts []string
	for _, e := range lines {
		parts = append(parts, fmt.Sprintf("%s: {expression: %s, type: %s}", fieldName(e), quoteYAML(e.expr), e.typ))
	}
	parts = append(parts, `always: {expression: "1", type: int}`)
	return strings.ReplaceAll(template, fieldsMark, strings.Join(parts, ", "))
}

// quoteYAML writes text as a quoted value of YAML.
func quoteYAML(s string) string {
	q, _ := json.Marshal(s) // of a string: cannot fail
	text := string(q)
	for code, char := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"} {
		text = strings.ReplaceAll(text, code, char)
	}
	return text
}

// defaultRow is the row of a case that has no row of its own.
const defaultRow = `i int 7
n int -3
z int 0
f float 2.5
d decimal2 12.34
s string abc
u string 12345
b bool true
t datetime 2024-02-29T13:14:15.016Z
`

// expressionScript gives the case's script, or the one that computes fields
// of one row.
func expressionScript(c *testCase) (string, error) {
	if name := c.script(); name != "" {
		text := c.files[name]
		if !strings.Contains(text, fieldsMark) && !strings.Contains(text, exprMark) {
			return "", fmt.Errorf("%s mentions neither %s nor %s", name, fieldsMark, exprMark)
		}
		return text, nil
	}
	row := c.files[fileRow]
	if row == "" {
		row = defaultRow
	}
	var names, cells, columns, out []string
	for _, line := range strings.Split(strings.TrimRight(row, "\n"), "\n") {
		cell := strings.SplitN(line, " ", 3)
		if len(cell) == 2 {
			cell = append(cell, "")
		}
		if len(cell) != 3 {
			return "", fmt.Errorf("%s: not NAME TYPE VALUE: %s", fileRow, line)
		}
		format := ""
		if cell[1] == "datetime" {
			format = `, col_format: "2006-01-02T15:04:05.999999Z07:00"`
		}
		names = append(names, cell[0])
		cells = append(cells, `"`+strings.ReplaceAll(cell[2], `"`, `""`)+`"`)
		columns = append(columns, fmt.Sprintf("%s: {col_type: %s, csv: {col_hdr: %s%s}}", cell[0], cell[1],
			cell[0], format))
		out = append(out, fmt.Sprintf("%s: {expression: r.%s, type: %s}", cell[0], cell[0], cell[1]))
	}
	c.rowCSV = strings.Join(names, ",") + "\n" + strings.Join(cells, ",") + "\n"
	return fmt.Sprintf(`nodes:
  read:
    type: file_table
    r:
      urls: [$DIR/row.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {%s}
    w:
      name: row_read
      fields: {%s}
  compute:
    type: table_table
    r: {table: row_read}
    w:
      name: expressions
      fields: {$FIELDS}
`, strings.Join(columns, ", "), strings.Join(out, ", ")), nil
}
