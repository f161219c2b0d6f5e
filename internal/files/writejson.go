package files

import (
	"encoding/json"
	"fmt"
	"strings"

	"thalweg/internal/expr"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
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
	text := "CAST(" + value + " AS VARCHAR)"
	switch name := t.String(); {
	case t == expr.Float:
		return fmt.Sprintf("CASE WHEN isnan(%[1]s) THEN '\"NaN\"' WHEN isinf(%[1]s) THEN CASE WHEN %[1]s > 0 THEN '\"Infinity\"' ELSE '\"-Infinity\"' END ELSE %[2]s END", value, text)
	case name == "timestamptz": // in UTC
		return "'\"' || replace(CAST(timezone('UTC', " + value + ") AS VARCHAR), ' ', 'T') || 'Z\"'"
	case t == expr.DateTime, name == "date":
		return "'\"' || replace(" + text + ", ' ', 'T') || '\"'"
	case t == expr.Int, t == expr.Bool, strings.HasPrefix(name, "decimal"): // of any digits
		return text
	}
	return "CAST(to_json(" + value + ") AS VARCHAR)"
}
