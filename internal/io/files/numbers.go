package files

import (
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/script"
)

// plainNumber renders a number with a decimal point and without separators, and the
// condition that the text has them in their places: 1.23.456 is no number, and 1.5 and 0.125 are none
// where the point is between thousands.
func plainNumber(n script.Numbers, text string) (plain, is string) {
	point := `\.`
	if n.Comma {
		point = ","
	}
	group := ""
	plain = text
	switch n.Thousands {
	case "":
	case " ":
		group = "[ \u00a0\u202f]"
		plain = "translate(" + plain + ", " + sqltext.String(" \u00a0\u202f") + ", '')"
	case "'":
		group = "['\u2019]"
		plain = "translate(" + plain + ", " + sqltext.String("'\u2019") + ", '')"
	default:
		group = `\` + n.Thousands
		plain = "replace(" + plain + ", " + sqltext.String(n.Thousands) + ", '')"
	}
	if n.Comma {
		plain = "replace(" + plain + ", ',', '.')"
	}
	// What is behind a number's digits is the scan's to judge: exponents, and what else floats may have.
	whole := `[0-9]*`
	if group != "" {
		whole = `(?:[0-9]*|[1-9][0-9]{0,2}(?:` + group + `[0-9]{3})+)`
	}
	is = "regexp_full_match(" + text + ", " + sqltext.String(`[+-]?`+whole+`(?:`+point+`[0-9]*)?(?:[eE][+-]?[0-9]+)?`) +
		")"
	return plain, is
}

// numbersText says how numbers have to be written, if not as everywhere.
func numbersText(n script.Numbers) string {
	between := map[string]string{",": "commas", ".": "points", "'": "apostrophes", " ": "spaces"}[n.Thousands]
	switch {
	case n.Comma && between != "":
		return " with a decimal comma and " + between + " between thousands"
	case n.Comma:
		return " with a decimal comma"
	case between != "":
		return " with " + between + " between thousands"
	}
	return ""
}
