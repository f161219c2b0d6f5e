package query

import (
	"strings"

	"thalweg/internal/lang/expr"
)

// nestedType is the type of lists and structs that DuckDB names so; Invalid for
// others, and where something within has no type.
func nestedType(sqlType string) expr.Type {
	if inner, ok := strings.CutSuffix(sqlType, "[]"); ok {
		if t := withinType(inner); t != expr.Invalid {
			return checkedType(expr.ListOf(t))
		}
		return expr.Invalid
	}
	inner, ok := strings.CutPrefix(sqlType, "STRUCT(")
	if !ok || !strings.HasSuffix(inner, ")") {
		return expr.Invalid
	}
	var members []expr.Member
	for _, part := range splitTypes(strings.TrimSuffix(inner, ")")) {
		name, of := memberOf(part)
		t := withinType(of)
		if name == "" || t == expr.Invalid {
			return expr.Invalid
		}
		members = append(members, expr.Member{Name: name, Type: t})
	}
	return checkedType(expr.StructOf(members))
}

// checkedType is t as its name is read, as far as there is such a type.
func checkedType(t expr.Type) expr.Type {
	out, ok := expr.ParseType(t.String())
	if !ok {
		return expr.Invalid
	}
	return out
}

// withinType is the one type of a value within a list or struct.
func withinType(sqlType string) expr.Type {
	if list := fits(sqlType); len(list) > 0 {
		return list[0]
	}
	return expr.Invalid
}

// splitTypes cuts a struct's members at the commas between them.
func splitTypes(text string) (parts []string) {
	depth, quote, start := 0, byte(0), 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == quote: // a doubled one closes and opens again
			quote = 0
		case quote != 0:
		case c == '"', c == '\'': // a name, a word of an enum
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts, start = append(parts, strings.TrimSpace(text[start:i])), i+1
		}
	}
	return append(parts, strings.TrimSpace(text[start:]))
}

// memberOf cuts a member's name, which may be in quotes, off its type.
func memberOf(text string) (name, of string) {
	if !strings.HasPrefix(text, `"`) {
		name, of, _ = strings.Cut(text, " ")
		return name, of
	}
	for at := 1; at < len(text); at++ {
		switch {
		case text[at] != '"':
		case strings.HasPrefix(text[at:], `""`):
			at++
		default:
			return strings.ReplaceAll(text[1:at], `""`, `"`), strings.TrimSpace(text[at+1:])
		}
	}
	return "", ""
}
