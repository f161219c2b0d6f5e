package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"thalweg/internal/address"
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

// forms are the ways in which a value, or a piece of it, may stand in a text.
func forms(value string) map[string]bool {
	out := map[string]bool{}
	values := []string{value, strings.TrimSpace(value)}
	if plain, err := url.PathUnescape(value); err == nil {
		values = append(values, plain) // it is written in addresses as it is, and means this
	}
	for _, v := range values {
		for _, form := range append(encodings(v), written(v)...) {
			out[form] = true
		}
		for _, piece := range piecesOf(v) {
			out[piece] = true
		}
		for i := 0; len(v) > 2*chunkBytes && i+chunkBytes <= min(len(v), chunkedBytesMax); i += chunkBytes {
			out[v[i:i+chunkBytes]] = true
		}
	}
	for form := range out {
		if len(form) < minKnownBytes {
			delete(out, form)
		}
	}
	return out
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

// piecesOf lists what a value falls into where it is taken for an address, a header or lines. Words and numbers that
// any text may have are none.
func piecesOf(v string) (out []string) {
	ends := func(c rune) bool {
		return unicode.IsSpace(c) || unicode.IsControl(c) || strings.ContainsRune(`@:/?#%&=+,;"'<>\()[]{}|`, c)
	}
	for _, piece := range strings.FieldsFunc(v, ends) {
		if len(piece) >= minKnownBytes && piece != v && !isWord(piece) {
			out = append(out, piece)
		}
	}
	return append(out, strings.FieldsFunc(address.LoginPassword(v), ends)...)
}

// isWord reports whether a text is an ordinary word, or a number.
func isWord(text string) bool {
	small := func(c rune) bool { return c < 'a' || c > 'z' }
	digit := func(c rune) bool { return c < '0' || c > '9' }
	return len(text) <= wordBytesMax && (!strings.ContainsFunc(strings.ToLower(text[:1])+text[1:], small) || !strings.ContainsFunc(text, digit))
}
