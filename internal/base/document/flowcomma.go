package document

import (
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// In { } and [ ] a comma ends a text that is not in quotes, so that the expression
// {a: f(x, y)} is the text f(x and a key y). A text with an open parenthesis in front of a
// comma, and one that closes it behind, are such an expression and nothing else.

const (
	commaEnds  = ": a comma ends a value in { } and [ ] that has none"
	quoteComma = "put the expression in quotes" + commaEnds
)

// cutByComma finds such an expression in a map or list and says what to do; false if
// there is none.
func (r *yamlReader) cutByComma(n *yaml.Node) bool {
	if n.Style&yaml.FlowStyle == 0 {
		return false
	}
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	var first *yaml.Node // of an expression that is not closed yet; nil: there is none
	depth := 0
	for i := 0; i+step <= len(n.Content); i += step {
		part, value := n.Content[i], n.Content[i+step-1]
		if first != nil && part.Kind == yaml.ScalarNode && (step == 1 || unwritten(value)) {
			if !plainScalar(part) { // a text that is an argument
				continue
			}
			if depth += parenthesesOpen(part.Value); depth <= 0 {
				r.cut(first, part)
				return true
			}
			continue
		}
		if first, depth = nil, 0; plainScalar(value) {
			if depth = parenthesesOpen(value.Value); depth > 0 {
				first = value
			}
		}
	}
	return false
}

func plainScalar(n *yaml.Node) bool {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Kind == yaml.ScalarNode && n.Style&quoted == 0
}

// unwritten reports whether the value of a key is not there at all.
func unwritten(n *yaml.Node) bool { return plainScalar(n) && n.Value == "" }

// cut reports the expression from its first part to its last.
func (r *yamlReader) cut(first, last *yaml.Node) {
	r.fail(first, "the value is cut off at its first comma")
	end := r.src.offset(last.Line, last.Column) + len(last.Value)
	r.err.hint = quoteComma
	if end > r.err.off && end <= len(r.src.Text) && !strings.Contains(r.src.Text[r.err.off:end], "\n") {
		r.err.end = end
		if text := quoted(r.src.Text[r.err.off:end]); text != "" {
			r.err.hint = "put all of it in quotes, " + text + commaEnds
		}
	}
}

// unquoted gives the bytes of a part of an expression that are not in quotes.
func unquoted(text string) iter.Seq[byte] {
	return func(yield func(byte) bool) {
		var quote byte
		for i := range len(text) {
			switch c := text[i]; {
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '`' || c == '\'':
				quote = c
			case !yield(c):
				return
			}
		}
	}
}

// parenthesesOpen returns how many more parentheses a part of an expression opens than it closes.
func parenthesesOpen(text string) (depth int) {
	for c := range unquoted(text) {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
	}
	return depth
}

// commaBefore reports whether the text of a line up to where the parser gives up ends within
// parentheses, with a comma in them.
func commaBefore(line string) bool {
	var commas []bool // for each parenthesis that is open
	for c := range unquoted(line) {
		switch {
		case c == '(':
			commas = append(commas, false)
		case c == ')' && len(commas) > 0:
			commas = commas[:len(commas)-1]
		case c == ',' && len(commas) > 0:
			commas[len(commas)-1] = true
		}
	}
	return slices.Contains(commas, true)
}

// Bare reports whether a key stands alone between commas of a flow map, with neither a colon
// nor a value: what it is in the script is the rest of the value in front of it.
func (e *Entry) Bare() bool {
	if e.Key.Made || e.Value.Kind != Null || e.Value.Text != "" || e.Key.Style != plainStyle || IsJSON(e.Key.Src.Name) {
		return false
	}
	_, end := e.Key.Span()
	rest := strings.TrimLeft(e.Key.Src.Text[min(end, len(e.Key.Src.Text)):], " \t\r\n")
	return rest != "" && (rest[0] == ',' || rest[0] == '}')
}

// InQuotes returns the text from a plain value to a bare key behind it, in quotes; "" if it does not fit into
// a line.
func InQuotes(v *Value, last *Entry) string {
	start, _ := v.Span()
	_, end := last.Key.Span()
	if v.Style != plainStyle || v.Src != last.Key.Src || end <= start || end > len(v.Src.Text) {
		return ""
	}
	return quoted(v.Src.Text[start:end])
}

// quoted writes a text in the quotes that it does not have itself; "" if it is too long, or
// has both.
func quoted(text string) string {
	switch {
	case len(text) > MaxShownTextChars || strings.Contains(text, "\n"):
	case !strings.ContainsAny(text, `"\`):
		return `"` + text + `"`
	case !strings.Contains(text, "'"):
		return "'" + text + "'"
	}
	return ""
}
