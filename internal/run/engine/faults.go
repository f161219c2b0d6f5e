package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// ErrOutOfMemory is in the chain of a failure for which an instance with more
// memory could succeed.
var ErrOutOfMemory = errors.New("DuckDB's memory limit is reached")

// Classify gives a failure of an instance that serves no task of a run a kind, a
// retry hint and advice; what names what was being done.
func Classify(ctx context.Context, err error, what string) error {
	return classify(ctx, err, Task{Name: what})
}

// classify gives err a kind, a retry hint and advice, unless it has them. This
// is the only place that knows DuckDB's error types, and the only one that
// reads its message: DuckDB has no codes for a full disk or for error().
func classify(ctx context.Context, err error, task Task) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	if ctx.Err() != nil {
		return &fault.Error{Kind: fault.Canceled, Retryable: true, Message: task.Name + " was interrupted",
			Err: context.Cause(ctx)}
	}
	var db *duckdb.Error
	if errors.As(err, &db) {
		return classifyDuckDB(db, err, task)
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return diskFull(err, task)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return &fault.Error{Kind: fault.Environment, Message: task.Name, Err: err,
			Hint: "check that the path exists and that this user may use it"}
	case fault.Passes(err):
		return &fault.Error{Kind: fault.Environment, Retryable: true, Message: task.Name, Err: err,
			Hint: "see the system's log"}
	}
	return &fault.Error{Kind: fault.Bug, Message: task.Name, Err: err}
}

func classifyDuckDB(db *duckdb.Error, err error, task Task) error {
	f := &fault.Error{Kind: fault.Bug, Message: task.Name + ": " + Reason(err), Detail: db.Msg}
	if _, ours := Raised(err); ours {
		f.Detail = "" // the reason is all
	}
	switch db.Type {
	case duckdb.ErrorTypeOutOfMemory:
		f.Kind, f.Err = fault.Environment, ErrOutOfMemory
		f.Message = task.Name + ": the batch needs more memory than its share, and could not spill"
		f.Hint = "give more with {{set memory}}, or free disk space for spilling; nothing that is committed was " +
			"lost: continue with {{set resume}}"
		if task.MemoryHint != "" {
			f.Hint = task.MemoryHint
		}
	case duckdb.ErrorTypeIO, duckdb.ErrorTypePermission:
		f.Kind = fault.Environment
		if wantsDisk(db) {
			return diskFull(err, task)
		}
	case duckdb.ErrorTypeInterrupt:
		f.Kind, f.Retryable = fault.Canceled, true
	case duckdb.ErrorTypeConversion, duckdb.ErrorTypeOutOfRange, duckdb.ErrorTypeDivideByZero,
		duckdb.ErrorTypeInvalidInput:
		f.Kind = fault.UserData
	}
	return f
}

// wantsDisk reports whether a disk or a quota is full.
func wantsDisk(db *duckdb.Error) bool {
	return strings.Contains(db.Msg, "No space left") || strings.Contains(db.Msg, "Disk quota") ||
		strings.Contains(db.Msg, "max_temp_directory_size")
}

func diskFull(err error, task Task) error {
	return &fault.Error{Kind: fault.Environment, Retryable: true, Message: task.Name + ": the disk is full", Err: err,
		Hint: "free space where the state, the spill or the output directory is"}
}

// foundIn reports whether a statement failed by a guard of ours, which raises mark.
func foundIn(err error, mark string) bool {
	var db *duckdb.Error
	return errors.As(err, &db) && strings.Contains(db.Msg, mark)
}

// Raised is the error that SQL of ours raised, if the failure is one.
func Raised(err error) (expr.Raised, bool) {
	var db *duckdb.Error
	if !errors.As(err, &db) {
		return expr.Raised{}, false
	}
	return expr.ParseRaised(db.Msg)
}

// Reason returns the text of a query's failure in one line: an expression's own words, or DuckDB's without
// its name for the kind.
func Reason(err error) string {
	var db *duckdb.Error
	if !errors.As(err, &db) {
		return firstLine(err.Error())
	}
	if raised, ok := Raised(err); ok {
		return raised.Text()
	}
	line := firstLine(db.Msg)
	if _, after, ok := strings.Cut(line, "Error: "); ok {
		return after
	}
	return line
}

// rangeHint says what the types hold.
const rangeHint = "an int holds whole numbers of 64 bits, a decimal2 has 16 digits before the point, " +
	"a datetime ends in the year 294247: keep such values out with iif(…), or compute with float"

// ExpressionReason says why an expression of a script, of which source is the
// text ("": not known), could not be computed: in its own words, else in ours,
// because DuckDB speaks of types and casts that are not in the script, and of
// decimals without their point. subject is the expression that it speaks of, as
// it quotes it, and hint what can be done beside changing the expression; ""
// if there is none.
func ExpressionReason(err error, source string) (reason, subject, hint string) {
	in := ""
	if source != "" {
		in = " in `" + source + "`"
	}
	var db *duckdb.Error
	if !errors.As(err, &db) {
		return Reason(err), "", ""
	}
	if raised, ok := Raised(err); ok {
		return raised.Text(), raised.Subject, ""
	}
	switch db.Type {
	case duckdb.ErrorTypeConversion, duckdb.ErrorTypeOutOfRange:
		// Texts are looked at before they are converted, so what is left are
		// numbers and times that a type cannot hold.
		return "a value leaves the range of its type" + in, source, rangeHint
	case duckdb.ErrorTypeInvalidInput:
		return "a function refuses what it is given" + in + ": " + Reason(err), source, ""
	}
	return Reason(err), "", ""
}

// Diagnosis is DuckDB's description of a query that it cannot bind.
type Diagnosis struct {
	Message    string // its first line
	Full       string // all lines
	Advice     string // what follows, in one line
	Position   int    // byte of the query; -1: not known
	Missing    Missing
	Name       string // of what is missing
	Candidates []string
}

// Missing is the kind of a name in a query that does not exist.
type Missing uint8

// What can be missing.
const (
	NothingMissing Missing = iota
	ColumnMissing          // anywhere; Name is its name
	FieldMissing           // of the table that the query names in front of the dot
	FunctionMissing
	OverloadMissing // a function for arguments of these types
)

// Diagnose takes the failure of a query in an instance with JSONErrors apart.
func Diagnose(err error) Diagnosis {
	d := Diagnosis{Message: err.Error(), Full: err.Error(), Position: -1}
	var db *duckdb.Error
	if !errors.As(err, &db) {
		return d
	}
	d.Message, d.Full = db.Msg, db.Msg
	var e struct {
		Message    string `json:"exception_message"`
		Position   string `json:"position"`
		Subtype    string `json:"error_subtype"`
		Kind       string `json:"type"`
		Name       string `json:"name"`
		Candidates string `json:"candidates"`
	}
	if json.Unmarshal([]byte(db.Msg), &e) != nil {
		return d
	}
	d.Name = e.Name
	message, rest, _ := strings.Cut(strings.TrimSpace(e.Message), "\n")
	d.Message, d.Full = message, e.Message
	switch {
	case e.Subtype == "COLUMN_NOT_FOUND":
		d.Missing = ColumnMissing
	case e.Subtype == "MISSING_ENTRY" && strings.Contains(e.Kind, "Function"):
		d.Missing = FunctionMissing
	case strings.Contains(message, "does not have a column named"):
		d.Missing = FieldMissing
	case e.Subtype == "NO_MATCHING_FUNCTION":
		d.Missing = OverloadMissing
		d.Message, _, _ = strings.Cut(message, " You might need")
	default:
		if advice := firstLine(strings.ReplaceAll(rest, "* SET", "* ")); !strings.HasPrefix(advice, "LINE ") {
			d.Advice = strings.Replace(advice, "Did you mean", "did you mean", 1)
		}
	}
	if e.Candidates != "" {
		d.Candidates = strings.Split(e.Candidates, ",")
	}
	if at, err := strconv.Atoi(e.Position); err == nil {
		d.Position = at
	}
	return d
}

// Saying is DuckDB's description of a query's failure, in an instance without JSONErrors.
type Saying struct {
	What, Hint string   // see QueryWords
	Line       string   // of the query, with a mark below what is wrong; "": not known
	Table      string   // that is not there
	Function   string   // that is not there
	Near       []string // functions with names like it
}

var (
	missingTable    = regexp.MustCompile(`Table with name (\S+) does not exist!`)
	missingFunction = regexp.MustCompile(`Function with name "?(\S+?)"? does not exist!(?:\s+Did you mean "(.+)")?`)
	missingColumn   = regexp.MustCompile(`Referenced column "(.*)" (?:not found in FROM clause!|was not found)`)
	kindOfError     = regexp.MustCompile(`^[A-Z][A-Za-z -]* Error: `)
	shownPlace      = regexp.MustCompile(`(?s)\nLINE \d+: .*$`)
)

// Said takes apart what DuckDB says of a query.
func Said(db *duckdb.Error) Saying {
	out := Saying{Line: strings.Trim(shownPlace.FindString(db.Msg), "\n")}
	message := kindOfError.ReplaceAllString(shownPlace.ReplaceAllString(db.Msg, ""), "")
	if out.What, out.Hint = QueryWords(message); out.Hint == "" {
		_, advice, _ := strings.Cut(strings.TrimSpace(message), "\n")
		out.Hint = strings.Replace(firstLine(advice), "Did you mean", "did you mean", 1)
	}
	if m := missingTable.FindStringSubmatch(message); m != nil {
		out.Table = m[1]
	}
	if m := missingFunction.FindStringSubmatch(message); m != nil {
		out.Function, out.Near = m[1], strings.Split(m[2], `", "`)
	}
	if m := missingColumn.FindStringSubmatch(message); m != nil {
		out.What = fmt.Sprintf("there is no column %q here", m[1])
	}
	return out
}

// IsValueFault reports whether a query failed because of a value that it met.
func IsValueFault(err error) bool {
	var db *duckdb.Error
	if !errors.As(err, &db) {
		return false
	}
	switch db.Type {
	case duckdb.ErrorTypeConversion, duckdb.ErrorTypeOutOfRange, duckdb.ErrorTypeDivideByZero,
		duckdb.ErrorTypeInvalidInput:
		return true
	}
	return false
}

// IsMachineFault reports whether a query failed for want of memory or disk, or was
// interrupted: that says nothing about the values that it met.
func IsMachineFault(err error) bool {
	var db *duckdb.Error
	if !errors.As(err, &db) {
		return errors.Is(err, ErrOutOfMemory) || errors.Is(err, context.Canceled)
	}
	switch db.Type {
	case duckdb.ErrorTypeOutOfMemory, duckdb.ErrorTypeIO, duckdb.ErrorTypePermission, duckdb.ErrorTypeInterrupt,
		duckdb.ErrorTypeFatal:
		return true
	}
	return false
}

// explainable says whether a diagnosis could find a row: full disks and
// missing memory have none. classified stands for cause, or wraps it.
func explainable(classified, cause error) bool {
	f := fault.Of(classified)
	if f.Kind == fault.Canceled || f.Place.Line > 0 || f.Place.Record > 0 {
		return false
	}
	var db *duckdb.Error
	if errors.As(cause, &db) && (db.Type == duckdb.ErrorTypeOutOfMemory || db.Type == duckdb.ErrorTypeFatal) {
		return false
	}
	return f.Kind != fault.Environment || db != nil && !wantsDisk(db)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
