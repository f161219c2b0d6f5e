package roundtrip

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"thalweg/internal/base/sqltext"
)

// object is one of a script in JSON.
type object map[string]any

// layouts are those in which a form has times.
type layouts struct{ datetime, timestamptz string }

var (
	inCSV  = layouts{"datetime 2006-01-02 15:04:05", "timestamptz 2006-01-02 15:04:05Z07"}
	inJSON = layouts{"datetime 2006-01-02T15:04:05", "timestamptz"}
	ours   = layouts{"datetime 2006-01-02 15:04:05", "timestamptz"}
	typed  = layouts{"datetime", "timestamptz"} // the form has types of its own
)

// columns are a table's as a script says them in short form.
func (t table) columns(in layouts, null string) object {
	out := object{}
	for _, c := range t.Columns {
		typ := c.typ()
		switch c.Kind {
		case "datetime":
			typ = in.datetime
		case "timestamptz":
			typ = in.timestamptz
		case "string":
			typ = "string?"
		}
		out[c.Name] = typ
		if null != "" {
			out[c.Name] = object{"type": strings.TrimSuffix(typ, "?"), "null_text": []string{null}}
		}
	}
	return out
}

// input is a form in which somebody else writes a table.
type input struct {
	name   string // of the form; the file has it for a name
	how    manner
	null   string // CSV: what stands for NULL; "": the empty cell without quotes
	in     layouts
	reader object                                 // what the script says beside urls and columns
	sql    func(query, path string) string        // how DuckDB writes it; nil: Python does
	pack   func(path string) error                // what is done to the file then
	view   func(t table) string                   // what DuckDB writes of the table; nil: all as it is
	hive   func(rnd *rand.Rand, t table) []column // columns that the names of directories have
}

func copyTo(options string) func(query, path string) string {
	return func(query, path string) string {
		return "COPY (" + query + ") TO " + sqltext.String(path) + " (" + options + ")"
	}
}

// asTexts is a table with its times as RFC 3339 has them, and its decimals as they are: what DuckDB
// makes of both in JSON is its own.
func asTexts(t table) string {
	out := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		name := sqltext.Ident(c.Name)
		out[i] = name
		switch c.Kind {
		case "datetime":
			out[i] = "strftime(" + name + ", '%Y-%m-%dT%H:%M:%S.%f') AS " + name
		case "timestamptz":
			out[i] = "strftime(timezone('UTC', " + name + "), '%Y-%m-%dT%H:%M:%S.%fZ') AS " + name
		}
	}
	return "SELECT " + strings.Join(out, ", ") + " FROM (" + t.query() + ")"
}

// grouped is a table whose numbers are texts as people write them: with a decimal point or comma, and with
// something between the thousands of whole numbers and decimals.
func grouped(comma bool, between string) func(t table) string {
	return func(t table) string {
		out := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			name := sqltext.Ident(c.Name)
			out[i] = name
			point := "."
			if comma {
				point = ","
			}
			text := "CAST(" + name + " AS VARCHAR)"
			switch c.Kind {
			case "float":
				out[i] = "replace(" + text + ", '.', " + sqltext.String(point) + ") AS " + name
			case "int", "decimal":
				whole := "regexp_extract(" + text + ", '[0-9]+')"
				groups := "reverse(rtrim(regexp_replace(reverse(" + whole + "), '([0-9]{3})', '\\1~', 'g'), '~'))"
				out[i] = "regexp_extract(" + text + ", '^-?') || replace(" + groups + ", '~', " +
					sqltext.String(between) + ") || replace(regexp_extract(" + text +
					", '[.].*'), '.', " + sqltext.String(point) + ") AS " + name
			}
		}
		return "SELECT " + strings.Join(out, ", ") + " FROM (" + t.query() + ")"
	}
}

// inputs are all forms that are read.
func inputs() []input {
	const strict = "FORMAT csv, HEADER, FORCE_QUOTE *"
	csv := object{"csv": object{}}
	encoded := func(name string) object { return object{"csv": object{"encoding": name}} }
	numbers := func(separator, decimal, thousands string) object {
		return object{"csv": object{"separator": separator, "decimal": decimal, "thousands": thousands}}
	}
	return []input{
		{name: "duck.csv", how: anything, in: inCSV, reader: csv, sql: copyTo("FORMAT csv, HEADER, DELIMITER ','")},
		{name: "duckquoted.csv", how: anything, in: inCSV, reader: object{"csv": object{"separator": ";"}},
			sql: copyTo(strict + ", DELIMITER ';'")},
		{name: "duck.csv.gz", how: anything, in: inCSV, reader: csv,
			sql: copyTo("FORMAT csv, HEADER, COMPRESSION gzip")},
		{name: "duck.csv.zst", how: anything, in: inCSV, reader: csv,
			sql: copyTo("FORMAT csv, HEADER, COMPRESSION zstd")},
		{name: "duck.ndjson", how: anything, in: inJSON, sql: copyTo("FORMAT json"), view: asTexts},
		{name: "duck.json", how: anything, in: inJSON, sql: copyTo("FORMAT json, ARRAY true"), view: asTexts},
		{name: "duck.ndjson.gz", how: anything, in: inJSON, sql: copyTo("FORMAT json, COMPRESSION gzip"),
			view: asTexts},
		{name: "duck.parquet", how: anything, in: typed, sql: copyTo("FORMAT parquet, ROW_GROUP_SIZE 2048")},
		{name: "nested.parquet", how: nested, in: typed, sql: copyTo("FORMAT parquet, ROW_GROUP_SIZE 2048")},
		{name: "latin-1.csv", how: western, in: inCSV, reader: encoded("latin-1"), sql: copyTo("FORMAT csv, HEADER"),
			pack: encode("latin-1")},
		{name: "windows-1252.csv", how: western, in: inCSV, reader: encoded("windows-1252"),
			sql: copyTo("FORMAT csv, HEADER"), pack: encode("windows-1252")},
		{name: "utf-16.csv", how: anything, in: inCSV, reader: encoded("utf-16"), sql: copyTo("FORMAT csv, HEADER"),
			pack: encode("utf-16")},
		{name: "utf-16be.csv", how: anything, in: inCSV, reader: encoded("utf-16be"), sql: copyTo("FORMAT csv, HEADER"),
			pack: encode("utf-16be")},

		{name: "comma.csv", how: anything, in: inCSV, reader: numbers(";", ",", "."),
			sql: copyTo("FORMAT csv, HEADER, DELIMITER ';'"), view: grouped(true, ".")},
		{name: "commas.csv.gz", how: anything, in: inCSV, reader: numbers(",", ".", ","),
			sql: copyTo("FORMAT csv, HEADER, COMPRESSION gzip"), view: grouped(false, ",")},
		{name: "spaces.csv", how: anything, in: inCSV, reader: numbers(",", ",", " "),
			sql: copyTo("FORMAT csv, HEADER"), view: grouped(true, "\u202f")},
		{name: "packed.utf-16.csv", how: anything, in: inCSV, reader: encoded("utf-16"),
			sql: copyTo("FORMAT csv, HEADER"), pack: squeezed(encode("utf-16"))},

		{name: "pandas.csv", how: anything, null: "<null>", in: inCSV, reader: csv},
		{name: "pandas.csv.gz", how: anything, null: "<null>", in: inCSV, reader: csv},
		{name: "pandas.latin1.csv", how: western, null: "<null>", in: inCSV, reader: encoded("latin-1")},
		{name: "pandas.cp1252.csv.gz", how: western, null: "<null>", in: inCSV, reader: encoded("windows-1252")},
		{name: "pandas.utf-16.csv", how: anything, null: "<null>", in: inCSV, reader: encoded("utf-16")},
		{name: "pyarrow.csv", how: anything, in: inCSV, reader: csv},
		{name: "pyarrow.csv.zst", how: anything, in: inCSV, reader: csv},
		{name: "pyarrow.parquet", how: anything, in: typed},
		{name: "pyarrow.nested.parquet", how: nested, in: typed},
		{name: "pyarrow.hive", how: anything, in: typed, hive: partition},
		{name: "python.ndjson", how: anything, in: inJSON},
		{name: "python.json", how: anything, in: inJSON},
		{name: "python.json.gz", how: anything, in: inJSON},
		{name: "openpyxl.xlsx", how: sheets, in: layouts{"datetime", "timestamptz"}},
	}
}

// output is a form that Thalweg writes.
type output struct {
	name    string
	how     manner
	in      layouts
	writer  object // what the script says beside url_template
	reader  object // how the script says it is read
	dir     bool
	hive    bool
	batches int
	unread  bool // Thalweg does not read it: lists of JSON have no type there
}

// outputs are all forms that are written.
func outputs() []output {
	csv := func(of object) object { return object{"csv": of} }
	return []output{
		{name: "plain.csv", how: anything, in: ours, reader: csv(object{})},
		{name: "other.csv", how: anything, in: ours,
			writer: csv(object{"separator": ";", "line_end": "crlf", "quote": "all"}),
			reader: csv(object{"separator": ";"})},
		{name: "tabs.tsv", how: anything, in: ours, reader: csv(object{})},
		{name: "packed.csv.gz", how: anything, in: ours, reader: csv(object{})},
		{name: "packed.csv.zst", how: anything, in: ours, reader: csv(object{})},
		{name: "lines.ndjson", how: anything, in: inJSON},
		{name: "lines.ndjson.gz", how: anything, in: inJSON},
		{name: "lines.jsonl.zst", how: anything, in: inJSON},
		{name: "zstd.parquet", how: anything, in: typed},
		{name: "gzip.parquet", how: anything, in: typed, writer: object{"parquet": object{"codec": "gzip"}}},
		{name: "snappy.parquet", how: anything, in: typed, writer: object{"parquet": object{"codec": "snappy"}}},
		{name: "nested.parquet", how: nested, in: typed},
		{name: "nested.gzip.parquet", how: nested, in: typed, writer: object{"parquet": object{"codec": "gzip"}}},
		{name: "nested.ndjson", how: nested, in: inJSON, unread: true},
		{name: "cut.csv", how: anything, in: ours, writer: object{"target_size": "1KB"},
			reader: csv(object{}), dir: true},
		{name: "cut.ndjson", how: anything, in: inJSON, writer: object{"target_size": "1KB"}, dir: true},
		{name: "cut.parquet", how: anything, in: typed, writer: object{"target_size": "1KB"}, dir: true},
		{name: "parts.csv.gz", how: anything, in: ours, reader: csv(object{}), dir: true, hive: true},
		{name: "parts.parquet", how: anything, in: typed, dir: true, hive: true},
		{name: "batch_{batch_idx}.csv", how: anything, in: ours, reader: csv(object{}), batches: 3},
		{name: "sheet.xlsx", how: sheets, in: layouts{"datetime", "timestamptz"}},
	}
}

// partition chooses up to two columns whose values can be in the names of directories.
func partition(rnd *rand.Rand, t table) (out []column) {
	for _, i := range rnd.Perm(len(t.Columns)) {
		c := t.Columns[i]
		// a NULL alone in a line of CSV is ""
		if c.Kind == "float" || c.Kind == "datetime" || c.Kind == "timestamptz" || len(out) == 2 ||
			len(t.Columns) <= len(out)+2 {
			continue
		}
		fine := true
		for _, row := range t.Rows {
			// An empty text is refused, a long one is no name, and one is NULL's.
			fine = fine && (row[i] == nil || *row[i] != "" && len(*row[i]) < 80 &&
				*row[i] != "__HIVE_DEFAULT_PARTITION__")
		}
		if fine {
			out = append(out, c)
		}
	}
	return out
}

// hivePath is the pattern by which a script reads directories of partitions.
func hivePath(dir string, by []column, end string) string {
	for _, c := range by {
		typ := c.typ()
		if c.Kind == "string" {
			typ += "?"
		}
		dir += fmt.Sprintf("/%s=<%s %s>", c.Name, c.Name, typ)
	}
	return dir + "/*" + end
}
