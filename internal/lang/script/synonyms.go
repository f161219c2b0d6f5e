package script

import (
	"slices"
	"strings"

	"thalweg/internal/base/document"
)

// synonyms are keys of other well-known tools, each with those of ours that stand
// for the same, the likelier one first. Words that people use as notes of their own
// (description, owner, comment, source) are not among them.
func synonyms() map[string][]string {
	return map[string][]string{
		// Nodes: dbt, Airflow, Spark, Dagster.
		"sql": {"query"}, "select": {"query"}, "statement": {"query"}, "sql_file": {"query_url"},
		"query_file": {"query_url"},
		"inputs":     {"r"}, "input": {"r"}, "reads": {"r"}, "outputs": {"w"}, "output": {"w"},
		"writes": {"w"}, "sink": {"w"},
		"tests": {"checks"}, "expectations": {"checks"}, "assertions": {"checks"}, "constraints": {"checks"},
		"on_fail":      {"severity"},
		"validations":  {"checks"},
		"materialized": {"ephemeral"}, "on_error": {"bad_rows"}, "on_errors": {"bad_rows"}, "bad_records": {"bad_rows"},
		"ignore_errors": {"bad_rows"}, "on_bad_lines": {"bad_rows"}, "operator": {"type"}, "partition_by": {"by"},
		"cache": {"reuse"},
		// Files.
		"path": {"urls", "url_template"}, "paths": {"urls"}, "file": {"urls", "url_template"},
		"filename": {"urls", "url_template"},
		"filepath": {"urls", "url_template"},
		"location": {"urls", "url_template"}, "delimeter": {"separator"}, "delimter": {"separator"},
		"field_separator": {"separator"},
		"field_delimiter": {"separator"}, "col_sep": {"separator"}, "files": {"urls"}, "glob": {"urls"},
		"delimiter": {"separator"},
		"delim":     {"separator"}, "sep": {"separator"},
		"dtype": {"types", "col_type", "type"}, "dtypes": {"types"}, "schema": {"types", "columns", "fields"},
		"header_row": {"hdr_line_idx"},
		"skiprows":   {"first_data_line_idx"},
		"quoting":    {"quote"}, "lineterminator": {"line_end"}, "newline": {"line_end"}, "compression": {"codec"},
		"na_values":   {"null_text"},
		"null_values": {"null_text"},
		// Tables.
		"where": {"having", "filter"}, "order_by": {"order"}, "sort": {"order"}, "sort_by": {"order"}, "head": {"top"},
		"primary_key": {"indexes"}, "unique_key": {"indexes"},
		"left_on": {"join_on"}, "right_on": {"on"}, "how": {"join_type"}, "aggregate": {"group"},
		"udf": {"python_code_urls"}, "python_file": {"python_code_urls"},
		// Serving.
		"tz": {"timezone"}, "time_zone": {"timezone"}, "schedule_interval": {"cron", "schedule"}, "crontab": {"cron"},
		"triggers": {"schedule"}, "sensor": {"watch"}, "sensors": {"watch"},
		"webhook": {"url", "notify"}, "url": {"urls", "url_template"}, "uri": {"urls", "url_template", "url"},
		"cmd":  {"command"},
		"exec": {"command"}, "alerts": {"notify"}, "notifications": {"notify"}, "sla": {"deadline"}, "steps": {"nodes"},
		"tasks":  {"nodes"},
		"models": {"nodes"}, "pipeline": {"nodes"}, "imports": {"include"}, "approvers": {"by"}, "reviewers": {"by"},
		"interval":    {"every"},
		"signing_key": {"secret"},
	}
}

// synonym is the key that stands for what a key does in other tools, "" if none does.
func synonym(e *document.Entry, keys []string) string {
	word := strings.ToLower(e.Name)
	if word == "type" && e.Value.Kind == document.Map && slices.Contains(keys, "types") {
		return "types"
	}
	if slices.Contains(capillariesKeys(), word) {
		return ""
	}
	for _, ours := range synonyms()[word] {
		if slices.Contains(keys, ours) {
			return ours
		}
	}
	return ""
}

// wayOut returns a hint for a key that has no counterpart of its own in that part of a node. It returns "" if
// the key is none of these.
func wayOut(e *document.Entry, path string) string {
	steps := strings.SplitN(path, ".", 4)
	if len(steps) < 2 || steps[0] != "nodes" {
		return ""
	}
	part := ""
	if len(steps) > 2 {
		part = steps[2]
	}
	const records = "csv.hdr_line_idx is the record with the header, csv.first_data_line_idx the first with data; " +
		"both count from 0"
	const headerless = "csv: {hdr_line_idx: -1} is for CSV files without a header, excel: {header: false} for sheets " +
		"without one"
	switch word := strings.ToLower(e.Name); word {
	case "distinct", "dedup", "dedupe", "deduplicate", "drop_duplicates":
		return "a node of type distinct_table keeps one row of each key, and the query of a sql node has " +
			"SELECT DISTINCT"
	case "skip", "skip_rows", "skip_lines", "skiprows", "skip_header", "comment_lines":
		if part == "r" {
			return records
		}
	case "skip_footer", "skipfooter", "skip_footer_lines", "footer", "footer_lines", "trailer", "skip_trailer",
		"skip_last", "skip_bottom":
		switch {
		case part == "r":
			return "lines behind the data are no records of it: take them off before (head -n -1 in.csv), or put " +
				"them aside with bad_rows"
		case part == "w":
			return "a file has its header and its rows: write what stands behind them to a file of its own, and " +
				"join both (cat)"
		}
	case "comment", "comment_char", "comment_prefix", "comments", "comment_string":
		remark := strings.HasPrefix("comments", word) && strings.Trim(e.Value.Text, "#;%/*!-'\"") != ""
		if part == "r" && (len(steps) == 3 || steps[3] == "csv") && !remark {
			return "no line is a comment: take such lines out before (grep -v '^#' in.csv); those above the header " +
				"are records, which csv.hdr_line_idx counts"
		}
	case "bom", "byte_order_mark", "with_bom", "utf8_bom", "add_bom", "write_bom":
		if part == "r" {
			return "a byte order mark at the start of a file is passed over: leave the key out"
		}
		return `files are written without a byte order mark: put it before them with printf '\xEF\xBB\xBF' | cat - out.csv`
	case "encoding", "charset":
		if part == "w" {
			return "files are written in UTF-8: convert them with iconv -f utf-8 -t windows-1252"
		}
	case "escape_formulas", "sanitize_formulas", "sanitize", "formula_guard", "escape_formulae":
		return "texts are written as they are: put the mark before those that begin a formula in the column's " +
			"expression, with string.iif and re.MatchString"
	case "dateformat", "date_format", "timestampformat", "timestamp_format", "datetime_format", "parse_dates",
		"time_format":
		if part == "r" {
			return "a layout is a column's own, behind its type: day: date 02.01.2006"
		}
		return "a layout is a column's own, behind its name: columns: [id, day 02.01.2006]"
	case "na_rep", "nullstr", "null", "null_string", "na", "null_value", "empty_value", "na_filter", "keep_default_na":
		if part == "r" {
			return "texts that mean NULL are a column's own: {type: int, null_text: [n/a, \"\"]}"
		}
		return "NULL is an empty cell in CSV: a text for it is an expression, coalesce(string(r.x), `n/a`), or " +
			"COALESCE in a sql node before"
	case "trim", "trim_ws", "strip", "skipinitialspace", "skip_initial_space", "ignore_whitespace", "trim_whitespace":
		return "blanks belong to values: take them off in a sql node behind it, with trim(x)"
	case "header", "headers", "has_header":
		switch {
		case part == "r" && (len(steps) == 3 || steps[3] == "csv"):
			return headerless
		case part == "r" && strings.HasPrefix(steps[3], "columns."):
			return "in csv of a column it is called col_hdr; beside type it is path"
		case part == "w" && len(steps) == 4 && steps[3] == "csv":
			return "each CSV file has a header: take it off with tail -n +2 where none is wanted"
		case part == "w" && word != "header":
			return "columns: {HEADER: expression} writes headers; in the long form of a column it is csv: " +
				"{header: HEADER}"
		}
	case "append", "overwrite", "if_exists", "write_mode", "write_disposition":
		if part == "w" {
			return "a file is replaced as a whole; what becomes of the rows of a table of a database says mode: " +
				"append, replace or merge"
		}
	case "quotechar", "quote_char", "quote_character", "double_quote", "doublequote", "escape", "escapechar",
		"escape_char":
		if part == "r" || part == "w" {
			return `quotes of CSV files are ", doubled within a value that has them; nothing else escapes`
		}
	case "decimal", "thousands", "decimal_comma", "decimal_separator", "thousands_separator", "decimal_point",
		"group_separator":
		switch {
		case part == "r" && strings.HasPrefix(word, "decimal"):
			return `numbers with a decimal comma are csv: {decimal: ","} of the node that reads them`
		case part == "r":
			return `what stands between thousands is csv: {thousands: "."} of the node that reads them`
		case part == "w":
			return `numbers are written with a point; a column of text has a comma: strings.ReplaceAll(string(r.price), ".", ",")`
		}
	}
	return ""
}

// meantBy is the key that somebody probably meant; "": none is like it.
func meantBy(e *document.Entry, keys []string) string {
	if meant := typingError(e.Name, keys); meant != "" {
		return meant
	}
	return synonym(e, keys)
}
