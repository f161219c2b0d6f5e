package expr

import (
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/similar"
)

// Limits on one expression. Real ones are below 2 KB and 20 levels.
const (
	MaxSourceBytes = 64 << 10
	MaxDepthLevels = 200 // nesting; a chain of one associative operator is one level
	maxQuoteBytes  = 120 // of source text repeated in a run-time message
)

// Error is a problem in an expression: the byte range in its source, what is
// wrong, and what to do about it.
type Error struct {
	Offset, Length int
	Message        string
	Hint           string // "" if there is nothing helpful to say
}

// Error prints the message and the hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// span is a byte range of the source.
type span struct{ off, len int }

func (s span) errorf(format string, args ...any) *Error {
	return &Error{Offset: s.off, Length: s.len, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) hint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// maxListed bounds how many names a hint lists.
const maxListed = 12

// nearest is didYouMean that lists the names if none of them is near.
func (e *Error) nearest(name string, names []string) *Error {
	if e.didYouMean(name, names); e.Hint != "" || len(names) == 0 {
		return e
	}
	slices.Sort(names)
	more := ""
	if len(names) > maxListed {
		names, more = names[:maxListed], " …"
	}
	return e.hint("there are %s%s", strings.Join(names, ", "), more)
}

// didYouMean adds the nearest of names as a hint, if one is near enough.
func (e *Error) didYouMean(name string, names []string) *Error {
	if near := similar.Nearest(name, names); near != "" {
		e.Hint = "did you mean " + near + "?"
	}
	return e
}
