package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"thalweg/internal/base/address"
)

const (
	// minHexBytes: shorter values in hexadecimal occur in checksums.
	minHexBytes = 6
	// wordBytesMax: a word or number of as many letters or digits at most occurs in any text; it is no piece.
	wordBytesMax = 11
	// chunkBytes of long values are looked for, too: texts show the beginnings of long ones.
	chunkBytes = 16
	// chunkedBytesMax of a value are looked for in chunks.
	chunkedBytesMax = 4 << 10
)

// forms are the ways in which a value, or a line or the password of it, may stand in a text.
func forms(value string) map[string]bool {
	out := map[string]bool{}
	for _, v := range meanings(value) {
		for _, whole := range wholes(v) {
			for _, form := range append(encodings(whole), written(whole)...) {
				out[form] = true
			}
		}
	}
	return searchable(out)
}

// fragments returns the pieces of a value that may be seen after it was taken apart or cut off. Other texts
// may have them, too.
func fragments(value string) map[string]bool {
	out := map[string]bool{}
	for _, v := range meanings(value) {
		parts := []string{v}
		if address.Scheme(v) != "" { // its host and its names are no secrets
			password := address.LoginPassword(v)
			named := func(part string) bool { return !address.LooksLikeNothingElse(part) }
			parts = append(slices.DeleteFunc(strings.FieldsFunc(v, ends), named), password)
			for _, piece := range strings.FieldsFunc(password, ends) {
				out[piece] = true
			}
		}
		for _, part := range parts {
			for _, piece := range piecesOf(part) {
				out[piece] = true
			}
			for i := 0; len(part) > 2*chunkBytes && i+chunkBytes <= min(len(part), chunkedBytesMax); i += chunkBytes {
				out[part[i:i+chunkBytes]] = true
			}
		}
	}
	return searchable(out)
}

// meanings are a value as it is, without blanks around it, and as what is written in addresses means.
func meanings(value string) []string {
	values := []string{value, strings.TrimSpace(value)}
	if plain, err := url.PathUnescape(value); err == nil {
		values = append(values, plain)
	}
	return values
}

// wholes are a value, the lines of one that has several, and the password of one that is an address.
func wholes(v string) []string {
	out := []string{v}
	parts := []string{address.LoginPassword(v)}
	if lines := strings.Split(strings.TrimSpace(v), "\n"); len(lines) > 1 {
		parts = append(parts, lines...)
	}
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" && !isWord(part) {
			out = append(out, part)
		}
	}
	return out
}

// searchable leaves out what is too short.
func searchable(texts map[string]bool) map[string]bool {
	for text := range texts {
		if len(text) < minKnownBytes {
			delete(texts, text)
		}
	}
	return texts
}

// written are the ways in which programs write a value: in quotes of several languages, and for terminals.
func written(v string) []string {
	var html, plain strings.Builder
	for _, escape := range []bool{true, false} {
		e := json.NewEncoder(&html)
		e.SetEscapeHTML(escape)
		_ = e.Encode(v) // into memory, of a text
	}
	const pictures = 0x2400 // of U+0000 to U+001F
	for _, c := range v {
		switch {
		case c == '\n':
			plain.WriteRune('⏎')
		case c < ' ' && c != '\t':
			plain.WriteRune(pictures + c)
		default:
			plain.WriteRune(c)
		}
	}
	out := []string{v, strings.ReplaceAll(v, "\n", " "), strings.Trim(strconv.Quote(v), `"`), plain.String(),
		strings.ReplaceAll(v, "'", `'\''`), strings.ReplaceAll(v, "'", "''"), strings.ReplaceAll(v, `"`, `""`),
		strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(v)}
	for line := range strings.Lines(html.String()) {
		text := strings.TrimSuffix(line, "\n")
		out = append(out, text[1:len(text)-1])
	}
	return out
}

// encodings are the forms of a value in addresses, in hexadecimal and in base64.
func encodings(v string) []string {
	out := append(address.Encodings(v), url.QueryEscape(v), url.PathEscape(v), url.User(v).String())
	if len(v) < minHexBytes {
		return out
	}
	out = append(out, hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))))
	// In the middle of something that was encoded as a whole, a value begins at one
	// of three places; its first and last characters depend on what is beside it.
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			text := enc.EncodeToString([]byte(strings.Repeat("x", shift) + v))
			first := (shift*8 + 5) / 6
			whole := (shift + len(v)) * 8 / 6
			out = append(out, text[first:whole])
		}
	}
	return out
}

// ends reports a character at which a value is cut where it is taken for an address, a header or lines.
func ends(c rune) bool {
	return unicode.IsSpace(c) || unicode.IsControl(c) || strings.ContainsRune(`@:/?#%&=+,;"'<>\()[]{}|`, c)
}

// piecesOf lists what a part of a value falls into. Words and numbers that any text may have are none.
func piecesOf(v string) (out []string) {
	for _, piece := range strings.FieldsFunc(v, ends) {
		if !isWord(piece) {
			out = append(out, piece)
		}
	}
	return out
}

// isWord reports whether a text is an ordinary word, or a number.
func isWord(text string) bool {
	small := func(c rune) bool { return c < 'a' || c > 'z' }
	digit := func(c rune) bool { return c < '0' || c > '9' }
	return len(text) <= wordBytesMax && (!strings.ContainsFunc(strings.ToLower(text[:1])+text[1:], small) ||
		!strings.ContainsFunc(text, digit))
}
