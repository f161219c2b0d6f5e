// Package fault gives failures the three things that someone decides on: a
// kind (who must act), a retry hint, and the place in the user's material.
// The cause stays wrapped, never flattened to text.
//
// It owns the vocabulary only: the layer that meets a failure classifies it
// once, and every later layer reads it with Of. It cannot fail.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"thalweg/internal/base/action"
	"thalweg/internal/base/similar"
)

// Kind classifies an error by who has to act.
type Kind string

// The kinds. Their texts are stored in state and printed in JSON: they do not change.
const (
	UserData    Kind = "user_data"   // a value in an input file or table is unacceptable
	Script      Kind = "script"      // the script, its parameters or its Python code must change
	Environment Kind = "environment" // disk, memory, permissions, network, a missing file
	Bug         Kind = "bug"         // ours
	Canceled    Kind = "canceled"    // a person or a shutdown asked for it: not a failure of the work
)

// Code says which failure it is, of those on which callers decide. Most failures have none.
type Code string

// The codes. Their texts are printed in JSON and answered by an API: they do not change.
const (
	NotFound  Code = "not_found" // what was named is not there
	Conflict  Code = "conflict"  // it is not as the caller has seen it, or somebody else was first
	Forbidden Code = "forbidden" // the caller may not
	TooMany   Code = "too_many"  // the caller asks too often, or for too much at once
)

// Place points into the user's material. Zero fields are unknown.
type Place struct {
	File   string `json:"file,omitempty"`   // script, input or Python file
	Line   int64  `json:"line,omitempty"`   // 1-based physical line
	Column int    `json:"column,omitempty"` // 1-based character of the line
	Record int64  `json:"record,omitempty"` // 1-based record or row of the file or table
	Field  string `json:"field,omitempty"`  // column or field name
	Value  string `json:"value,omitempty"`  // offending text, shortened
	Expr   string `json:"expr,omitempty"`   // expression as written
	Raw    string `json:"raw,omitempty"`    // the record of the file as it came, shortened
	// whose work it was, if not that of the node that failed: its table is computed inside that
	Node  string `json:"node,omitempty"`
	Table string `json:"-"` // of which Record counts the rows; see PutInTable
	// 1-based place of the row in the canonical order of a batch's rows, where the table's rows have no numbers
	Sorted int64  `json:"-"`
	Origin *Place `json:"origin,omitempty"` // the record of an input file that the row of a table comes from
}

// PutInTable says that p is a row of a table of the script, from 1; 0: which one is
// not known. A file that p names stays: it is where the row is dealt with.
func (p *Place) PutInTable(table string, row int64) {
	if p.Record, p.Table = row, table; p.File == "" {
		p.File = "table " + table
	}
}

// String renders the place as file:line:column, with what else is known behind it.
func (p Place) String() string {
	switch {
	case p.Line > 0 && p.Column > 0:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	case p.Line > 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	s := p.File
	if p.Record > 0 {
		s += fmt.Sprintf(" (row %d)", p.Record)
	}
	if p.Origin != nil {
		s += ", from " + p.Origin.String()
	}
	return s
}

// Error is a classified failure.
type Error struct {
	Kind      Kind
	Code      Code   // "": none
	Retryable bool   // the same work may succeed later without anybody changing anything
	Place     Place  // where, in the user's material
	Message   string // this layer only: what went wrong
	Hint      string // what to do about it
	Detail    string // long evidence for the log: a traceback, an engine's message
	Err       error  // cause
}

// OtherForm is the failure to read what is stored in another form than this program's:
// what is it of, has is its number, knows is the highest that this program reads.
func OtherForm(what string, has, knows int) *Error {
	f := New(Environment, "%s has form %d, and this program knows forms up to %d", what, has, knows)
	if f.Hint = "use the newer program that wrote it, or another state"; has <= knows {
		f.Hint = "use the program that wrote it, or another state"
	}
	return f
}

// Error prints place, message and cause.
func (e *Error) Error() string {
	s := e.Message
	if where := e.Place.String(); where != "" {
		s = where + ": " + s
	}
	if e.Err != nil {
		s += ": " + cause(s, e.Err)
	}
	return s
}

// cause is the text of a cause behind said, which has named the file already in most cases:
// the system's errors name it again.
func cause(said string, err error) string {
	p, ok := err.(*fs.PathError) //nolint:errorlint // what this layer wraps, and nothing below
	if !ok || p.Path == "" {
		return err.Error()
	}
	if names(said, p.Path) {
		return p.Err.Error()
	}
	return err.Error()
}

// names reports whether a path is in a text as a whole, and neither a part of a word
// nor one of the sentence: `make a directory b` does not name the file a.
func names(text, path string) bool {
	for at := 0; ; at++ {
		i := strings.Index(text[at:], path)
		if i < 0 {
			return false
		}
		at += i
		before, after := text[:at], text[at+len(path):]
		ends := "),:;\"'`"
		if before == "" || strings.ContainsAny(path, "/.") {
			ends += " "
		}
		if (before == "" || strings.ContainsAny(before[at-1:], " (\"'`")) &&
			(after == "" || strings.ContainsAny(after[:1], ends)) {
			return true
		}
	}
}

// InScript adds to a hint where the script has what failed: it does so ("reads it") at a place.
func InScript(hint, does, at string) string {
	return strings.TrimPrefix(hint+"; the script "+does+" at "+at, "; ")
}

// NamesScript reports whether the hint says where in a script of that name.
func (e *Error) NamesScript(file string) bool {
	return strings.Contains(e.Hint, " at "+file+":")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Actions lists what the hint proposes to do.
func (e *Error) Actions() []action.Action { return action.In(e.Hint) }

// Suggest begins the hint with the one of the known names that is nearest to a name, if any is near.
func (e *Error) Suggest(name string, known []string) *Error { return e.SuggestAs("", name, known) }

// SuggestAs is Suggest with a mark before the name that is proposed.
func (e *Error) SuggestAs(mark, name string, known []string) *Error {
	if near := similar.Nearest(name, known); near != "" {
		e.Hint = strings.TrimSpace("did you mean " + mark + near + "? " + e.Hint)
	}
	return e
}

// CodeOf returns the code of the outermost failure in err's chain that has one.
func CodeOf(err error) Code {
	for f := (*Error)(nil); errors.As(err, &f); err = f.Err {
		if f.Code != "" {
			return f.Code
		}
	}
	return ""
}

// New returns a classified failure.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Passes reports whether what an error says may be gone later without anybody
// having changed anything: a layer below says so, or the system does, of what
// others take up or a device has for a moment. A full disk is of these: other
// batches' files go away, and people make room.
func Passes(err error) bool {
	var f *Error
	if errors.As(err, &f) && f.Retryable {
		return true
	}
	for _, number := range []syscall.Errno{
		// taken up
		syscall.ENOSPC, syscall.EDQUOT, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.EBUSY,
		syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EINTR, // gone for a moment
	} {
		if errors.Is(err, number) {
			return true
		}
	}
	return false
}

// Of returns the outermost classified failure in err's chain; an unclassified
// error is a Bug, because whoever met it should have said.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	var f *Error
	if errors.As(err, &f) {
		return f
	}
	return &Error{Kind: Bug, Message: "unclassified failure", Err: err}
}
