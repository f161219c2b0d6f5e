package address

import (
	"regexp"
	"strings"
)

// Name says what a name tells of the value that stands behind it, in a query, a
// script, a parameter or a program.
type Name int

// What a name tells.
const (
	Harmless Name = iota
	Perhaps       // the value is a secret if it looks like nothing else: key, sig, auth
	Likely        // it is one unless it is a plain word: token, api_key
	Surely        // it is one: password, secret
)

// The words by which a name is known. Long ones count anywhere in it
// (dbPassword2), short ones as a part of their own (db_pw, X-SAS, pass).
var (
	surely = regexp.MustCompile(`(?i)passwor[dt]|passwd|passphrase|pwd|secret|authorization` + part(`pw|pass|dsn`))
	likely = regexp.MustCompile(`(?i)token|api_?-?key|access_?-?key|private_?-?key|credential|bearer` +
		part(`jwt|creds?`))
	maybe = regexp.MustCompile(`(?i)signature|authenticat` + part(`sig|sas|key|auth|session`))
	// queryWord: in a query the names are others' and short, and nothing but the value is lost.
	queryWord = regexp.MustCompile(`(?i)sig|key|auth|session|jwt`)
)

// part is a piece of an expression: words between the beginning, the end and what
// is no letter.
func part(words string) string { return `|(?:^|[^A-Za-z])(?:` + words + `)(?:[^A-Za-z]|$)` }

// NameOf judges a name.
func NameOf(name string) Name {
	switch {
	case surely.MatchString(name):
		return Surely
	case likely.MatchString(name):
		return Likely
	case maybe.MatchString(name):
		return Perhaps
	}
	return Harmless
}

// SecretWords is an expression for texts that have a name of which NameOf may say
// more than Harmless: plain words in small letters.
const SecretWords = `password|passwort|passwd|passphrase|pwd|pw|pass|dsn|secret|token|key|credential|creds|cred|` +
	`bearer|sig|sas|auth|session|jwt`

var secretWords = strings.Split(SecretWords, "|")

// HasSecretWord reports whether one of SecretWords is in a name, in letters of
// either case.
func HasSecretWord(name string) bool {
	name = strings.ToLower(name)
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// minRandomBytes of a value behind a word that may have another meaning.
const minRandomBytes = 8

// LooksRandom tells a key from a name.
func LooksRandom(value string) bool {
	return len(value) >= minRandomBytes && !strings.ContainsAny(value, " \t()") &&
		strings.ContainsAny(value, "0123456789")
}

const (
	lowerLetters = "abcdefghijklmnopqrstuvwxyz"
	upperLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits       = "0123456789"
)

// LooksLikeNothingElse tells a key from names of columns and files, dates and numbers:
// it has digits and letters of both cases, or is a long number in hexadecimal.
func LooksLikeNothingElse(value string) bool {
	return LooksRandom(value) && !strings.ContainsAny(value, "./:{") &&
		strings.ContainsAny(value, lowerLetters) && strings.ContainsAny(value, upperLetters) ||
		hexadecimal.MatchString(value)
}

var hexadecimal = regexp.MustCompile(`^[0-9a-f]{32,}$`)
