package expr

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits on one expression. Real ones are below 2 KB and 20 levels.
const (
	MaxSourceBytes = 64 << 10
	MaxDepthLevels = 200 // nesting; a chain of one associative operator is one level
	maxQuoteBytes  = 120 // of source text repeated in a run-time message
	maxHintEdits   = 3   // edit distance up to which a name is suggested
)

// RuntimeMarker starts the text of every error that compiled SQL raises
// itself. DuckDB puts the class of its exception before it
// ("Invalid Input Error: "), so look for it near, not at, the start.
const RuntimeMarker = "thalweg:expr: "

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

// didYouMean adds the nearest of names as a hint, if one is near enough.
func (e *Error) didYouMean(name string, names []string) *Error {
	if near := nearest(name, names); near != "" {
		e.Hint = "did you mean " + near + "?"
	}
	return e
}

// nearest returns the name with the smallest edit distance, "" if all are
// further than a third of the length or maxHintEdits. Letter case is free.
func nearest(name string, names []string) string {
	limit := min(maxHintEdits, 1+utf8.RuneCountInString(name)/3)
	best, bestCost := "", 2*limit+2
	names = slices.Clone(names)
	slices.Sort(names)
	for _, n := range names {
		edits := editDistance(strings.ToLower(name), strings.ToLower(n))
		if edits > limit {
			continue
		}
		cost := 2 * edits // of two equally near names, the one that starts alike
		if n != "" && name != "" && n[0] != name[0] {
			cost++
		}
		if cost < bestCost {
			best, bestCost = n, cost
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours.
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s)-len(t) > maxHintEdits || len(t)-len(s) > maxHintEdits {
		return maxHintEdits + 1
	}
	var before []int
	last := make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row := make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			same := 1
			if s[i-1] == t[j-1] {
				same = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(t)]
}
