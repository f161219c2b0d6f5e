package document

import (
	"regexp"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
)

// Format gives a script or parameters file (by its name YAML or JSON) in the
// canonical layout: two blanks for each level, one after colons, commas and
// dashes, at most one empty line in a row, no blanks at the ends of lines.
// Comments, the order of keys, quotes and the choice between one line and
// several stay as they are; so does the meaning, which is checked: where that
// cannot be kept, and for text that is not YAML or JSON, the result is an
// error and the text should be left alone. Formatting twice changes nothing more.
func Format(name string, text []byte) ([]byte, error) {
	if len(text) > MaxBytes {
		return nil, formatFault(name, 0, "the file is larger than %d MiB", MaxBytes>>20)
	}
	if bad := InvalidUTF8(string(text)); bad >= 0 {
		return nil, formatFault(name, 0, "the text is not UTF-8")
	}
	h := hideReferences(strings.TrimPrefix(string(text), ByteOrderMark))
	var out string
	var err error
	switch {
	case IsJSON(name):
		out, err = formatJSON(name, h.text)
	case IsYAML(name):
		out, err = formatYAML(name, h.text)
	default:
		err = formatFault(name, 0, "the format is unknown: the name must end in .yaml, .yml or .json")
	}
	if err != nil {
		return nil, err
	}
	return []byte(h.restore(out)), nil
}

func formatFault(name string, line int, format string, args ...any) error {
	f := fault.New(fault.Script, format, args...)
	f.Place = fault.Place{File: name, Line: int64(line)}
	return f
}

// hiddenReferences is a text in which references to parameters are marks
// without braces, so that they can stand anywhere in YAML without quotes.
type hiddenReferences struct {
	text     string
	original []string
}

const (
	hiddenOpen  = "\ue0e2"
	hiddenClose = "\ue0e3"
)

var hiddenMark = regexp.MustCompile(hiddenOpen + "r*" + hiddenClose)

func hideReferences(text string) hiddenReferences {
	h := hiddenReferences{}
	if strings.Contains(text, hiddenOpen) {
		h.text = text // somebody uses these characters: leave references as they are
		return h
	}
	h.text = Reference.ReplaceAllStringFunc(text, func(ref string) string {
		h.original = append(h.original, ref)
		// As long as the original, so that lines are as long as they will be.
		return hiddenOpen + strings.Repeat("r", max(len([]rune(ref))-2, 0)) + hiddenClose
	})
	return h
}

// restore puts the references back: formatting keeps their order.
func (h hiddenReferences) restore(text string) string {
	if len(h.original) == 0 {
		return text
	}
	next := 0
	return hiddenMark.ReplaceAllStringFunc(text, func(mark string) string {
		if next >= len(h.original) {
			return mark
		}
		next++
		return h.original[next-1]
	})
}

// sameDocument reports whether two texts are the same document.
func sameDocument(name, a, b string, read func(*Source) (*Value, *SyntaxError)) bool {
	x, fail := read(NewSource(name, a))
	if fail != nil {
		return false
	}
	y, fail := read(NewSource(name, b))
	if fail != nil {
		return false
	}
	return sameValue(x, y)
}

// sameValue compares all that documents have: null values, equal keys, numbers as written.
func sameValue(x, y *Value) bool {
	sameEntry := func(a, b *Entry) bool { return a.Name == b.Name && sameValue(a.Value, b.Value) }
	return x.Kind == y.Kind && x.Text == y.Text && slices.EqualFunc(x.Items, y.Items, sameValue) &&
		slices.EqualFunc(x.Entries, y.Entries, sameEntry)
}
