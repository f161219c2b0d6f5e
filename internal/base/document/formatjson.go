package document

import (
	"strings"
	"unicode/utf8"
)

// formatLineChars is the longest line that a JSON map or list is kept on.
const formatLineChars = 120

// formatJSON writes the document anew. Text and numbers stay as written.
func formatJSON(name, text string) (string, error) {
	src := NewSource(name, text)
	doc, fail := ReadJSON(src)
	if fail != nil {
		return "", formatFault(name, src.Pos(fail.off).Line, "%s", fail.Message)
	}
	f := &jsonFormat{text: text}
	f.value(doc, 0, 0)
	f.out.WriteByte('\n')
	if !sameDocument(name, text, f.out.String(), ReadJSON) {
		return "", formatFault(name, 0, "it cannot be formatted without a change of meaning: it is left as it is")
	}
	return f.out.String(), nil
}

type jsonFormat struct {
	text string
	out  strings.Builder
}

// value writes v, which starts in a column of a line indented by level.
func (f *jsonFormat) value(v *Value, level, col int) {
	switch {
	case v.Scalar():
		f.out.WriteString(f.text[v.Off:v.End])
		return
	case !f.broken(v):
		if line := f.oneLine(v); col+utf8.RuneCountInString(line) <= formatLineChars {
			f.out.WriteString(line)
			return
		}
	}
	open, end := "{", "}"
	if v.Kind == List {
		open, end = "[", "]"
	}
	indent := strings.Repeat("  ", level+1)
	f.out.WriteString(open)
	for i := range max(len(v.Entries), len(v.Items)) {
		if i > 0 {
			f.out.WriteByte(',')
		}
		f.out.WriteString("\n" + indent)
		item, col := (*Value)(nil), len(indent)
		if v.Kind == List {
			item = v.Items[i]
		} else {
			e := v.Entries[i]
			key := f.text[e.Key.Off:e.Key.End] + ": "
			f.out.WriteString(key)
			item, col = e.Value, col+utf8.RuneCountInString(key)
		}
		f.value(item, level+1, col+1) // one for the comma
	}
	f.out.WriteString("\n" + indent[2:] + end)
}

// broken reports whether a map or list is written on several lines: whether
// the first of what is in it stands on a line of its own, or that holds for
// something in it.
func (f *jsonFormat) broken(v *Value) bool {
	first, inner := -1, v.Items
	if len(v.Items) > 0 {
		first = v.Items[0].Off
	}
	for i, e := range v.Entries {
		if i == 0 {
			first = e.Key.Off
		}
		inner = append(inner[:len(inner):len(inner)], e.Value)
	}
	if first < 0 {
		return false
	}
	if strings.Contains(f.text[v.Off:first], "\n") {
		return true
	}
	for _, x := range inner {
		if !x.Scalar() && f.broken(x) {
			return true
		}
	}
	return false
}

func (f *jsonFormat) oneLine(v *Value) string {
	switch v.Kind {
	case List:
		items := make([]string, len(v.Items))
		for i, x := range v.Items {
			items[i] = f.oneLine(x)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case Map:
		items := make([]string, len(v.Entries))
		for i, e := range v.Entries {
			items[i] = f.text[e.Key.Off:e.Key.End] + ": " + f.oneLine(e.Value)
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return f.text[v.Off:v.End]
}
