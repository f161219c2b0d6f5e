package script

import (
	"strings"
	"unicode/utf8"
)

// kind is what a value of the document is.
type kind uint8

const (
	nullKind kind = iota
	stringKind
	numberKind
	boolKind
	mapKind
	listKind
)

func (k kind) String() string {
	return [...]string{"null", "text", "a number", "a boolean", "a map", "a list"}[k]
}

// style is how a scalar is written, which decides how its text maps to the source.
type style uint8

const (
	plainStyle style = iota // YAML without quotes, JSON numbers, true, false, null
	singleStyle
	doubleStyle // YAML
	jsonStyle   // JSON string
	blockStyle  // YAML | and >
	rawStyle    // all of a file: the text is the source
)

// value is a node of the document, with its place in the source.
type value struct {
	src     *source
	kind    kind
	style   style
	text    string // of a scalar
	off     int    // byte offset in src.text of the first character
	end     int    // just behind the last one; off when it has to be found: see span
	entries []*entry
	items   []*value
	weight  int  // values in it when aliases are followed
	secret  bool // text has a reference to a secret
	made    bool // by a short form: the text has it in another way
}

// entry is a key of a map with its value.
type entry struct {
	name string // key as it counts: the canonical spelling once it is known
	key  *value
	val  *value
}

// present reports whether v is there: null means absent, as in Go's JSON.
func (v *value) present() bool { return v != nil && v.kind != nullKind }

// scalar reports whether v is one piece of text, a number or a boolean.
func (v *value) scalar() bool { return v.kind != mapKind && v.kind != listKind }

// span gives the first and last byte of v in src.text: all of a scalar, the
// opening of a map or a list.
func (v *value) span() (start, end int) {
	if v.end > v.off || !v.scalar() {
		return v.off, max(v.end, v.off)
	}
	offsets, ok := v.layout()
	if !ok {
		return v.off, v.firstLineEnd()
	}
	end = offsets[len(offsets)-1]
	if v.style == singleStyle || v.style == doubleStyle {
		end = min(end+1, len(v.src.text))
	}
	v.end = end
	return v.off, end
}

// part gives the place in src.text of text[start:end], or of all of v where
// the way it is written does not allow to tell.
func (v *value) part(start, end int) (int, int) {
	offsets, ok := v.layout()
	if !ok || start < 0 || start > len(v.text) {
		return v.span()
	}
	end = max(start, min(end, len(v.text)))
	from := offsets[start]
	if end == start {
		return from, from
	}
	return from, max(from, offsets[end-1]+1)
}

func (v *value) firstLineEnd() int {
	rest := v.src.text[min(v.off, len(v.src.text)):]
	if i := strings.IndexAny(rest, "\r\n"); i >= 0 {
		rest = rest[:i]
	}
	return v.off + len(strings.TrimRight(rest, " \t"))
}

// layout maps each byte of text (and its end) to its offset in src.text, by
// walking both side by side. It fails where they cannot be brought together.
func (v *value) layout() ([]int, bool) {
	w := layoutWalk{src: v.src.text, text: v.text, at: v.off, style: v.style, offsets: make([]int, 0, len(v.text)+1)}
	return w.offsets, w.run(&w.offsets)
}

type layoutWalk struct {
	src, text string
	at, done  int // positions in src and text
	style     style
	offsets   []int
}

func (w *layoutWalk) run(out *[]int) bool {
	if w.style == rawStyle {
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
	case blockStyle:
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
		if w.style == blockStyle && strings.Trim(w.text[w.done:], "\n") == "" {
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
