package python

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// The failures of formulas, in the words of who wrote them.

const (
	maxValueChars = 200

	hintMemory  = "make the formula need less at a time, or allow a Python process more memory"
	hintRowTime = "see whether it can end at all; if it is merely slow, allow a row more time with {{set " +
		"row-timeout}}"
	hintCallTime = "see whether it can end at all; if it is merely slow, allow a call more time with {{set " +
		"group-timeout}}"
	hintImportTime = "importing takes too long: see what the files do when they are imported"
	hintKilled     = "probably the machine was out of memory: run fewer Python processes, or give each a memory " +
		"limit, so that the formula is told"
	hintExit = "a formula, or a library that it uses, has ended the whole interpreter"
)

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxValueChars {
		return s
	}
	return string([]rune(s)[:maxValueChars]) + "…"
}

// rowFault is the failure of a row; first is the number of rows before the chunk.
func rowFault(prog *program, f *failure, first int64) *fault.Error {
	record := first + int64(f.Row) + 1
	out := fault.New(fault.Kind(f.Move), "")
	out.Place = fault.Place{File: f.File, Line: f.Line, Record: record, Value: f.Value}
	if f.Given != "" {
		out.Place.Value += " of " + f.Given
	}
	out.Detail = f.Traceback
	subject := fmt.Sprintf("row %d", record)
	if f.Field >= 0 && f.Field < len(prog.Fields) {
		field := &prog.Fields[f.Field]
		out.Place.Field, out.Place.Expr = field.Name, field.Expr
		subject = fmt.Sprintf("p.%s of row %d", field.Name, record)
		out.Hint = resultHint(prog, field, f.Category)
	}
	out.Message = subject + ": " + f.text()
	switch {
	case f.Category == "memory":
		out.Hint = hintMemory
	case f.Category == "timeout":
		out.Hint = hintRowTime
	case out.Hint == "":
		out.Hint = "correct the formula, or the input"
	}
	if f.Field >= 0 && f.Field < len(prog.Fields) && prog.Fields[f.Field].At != "" {
		out.Hint += "; the script has it at " + prog.Fields[f.Field].At
	}
	return out
}

func (f *failure) text() string {
	switch {
	case f.Type == "":
		if f.Value != "" && f.Category == "type" {
			return f.Message + ": " + f.Value
		}
		return f.Message
	case f.Category == "timeout":
		return f.Message
	case f.Message == "":
		return f.Type
	}
	return f.Type + ": " + f.Message
}

func resultHint(prog *program, field *Field, category string) string {
	switch {
	case category == "digits":
		return "round the value"
	case category == "none":
		return "return a value, or declare that the field may be NULL"
	case field.Type == expr.DateTime && prog.Datetimes == Plain && (category == "type" || category == "value"):
		return "a datetime field takes text like 2006-01-02T15:04:05.000+00:00"
	}
	return ""
}

// loadFault is the failure to import a program's files or to compile an expression.
func loadFault(prog *program, f *failure, interpreter string) *fault.Error {
	out := fault.New(fault.Script, "the Python code cannot be used: %s", f.text())
	out.Place = fault.Place{File: f.File, Line: f.Line}
	out.Detail = f.Traceback
	if f.Move == string(fault.Environment) {
		out.Kind = fault.Environment
	}
	if f.Field >= 0 && f.Field < len(prog.Fields) {
		field := &prog.Fields[f.Field]
		out.Place.Field, out.Place.Expr = field.Name, field.Expr
		out.Message = fmt.Sprintf("the expression of p.%s cannot be used: %s", field.Name, f.text())
	}
	switch {
	case f.Type == "ModuleNotFoundError":
		out.Hint = fmt.Sprintf("install the module for the interpreter %s, name one that has it with {{set python}}, "+
			"or look whether its name is right", interpreter)
	case f.Category == "memory":
		out.Hint = hintMemory
	case f.Category == "timeout":
		out.Hint = hintImportTime
	}
	return out
}

// crashFault is the failure of a chunk whose process has ended by itself.
func crashFault(p *process, c *chunk) *fault.Error {
	row := p.slot(slotRow)
	if uint64(p.slot(slotSequence)) != c.sequence {
		row = rowNone
	}
	state := p.end.Status
	out := fault.New(fault.Script, "")
	how := ""
	switch {
	case state.Signaled() && state.Signal() == unix.SIGKILL:
		out.Kind, out.Retryable, out.Hint = fault.Environment, true, hintKilled
		how = "the system killed the Python process"
	case state.Signaled() && state.Signal() == unix.SIGABRT && p.hello.Implementation == "PyPy" && p.limited:
		// PyPy gives up when the system refuses it memory.
		out.Hint = hintMemory
		how = "the Python process was out of memory"
	case state.Signaled():
		out.Hint = "a library written in another language is the usual reason; the end of the log says where it was"
		how = fmt.Sprintf("the Python process crashed (%s)", state.Signal())
	default:
		out.Hint = hintExit
		how = fmt.Sprintf("the Python process ended (exit status %d)", state.ExitStatus())
	}
	p.locate(out, c, row, how)
	return out
}

// timeoutFault is the failure of a row, a call or an import that did not stop when asked to.
func timeoutFault(p *process, c *chunk, row int64, limit time.Duration) *fault.Error {
	out := fault.New(fault.Script, "")
	switch {
	case row == rowImport:
		out.Hint = hintImportTime
	case c.run.prog.Table != nil:
		out.Hint = hintCallTime
	default:
		out.Hint = hintRowTime
	}
	p.locate(out, c, row, fmt.Sprintf("took longer than %s and did not stop: the Python process was killed", limit))
	return out
}

// stallFault is the failure of a process that does nothing at all.
func stallFault(p *process, c *chunk) *fault.Error {
	out := fault.New(fault.Environment, "")
	out.Retryable = true
	p.locate(out, c, rowNone, fmt.Sprintf("the Python process did nothing for %s and was killed", stallTimeout))
	return out
}

// stoppedFault is the failure of a process that somebody has stopped, and left like that.
func stoppedFault(p *process, c *chunk) *fault.Error {
	out := fault.New(fault.Environment, "")
	out.Retryable = true
	out.Hint = "let it go on, instead of stopping it"
	p.locate(out, c, rowNone,
		fmt.Sprintf("the Python process was stopped from outside (SIGSTOP) for %s, and killed then",
			stallTimeout))
	return out
}

// locate says where a process was when it ended, as far as that is known.
func (p *process) locate(out *fault.Error, c *chunk, row int64, how string) {
	prog := c.run.prog
	switch {
	case prog.Table != nil && row >= 0 && row < int64(c.rows):
		c.at = int(row)
	case row >= 0 && row < int64(c.rows):
		out.Place.Record = c.first + row + 1
		how = fmt.Sprintf("row %d: %s", out.Place.Record, how)
	case row == rowImport:
		how = "importing the Python code: " + how
	case c.rows == 0:
		how = "loading the Python code: " + how
	case prog.Table != nil:
		how = "passing its rows: " + how
	case c.rows == 1:
		out.Place.Record = c.first + 1
		how = fmt.Sprintf("passing the values of row %d: %s", c.first+1, how)
	default:
		how = fmt.Sprintf("passing the values of rows %d to %d: %s", c.first+1, c.first+int64(c.rows), how)
	}
	log := p.crashLog()
	lines := log
	if p.hello.Implementation == "PyPy" && !strings.HasPrefix(log, stackTitle) {
		lines = "" // they are approximate, as it says itself
	}
	field := crashField(prog, lines)
	if field == nil && len(prog.Fields) == 1 && row >= 0 && prog.Table == nil {
		field = &prog.Fields[0]
	}
	if field != nil && row >= 0 {
		out.Place.Field, out.Place.Expr = field.Name, field.Expr
		how = "p." + field.Name + " of " + how
	}
	out.Place.File, out.Place.Line = crashLine(prog, lines)
	out.Message = how
	out.Detail = log
	if tail := p.stderr.Tail(); tail != "" {
		out.Detail = strings.TrimLeft(log+"\nstandard error:\n"+tail, "\n")
	}
}

// A line of a stack as faulthandler writes it, the most recent call first.
var (
	stackLine = regexp.MustCompile(`(?m)^ +File "([^"\n]*)", line (\d+)`)
)

// As in worker.py.
const (
	expressionsName = "<expressions>"
	stackTitle      = "Stack when the time was over"
)

// crashField finds the expression that a stack goes through.
func crashField(prog *program, log string) *Field {
	for _, m := range stackLine.FindAllStringSubmatch(log, -1) {
		if line, err := strconv.Atoi(m[2]); err == nil && m[1] == expressionsName {
			return prog.fieldAtLine(line)
		}
	}
	return nil
}

// crashLine finds the innermost place in the user's files.
func crashLine(prog *program, log string) (file string, line int64) {
	names := map[string]bool{}
	for _, f := range prog.Files {
		names[f.Name] = true
	}
	for _, m := range stackLine.FindAllStringSubmatch(log, -1) {
		if n, err := strconv.ParseInt(m[2], 10, 64); err == nil && names[m[1]] {
			return m[1], n
		}
	}
	return "", 0
}

// protocolFault is the failure of a process that has said something impossible.
func protocolFault(err error) *fault.Error {
	out := fault.New(fault.Script, "the Python process is not understood")
	out.Err = err
	out.Hint = "formulas must not touch file descriptors 3 to 6; if they do not, this is a defect of the pool"
	return out
}

// streamFault is the failure to read from a process that lives.
func streamFault(err error) *fault.Error {
	var large *tooLargeError
	if !errors.As(err, &large) {
		return protocolFault(err)
	}
	out := fault.New(fault.Script, "the results are too large")
	out.Err = err
	out.Hint = "make the formulas' results smaller"
	return out
}

func decodeHello(payload []byte, h *hello) error {
	if err := json.Unmarshal(payload, h); err != nil {
		return fmt.Errorf("read the first message: %w", errors.Join(err, errProtocol))
	}
	return nil
}
