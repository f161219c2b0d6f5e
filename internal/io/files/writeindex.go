package files

import (
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/tableindex"
	"thalweg/internal/lang/script"
)

// An index is made of lines, one for each row: the bytes of the key and a colon, those of the values and a colon, the
// key, the values. A value is framed as clients of the Redis protocol get it. A row whose key has a NULL in it is an
// exclamation mark and the place of that column in the key, from 0. What is in a key or value, also a line end,
// changes nothing: its bytes are counted.

// indexCopy writes the lines that an index is made of.
func indexCopy(w *script.FileWriter, source, path string) (sqltext.Copy, error) {
	x, err := indexRows(w, source)
	if err != nil {
		return sqltext.Copy{}, err
	}
	end := sqltext.String("\r\n")
	line := []string{"strlen(k)", "':'", x.bytes, "':'", "k"} // in one go: nothing of it is copied twice
	for i, c := range w.Values() {
		if v := x.values[i]; c.Nullable { // see tableindex.Null
			line = append(line, "'$'", "coalesce(strlen("+v+"), -1)", end, v, "CASE WHEN "+v+" IS NOT NULL THEN "+end+" END")
		} else {
			line = append(line, "'$'", "strlen("+v+")", end, v, end)
		}
	}
	return sqltext.Copy{
		Query: "SELECT CASE WHEN n IS NULL THEN concat(" + strings.Join(line, ", ") + ") ELSE concat('!', n) END AS line " +
			"FROM (" + x.rows + ")",
		Path:    path,
		Options: []string{"FORMAT csv", "HEADER false", "QUOTE ''", "ESCAPE ''", "COMPRESSION 'uncompressed'"},
	}, nil
}

// IndexSizeSQL selects the number of rows of an index of the SELECT from, and the bytes that they take in it.
func IndexSizeSQL(w *script.FileWriter, from string) (string, error) {
	x, err := indexRows(w, "("+from+")")
	if err != nil {
		return "", err
	}
	framed := func(n string) string { // and before them their number, of which a byte has 7 bits
		return fmt.Sprintf("%[1]s + 1 + (%[1]s >= 1 << 7)::BIGINT + (%[1]s >= 1 << 14)::BIGINT + (%[1]s >= 1 << 21)::BIGINT"+
			" + (%[1]s >= 1 << 28)::BIGINT", n)
	}
	return fmt.Sprintf("SELECT CAST(count(*) AS VARCHAR), CAST(coalesce(sum(%s + %s), 0) AS VARCHAR) FROM ("+
		"SELECT strlen(k) AS k, %s AS v FROM (%s))", framed("k"), framed("v"), x.bytes, x.rows), nil
}

// indexed is the SQL of an index.
type indexed struct {
	rows   string   // selects the key k, texts of values, and n, which says where in the key is a NULL
	values []string // these texts
	bytes  string   // what they take as frames, together
}

func indexRows(w *script.FileWriter, source string) (x indexed, err error) {
	var key, nulls, texts, frames []string
	for i, c := range w.Index {
		text, err := indexText(c)
		if err != nil {
			return x, err
		}
		if len(w.Index) > 1 { // so that no two keys are one
			text = fmt.Sprintf(`replace(replace(%s, '\', '\\'), ':', '\:')`, text)
		}
		key = append(key, text)
		if c.Nullable {
			nulls = append(nulls, fmt.Sprintf("WHEN %s IS NULL THEN %d", sqltext.Ident(c.Name), i))
		}
	}
	for i, c := range w.Values() {
		text, err := indexText(c)
		if err != nil {
			return x, err
		}
		v := fmt.Sprintf("t%d", i)
		x.values = append(x.values, v)
		const around = len("$\r\n\r\n")
		frame := fmt.Sprintf("strlen(%[1]s) + strlen(CAST(strlen(%[1]s) AS VARCHAR)) + %[2]d", v, around)
		if c.Nullable {
			text = fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN %s END", sqltext.Ident(c.Name), text)
			frame = fmt.Sprintf("coalesce(%s, %d)", frame, len(tableindex.Null))
		}
		texts, frames = append(texts, text+" AS "+v), append(frames, frame)
	}
	null := "NULL"
	if len(nulls) > 0 {
		null = "CASE " + strings.Join(nulls, " ") + " END"
	}
	x.bytes = "(" + strings.Join(frames, " + ") + ")"
	x.rows = fmt.Sprintf("SELECT %s AS k, %s, %s AS n FROM %s", strings.Join(key, " || ':' || "),
		strings.Join(texts, ", "), null, source)
	return x, nil
}

// indexText is the text of a value, as in a CSV file.
func indexText(c *script.OutputColumn) (string, error) {
	text, err := c.PrintSQL(sqltext.Ident(c.Name))
	if err != nil {
		return "", scriptFault(c.Pos, c.Name, "format %q of column %s: %s", c.Format, c.Name, err)
	}
	return text, nil
}
