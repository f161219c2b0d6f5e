package filespec

import (
	"slices"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

// Compression names the compression of a file's bytes.
type Compression string

// The compressions. Their names are stored in plans: they do not change.
const (
	Plain Compression = ""
	Gzip  Compression = "gzip"
	Zstd  Compression = "zstd"
)

// Charset names the encoding of a text, as scripts name it.
type Charset string

// UTF8 is the encoding into which all others are converted.
const UTF8 Charset = ""

// The forms of UTF-16. The first has a byte order mark.
const (
	UTF16   Charset = "utf-16"
	UTF16LE Charset = "utf-16le"
	UTF16BE Charset = "utf-16be"
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
	names := []string{"utf-8", "latin-1", string(UTF16), string(UTF16LE), string(UTF16BE)}
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

// Charmap are the characters of a set of one byte a character; nil of others.
func (c Charset) Charmap() *charmap.Charmap { return charmaps()[c] }
