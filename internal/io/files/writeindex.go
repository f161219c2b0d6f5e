package files

import (
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/script"
)

// An index is made of lines, one for each row: the bytes of the key and a colon, those of the values and a colon, the
// key, the values. A value is framed as clients of the Redis protocol get it. A row whose key has a NULL in it is an
// exclamation mark and the place of that column in the key, from 0. What is in a key or value, also a line end,
// changes nothing: its bytes are counted.

// indexCopy writes the lines that an index is made of.
func indexCopy(w *script.FileWriter, source, path string) (sqltext.Copy, error) {
	row, err := indexRow(w, source)
	if err != nil {
		return sqltext.Copy{}, err
	}
	return sqltext.Copy{
		Query: "SELECT CASE WHEN n IS NULL THEN concat(strlen(k), ':', strlen(v), ':', k, v) ELSE concat('!', n) END " +
			"AS line FROM (" + row + ")",
		Path:    path,
		Options: []string{"FORMAT csv", "HEADER false", "QUOTE ''", "ESCAPE ''", "COMPRESSION 'uncompressed'"},
	}, nil
}

// IndexSizeSQL selects the number of rows of an index of the SELECT from, and the bytes that they take in it.
func IndexSizeSQL(w *script.FileWriter, from string) (string, error) {
	row, err := indexRow(w, "("+from+")")
	if err != nil {
		return "", err
	}
	framed := func(text string) string { // and before them their number, of which a byte has 7 bits
		n := "strlen(" + text + ")"
		return fmt.Sprintf("%[1]s + 1 + (%[1]s >= 1 << 7)::BIGINT + (%[1]s >= 1 << 14)::BIGINT + (%[1]s >= 1 << 21)::BIGINT"+
			" + (%[1]s >= 1 << 28)::BIGINT", n)
	}
	return fmt.Sprintf("SELECT CAST(count(*) AS VARCHAR), CAST(coalesce(sum(%s + %s), 0) AS VARCHAR) FROM (%s)",
		framed("k"), framed("v"), row), nil
}

// indexRow selects of each row of an index the key k, the values v, and n, which says where in the key is a NULL.
func indexRow(w *script.FileWriter, source string) (string, error) {
	var parts, values, nulls []string
	for i, c := range w.Index {
		text, err := indexText(c)
		if err != nil {
			return "", err
		}
		if len(w.Index) > 1 { // so that no two keys are one
			text = fmt.Sprintf(`replace(replace(%s, '\', '\\'), ':', '\:')`, text)
		}
		parts = append(parts, text)
		if c.Nullable {
			nulls = append(nulls, fmt.Sprintf("WHEN %s IS NULL THEN %d", sqltext.Ident(c.Name), i))
		}
	}
	for _, c := range w.Values() {
		text, err := indexText(c)
		if err != nil {
			return "", err
		}
		end := sqltext.String("\r\n")
		value := fmt.Sprintf("concat('$', strlen(%[1]s), %[2]s, %[1]s, %[2]s)", text, end)
		if c.Nullable {
			value = fmt.Sprintf("CASE WHEN %s IS NULL THEN %s ELSE %s END", sqltext.Ident(c.Name),
				sqltext.String("$-1\r\n"), value)
		}
		values = append(values, value)
	}
	null := "NULL"
	if len(nulls) > 0 {
		null = "CASE " + strings.Join(nulls, " ") + " END"
	}
	return fmt.Sprintf("SELECT %s AS k, concat(%s) AS v, %s AS n FROM %s", strings.Join(parts, " || ':' || "),
		strings.Join(values, ", "), null, source), nil
}

// indexText is the text of a value, as in a CSV file.
func indexText(c *script.OutputColumn) (string, error) {
	text, err := c.PrintSQL(sqltext.Ident(c.Name))
	if err != nil {
		return "", scriptFault(c.Pos, c.Name, "format %q of column %s: %s", c.Format, c.Name, err)
	}
	return text, nil
}
