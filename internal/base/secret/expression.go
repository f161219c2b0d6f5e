package secret

import (
	"regexp"
	"strings"
)

// expression is a regular one that is matched only where it can begin. To try
// it at every byte of a script costs more than all else that is done to one.
type expression struct {
	anywhere *regexp.Regexp
	here     *regexp.Regexp // at the beginning of a text
	start    start
}

// start says where matches of an expression begin: at a word with one of the signs
// behind it. Between them there may be blanks, behind a quote or without one.
// More places than the expression matches at may be among these, but none may be missing.
type start struct {
	signs  string // of which none is part of a word, a quote, or a blank before another sign
	part   func(byte) bool
	wanted func(word string) bool
	whole  bool // the match begins with the word; else with what of it was not matched before
}

// newExpression compiles an expression, which does not tell large letters from small ones.
func newExpression(text string, start start) expression {
	return expression{regexp.MustCompile(`(?i)` + text), regexp.MustCompile(`\A(?i:` + text + `)`), start}
}

// all returns the expression's matches as FindAllStringSubmatch does.
func (e expression) all(text string) (matches [][]string) {
	if foldsIntoASCII(text) {
		return e.anywhere.FindAllStringSubmatch(text, -1)
	}
	for from := 0; ; {
		sign := strings.IndexAny(text[from:], e.start.signs)
		if sign < 0 {
			return matches
		}
		sign += from
		if begin, ok := e.start.before(text, from, sign); ok {
			if m := e.here.FindStringSubmatchIndex(text[begin:]); m != nil {
				matches = append(matches, groups(text[begin:], m))
				from = begin + m[1]
				continue
			}
		}
		from = sign + 1
	}
}

// before finds the place at which a match with this sign would begin, behind from.
func (s start) before(text string, from, sign int) (begin int, ok bool) {
	end := sign
	for end > from && isBlank(text[end-1]) {
		end--
	}
	if end > from && (text[end-1] == '"' || text[end-1] == '\'') {
		end--
	}
	begin = end
	for begin > from && s.part(text[begin-1]) {
		begin--
	}
	if s.whole && begin > 0 && s.part(text[begin-1]) {
		return begin, false
	}
	return begin, begin < end && s.wanted(text[begin:end])
}

// groups cuts a match and its groups out of a text.
func groups(text string, at []int) []string {
	out := make([]string, len(at)/2)
	for i := range out {
		if from := at[2*i]; from >= 0 {
			out[i] = text[from:at[2*i+1]]
		}
	}
	return out
}

// foldsIntoASCII reports whether a text has one of the two letters that are no
// ASCII, but the same as an s and a k where case does not count.
func foldsIntoASCII(text string) bool {
	return strings.Contains(text, "\u017f") || strings.Contains(text, "\u212a")
}

// oneOf accepts the words of a list, in letters of either case.
func oneOf(list string) func(string) bool {
	words := strings.Split(list, "|")
	return func(word string) bool {
		for _, w := range words {
			if strings.EqualFold(w, word) {
				return true
			}
		}
		return false
	}
}

// inWord is \w.
func inWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// inName reports whether c may be part of a name.
func inName(c byte) bool { return inWord(c) || c == '.' || c == '-' }

// isBlank is \s.
func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }
