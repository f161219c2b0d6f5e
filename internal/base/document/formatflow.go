package document

import "strings"

// flow lays out a value in braces or brackets: the lines stay, what is between
// its parts becomes canonical.
func (f *yamlFormat) flow(b *strings.Builder, rest string, now int) string {
	w := &flowWriter{b: b}
	for {
		problem := w.line(rest)
		if problem != "" {
			return problem
		}
		f.emit(strings.TrimRight(b.String(), " "))
		f.at++
		if w.depth == 0 {
			return ""
		}
		for f.at < len(f.lines) && strings.TrimSpace(f.lines[f.at]) == "" {
			f.at++ // empty lines in it mean nothing
		}
		if f.at >= len(f.lines) {
			return "a bracket is not closed"
		}
		b.Reset()
		rest = strings.TrimSpace(f.lines[f.at])
		depth := w.depth
		if strings.HasPrefix(rest, "}") || strings.HasPrefix(rest, "]") {
			depth--
		}
		b.WriteString(strings.Repeat(" ", now+2*depth))
		w.last = 0
	}
}

// flowWriter copies the tokens of a value in brackets.
type flowWriter struct {
	b     *strings.Builder
	depth int
	last  byte // last token written on this line: one of { [ : , or 'x' for any other; 0: none
}

// line copies one line of the value.
func (w *flowWriter) line(s string) string {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == '#' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t'):
			w.space(w.last != 0)
			w.b.WriteString(s[i:])
			return ""
		case c == '{' || c == '[':
			w.token(s[i:i+1], c)
			w.depth++
			i++
		case c == '}' || c == ']':
			w.b.WriteByte(c)
			w.last = 'x'
			w.depth--
			i++
			if w.depth == 0 {
				return w.behind(strings.TrimLeft(s[i:], " \t"))
			}
		case c == ',':
			w.b.WriteByte(c)
			w.last = ','
			i++
		case c == ':' && (i+1 == len(s) || strings.IndexByte(" \t,[]{}", s[i+1]) >= 0 || w.last == '"'):
			w.b.WriteByte(c)
			w.last = ':'
			i++
		case c == '"' || c == '\'':
			end := quotedEnd(s, i)
			if end < 0 {
				return "a text in quotes of several lines inside of brackets"
			}
			w.token(s[i:end], '"')
			i = end
		default:
			end := flowPlainEnd(s, i)
			w.token(strings.TrimRight(s[i:end], " \t"), 'x')
			i = end
		}
	}
	return ""
}

// behind copies what follows the last bracket: nothing, or a comment.
func (w *flowWriter) behind(tail string) string {
	if tail == "" {
		return ""
	}
	if tail[0] != '#' {
		return "text behind a closing bracket"
	}
	w.b.WriteString(" " + tail)
	return ""
}

// token writes a token, with a blank where one belongs in front of it.
func (w *flowWriter) token(text string, kind byte) {
	w.space(w.last != 0 && w.last != '{' && w.last != '[')
	w.b.WriteString(text)
	w.last = kind
}

func (w *flowWriter) space(wanted bool) {
	if wanted && !strings.HasSuffix(w.b.String(), " ") {
		w.b.WriteByte(' ')
	}
}

// flowPlainEnd gives the end of a text without quotes that starts at i.
func flowPlainEnd(s string, i int) int {
	for j := i; j < len(s); j++ {
		switch c := s[j]; {
		case strings.IndexByte(",[]{}", c) >= 0:
			return j
		case c == ':' && (j+1 == len(s) || strings.IndexByte(" \t,[]{}", s[j+1]) >= 0):
			if j == i {
				continue
			}
			return j
		case c == '#' && j > i && (s[j-1] == ' ' || s[j-1] == '\t'):
			return j
		}
	}
	return len(s)
}
