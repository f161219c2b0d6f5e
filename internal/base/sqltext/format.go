package sqltext

import (
	"fmt"
	"slices"
	"strings"
)

const (
	formatColumns  = 100 // about how long a line gets before a list goes on in the next one
	formatListMost = 3   // texts of a list that are all shown
)

// Format lays SQL out for people: clauses and subqueries on lines of their own,
// long lists of texts (of files) shortened to their first. Comments are left
// out. The result is for reading; a shortened one cannot be run.
func Format(sql string) string {
	f := formatter{sql: sql, tokens: Tokens(sql)}
	for i := 0; i < len(f.tokens); i++ {
		i += f.token(i)
	}
	return strings.TrimSpace(f.out.String())
}

type formatter struct {
	sql    string
	tokens []Token
	out    strings.Builder
	line   int   // bytes in the last line
	blocks []int // depths inside of the parentheses that hold queries
}

func (f *formatter) text(i int) string {
	if i < 0 || i >= len(f.tokens) {
		return ""
	}
	return f.sql[f.tokens[i].Start:f.tokens[i].End]
}

func (f *formatter) is(i int, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(f.text(i), w) })
}

// block is the depth of the query that is being written.
func (f *formatter) block() int {
	if len(f.blocks) == 0 {
		return 0
	}
	return f.blocks[len(f.blocks)-1]
}

func (f *formatter) newLine() {
	f.out.WriteString("\n" + strings.Repeat("  ", len(f.blocks)))
	f.line = 2 * len(f.blocks)
}

func (f *formatter) write(s string) {
	f.out.WriteString(s)
	f.line += len(s)
}

// token writes one token, and says how many more it took.
func (f *formatter) token(i int) (skipped int) {
	t := f.tokens[i]
	closes := f.is(i, ")") && len(f.blocks) > 0 && t.Depth == f.block()-1
	switch {
	case closes:
		f.blocks = f.blocks[:len(f.blocks)-1]
		f.newLine()
	case i > 0 && f.clause(i):
		f.newLine()
	case i > 0 && t.Start > f.tokens[i-1].End && f.line > 2*len(f.blocks):
		f.write(" ")
	}
	if f.is(i, "[") {
		if n := f.longList(i); n > 0 {
			return n
		}
	}
	f.write(f.text(i))
	switch {
	case f.is(i, "(") && f.is(i+1, "select", "with", "from", "("):
		f.blocks = append(f.blocks, t.Depth+1)
		f.newLine()
	case f.is(i, ",") && t.Depth == f.block() && f.line > formatColumns:
		f.newLine()
		f.write("  ")
	}
	return 0
}

// clause reports whether token i begins a line: it opens a clause of the query
// that is being written.
func (f *formatter) clause(i int) bool {
	t := f.tokens[i]
	if !t.Word || t.Depth != f.block() {
		return false
	}
	switch {
	case f.is(i, "from"):
		return !f.is(i-1, "distinct")
	case f.is(i, "join"):
		return !f.is(i-1, "left", "right", "full", "inner", "outer", "semi", "anti", "cross", "asof", "positional")
	case f.is(i, "group", "order"):
		return f.is(i+1, "by")
	case f.is(i, "left", "right", "full", "inner", "semi", "anti", "cross", "asof", "positional"):
		return f.is(i+1, "join", "outer")
	case f.is(i, "select"):
		return !f.is(i-1, "(")
	}
	return f.is(i, "where", "having", "qualify", "limit", "union", "except", "intersect")
}

// longList writes the start of a list of many texts, and says how many tokens
// it stands for; 0: it is no such list.
func (f *formatter) longList(i int) int {
	j := i + 1
	for ; strings.HasPrefix(f.text(j), "'") && f.is(j+1, ","); j += 2 {
	}
	texts := (j-i-1)/2 + 1
	if !strings.HasPrefix(f.text(j), "'") || !f.is(j+1, "]") || texts <= formatListMost {
		return 0
	}
	f.write(fmt.Sprintf("[%s, … %d more]", f.text(i+1), texts-1))
	return j + 1 - i
}
