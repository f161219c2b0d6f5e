package access

import (
	_ "embed" // the list
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
)

// Limits of what passwords are made of.
const (
	passwordRunesMin = 12
	passwordBytesMax = 1_024
	runesApartMin    = 5 // that are not alike
	nameRunesMin     = 4 // shorter parts of names are in too many words
)

//go:embed common.txt
var commonText string

// commonPasswords returns the list, in lower case.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(commonText) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out[line] = true
		}
	}
	return out
})

// checkPassword refuses a password of a user that others would try first, as NIST SP 800-63B has it: a short one, a
// common one, one of rows and repetitions, and one that the user's name or the service's is in.
func checkPassword(password string, names ...string) error {
	refused := func(why string) error {
		return &fault.Error{Kind: fault.Script, Message: why,
			Hint: "take several words that have nothing to do with each other, or let a program choose"}
	}
	if n := utf8.RuneCountInString(password); n < passwordRunesMin || len(password) > passwordBytesMax {
		return fault.New(fault.Script, "a password has at least %d characters, and %d bytes at most", passwordRunesMin,
			passwordBytesMax)
	}
	lower := strings.ToLower(password)
	bare := strings.TrimFunc(lower, func(r rune) bool { return !unicode.IsLetter(r) })
	switch {
	case commonPasswords()[lower] || commonPasswords()[bare]:
		return refused("the password is one of those that are tried first, or one with digits and signs around it")
	case monotonous([]rune(lower)):
		return refused("the password is a row of characters, or says something twice")
	}
	for _, part := range namesIn(append(names, "thalweg")) {
		if strings.Contains(lower, part) {
			return refused("the password contains " + document.Quote(part) + ", of a name that others know")
		}
	}
	return nil
}

// namesIn lists the parts of names that are long enough to be looked for.
func namesIn(names []string) (out []string) {
	for _, name := range names {
		for _, part := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			if utf8.RuneCountInString(part) >= nameRunesMin {
				out = append(out, part)
			}
		}
	}
	return out
}

// monotonous reports whether a text has few characters that are not alike, is mostly of rows such as 1234 or aaaa, or
// is one piece again and again.
func monotonous(text []rune) bool {
	apart, rows := map[rune]bool{}, 0
	for i, r := range text {
		apart[r] = true
		if i > 0 && r-text[i-1] >= -1 && r-text[i-1] <= 1 {
			rows++
		}
	}
	if len(apart) < runesApartMin || 3*rows >= 2*len(text) {
		return true
	}
	for piece := 1; 2*piece <= len(text); piece++ {
		if string(text[piece:]) == string(text[:len(text)-piece]) {
			return true
		}
	}
	return false
}
