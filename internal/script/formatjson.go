package script

import (
	"strings"
	"unicode/utf8"
)

// formatLineChars is the longest line that a JSON map or list is kept on.
const formatLineChars = 120

// formatJSON writes the document anew. Text and numbers stay as written.
func formatJSON(name, text string) (string, error) {
	src := newSource(name, text)
	doc, fail := readJSON(src)
	if fail != nil {
		return "", formatFault(name, src.pos(fail.off).Line, "%s", fail.message)
	}
	f := &jsonFormat{text: text}
	f.value(doc, 0, 0)
	f.out.WriteByte('\n')
	if !sameDocument(name, text, f.out.String(), readJSON) {
		return "", formatFault(name, 0, "it cannot be formatted without a change of meaning: it is left as it is")
	}
	return f.out.String(), nil
}

type jsonFormat struct {
	text string
	out  strings.Builder
}

// value writes v, which starts in a column of a line indented by level.
func (f *jsonFormat) value(v *value, level, col int) {
	switch {
	case v.scalar():
		f.out.WriteString(f.text[v.off:v.end])
		return
	case !f.broken(v):
		if line := f.oneLine(v); col+utf8.RuneCountInString(line) <= formatLineChars {
			f.out.WriteString(line)
			return
		}
	}
	open, end := "{", "}"
	if v.kind == listKind {
		open, end = "[", "]"
	}
	indent := strings.Repeat("  ", level+1)
	f.out.WriteString(open)
	for i := range max(len(v.entries), len(v.items)) {
		if i > 0 {
			f.out.WriteByte(',')
		}
		f.out.WriteString("\n" + indent)
		item, col := (*value)(nil), len(indent)
		if v.kind == listKind {
			item = v.items[i]
		} else {
			e := v.entries[i]
			key := f.text[e.key.off:e.key.end] + ": "
			f.out.WriteString(key)
			item, col = e.val, col+utf8.RuneCountInString(key)
		}
		f.value(item, level+1, col+1) // one for the comma
	}
	f.out.WriteString("\n" + indent[2:] + end)
}

// broken reports whether a map or list is written on several lines: whether
// the first of what is in it stands on a line of its own, or that holds for
// something in it.
func (f *jsonFormat) broken(v *value) bool {
	first, inner := -1, v.items
	if len(v.items) > 0 {
		first = v.items[0].off
	}
	for i, e := range v.entries {
		if i == 0 {
			first = e.key.off
		}
		inner = append(inner[:len(inner):len(inner)], e.val)
	}
	if first < 0 {
		return false
	}
	if strings.Contains(f.text[v.off:first], "\n") {
		return true
	}
	for _, x := range inner {
		if !x.scalar() && f.broken(x) {
			return true
		}
	}
	return false
}

func (f *jsonFormat) oneLine(v *value) string {
	switch v.kind {
	case listKind:
		items := make([]string, len(v.items))
		for i, x := range v.items {
			items[i] = f.oneLine(x)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case mapKind:
		items := make([]string, len(v.entries))
		for i, e := range v.entries {
			items[i] = f.text[e.key.off:e.key.end] + ": " + f.oneLine(e.val)
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return f.text[v.off:v.end]
}
