package address

import (
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pattern is an address that stands for several files of one server.
type Pattern struct {
	Location        // of the server, and with URL the pattern as it was written
	Base     string // what comes before the path: s3://bucket, sftp://user@host
	Glob     string // the path, as path.Match reads it: of s3 the key
}

// ParsePattern takes an address apart in whose path * ? and [a-z] stand for
// characters of a name. An escaped one of them, as sftp has it, stands for itself.
func ParsePattern(name string) (p Pattern, err error) {
	p.Location = Location{Scheme: Scheme(name), URL: name}
	if strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) || len(name) > nameBytesMax {
		return p, bad(p.Location, "has a control character, is not UTF-8, or is too long",
			"name the files without such characters")
	}
	switch p.Scheme {
	case "s3", "sftp":
	case "http", "https":
		return p, bad(p.Location, "is of a web server, which does not list its files",
			"files of s3:// and sftp:// can be listed, and those of this machine")
	default:
		return p, bad(p.Location, "is not one whose files can be listed", "use a path, s3:// or sftp://")
	}
	server, glob, _ := strings.Cut(name[len(p.Scheme)+len("://"):], "/")
	p.Base = p.Scheme + "://" + server
	if p.Location, err = Parse(p.Base + "/…"); err != nil { // the path is a pattern, and looked at here
		return p, err
	}
	p.URL, p.Path = name, ""
	if p.Glob = glob; p.Scheme == "sftp" {
		p.Glob = "/" + unescapeGlob(glob)
	}
	for _, part := range strings.Split(p.Glob, "/") {
		if _, err := path.Match(part, ""); err != nil {
			return p, bad(p.Location, "has a pattern that cannot be read",
				"* and ? stand for any characters of a name, [a-z] for one of these")
		}
	}
	if p.Glob == "" || strings.HasSuffix(p.Glob, "/") {
		return p, bad(p.Location, "names no files", "write a pattern behind the last /: *.csv")
	}
	return p, nil
}

// Address is that of a file of the pattern's server.
func (p Pattern) Address(file string) string {
	if p.Scheme == "sftp" {
		return p.Base + (&url.URL{Path: file}).EscapedPath()
	}
	return p.Base + "/" + file
}

// QuoteGlob is a text in which nothing stands for anything else.
func QuoteGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
}

// unescapeGlob takes the escapes of a URL out of a pattern.
func unescapeGlob(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if c, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteString(QuoteGlob(string([]byte{byte(c)})))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// AnyLevels is a part of a pattern that stands for any number of directories, also none.
const AnyLevels = "**"

// EachLevel gives the parts of a pattern as they are matched: one AnyLevels where several follow each
// other, and behind one at the end any file.
func EachLevel(parts []string) []string {
	parts = slices.CompactFunc(slices.Clone(parts), func(a, b string) bool { return a == AnyLevels && b == AnyLevels })
	if parts[len(parts)-1] == AnyLevels {
		parts = append(parts, "*")
	}
	return parts
}
