package unpack

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"thalweg/internal/base/fault"
)

// Charset is the encoding of text in bytes, by its name in scripts.
type Charset string

// UTF8 is what everything else is turned into.
const UTF8 Charset = ""

// utf16s of scripts. The first has a byte order mark.
const (
	marked16 Charset = "utf-16"
	little16 Charset = "utf-16le"
	big16    Charset = "utf-16be"
)

// charmaps are the character sets of one byte a character.
func charmaps() map[Charset]*charmap.Charmap {
	return map[Charset]*charmap.Charmap{
		"iso-8859-1": charmap.ISO8859_1, "iso-8859-2": charmap.ISO8859_2, "iso-8859-5": charmap.ISO8859_5,
		"iso-8859-7": charmap.ISO8859_7, "iso-8859-9": charmap.ISO8859_9, "iso-8859-15": charmap.ISO8859_15,
		"windows-1250": charmap.Windows1250, "windows-1251": charmap.Windows1251, "windows-1252": charmap.Windows1252,
		"windows-1253": charmap.Windows1253, "windows-1254": charmap.Windows1254, "windows-1257": charmap.Windows1257,
		"ibm437": charmap.CodePage437, "ibm850": charmap.CodePage850, "ibm852": charmap.CodePage852,
	}
}

// Charsets are the names that ParseCharset takes, but for other spellings of them.
func Charsets() []string {
	names := []string{"utf-8", "latin-1", string(marked16), string(little16), string(big16)}
	for c := range charmaps() {
		names = append(names, string(c))
	}
	slices.Sort(names)
	return names
}

// ParseCharset knows a character set by its name, in the spellings of other tools: Latin1,
// cp1252, ISO_8859-15, UTF16.
func ParseCharset(name string) (c Charset, ok bool) {
	plain := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(strings.TrimSpace(name)))
	switch plain {
	case "utf8", "ascii", "usascii":
		return UTF8, true
	case "latin1":
		return "iso-8859-1", true
	case "latin2":
		return "iso-8859-2", true
	case "latin9":
		return "iso-8859-15", true
	case "ansi":
		return "windows-1252", true
	}
	plain = strings.NewReplacer("cp125", "windows125", "cp", "ibm").Replace(plain)
	for _, known := range Charsets() {
		if strings.ReplaceAll(known, "-", "") == plain {
			return Charset(known), true
		}
	}
	return "", false
}

// decoder appends the text of src to dst. What is left of src is the beginning of a
// character; last: there is no more.
type decoder func(dst, src []byte, last bool) (text, left []byte, err error)

func (c Charset) decoder() (decoder, error) {
	switch c {
	case UTF8:
		return func(dst, src []byte, _ bool) ([]byte, []byte, error) { return append(dst, src...), nil, nil }, nil
	case marked16, little16, big16:
		return (&units{charset: c}).decode, nil
	}
	m := charmaps()[c]
	if m == nil {
		return nil, fault.New(fault.Script, "there is no encoding %q", string(c))
	}
	return bytewise(c, m), nil
}

// bytewise decodes one byte a character. Control characters above ASCII are in no text:
// where they seem to be, the bytes are of another character set.
func bytewise(c Charset, m *charmap.Charmap) decoder {
	const c1First, c1Last = 0x80, 0x9f
	var text [256]string
	for b := range text {
		if r := m.DecodeByte(byte(b)); r != utf8.RuneError && (r < c1First || r > c1Last) {
			text[b] = string(r)
		}
	}
	return func(dst, src []byte, _ bool) ([]byte, []byte, error) {
		for i, b := range src {
			if b < utf8.RuneSelf {
				dst = append(dst, b)
				continue
			}
			if text[b] == "" {
				f := fault.New(fault.UserData, "byte 0x%02x is no character of %s", b, c)
				f.Hint = "say the encoding that the file has: csv: {encoding: NAME}"
				if r := charmap.Windows1252.DecodeByte(b); c == "iso-8859-1" && (r < c1First || r > c1Last) {
					f.Hint = fmt.Sprintf("in windows-1252 it is %c: say csv: {encoding: windows-1252}", r)
				}
				return dst, src[i:], f
			}
			dst = append(dst, text[b]...)
		}
		return dst, nil, nil
	}
}

// units decodes UTF-16.
type units struct {
	charset Charset
	begun   bool
	big     bool
}

const unitBytes = 2

func (u *units) decode(dst, src []byte, last bool) ([]byte, []byte, error) {
	if !u.begun && (len(src) >= unitBytes || last) {
		var err error
		if src, err = u.begin(src); err != nil {
			return dst, src, err
		}
	}
	for len(src) >= unitBytes {
		r, n := rune(u.unit(src)), unitBytes
		if utf16.IsSurrogate(r) {
			if len(src) < 2*unitBytes && !last {
				return dst, src, nil
			}
			second := rune(utf8.RuneError)
			if len(src) >= 2*unitBytes {
				second = rune(u.unit(src[unitBytes:]))
			}
			n = 2 * unitBytes
			if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
				f := fault.New(fault.UserData, "half of a pair of %s stands alone", u.charset)
				f.Hint = "the file is damaged, or has another encoding"
				return dst, src, f
			}
		}
		dst, src = utf8.AppendRune(dst, r), src[n:]
	}
	if last && len(src) > 0 {
		f := fault.New(fault.UserData, "the file ends within a character of %s", u.charset)
		f.Hint = "it was not written or copied whole"
		return dst, src, f
	}
	return dst, src, nil
}

// begin looks at the byte order mark, which is no part of the text.
func (u *units) begin(src []byte) ([]byte, error) {
	u.begun = true
	u.big = u.charset == big16
	order := Charset("")
	if len(src) >= unitBytes {
		switch {
		case src[0] == 0xff && src[1] == 0xfe:
			order = little16
		case src[0] == 0xfe && src[1] == 0xff:
			order = big16
		}
	}
	switch {
	case u.charset != marked16 && order == u.charset:
		return src[unitBytes:], nil
	case u.charset != marked16 && order != "":
		f := fault.New(fault.UserData, "the file is in %s, not in %s: its byte order mark says so", order, u.charset)
		f.Hint = "say csv: {encoding: utf-16}"
		return src, f
	case u.charset == marked16 && order != "":
		u.big = order == big16
		return src[unitBytes:], nil
	case u.charset == marked16 && len(src) > 0:
		f := fault.New(fault.UserData, "the file has no byte order mark, which says how its UTF-16 is to be read")
		f.Hint = "say csv: {encoding: utf-16le}, which Windows writes, or utf-16be; or it is in another encoding"
		return src, f
	}
	return src, nil
}

func (u *units) unit(src []byte) uint16 {
	if u.big {
		return uint16(src[0])<<8 | uint16(src[1])
	}
	return uint16(src[1])<<8 | uint16(src[0])
}
