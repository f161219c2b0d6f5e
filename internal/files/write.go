package files

import (
	"strings"

	"thalweg/internal/expr"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
)

// outputRowGroupRows is the size of the row groups of Parquet output: each
// thread buffers one while it writes.
const outputRowGroupRows = 122_880

// WriteSQL renders the COPY statement that writes to path the columns of w,
// which the SELECT from produces under their names with their script types,
// in the order of the ORDER BY list orderBy over from's columns; if that is
// "", in the order of from. Path is the file to create; an existing one is
// replaced. Rows keep their order for any number of threads while
// preserve_insertion_order is on.
func WriteSQL(w *script.FileWriter, from, orderBy, path string) (string, error) {
	// The order is fixed in a SELECT of its own, because names in a final
	// ORDER BY would mean the output's columns first.
	source := "(" + from + ")"
	if orderBy != "" {
		source = "(SELECT * FROM " + source + " ORDER BY " + orderBy + ")"
	}
	if w.Parquet {
		return writeParquetSQL(w, source, path)
	}
	return writeCSVSQL(w, source, path)
}

// writeCSVSQL builds each line as one text column and has COPY write it raw:
// with an empty quote character it neither quotes nor escapes, and the header
// is that column's name. Behaviour §3.2: the header ends in CRLF, lines in
// LF, and a text is quoted if it contains a comma, whatever the separator,
// with nothing escaped. Nullable columns: see cellSQL.
func writeCSVSQL(w *script.FileWriter, source, path string) (string, error) {
	header := make([]string, len(w.Columns))
	parts := make([]string, 0, 2*len(w.Columns))
	for i, c := range w.Columns {
		header[i] = quoteIfComma(c.Header)
		text, err := expr.PrintSQL(c.Type, c.Format, sqltext.Ident(c.Name))
		if err != nil {
			return "", scriptFault(c.Pos, c.Name, "format %q of column %s: %s", c.Format, c.Name, err)
		}
		if i > 0 {
			parts = append(parts, sqltext.String(w.Separator))
		}
		parts = append(parts, cellSQL(c, text))
	}
	// concat takes NULL for an empty text, where || would lose the line.
	line := "concat(" + strings.Join(parts, ", ") + ")"
	name := sqltext.Ident(strings.Join(header, w.Separator) + "\r")
	return "COPY (SELECT " + line + " AS " + name + " FROM " + source + ") TO " + sqltext.String(path) +
		" (FORMAT csv, HEADER true, QUOTE '', ESCAPE '', COMPRESSION 'uncompressed')", nil
}

// cellSQL renders a cell from the text of its value. Text that would be taken
// for NULL gets quotes: in a nullable column an empty text is "" and NULL is
// nothing, or whatever null_text says.
func cellSQL(c *script.OutputColumn, text string) string {
	var quoted []string
	if c.Type == expr.String || strings.Contains(c.Format, ",") {
		quoted = append(quoted, "contains("+text+", ',')")
	}
	if c.Nullable {
		quoted = append(quoted, text+" = "+sqltext.String(c.NullText))
	}
	cell := text
	if len(quoted) > 0 {
		cell = "CASE WHEN " + strings.Join(quoted, " OR ") + " THEN '\"' || " + text + " || '\"' ELSE " + text + " END"
	}
	if c.Nullable {
		cell = "CASE WHEN " + sqltext.Ident(c.Name) + " IS NULL THEN " + sqltext.String(quoteIfComma(c.NullText)) + " ELSE " + cell + " END"
	}
	return cell
}

func quoteIfComma(s string) string {
	if strings.Contains(s, ",") {
		return `"` + s + `"`
	}
	return s
}

// writeParquetSQL follows behaviour §3.5: all columns optional, int INT64,
// float DOUBLE, decimal2 INT64 DECIMAL with scale 2 (precision 18, where
// Capillaries understates it as 2), datetime TIMESTAMP_MILLIS, in which
// 0001-01-01, their zero value, is null, unless the column is nullable.
func writeParquetSQL(w *script.FileWriter, source, path string) (string, error) {
	codec, err := codecSQL(w)
	if err != nil {
		return "", err
	}
	cols := make([]string, len(w.Columns))
	seen := map[string]string{}
	for i, c := range w.Columns {
		low := strings.ToLower(c.Parquet)
		if before, ok := seen[low]; ok {
			return "", scriptFault(c.Pos, c.Name, "two Parquet columns named %q and %q", before, c.Parquet)
		}
		seen[low] = c.Parquet
		value := sqltext.Ident(c.Name)
		switch {
		case c.Type == expr.DateTime && c.Nullable:
			value = "CAST(" + value + " AS TIMESTAMP_MS)"
		case c.Type == expr.DateTime:
			value = "nullif(CAST(" + value + " AS TIMESTAMP_MS), TIMESTAMP_MS '0001-01-01 00:00:00')"
		default:
			value = "CAST(" + value + " AS " + c.Type.SQL() + ")"
		}
		cols[i] = value + " AS " + sqltext.Ident(c.Parquet)
	}
	return "COPY (SELECT " + strings.Join(cols, ", ") + " FROM " + source + ") TO " + sqltext.String(path) +
		" (FORMAT parquet, CODEC " + sqltext.String(codec) + ", ROW_GROUP_SIZE " + fmtInt(outputRowGroupRows) + ")", nil
}

func codecSQL(w *script.FileWriter) (string, error) {
	switch w.Codec {
	case "", "gzip":
		return "gzip", nil
	case "snappy", "uncompressed":
		return w.Codec, nil
	}
	f := scriptFault(w.Pos, "parquet.codec", "unknown codec %q", w.Codec)
	f.Hint = "gzip, snappy or uncompressed"
	return "", f
}
