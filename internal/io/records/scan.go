package records

import (
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// errMore: the value is not whole yet.
var errMore = errors.New("more")

// syntaxError says what is wrong at an offset of a text.
type syntaxError struct {
	at   int
	what string
}

func (e *syntaxError) Error() string { return e.what }

func wrong(at int, format string, args ...any) error {
	return &syntaxError{at, fmt.Sprintf(format, args...)}
}

// blanks passes white space.
func blanks(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
		at++
	}
	return at
}

// value passes a value, which has to be sound. It is called for what may go on behind the
// text that is there, and says errMore then.
func value(text []byte, at, depth int) (end int, err error) {
	if at >= len(text) {
		return at, errMore
	}
	switch c := text[at]; {
	case c == '{' || c == '[':
		if depth >= DepthMax {
			return at, wrong(at, "it is nested more than %d levels deep", DepthMax)
		}
		return members(text, at, depth)
	case c == '"':
		return stringEnd(text, at)
	case c == '-' || c >= '0' && c <= '9':
		return numberEnd(text, at)
	case c == 't':
		return wordEnd(text, at, "true")
	case c == 'f':
		return wordEnd(text, at, "false")
	case c == 'n':
		return wordEnd(text, at, "null")
	}
	return at, wrong(at, "%s is no JSON: a value is expected", shown(text[at:]))
}

// members passes an object or a list.
func members(text []byte, at, depth int) (int, error) {
	object, closing := text[at] == '{', text[at]+2 // } and ] are two behind
	at = blanks(text, at+1)
	if at < len(text) && text[at] == closing {
		return at + 1, nil
	}
	for {
		var err error
		if object {
			if at, err = key(text, at); err != nil {
				return at, err
			}
		}
		if at, err = value(text, blanks(text, at), depth+1); err != nil {
			return at, err
		}
		at = blanks(text, at)
		switch {
		case at >= len(text):
			return at, errMore
		case text[at] == closing:
			return at + 1, nil
		case text[at] != ',':
			return at, wrong(at, "%s is no JSON: a comma or %c is expected", shown(text[at:]), closing)
		}
		at = blanks(text, at+1)
	}
}

// key passes a key and its colon.
func key(text []byte, at int) (int, error) {
	if at >= len(text) {
		return at, errMore
	}
	if text[at] != '"' {
		return at, wrong(at, "%s is no JSON: a key in quotes is expected", shown(text[at:]))
	}
	at, err := stringEnd(text, at)
	if err != nil {
		return at, err
	}
	at = blanks(text, at)
	switch {
	case at >= len(text):
		return at, errMore
	case text[at] != ':':
		return at, wrong(at, "%s is no JSON: a colon is expected", shown(text[at:]))
	}
	return at + 1, nil
}

func stringEnd(text []byte, at int) (int, error) {
	for i := at + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\':
			i++
		case c == '\n':
			return i, wrong(i, "a text is not closed at the end of its line")
		case c < ' ':
			return i, wrong(i, "a text has a control character (0x%02x) that is not escaped", c)
		}
	}
	return at, errMore
}

func numberEnd(text []byte, at int) (int, error) {
	begin := at
	digits := func() bool {
		from := at
		for at < len(text) && text[at] >= '0' && text[at] <= '9' {
			at++
		}
		return at > from
	}
	if text[at] == '-' {
		at++
	}
	zero := at < len(text) && text[at] == '0'
	from := at
	ok := digits() && (!zero || at == from+1)
	if ok && at < len(text) && text[at] == '.' {
		at++
		ok = digits()
	}
	if ok && at < len(text) && (text[at] == 'e' || text[at] == 'E') {
		at++
		if at < len(text) && (text[at] == '+' || text[at] == '-') {
			at++
		}
		ok = digits()
	}
	switch {
	case at >= len(text):
		return at, errMore
	case !ok:
		return begin, wrong(begin, "%s is no JSON number", shown(text[begin:]))
	}
	return at, nil
}

func wordEnd(text []byte, at int, word string) (int, error) {
	have := text[at:min(at+len(word), len(text))]
	switch {
	case string(have) != word[:len(have)]:
		return at, wrong(at, "%s is no JSON: a value is expected", shown(text[at:]))
	case len(have) < len(word):
		return at, errMore
	}
	return at + len(word), nil
}

// shownBytesMax of a text are shown.
const shownBytesMax = 20

// shown is the beginning of a text for people.
func shown(text []byte) string {
	for i, b := range text {
		if b == '\n' || i == shownBytesMax {
			text = text[:i]
			break
		}
	}
	return fmt.Sprintf("%q", text)
}

// unquote gives the text that a JSON text stands for.
func unquote(dst, text []byte) ([]byte, error) {
	text = text[1 : len(text)-1]
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			dst = append(dst, text[i])
			i++
			continue
		}
		if i+1 >= len(text) {
			return dst, errors.New("a text ends in a \\")
		}
		switch c := text[i+1]; c {
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, n, err := escaped(text[i:])
			if err != nil {
				return dst, err
			}
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		default:
			return dst, fmt.Errorf("\\%c is no escape of JSON", c)
		}
		i += 2
	}
	return dst, nil
}

// escaped reads \uXXXX, or two of them that are a pair.
func escaped(text []byte) (rune, int, error) {
	const unit = 6
	r, ok := hex4(text)
	switch {
	case !ok:
		return 0, 0, errors.New("a \\u has no four digits behind it")
	case r == 0:
		return 0, 0, errors.New("a text has the character \\u0000, which tables cannot hold")
	case !utf16.IsSurrogate(r):
		return r, unit, nil
	}
	if second, ok := hex4(text[unit:]); ok {
		if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
			return r, 2 * unit, nil
		}
	}
	return 0, 0, fmt.Errorf("%s is half of a pair of \\u", text[:unit])
}

func hex4(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range text[2:6] {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			r |= rune(c - 'a' + 10)
		case c >= 'A' && c <= 'F':
			r |= rune(c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return r, true
}
