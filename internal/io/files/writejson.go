package files

import (
	"encoding/json"
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// jsonCopy writes one line of JSON for each row: an object, or for an Excel file, which is made
// of such lines, a list of the values.
func jsonCopy(w *script.FileWriter, source, path string) (sqltext.Copy, error) {
	open, end := "{", "}"
	if w.Form == script.FormExcel {
		open, end = "[", "]"
	}
	parts := []string{sqltext.String(open)}
	for i, c := range w.Columns {
		before := ""
		if i > 0 {
			before = ","
		}
		if w.Form == script.FormJSON {
			key, err := jsonText(c.Header)
			if err != nil {
				return sqltext.Copy{}, fmt.Errorf("write the key of column %s: %w", c.Name, err)
			}
			before += key + ":"
		}
		if before != "" {
			parts = append(parts, sqltext.String(before))
		}
		parts = append(parts, "coalesce("+jsonValue(c.Type, sqltext.Ident(c.Name))+", 'null')")
	}
	parts = append(parts, sqltext.String(end))
	return sqltext.Copy{
		Query:   "SELECT concat(" + strings.Join(parts, ", ") + ") AS line FROM " + source,
		Path:    path,
		Options: []string{"FORMAT csv", "HEADER false", "QUOTE ''", "ESCAPE ''", "COMPRESSION 'uncompressed'"},
	}, nil
}

// nestedJSON is the text of lists and structs, whose values are as outside of them.
func nestedJSON(t expr.Type, value string, depth int) string {
	orNull := func(text string) string { return "coalesce(" + text + ", 'null')" }
	if inner, ok := t.Element(); ok {
		one := fmt.Sprintf("e%d", depth)
		return fmt.Sprintf("'[' || array_to_string(list_transform(%s, lambda %s: %s), ',') || ']'", value, one,
			orNull(nestedJSON(inner, one, depth+1)))
	}
	if t.Members() == nil {
		return jsonValue(t, value)
	}
	parts := []string{"'{'"}
	for i, m := range t.Members() {
		key, err := jsonText(m.Name)
		if err != nil { // of a text there is none
			return "error(" + sqltext.String(err.Error()) + ")"
		}
		if i > 0 {
			key = "," + key
		}
		parts = append(parts, sqltext.String(key+":"), orNull(nestedJSON(m.Type, expr.MemberSQL(value, m.Name), depth)))
	}
	return "CASE WHEN " + value + " IS NOT NULL THEN concat(" + strings.Join(append(parts, "'}'"), ", ") + ") END"
}

// jsonText is a text in JSON.
func jsonText(s string) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// jsonValue is the text of a value in JSON; NULL of NULL. Numbers have all of their digits,
// times are as in ISO 8601; of floats those that JSON has no number for are texts.
func jsonValue(t expr.Type, value string) string {
	if t.Nested() {
		return nestedJSON(t, value, 0)
	}
	text := "CAST(" + value + " AS VARCHAR)"
	switch name := t.String(); {
	case t == expr.Float:
		return fmt.Sprintf("CASE WHEN isnan(%[1]s) THEN '\"NaN\"' WHEN isinf(%[1]s) THEN CASE WHEN %[1]s > 0 THEN "+
			"'\"Infinity\"' ELSE '\"-Infinity\"' END ELSE %[2]s END", value, text)
	case t == expr.DateTime, t == expr.Date, t == expr.Instant:
		iso, err := expr.ISOTextSQL(t, "T", value)
		if err != nil { // of a layout of ours there is none
			return "error(" + sqltext.String(err.Error()) + ")"
		}
		if t == expr.Instant {
			iso += " || 'Z'"
		}
		return "'\"' || " + iso + " || '\"'"
	case t == expr.Int, t == expr.Bool, strings.HasPrefix(name, "decimal"): // of any digits
		return text
	}
	return "CAST(to_json(" + value + ") AS VARCHAR)"
}
