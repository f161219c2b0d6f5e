package files

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// OutputRowGroupRows is the size of the row groups of Parquet output: each
// thread buffers one while it writes.
const OutputRowGroupRows = 122_880

// WriteSQL makes the COPY statement that writes to path the columns of w,
// which the SELECT from produces under their names with their script types,
// in the order of from. Path is the file to create; an existing one is
// replaced. Rows keep their order for any number of threads while
// preserve_insertion_order is on.
func WriteSQL(w *script.FileWriter, from, path string) (sqltext.Copy, error) {
	source := "(" + from + ")"
	if w.Target != nil {
		return tableCopy(w, source, path)
	}
	switch {
	case w.Parquet:
		return parquetCopy(w, source, path)
	case w.Form == script.FormJSON, w.Form == script.FormExcel:
		return jsonCopy(w, source, path)
	case w.Form == script.FormIndex:
		return indexCopy(w, source, path)
	}
	return csvOutput{w}.copy(source, path)
}

// tableCopy returns the COPY of rows for package database: no header, NULL is nothing, and texts have quotes.
// Servers know DuckDB's form of times before year 1 as one of theirs; SQLite keeps any text.
func tableCopy(w *script.FileWriter, source, path string) (sqltext.Copy, error) {
	var cols, quoted []string
	redis := address.Redis(w.URL) // which has texts only: those of CSV
	for _, c := range w.Columns {
		value := sqltext.Ident(c.Name)
		if redis {
			text, err := c.PrintSQL(value)
			if err != nil {
				return sqltext.Copy{}, fmt.Errorf("write the text of column %s: %w", c.Name, err)
			}
			value = "CASE WHEN " + value + " IS NOT NULL THEN CAST(" + text + " AS VARCHAR) END AS " + value
		}
		if address.Scheme(w.URL) == "sqlite" && (c.Type == expr.DateTime || c.Type == expr.Date ||
			c.Type == expr.Instant) {
			text, err := expr.ISOTextSQL(c.Type, " ", value)
			if err != nil {
				return sqltext.Copy{}, fmt.Errorf("write the text of column %s: %w", c.Name, err)
			}
			if c.Type == expr.Instant {
				text += " || '+00'"
			}
			value = text + " AS " + value
		}
		cols = append(cols, value)
		if c.Type == expr.String || redis {
			quoted = append(quoted, sqltext.Ident(c.Name))
		}
	}
	out := sqltext.Copy{Path: path, Query: "SELECT " + strings.Join(cols, ", ") + " FROM " + source,
		Options: []string{"FORMAT csv", "HEADER false", "DELIMITER ','", `QUOTE '"'`, `ESCAPE '"'`, "NULL ''"}}
	if len(quoted) > 0 {
		out.Options = append(out.Options, "FORCE_QUOTE ("+strings.Join(quoted, ", ")+")")
	}
	return out, nil
}

// parquetCopy follows behaviour §3.5: all columns optional, int INT64,
// float DOUBLE, decimal2 INT64 DECIMAL with scale 2 (precision 18, where
// Capillaries understates it as 2), datetime TIMESTAMP_MILLIS, in which
// 0001-01-01, their zero value, is null, unless the column is nullable.
func parquetCopy(w *script.FileWriter, source, path string) (sqltext.Copy, error) {
	out := sqltext.Copy{Path: path}
	codec, err := CodecSQL(w)
	if err != nil {
		return out, err
	}
	cols := make([]string, len(w.Columns))
	seen := map[string]string{}
	for i, c := range w.Columns {
		low := strings.ToLower(c.Parquet)
		if before, ok := seen[low]; ok {
			return out, scriptFault(c.Pos, c.Name, "two Parquet columns named %q and %q", before, c.Parquet)
		}
		seen[low] = c.Parquet
		if IsFloat(c) {
			out.Floats = append(out.Floats, c.Parquet)
		}
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
	out.Query = "SELECT " + strings.Join(cols, ", ") + " FROM " + source
	out.Options = []string{"FORMAT parquet", codec, "ROW_GROUP_SIZE " + fmtInt(OutputRowGroupRows)}
	return out, nil
}

// CodecSQL gives the options of a COPY that say how pages are compressed.
func CodecSQL(w *script.FileWriter) (string, error) {
	switch codec := cmp.Or(w.Codec, "gzip"); {
	case codec == "zstd" && w.Packing.Level > 0:
		return "CODEC 'zstd', COMPRESSION_LEVEL " + fmtInt(int64(w.Packing.Level)), nil
	case slices.Contains([]string{"gzip", "snappy", "zstd", "uncompressed"}, codec):
		return "CODEC " + sqltext.String(codec), nil
	}
	f := scriptFault(w.Pos, "parquet.codec", "unknown codec %q", w.Codec)
	f.Hint = "zstd, gzip, snappy or uncompressed"
	return "", f
}

// IsFloat reports whether a column has floats, which Parquet's dictionaries may confuse (see sqltext.Copy).
func IsFloat(c *script.OutputColumn) bool { return c.Type == expr.Float }
