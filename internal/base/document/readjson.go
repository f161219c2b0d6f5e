package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ReadJSON parses JSON as encoding/json does, keeping positions, the order of
// keys, and keys that occur twice. The text must be UTF-8.
func ReadJSON(src *Source) (*Value, *SyntaxError) {
	text := strings.TrimPrefix(src.Text, ByteOrderMark)
	r := &jsonReader{src: src, base: len(src.Text) - len(text), text: text}
	var all json.RawMessage // checked as a whole: a decoder looks only at what it is asked for
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, r.syntaxError(err)
	}
	r.tokens = json.NewDecoder(strings.NewReader(text))
	r.tokens.UseNumber()
	v := r.value(r.next(), 0)
	if r.err != nil {
		return nil, r.err
	}
	return v, nil
}

type jsonReader struct {
	src    *Source
	base   int    // where text begins in src.Text
	text   string // without a byte order mark
	tokens *json.Decoder
	off    int // of the last token in text
	count  int
	err    *SyntaxError
}

// next gives the next token. The text is valid: there is one.
func (r *jsonReader) next() json.Token {
	r.off = int(r.tokens.InputOffset())
	r.off += len(r.text[r.off:]) - len(strings.TrimLeft(r.text[r.off:], " \t\r\n,:"))
	token, err := r.tokens.Token()
	if err != nil {
		r.fail("not valid JSON: "+err.Error(), "")
	}
	return token
}

// fail reports a problem at the last token.
func (r *jsonReader) fail(message, hint string) {
	if r.err == nil {
		_, size := utf8.DecodeRuneInString(r.text[r.off:])
		r.err = &SyntaxError{off: r.base + r.off, end: r.base + r.off + size, Message: message, hint: hint}
	}
}

// value reads the value that begins with a token.
func (r *jsonReader) value(token json.Token, depth int) *Value {
	v := &Value{Src: r.src, Off: r.base + r.off, End: r.base + int(r.tokens.InputOffset()), Weight: 1}
	if r.count++; r.count > MaxValuesCount {
		r.fail(fmt.Sprintf("too many values: the limit is %d", MaxValuesCount), "")
	}
	if depth > MaxDepthLevels {
		r.fail(fmt.Sprintf("nested too deeply: the limit is %d levels", MaxDepthLevels), "")
	}
	if r.err != nil {
		return v
	}
	switch t := token.(type) {
	case json.Delim:
		r.inside(v, t, depth)
	case string:
		v.Kind, v.Style, v.Text = String, jsonStyle, t
	case json.Number:
		v.Kind, v.Text = Number, t.String()
	case bool:
		v.Kind, v.Text = Bool, fmt.Sprint(t)
	case nil:
		v.Text = "null"
	}
	return v
}

// inside reads the elements of a map or a list, and its closing bracket.
func (r *jsonReader) inside(v *Value, open json.Delim, depth int) {
	v.Kind = List
	if open == '{' {
		v.Kind = Map
	}
	for r.err == nil {
		token := r.next()
		if token == json.Delim('}') || token == json.Delim(']') || r.err != nil {
			return
		}
		item := r.value(token, depth+1)
		if v.Kind == List {
			v.Items = append(v.Items, item)
		} else {
			key := item
			item = r.value(r.next(), depth+1)
			v.Entries = append(v.Entries, &Entry{Name: key.Text, Key: key, Value: item})
		}
		v.Weight += item.Weight
	}
}

// syntaxError places the parser's error, and says what is mostly meant by the
// character that it found.
func (r *jsonReader) syntaxError(err error) *SyntaxError {
	// Nothing takes a zero byte: it shows whether the text ends too early.
	var wrong *json.SyntaxError
	if errors.As(json.Unmarshal([]byte(r.text+"\x00"), new(json.RawMessage)), &wrong) {
		r.off = int(wrong.Offset) - 1
	}
	if r.off >= len(r.text) {
		r.off = len(r.text)
		r.fail("the document ends too early", "a closing }, ] or quote is missing")
		return r.err
	}
	char, _ := utf8.DecodeRuneInString(r.text[r.off:])
	message := "not valid JSON: " + err.Error()
	if char >= utf8.RuneSelf { // the parser names its first byte
		message = fmt.Sprintf("not valid JSON: unexpected character %q", char)
	}
	r.fail(message, jsonHint(strings.TrimRight(r.text[:r.off], " \t\r\n"), char))
	return r.err
}

// jsonHint says what to do about a character that does not belong behind before.
func jsonHint(before string, char rune) string {
	switch {
	case strings.HasSuffix(before, `\`):
		return `a backslash itself is written \\`
	case strings.HasSuffix(before, ",") && (char == '}' || char == ']'):
		return "JSON allows no comma before a closing bracket"
	case char == '/' || char == '#':
		return "JSON has no comments"
	case char == '\'' || strings.HasSuffix(before, ",") || strings.HasSuffix(before, "{"):
		return "JSON text is written in double quotes, and so are keys"
	case char < ' ':
		return `a line break is written \n; or the closing quote is missing`
	}
	return ""
}
