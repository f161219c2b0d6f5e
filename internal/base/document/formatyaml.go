package document

import (
	"regexp"
	"strings"
)

// formatYAML lays a YAML text out line by line: the lines stay, their
// indentation and the blanks in them become canonical. It knows the block
// structure from the indentation alone, as YAML does; what it takes wrongly
// shows when the documents are compared.
func formatYAML(name, text string) (string, error) {
	if _, fail := ReadYAML(NewSource(name, text)); fail != nil {
		src := NewSource(name, text)
		return "", formatFault(name, src.Pos(fail.off).Line, "%s", fail.Message)
	}
	f := newYAMLFormat(text)
	if problem := f.run(); problem != "" {
		return "", formatFault(name, f.at, "%s: the file is left as it is", problem)
	}
	out := f.text()
	if !sameDocument(name, text, out, ReadYAML) {
		return "", formatFault(name, 0, "it cannot be formatted without a change of meaning: it is left as it is")
	}
	again := newYAMLFormat(out)
	if again.run() != "" || again.text() != out {
		return "", formatFault(name, 0, "its layout does not settle: it is left as it is")
	}
	return out, nil
}

// yamlLevel is an open block collection.
type yamlLevel struct {
	old, now int // columns of its entries before and after
	list     bool
}

// yamlFormat is one pass over a text.
type yamlFormat struct {
	lines    []string
	at       int // line that is looked at, from 0
	out      []string
	levels   []yamlLevel
	comments []yamlComment // full-line comments whose place the next line decides
	blank    bool          // an empty line in front of what comes next
}

type yamlComment struct {
	indent int
	text   string
	blank  bool // an empty line in front of it
}

func newYAMLFormat(text string) *yamlFormat {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return &yamlFormat{lines: strings.Split(strings.TrimRight(text, "\n"), "\n")}
}

func (f *yamlFormat) text() string {
	return strings.TrimRight(strings.Join(f.out, "\n"), "\n") + "\n"
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// run lays all lines out; a problem is something that this code does not know.
func (f *yamlFormat) run() (problem string) {
	for f.at < len(f.lines) {
		line := strings.TrimRight(f.lines[f.at], " \t")
		rest := strings.TrimLeft(line, " \t")
		switch {
		case rest == "":
			f.blank = len(f.out) > 0 || len(f.comments) > 0
			f.at++
		case rest[0] == '#':
			f.comments = append(f.comments, yamlComment{indent: indentOf(line), text: rest, blank: f.blank})
			f.blank = false
			f.at++
		case strings.HasPrefix(line, "---") || strings.HasPrefix(line, "...") || line[0] == '%':
			if line != "---" && line != "..." && line[0] != '%' {
				return "content beside a document mark"
			}
			f.place(0)
			f.emit(line)
			f.levels = nil
			f.at++
		case strings.HasPrefix(rest, "? ") || rest == "?":
			return "a key that is not a plain text"
		case strings.HasPrefix(line[indentOf(line):], "\t"):
			return "a tab in front of content"
		default:
			if problem = f.content(line); problem != "" {
				return problem
			}
		}
	}
	f.flushComments(-1, 0)
	return ""
}

// place writes what stands in front of content that goes to a column.
func (f *yamlFormat) place(now int) {
	f.flushComments(f.oldIndent(), now)
	if f.blank && len(f.out) > 0 {
		f.out = append(f.out, "")
	}
	f.blank = false
}

func (f *yamlFormat) oldIndent() int {
	if f.at < len(f.lines) {
		return indentOf(f.lines[f.at])
	}
	return -1
}

// flushComments writes the comments that wait: those that are indented deeper
// than what follows belong to the block before them.
func (f *yamlFormat) flushComments(old, now int) {
	for _, c := range f.comments {
		column := now
		if c.indent > old {
			column = f.levelColumn(c.indent, now)
		}
		if c.blank && len(f.out) > 0 {
			f.out = append(f.out, "")
		}
		f.out = append(f.out, strings.Repeat(" ", column)+c.text)
	}
	f.comments = nil
}

// levelColumn is the new column of the deepest level that is not deeper than old.
func (f *yamlFormat) levelColumn(old, otherwise int) int {
	for i := len(f.levels) - 1; i >= 0; i-- {
		if f.levels[i].old <= old {
			return f.levels[i].now
		}
	}
	return otherwise
}

func (f *yamlFormat) emit(line string) { f.out = append(f.out, line) }

// enter makes the level of content at a column the innermost one and gives its new column.
func (f *yamlFormat) enter(old int, list bool) int {
	// Comments that belong to blocks that end here are placed by their levels.
	for len(f.levels) > 0 {
		top := f.levels[len(f.levels)-1]
		if top.old < old || (top.old == old && (top.list == list || (list && !top.list))) {
			break
		}
		f.levels = f.levels[:len(f.levels)-1]
	}
	if len(f.levels) == 0 {
		f.levels = append(f.levels, yamlLevel{old, 0, list})
		return 0
	}
	top := f.levels[len(f.levels)-1]
	if top.old == old && top.list == list {
		return top.now
	}
	// Deeper, or a list at the column of the key that it belongs to.
	f.levels = append(f.levels, yamlLevel{old, top.now + 2, list})
	return top.now + 2
}

// content lays out a line with an entry, and what goes on on the lines below it.
func (f *yamlFormat) content(line string) string {
	old := indentOf(line)
	rest := line[old:]
	before := append([]yamlLevel(nil), f.levels...)
	list := isDash(rest)
	now := f.enter(old, list)
	after := f.levels
	f.levels = before
	f.place(now)
	f.levels = after
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", now))
	parent, column := old, now // what lines of a value are indented deeper than
	for isDash(rest) {
		parent, column = old, now
		b.WriteString("-")
		inner := strings.TrimLeft(rest[1:], " ")
		if inner == "" || inner[0] == '#' {
			rest = inner
			return f.finish(&b, rest)
		}
		b.WriteString(" ")
		old += len(rest) - len(inner)
		rest, now = inner, now+2
		if isDash(rest) || keyEnd(rest) > 0 {
			f.levels = append(f.levels, yamlLevel{old, now, isDash(rest)})
		}
	}
	if end := keyEnd(rest); end > 0 {
		parent, column = old, now
		b.WriteString(strings.TrimRight(rest[:end], " ") + ":")
		if rest = strings.TrimLeft(rest[end+1:], " \t"); rest != "" && rest[0] != '#' {
			b.WriteString(" ")
		}
	}
	return f.value(&b, rest, parent, column)
}

func isDash(s string) bool { return s == "-" || strings.HasPrefix(s, "- ") }

// keyEnd gives the place of the colon behind a key at the start of s; 0 if
// there is none.
func keyEnd(s string) int {
	i := 0
	switch s[0] {
	case '"', '\'':
		end := quotedEnd(s, 0)
		if end < 0 {
			return 0
		}
		i = end + len(s[end:]) - len(strings.TrimLeft(s[end:], " "))
		if i < len(s) && s[i] == ':' && (i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\t') {
			return i
		}
		return 0
	case '{', '[', '|', '>', '#':
		return 0
	}
	for ; i < len(s); i++ {
		switch {
		case s[i] == ':' && i > 0 && (i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\t'):
			return i
		case s[i] == '#' && i > 0 && (s[i-1] == ' ' || s[i-1] == '\t'):
			return 0
		}
	}
	return 0
}

// quotedEnd gives the place behind the quote that closes the one at start; -1
// if it is not in s.
func quotedEnd(s string, start int) int {
	quote := s[start]
	for i := start + 1; i < len(s); i++ {
		switch {
		case quote == '"' && s[i] == '\\':
			i++
		case s[i] == quote && quote == '\'' && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return -1
}

var (
	property    = regexp.MustCompile(`^([&!][^ \t,\[\]{}]*)([ \t]+|$)`)
	blockHeader = regexp.MustCompile(`^([|>])([-+]?)([1-9]?)([-+]?)[ \t]*(#.*)?$`)
)

// value lays out a value, of which rest is the part on this line.
func (f *yamlFormat) value(b *strings.Builder, rest string, parent, now int) string {
	for {
		m := property.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		b.WriteString(m[1] + " ")
		rest = rest[len(m[0]):]
	}
	switch {
	case rest == "" || rest[0] == '#':
		return f.finish(b, rest)
	case blockHeader.MatchString(rest):
		return f.block(b, rest, parent, now)
	case rest[0] == '{' || rest[0] == '[':
		return f.flow(b, rest, now)
	case rest[0] == '"' || rest[0] == '\'':
		return f.quoted(b, rest, now)
	}
	return f.plain(b, rest, parent, now)
}

// finish ends a line whose value is all there, but for a comment.
func (f *yamlFormat) finish(b *strings.Builder, comment string) string {
	line := strings.TrimRight(b.String(), " ")
	if comment != "" {
		line += " " + comment
	}
	f.emit(line)
	f.at++
	return ""
}

// plain lays out a text without quotes: lines indented deeper than its parent go on with it.
func (f *yamlFormat) plain(b *strings.Builder, rest string, parent, now int) string {
	text, comment := splitComment(rest)
	b.WriteString(text)
	f.finish(b, comment)
	if comment != "" {
		return ""
	}
	for f.at < len(f.lines) {
		// Empty lines inside are line breaks of the text.
		next := f.at
		for next < len(f.lines) && strings.TrimSpace(f.lines[next]) == "" {
			next++
		}
		if next == len(f.lines) || indentOf(f.lines[next]) <= parent ||
			strings.HasPrefix(strings.TrimSpace(f.lines[next]), "#") {
			return ""
		}
		for ; f.at < next; f.at++ {
			f.emit("")
		}
		text, comment := splitComment(strings.TrimSpace(f.lines[f.at]))
		line := strings.Repeat(" ", now+2) + text
		if comment != "" {
			line += " " + comment
		}
		f.emit(line)
		f.at++
		if comment != "" {
			return ""
		}
	}
	return ""
}

// splitComment takes a comment off a text without quotes.
func splitComment(s string) (text, comment string) {
	for i := 1; i < len(s); i++ {
		if s[i] == '#' && (s[i-1] == ' ' || s[i-1] == '\t') {
			return strings.TrimRight(s[:i], " \t"), s[i:]
		}
	}
	return strings.TrimRight(s, " \t"), ""
}

// quoted lays out a text in quotes. Inside of it only the indentation changes.
func (f *yamlFormat) quoted(b *strings.Builder, rest string, now int) string {
	for line := rest; ; {
		if end := quotedEnd(rest, 0); end >= 0 {
			// rest has grown by the lines below: what is behind the quote is at the end of the last.
			tail := rest[end:]
			b.WriteString(strings.TrimSuffix(line, tail))
			tail = strings.TrimLeft(tail, " \t")
			if tail != "" && tail[0] != '#' {
				return "text behind a closing quote"
			}
			return f.finish(b, tail)
		}
		b.WriteString(line)
		f.emit(strings.TrimRight(b.String(), " \t"))
		b.Reset()
		if f.at++; f.at >= len(f.lines) {
			return "a quote is not closed"
		}
		line = strings.TrimSpace(f.lines[f.at])
		if strings.HasSuffix(strings.TrimRight(rest, " \t"), `\`) && rest[0] == '"' {
			return "a line that ends in a backslash inside of quotes"
		}
		rest += "\n" + line
		if line != "" {
			b.WriteString(strings.Repeat(" ", now+2))
		}
	}
}

// block lays out a text behind | or >: its lines move together.
func (f *yamlFormat) block(b *strings.Builder, rest string, parent, now int) string {
	m := blockHeader.FindStringSubmatch(rest)
	b.WriteString(m[1] + m[2] + m[3] + m[4])
	keep := m[2]+m[4] == "+"
	f.finish(b, m[5])
	old, target := -1, now+2
	if m[3] != "" {
		n := int(m[3][0] - '0')
		old, target = max(parent, 0)+n, now+n
	}
	var empty int
	for ; f.at < len(f.lines); f.at++ {
		line := f.lines[f.at]
		if strings.Trim(line, " ") == "" {
			if old < 0 || len(line) <= old {
				empty++
				continue
			}
		} else {
			if old < 0 && indentOf(line) > parent {
				old = indentOf(line)
			}
			if old < 0 || indentOf(line) < old {
				break
			}
		}
		for ; empty > 0; empty-- {
			f.emit("")
		}
		f.emit(strings.Repeat(" ", target) + line[old:])
	}
	if keep {
		for ; empty > 0; empty-- {
			f.emit("")
		}
	}
	f.blank = f.blank || empty > 0
	return ""
}
