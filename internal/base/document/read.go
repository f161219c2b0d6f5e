package document

import (
	"path"
	"strings"
	"unicode/utf8"
)

// SyntaxError is a document that cannot be parsed; Report.AddSyntax places it.
type SyntaxError struct {
	off, end int  // in the source's text
	whole    bool // the file as a whole is to blame
	Message  string
	hint     string
}

// Read parses a source as its name says.
func Read(src *Source) (*Value, *SyntaxError) {
	switch bad := InvalidUTF8(src.Text); {
	case bad >= 0:
		return nil, &SyntaxError{off: bad, end: bad + 1, Message: "the text is not UTF-8",
			hint: "save the file with the encoding UTF-8"}
	case IsJSON(src.Name):
		return ReadJSON(src)
	case IsYAML(src.Name):
		return ReadYAML(src)
	}
	return nil, &SyntaxError{whole: true, Message: "the format is unknown",
		hint: "the name must end in .yaml, .yml or .json; {{do infer file=FILE}} writes a script for a file of data"}
}

// InvalidUTF8 gives the offset of the first byte that is not UTF-8, -1 if all are.
func InvalidUTF8(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			return i
		}
	}
	return -1
}

func extension(name string) string {
	if i := strings.IndexAny(name, "?#"); i >= 0 && strings.Contains(name, "://") {
		name = name[:i]
	}
	return strings.ToLower(path.Ext(name))
}

// IsJSON reports whether a file is JSON by its name.
func IsJSON(name string) bool { return extension(name) == ".json" }

// IsYAML reports whether a file is YAML by its name.
func IsYAML(name string) bool { return extension(name) == ".yaml" || extension(name) == ".yml" }
