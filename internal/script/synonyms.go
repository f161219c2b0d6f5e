package script

import (
	"slices"
	"strings"

	"thalweg/internal/document"
)

// synonyms are keys of other well-known tools, each with those of ours that stand
// for the same, the likelier one first. Words that people use as notes of their own
// (description, owner, comment, source) are not among them.
func synonyms() map[string][]string {
	return map[string][]string{
		// Nodes: dbt, Airflow, Spark, Dagster.
		"sql": {"query"}, "select": {"query"}, "statement": {"query"}, "sql_file": {"query_url"}, "query_file": {"query_url"},
		"inputs": {"r"}, "input": {"r"}, "reads": {"r"}, "outputs": {"w"}, "output": {"w"}, "writes": {"w"}, "sink": {"w"},
		"tests": {"checks"}, "expectations": {"checks"}, "assertions": {"checks"}, "constraints": {"checks"}, "validations": {"checks"},
		"materialized": {"ephemeral"}, "operator": {"type"}, "partition_by": {"by"}, "cache": {"reuse"},
		// Files.
		"path": {"urls", "url_template"}, "paths": {"urls"}, "file": {"urls", "url_template"}, "filename": {"urls", "url_template"}, "filepath": {"urls", "url_template"},
		"location": {"urls", "url_template"}, "files": {"urls"}, "glob": {"urls"}, "delimiter": {"separator"}, "delim": {"separator"}, "sep": {"separator"},
		"dtype": {"types", "col_type", "type"}, "dtypes": {"types"}, "schema": {"types", "columns", "fields"}, "header_row": {"hdr_line_idx"}, "skiprows": {"first_data_line_idx"},
		"quoting": {"quote"}, "lineterminator": {"line_end"}, "newline": {"line_end"}, "compression": {"codec"}, "na_values": {"null_text"}, "null_values": {"null_text"},
		// Tables.
		"order_by": {"order"}, "sort": {"order"}, "sort_by": {"order"}, "head": {"top"}, "primary_key": {"indexes"}, "unique_key": {"indexes"},
		"left_on": {"join_on"}, "right_on": {"on"}, "how": {"join_type"}, "aggregate": {"group"}, "udf": {"python_code_urls"}, "python_file": {"python_code_urls"},
		// Serving.
		"tz": {"timezone"}, "time_zone": {"timezone"}, "schedule_interval": {"cron", "schedule"}, "crontab": {"cron"}, "triggers": {"schedule"}, "sensor": {"watch"}, "sensors": {"watch"},
		"webhook": {"url", "notify"}, "cmd": {"command"}, "exec": {"command"}, "alerts": {"notify"}, "notifications": {"notify"}, "sla": {"deadline"}, "steps": {"nodes"}, "tasks": {"nodes"},
		"models": {"nodes"}, "pipeline": {"nodes"}, "imports": {"include"}, "approvers": {"by"}, "reviewers": {"by"}, "interval": {"every"}, "signing_key": {"secret"},
	}
}

// synonym is the key that stands for what a word does in other tools, "" if none does.
func synonym(word string, keys []string) string {
	word = strings.ToLower(word)
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

// meantBy is the key that somebody probably meant; "": none is like it.
func meantBy(e *document.Entry, keys []string) string {
	if meant := typingError(e.Name, keys); meant != "" {
		return meant
	}
	return synonym(e.Name, keys)
}
