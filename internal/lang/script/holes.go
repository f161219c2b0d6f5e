package script

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/document"
)

// Parameters are put into a script's text before it is parsed, as Capillaries does. Those that are not from a
// parameters file, but from who starts a run, may change nothing but values: the text is parsed a second time, with a
// mark in place of each of them, and both documents must have the same keys and lists around the same texts.

// hole is a reference that was replaced by what a caller says.
type hole struct {
	swap      int // in the source's Swaps
	name, typ string
	text      string
	literal   bool // within code, the value may only be a literal
}

// misfit says which hole has a value that changes more than itself; -1: not known.
type misfit struct {
	hole int
	code bool // it stands in code, and is no literal
}

// keepsShape reports parameters that change more than values. doc is the parsed text with them.
func (l *loader) keepsShape(src *document.Source, doc *document.Value, holes []hole) bool {
	wrong := compareShapes(src, doc, holes)
	if wrong == nil {
		return true
	}
	for i := 0; wrong.hole < 0 && i < len(holes); i++ {
		name := holes[i].name
		if slices.IndexFunc(holes, func(h hole) bool { return h.name == name }) < i {
			continue // was asked
		}
		own := slices.DeleteFunc(slices.Clone(holes), func(h hole) bool { return h.name != name })
		if compareShapes(src, doc, own) != nil {
			wrong.hole = i
		}
	}
	h := holes[max(wrong.hole, 0)]
	message, hint := "parameter %s would change more of the script than this value",
		"quotes, brackets, line breaks, ': ' and ' #' in it may end the text that it stands in; where a list is "+
			"meant, the script has {"+h.name+"|stringlist}"
	if wrong.code {
		message = "parameter %s stands in code here, and the value is no literal"
		hint = "it may be a number, true or false or, where the script has quotes around it, a text without quotes and " +
			"backslashes; who may write scripts may give more"
	}
	at := src.Swaps[h.swap]
	l.ErrorSpan(src, at.TextStart, at.TextEnd, "", message, document.Quote(h.name)).Hint = hint
	return false
}

// compareShapes parses a text with marks in place of holes, and compares it with what it is without; nil: it is the
// same but for values.
func compareShapes(src *document.Source, doc *document.Value, holes []hole) *misfit {
	mark, more := "valueof", "x"
	if document.IsJSON(src.Name) { // may stand there without quotes
		mark, more = "7140935826", "1"
	}
	for strings.Contains(src.Text, mark) {
		mark += more
	}
	var text strings.Builder
	at := 0
	for i, h := range holes {
		swap := src.Swaps[h.swap]
		text.WriteString(src.Text[at:swap.TextStart])
		format := "%s%08d"
		if h.typ == "stringlist" {
			format = `["%s%08d"]`
		}
		fmt.Fprintf(&text, format, mark, i)
		at = swap.TextEnd
	}
	text.WriteString(src.Text[at:])
	marked, fail := document.Read(document.NewSource(src.Name, text.String()))
	if fail != nil {
		return &misfit{hole: -1}
	}
	c := &shapeCheck{holes: holes, mark: regexp.MustCompile(mark + `([0-9]{8})`)}
	return c.value(marked, doc, place{forms: []form{keysOf(rootShape)}})
}

// shapeCheck compares documents: the one with marks, and the one with values.
type shapeCheck struct {
	holes []hole
	mark  *regexp.Regexp
}

// place is where in a script a value is: what it may be, and the keys that it may be of.
type place struct {
	forms []form
	keys  []string
}

// flat lists the forms that one may be.
func flat(forms []form) (out []form) {
	for _, f := range forms {
		if f.kind == eitherForm {
			out = append(out, flat(f.any)...)
		} else {
			out = append(out, f)
		}
	}
	return out
}

// entry is the place of what is under a key. A free name leaves what it is of.
func (p place) entry(name string) (out place) {
	for _, f := range flat(p.forms) {
		switch {
		case f.kind == namesForm:
			out.forms, out.keys = append(out.forms, *f.of), append(out.keys, p.keys...)
		case f.kind == mapForm && f.shape.index(name) >= 0:
			k := f.shape.keys[f.shape.index(name)]
			out.forms, out.keys = append(out.forms, k.form), append(out.keys, k.name)
		}
	}
	return out
}

func (p place) item() place {
	out := place{keys: p.keys}
	for _, f := range flat(p.forms) {
		if f.kind == listForm {
			out.forms = append(out.forms, *f.of)
		}
	}
	return out
}

func (c *shapeCheck) value(marked, v *document.Value, at place) *misfit {
	switch {
	case marked.Scalar():
		return c.scalar(marked, v, at)
	case marked.Kind != v.Kind:
		return &misfit{hole: -1}
	case marked.Kind == document.List:
		return c.list(marked, v, at)
	case len(marked.Entries) != len(v.Entries):
		return &misfit{hole: -1}
	}
	for i, e := range marked.Entries {
		if wrong := c.scalar(e.Key, v.Entries[i].Key, place{}); wrong != nil {
			return wrong
		}
		if wrong := c.value(e.Value, v.Entries[i].Value, at.entry(e.Name)); wrong != nil {
			return wrong
		}
	}
	return nil
}

func (c *shapeCheck) list(marked, v *document.Value, at place) *misfit {
	if len(marked.Items) == 1 && marked.Items[0].Scalar() {
		text := marked.Items[0].Text
		m := c.mark.FindStringSubmatch(text)
		if m != nil && m[0] == text && c.holes[c.number(m[1])].typ == "stringlist" {
			return c.listHole(c.number(m[1]), v, at)
		}
	}
	if len(marked.Items) != len(v.Items) {
		return &misfit{hole: -1}
	}
	for i, item := range marked.Items {
		if wrong := c.value(item, v.Items[i], at.item()); wrong != nil {
			return wrong
		}
	}
	return nil
}

// listHole judges a list that stands in place of a reference: any number of texts.
func (c *shapeCheck) listHole(n int, v *document.Value, at place) *misfit {
	for _, item := range v.Items {
		if !item.Scalar() || strings.Contains(item.Text, envOpen) {
			return &misfit{hole: n}
		}
	}
	if c.holes[n].literal && !at.isData() {
		return &misfit{hole: n, code: true}
	}
	return nil
}

func (c *shapeCheck) number(digits string) int {
	n, _ := strconv.Atoi(digits) // matched
	return min(n, len(c.holes)-1)
}

func (c *shapeCheck) scalar(marked, v *document.Value, at place) *misfit {
	marks := c.mark.FindAllStringSubmatchIndex(marked.Text, -1)
	if len(marks) == 0 {
		if marked.Kind != v.Kind || marked.Text != v.Text {
			return &misfit{hole: -1}
		}
		return nil
	}
	first := c.number(marked.Text[marks[0][2]:marks[0][3]])
	if !v.Scalar() || !surrounds(c.mark.Split(marked.Text, -1), v.Text) ||
		strings.Count(v.Text, envOpen) != strings.Count(marked.Text, envOpen) {
		return &misfit{hole: first}
	}
	if at.isData() {
		return nil
	}
	for _, m := range marks {
		n := c.number(marked.Text[m[2]:m[3]])
		if c.holes[n].literal && (at.isFixed() || !c.isLiteral(marked.Text, v.Text, m[0], m[1], n, at.isSQL())) {
			return &misfit{hole: n, code: true}
		}
	}
	return nil
}

// surrounds reports whether a text has the parts in their order, at its beginning, its end and between. YAML drops
// blanks at the ends of texts without quotes.
func surrounds(parts []string, text string) bool {
	last := len(parts) - 1
	rest, begins := strings.CutPrefix(text, parts[0])
	if !begins {
		rest, begins = strings.CutPrefix(text, strings.TrimRight(parts[0], " "))
	}
	for _, part := range parts[1:last] {
		_, behind, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = behind
	}
	return begins && strings.HasSuffix(rest, strings.TrimLeft(parts[last], " "))
}

// Keys of texts that are data: they may be any text.
var dataKeys = strings.Fields("desc message tags urls url url_template files file r w table default default_value " +
	"col_default_value min max values one_of null_text sheet range separator zone timezone arguments deadline timeout " +
	"max_age header col_hdr params target_size every stable_for")

// Keys of texts that name code.
var fixedKeys = strings.Fields("include python_code_urls tag_criteria_url query_url command requirements secret")

func (p place) isData() bool {
	return len(p.keys) > 0 && !slices.ContainsFunc(p.keys, func(k string) bool { return !slices.Contains(dataKeys, k) })
}

// isFixed is so of what is not known, too: keys are.
func (p place) isFixed() bool {
	return len(p.keys) == 0 || slices.ContainsFunc(p.keys, func(k string) bool { return slices.Contains(fixedKeys, k) })
}

func (p place) isSQL() bool { return slices.Contains(p.keys, "query") }

// plainLiteral is a value that is a literal in every language of a script.
var plainLiteral = regexp.MustCompile(`^(-?(0|[1-9][0-9]*)(\.[0-9]+)?|true|false)$`)

// isLiteral reports whether hole n, which is marked[start:end], has a value that leaves the code around it what it is.
// text is the code with the values.
func (c *shapeCheck) isLiteral(marked, text string, start, end, n int, sql bool) bool {
	exact := c.mark.ReplaceAllStringFunc(marked, func(m string) string {
		return c.holes[c.number(m[len(m)-8:])].text
	})
	if strings.TrimSpace(exact) != strings.TrimSpace(text) {
		return false // YAML reads it in another way
	}
	value := c.holes[n].text
	if quotedAt(marked[:start], sql) {
		return !strings.ContainsFunc(value, func(r rune) bool {
			return r < ' ' || r == 0x7f || r == 0x85 || strings.ContainsRune("'\"`\\\u2028\u2029", r)
		})
	}
	before, behind := strings.TrimRight(marked[:start], " \t\r\n"), marked[end:]
	switch {
	case !plainLiteral.MatchString(value):
		return false
	case strings.HasPrefix(value, "-") && strings.HasSuffix(before, "-"):
		return false // in SQL a comment
	}
	return !sticks(marked[:start], true) && !sticks(behind, false)
}

// sticks reports whether a literal at the end, or at the beginning, of a text would be a part of a word or a number.
func sticks(text string, end bool) bool {
	if text == "" {
		return false
	}
	c := text[0]
	if end {
		c = text[len(text)-1]
	}
	return c >= 0x80 || strings.IndexByte("_.$#@'\"`\\", c) >= 0 ||
		'0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// quotedAt reports whether code ends within a text in quotes. In SQL only ' are such, and what has a backslash, a $ or
// a # is not looked through: dialects differ.
func quotedAt(code string, sql bool) bool {
	if sql && strings.ContainsAny(code, "\\$#") {
		return false
	}
	open := byte(0)
	for i := 0; i < len(code); i++ {
		b := code[i]
		switch {
		case open != 0 && b == '\\' && open != '`':
			i++
		case open != 0:
			if b == open {
				open = 0
			}
		case b == '\'' || b == '"' || b == '`':
			open = b
		case comment(code[i:], sql) != "":
			_, rest, closed := strings.Cut(code[i+2:], comment(code[i:], sql))
			if !closed {
				return false
			}
			i = len(code) - len(rest) - 1
		}
	}
	return open == '\'' || open != 0 && !sql
}

// comment is what ends the comment that code begins with; "": it begins with none.
func comment(code string, sql bool) string {
	switch {
	case strings.HasPrefix(code, "/*"):
		return "*/"
	case sql && strings.HasPrefix(code, "--"), !sql && strings.HasPrefix(code, "//"):
		return "\n"
	}
	return ""
}
