package document

import (
	"strings"
	"unicode/utf8"
)

// Kind is the type of a value of the document.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	String
	Number
	Bool
	Map
	List
)

func (k Kind) String() string {
	return [...]string{"null", "text", "a number", "a boolean", "a map", "a list"}[k]
}

// Style is the notation of a scalar, which decides how its text maps to the source.
type Style uint8

// The styles that matter outside of this package.
const (
	plainStyle Style = iota // YAML without quotes, JSON numbers, true, false, null
	singleStyle
	doubleStyle // YAML
	jsonStyle   // JSON string
	BlockStyle  // YAML | and >
	RawStyle    // all of a file: the text is the source
)

// Value is a node of the document, with its place in the source.
type Value struct {
	Src     *Source
	Kind    Kind
	Style   Style
	Text    string // of a scalar
	Off     int    // byte offset in Src.Text of the first character
	End     int    // just behind the last one; Off when it has to be found: see Span
	Entries []*Entry
	Items   []*Value
	Weight  int  // values in it when aliases are followed
	Secret  bool // Text has a reference to a secret
	Made    bool // by a short form: the text has it in another way
}

// Entry is a key of a map with its value.
type Entry struct {
	Name  string // key as it counts: the canonical spelling once it is known
	Key   *Value
	Value *Value
}

// Present reports whether v is there: null means absent, as in Go's JSON.
func (v *Value) Present() bool { return v != nil && v.Kind != Null }

// Scalar reports whether v is one piece of text, a number or a boolean.
func (v *Value) Scalar() bool { return v.Kind != Map && v.Kind != List }

// Span gives the first and last byte of v in Src.Text: all of a scalar, the
// opening of a map or a list.
func (v *Value) Span() (start, end int) {
	if v.End > v.Off || !v.Scalar() {
		return v.Off, max(v.End, v.Off)
	}
	offsets, ok := v.layout()
	if !ok {
		return v.Off, v.firstLineEnd()
	}
	end = offsets[len(offsets)-1]
	if v.Style == singleStyle || v.Style == doubleStyle {
		end = min(end+1, len(v.Src.Text))
	}
	v.End = end
	return v.Off, end
}

// Part gives the place in Src.Text of text[start:end], or of all of v where
// the way it is written does not allow to tell.
func (v *Value) Part(start, end int) (int, int) {
	offsets, ok := v.layout()
	if !ok || start < 0 || start > len(v.Text) {
		return v.Span()
	}
	end = max(start, min(end, len(v.Text)))
	from := offsets[start]
	if end == start {
		return from, from
	}
	return from, max(from, offsets[end-1]+1)
}

func (v *Value) firstLineEnd() int {
	rest := v.Src.Text[min(v.Off, len(v.Src.Text)):]
	if i := strings.IndexAny(rest, "\r\n"); i >= 0 {
		rest = rest[:i]
	}
	return v.Off + len(strings.TrimRight(rest, " \t"))
}

// layout maps each byte of text (and its end) to its offset in Src.Text, by
// walking both side by side. It fails where they cannot be brought together.
func (v *Value) layout() ([]int, bool) {
	w := layoutWalk{src: v.Src.Text, text: v.Text, at: v.Off, style: v.Style, offsets: make([]int, 0, len(v.Text)+1)}
	return w.offsets, w.run(&w.offsets)
}

type layoutWalk struct {
	src, text string
	at, done  int // positions in src and text
	style     Style
	offsets   []int
}

func (w *layoutWalk) run(out *[]int) bool {
	if w.style == RawStyle {
		for i := range len(w.text) + 1 {
			*out = append(*out, w.at+i)
		}
		return true
	}
	if !w.open() {
		return false
	}
	for w.done < len(w.text) {
		if !w.step() {
			return false
		}
	}
	w.offsets = append(w.offsets, w.at)
	*out = w.offsets
	return true
}

// open goes to the first character of the content.
func (w *layoutWalk) open() bool {
	switch w.style {
	case singleStyle, doubleStyle, jsonStyle:
		if w.at >= len(w.src) || (w.src[w.at] != '"' && w.src[w.at] != '\'') {
			return false
		}
		w.at++
	case BlockStyle:
		i := strings.IndexByte(w.src[min(w.at, len(w.src)):], '\n')
		if i < 0 {
			return w.text == ""
		}
		w.at += i + 1
	}
	return true
}

// step matches the next character, escape or run of blanks.
func (w *layoutWalk) step() bool {
	if w.at >= len(w.src) {
		// A block at the end of the file may lack its last line break.
		if w.style == BlockStyle && strings.Trim(w.text[w.done:], "\n") == "" {
			return w.match(len(w.text)-w.done, 0)
		}
		return false
	}
	escapes := w.style == doubleStyle || w.style == jsonStyle
	c := w.src[w.at]
	switch {
	case escapes && c == '\\':
		return w.escape()
	case w.style == singleStyle && strings.HasPrefix(w.src[w.at:], "''"):
		return w.text[w.done] == '\'' && w.match(1, 2)
	case w.style != jsonStyle && isBlank(c):
		return w.blanks()
	case c == w.text[w.done]:
		return w.match(1, 1)
	}
	return false
}

// match takes n bytes of text as written by size bytes of src.
func (w *layoutWalk) match(n, size int) bool {
	for range n {
		w.offsets = append(w.offsets, w.at)
	}
	w.done += n
	w.at += size
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// blanks matches a run of blanks: folding and indentation make the run in
// the source another one, so only its end is certain.
func (w *layoutWalk) blanks() bool {
	srcEnd, textEnd := w.at, w.done
	for srcEnd < len(w.src) && isBlank(w.src[srcEnd]) {
		srcEnd++
	}
	for textEnd < len(w.text) && isBlank(w.text[textEnd]) {
		textEnd++
	}
	n := min(textEnd-w.done, w.blankCount(w.src[w.at:srcEnd]))
	textEnd = w.done + n
	first := max(w.at, srcEnd-n)
	for i := range n {
		w.offsets = append(w.offsets, min(first+i, max(srcEnd-1, w.at)))
	}
	w.done = textEnd
	w.at = srcEnd
	if textEnd == len(w.text) && n > 0 {
		w.at = w.offsets[len(w.offsets)-1] + 1
	}
	return true
}

// blankCount says how many blanks of text a run of blanks in the source can
// stand for. Only with escapes it matters: those behind it may be blanks too.
func (w *layoutWalk) blankCount(run string) int {
	lines := strings.Count(run, "\n")
	switch {
	case w.style != doubleStyle:
		return len(w.text)
	case lines == 0:
		return len(run)
	}
	return max(1, lines-1) // a folded line break is a blank, empty lines are line breaks
}

// escape matches one escape sequence of a double-quoted scalar.
func (w *layoutWalk) escape() bool {
	if w.style == doubleStyle && w.at+1 < len(w.src) && (w.src[w.at+1] == '\n' || w.src[w.at+1] == '\r') {
		w.at++ // a line continued: neither the break nor the indentation counts
		for w.at < len(w.src) && isBlank(w.src[w.at]) {
			w.at++
		}
		return true
	}
	r, size := unescape(w.src[w.at:])
	if size == 0 {
		return false
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	if !strings.HasPrefix(w.text[w.done:], string(buf[:n])) {
		return false
	}
	return w.match(n, size)
}

// unescape reads one escape sequence of JSON or of YAML; size 0: there is none.
func unescape(s string) (r rune, size int) {
	if len(s) < 2 || s[0] != '\\' {
		return 0, 0
	}
	const names, values = `abefnrtv0"\/ N_LP'`, "\a\b\x1b\f\n\r\t\v\x00\"\\/ \u0085\u00a0\u2028\u2029'"
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	if digits == 0 {
		i := strings.IndexByte(names, s[1])
		if s[1] == '\t' {
			return '\t', 2
		}
		if i < 0 {
			return 0, 0
		}
		return []rune(values)[i], 2
	}
	r, ok := hexRune(s[2:], digits)
	if !ok {
		return 0, 0
	}
	size = 2 + digits
	if r >= 0xD800 && r < 0xDC00 && strings.HasPrefix(s[size:], `\u`) {
		if low, ok := hexRune(s[size+2:], 4); ok && low >= 0xDC00 && low < 0xE000 {
			return (r-0xD800)<<10 + (low - 0xDC00) + 0x10000, size + 6
		}
	}
	if !utf8.ValidRune(r) {
		r = utf8.RuneError
	}
	return r, size
}

func hexRune(s string, digits int) (rune, bool) {
	if len(s) < digits {
		return 0, false
	}
	var r rune
	for i := range digits {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
