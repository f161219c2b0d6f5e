package script

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"thalweg/internal/base/document"
)

// pyKind is the kind of a Python token.
type pyKind uint8

const (
	pyEnd pyKind = iota
	pyName
	pyNumber
	pyString
	pyOp
	pyNewline // end of a line outside of brackets
	pyBad     // a string without an end, a stray character
)

// pyToken is a token of Python text.
type pyToken struct {
	kind       pyKind
	text       string
	start, end int // bytes
	indent     int // of the first token of a line: its column; else -1
}

// pyScanner splits Python text into the tokens that the checks need: names,
// strings and comments are told apart exactly, operators only as far as
// brackets, commas, dots, colons and assignments matter.
type pyScanner struct {
	text      string
	at        int
	lineStart int
	depth     int  // of open brackets
	fresh     bool // at the beginning of a logical line
}

func newPyScanner(text string) *pyScanner {
	s := &pyScanner{text: text, fresh: true}
	if strings.HasPrefix(text, document.ByteOrderMark) {
		s.at = len(document.ByteOrderMark)
		s.lineStart = s.at
	}
	return s
}

// next gives the next token; pyEnd for ever at the end.
func (s *pyScanner) next() pyToken {
	if t, newline := s.skip(); newline {
		return t
	}
	t := pyToken{start: s.at, end: s.at, indent: -1}
	if s.fresh {
		t.indent = s.at - s.lineStart
		s.fresh = false
	}
	if s.at >= len(s.text) {
		t.indent = -1
		return t
	}
	s.read(&t)
	t.end = s.at
	t.text = s.text[t.start:t.end]
	return t
}

// skip passes over blanks, comments and line breaks; it stops at a line break
// that ends a logical line.
func (s *pyScanner) skip() (t pyToken, newline bool) {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\n':
			s.at++
			s.lineStart = s.at
			if s.depth == 0 && !s.fresh {
				s.fresh = true
				return pyToken{kind: pyNewline, start: s.at - 1, end: s.at, indent: -1}, true
			}
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			s.at++
		case c == '#':
			for s.at < len(s.text) && s.text[s.at] != '\n' {
				s.at++
			}
		case c == '\\' && s.at+1 < len(s.text) && (s.text[s.at+1] == '\n' || s.text[s.at+1] == '\r'):
			s.at += 2
			if s.text[s.at-1] == '\r' && s.at < len(s.text) && s.text[s.at] == '\n' {
				s.at++
			}
		default:
			return pyToken{}, false
		}
	}
	return pyToken{}, false
}

func (s *pyScanner) read(t *pyToken) {
	c := s.text[s.at]
	switch {
	case c == '"' || c == '\'':
		t.kind = s.stringBody()
	case c >= '0' && c <= '9' || (c == '.' && s.at+1 < len(s.text) && s.text[s.at+1] >= '0' && s.text[s.at+1] <= '9'):
		t.kind = pyNumber
		s.number()
	case isPyNameStart(s.text[s.at:]):
		t.kind = pyName
		start := s.at
		for s.at < len(s.text) && isPyNamePart(s.text[s.at:]) {
			_, size := utf8.DecodeRuneInString(s.text[s.at:])
			s.at += size
		}
		if s.at < len(s.text) && (s.text[s.at] == '"' || s.text[s.at] == '\'') && isStringPrefix(s.text[start:s.at]) {
			t.kind = s.stringBody()
		}
	default:
		s.operator(t)
	}
}

func (s *pyScanner) operator(t *pyToken) {
	t.kind = pyOp
	switch c := s.text[s.at]; c {
	case '(', '[', '{':
		s.depth++
	case ')', ']', '}':
		s.depth = max(0, s.depth-1)
	}
	for _, op := range []string{"...", "**=", "//=", ">>=", "<<=", "**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->",
		":=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@="} {
		if strings.HasPrefix(s.text[s.at:], op) {
			s.at += len(op)
			return
		}
	}
	if strings.IndexByte("()[]{}+-*/%&|^~<>=.,:;@", s.text[s.at]) < 0 {
		t.kind = pyBad
	}
	_, size := utf8.DecodeRuneInString(s.text[s.at:])
	s.at += size
}

func (s *pyScanner) number() {
	for s.at < len(s.text) {
		c := s.text[s.at]
		exponent := (c == '+' || c == '-') && s.at > 0 && (s.text[s.at-1] == 'e' || s.text[s.at-1] == 'E')
		if !exponent && c != '.' && (c >= 0x80 || !isWordByte(c)) {
			return
		}
		s.at++
	}
}

// stringBody reads a string from its opening quote.
func (s *pyScanner) stringBody() pyKind {
	quoteChar := s.text[s.at]
	closing := string(quoteChar)
	if strings.HasPrefix(s.text[s.at:], strings.Repeat(closing, 3)) {
		closing = strings.Repeat(closing, 3)
	}
	s.at += len(closing)
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\\':
			s.at = min(s.at+2, len(s.text))
		case strings.HasPrefix(s.text[s.at:], closing):
			s.at += len(closing)
			return pyString
		case c == '\n' && len(closing) == 1:
			return pyBad
		default:
			s.at++
		}
	}
	return pyBad
}

func isStringPrefix(s string) bool {
	switch strings.ToLower(s) {
	case "r", "b", "u", "f", "t", "br", "rb", "fr", "rf", "tr", "rt":
		return true
	}
	return false
}

func isPyNameStart(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '_' || (unicode.IsLetter(r) && r != utf8.RuneError)
}

func isPyNamePart(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return isPyNameStart(s) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r)
}

// isPyKeyword reports whether a name is a word of the language.
func isPyKeyword(name string) bool {
	switch name {
	case "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
		"del", "elif",
		"else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
		"nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield":
		return true
	}
	return false
}

// isPyBuiltin reports whether Python has a function of that name without any import.
func isPyBuiltin(name string) bool {
	const builtins = " abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter " +
		"float " +
		"format frozenset getattr hasattr hash hex id int isinstance issubclass iter len list map max memoryview min " +
		"next object " +
		"oct ord pow print range repr reversed round set slice sorted str sum tuple type vars zip "
	return strings.Contains(builtins, " "+name+" ")
}
