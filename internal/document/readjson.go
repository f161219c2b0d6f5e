package document

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ReadJSON parses JSON as encoding/json would accept it, keeping positions,
// the order of keys, and keys that occur twice. The text must be UTF-8.
func ReadJSON(src *Source) (*Value, *SyntaxError) {
	p := &jsonParser{src: src, text: src.Text}
	if strings.HasPrefix(p.text, ByteOrderMark) {
		p.at = len(ByteOrderMark)
	}
	v := p.value(0)
	if p.err == nil {
		p.blanks()
		if p.at < len(p.text) {
			p.fail(p.at, "unexpected text behind the end of the document", "a JSON document is one value")
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	return v, nil
}

type jsonParser struct {
	src   *Source
	text  string
	at    int
	count int
	err   *SyntaxError
}

func (p *jsonParser) fail(at int, message, hint string) {
	if p.err == nil {
		_, size := utf8.DecodeRuneInString(p.text[min(at, len(p.text)):])
		p.err = &SyntaxError{off: at, end: at + size, Message: message, hint: hint}
	}
}

func (p *jsonParser) blanks() {
	for p.at < len(p.text) && isBlank(p.text[p.at]) {
		p.at++
	}
}

// peek skips blanks and gives the next byte, 0 at the end.
func (p *jsonParser) peek() byte {
	p.blanks()
	if p.at >= len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *jsonParser) value(depth int) *Value {
	c := p.peek()
	v := &Value{Src: p.src, Off: p.at, Weight: 1}
	if p.count++; p.count > MaxValuesCount {
		p.fail(p.at, fmt.Sprintf("too many values: the limit is %d", MaxValuesCount), "")
		return v
	}
	switch {
	case p.err != nil:
	case depth > MaxDepthLevels:
		p.fail(p.at, fmt.Sprintf("nested too deeply: the limit is %d levels", MaxDepthLevels), "")
	case c == '{':
		p.object(v, depth)
	case c == '[':
		p.list(v, depth)
	case c == '"':
		v.Kind, v.Style = String, jsonStyle
		v.Text = p.string()
	case c == '-' || (c >= '0' && c <= '9'):
		v.Kind = Number
		v.Text = p.number()
	default:
		p.word(v)
	}
	v.End = p.at
	if !v.Scalar() {
		v.End = v.Off + 1
	}
	return v
}

func (p *jsonParser) word(v *Value) {
	for word, kind := range map[string]Kind{"true": Bool, "false": Bool, "null": Null} {
		if strings.HasPrefix(p.text[p.at:], word) {
			v.Kind, v.Text = kind, word
			p.at += len(word)
			return
		}
	}
	switch {
	case p.at >= len(p.text):
		p.fail(p.at, "the document ends too early", "a closing } or ] is missing")
	case p.text[p.at] == '}' || p.text[p.at] == ']':
		p.fail(p.at, "expected a value", "JSON allows no comma before a closing bracket")
	case p.text[p.at] == '/' || p.text[p.at] == '#':
		p.fail(p.at, "expected a value", "JSON has no comments")
	case p.text[p.at] == '\'':
		p.fail(p.at, "expected a value", "JSON text is written in double quotes")
	default:
		p.fail(p.at, "expected a value", "")
	}
}

func (p *jsonParser) number() string {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.eE0123456789", p.text[p.at]) >= 0 {
		p.at++
	}
	text := p.text[start:p.at]
	if !IsJSONNumber(text) {
		p.fail(start, "not a number: "+Quote(text), "")
	}
	return text
}

// IsJSONNumber follows the grammar of RFC 8259.
func IsJSONNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	digits := func() bool {
		n := len(s)
		s = strings.TrimLeft(s, "0123456789")
		return len(s) < n
	}
	if rest, zero := strings.CutPrefix(s, "0"); zero {
		s = rest
	} else if !digits() {
		return false
	}
	if rest, ok := strings.CutPrefix(s, "."); ok {
		if s = rest; !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		return digits() && s == ""
	}
	return s == ""
}

func (p *jsonParser) string() string {
	start := p.at
	p.at++
	var b strings.Builder
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return b.String()
		case c == '\\':
			r, size := unescape(p.text[p.at:])
			if size == 0 || strings.IndexByte(`bfnrtu"\/`, p.text[p.at+1]) < 0 {
				p.fail(p.at, "unknown escape in a string", `a backslash itself is written \\`)
				return ""
			}
			b.WriteRune(r)
			p.at += size
		case c < ' ':
			p.fail(p.at, "a control character or line break in a string", `a line break is written \n; or the closing quote is missing`)
			return ""
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	p.fail(start, "the string has no closing quote", "")
	return ""
}

func (p *jsonParser) object(v *Value, depth int) {
	v.Kind = Map
	p.at++
	if p.peek() == '}' {
		p.at++
		return
	}
	for p.err == nil {
		if c := p.peek(); c != '"' {
			hint := "keys are written in double quotes"
			if c == '}' {
				hint = "JSON allows no comma before a closing bracket"
			}
			p.fail(p.at, "expected a key", hint)
			return
		}
		key := p.value(depth + 1)
		if p.err == nil && p.peek() != ':' {
			p.fail(p.at, "expected : behind a key", "")
			return
		}
		p.at++
		val := p.value(depth + 1)
		v.Entries = append(v.Entries, &Entry{Name: key.Text, Key: key, Value: val})
		v.Weight += val.Weight
		if p.err != nil || !p.next('}') {
			return
		}
	}
}

func (p *jsonParser) list(v *Value, depth int) {
	v.Kind = List
	p.at++
	if p.peek() == ']' {
		p.at++
		return
	}
	for p.err == nil {
		item := p.value(depth + 1)
		v.Items = append(v.Items, item)
		v.Weight += item.Weight
		if p.err != nil || !p.next(']') {
			return
		}
	}
}

// next reports whether another element follows; else it has read the closing bracket.
func (p *jsonParser) next(closing byte) bool {
	switch p.peek() {
	case ',':
		p.at++
		return true
	case closing:
		p.at++
		return false
	}
	message := "expected , or " + string(closing)
	if p.at >= len(p.text) {
		message = "the document ends too early: " + message
	}
	p.fail(p.at, message, "")
	return false
}
