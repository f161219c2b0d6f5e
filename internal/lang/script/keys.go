package script

import (
	"math"
	"strings"

	"thalweg/internal/lang/expr"
)

// shape is the table of the keys that one kind of map in a script may have.
// The loader accepts exactly these keys, with the words and the ranges of numbers that
// they have here. The JSON Schema is written from them.
type shape struct {
	name string // of the definition in the JSON Schema
	doc  string
	keys []key
}

// key is one key of a shape.
type key struct {
	name string
	form form
	doc  string // for people who write scripts; shown by editors
	need bool   // has to be there
}

// form describes the values of a key. The loader checks more.
type form struct {
	kind      formKind
	words     []string // textForm: the only values; nil: any
	pattern   string   // textForm: of values beside the words
	low, high int      // numberForm
	of        *form    // listForm, namesForm: what is inside
	shape     *shape   // mapForm
	any       []form   // eitherForm
}

type formKind uint8

const (
	textForm   formKind = iota // text, or in YAML anything without quotes
	numberForm                 // whole number
	realForm                   // any number
	boolForm
	listForm
	namesForm // map of free names
	mapForm   // map with the keys of a shape
	eitherForm
)

func text(words ...string) form { return form{kind: textForm, words: words} }
func whole(low, high int) form  { return form{kind: numberForm, low: low, high: high} }
func number() form              { return form{kind: realForm} }
func boolean() form             { return form{kind: boolForm} }
func listOf(f form) form        { return form{kind: listForm, of: &f} }
func namesOf(f form) form       { return form{kind: namesForm, of: &f} }
func keysOf(s *shape) form      { return form{kind: mapForm, shape: s} }
func either(forms ...form) form { return form{kind: eitherForm, any: forms} }

// index finds a key whatever its case; -1 if there is none.
func (s *shape) index(name string) int {
	for i := range s.keys {
		if s.keys[i].name == name {
			return i
		}
	}
	for i := range s.keys {
		if strings.EqualFold(s.keys[i].name, name) {
			return i
		}
	}
	return -1
}

// names lists the keys in the order of the table.
func (s *shape) names() []string {
	out := make([]string, len(s.keys))
	for i, k := range s.keys {
		out[i] = k.name
	}
	return out
}

// both is a shape with the keys of two: of a map whose meaning depends on the
// node's type. Of equal keys the first one's counts.
func both(a, b *shape) *shape {
	out := &shape{name: a.name, doc: a.doc, keys: append([]key{}, a.keys...)}
	for _, k := range b.keys {
		if out.index(k.name) < 0 {
			out.keys = append(out.keys, k)
		}
	}
	return out
}

// optional are keys of a map whose meaning depends on the node's type: which of
// them are needed does too.
func optional(keys []key) []key {
	out := append([]key{}, keys...)
	for i := range out {
		out[i].need = false
	}
	return out
}

// typeForm is the name of a type.
func typeForm() form {
	f := text(typeWords()...)
	f.pattern = `^(decimal\s*\(\s*[0-9]+\s*(,\s*[0-9]+\s*)?|(list|struct)\s*\(.*)\)$`
	return f
}

// typeNames are the names of types for messages, with one that has parameters.
func typeNames() []string { return append(typeWords(), expr.DecimalOf(18, 4).String()) }

func typeWords() []string {
	var names []string
	for _, t := range expr.ColumnTypes() {
		names = append(names, t.String())
	}
	return names
}

// nodeForm says what the parts of one type of node are.
type nodeForm struct {
	of    NodeType
	parts map[string]form
	need  []string
}

func nodeForms() []nodeForm {
	files := either(text(), keysOf(fileReaderShape))
	table := either(text(), keysOf(tableReaderShape))
	tables := either(text(), listOf(text()), keysOf(tableReaderShape), keysOf(tablesReaderShape))
	query := either(text(), listOf(text()), keysOf(queryReaderShape))
	writes := either(text(), keysOf(filteredTableShape))
	plain := either(text(), keysOf(tableWriterShape))
	return []nodeForm{
		{FileTable, map[string]form{"r": files, "w": writes}, []string{"r", "w"}},
		{TableTable, map[string]form{"r": table, "w": writes}, []string{"r", "w"}},
		{LookupTable, map[string]form{"r": tables, "l": keysOf(lookupShape), "w": writes}, []string{"r", "l", "w"}},
		{Distinct, map[string]form{"r": table, "w": plain, "rerun_policy": text(PolicyFail)},
			[]string{"r", "w", "rerun_policy"}},
		{CustomTable, map[string]form{"r": table, "p": either(keysOf(pyCalcShape), keysOf(tagShape)), "w": writes},
			[]string{"r", "p", "w", "custom_proc_type"}},
		{PyTableNode, map[string]form{"r": tables, "p": keysOf(pyTableShape), "w": writes}, []string{"r", "p", "w"}},
		{SQLTable, map[string]form{"r": query, "w": plain}, []string{"w"}},
		{TableFile, map[string]form{"r": table, "w": either(text(), keysOf(filteredFileShape))}, []string{"r", "w"}},
	}
}

// The shapes. They are never changed.
var (
	rootShape = &shape{name: "script", doc: "A Thalweg script.", keys: []key{
		{name: "name", form: text(),
			doc: "What the script is known by: runs read the tables of earlier runs of the same name only. Without " +
				"it a script is known by its path."},
		{name: "include", form: listOf(text()),
			doc: "Scripts whose nodes, dependency policies and environment values are part of this one; relative " +
				"to this file."},
		{name: "environment", form: namesOf(keysOf(environmentShape)),
			doc: "Environment variables that the script refers to as {env.NAME}."},
		{name: "python", form: keysOf(requirementsShape),
			doc: "What the Python code needs of each machine that runs it."},
		{name: "nodes", form: namesOf(keysOf(nodeShape)), doc: "Map of names to nodes: the steps of the script."},
		{name: "notify", form: either(keysOf(hookShape), listOf(keysOf(hookShape))),
			doc: "Who is told what happens to runs: webhooks and commands."},
		{name: "deadline", form: text(),
			doc: "When a run is to be over: 2h, 06:30 Europe/Berlin, or a moment. If it is not, those who are told " +
				"of late runs hear of it."},
		{name: "schedule", form: either(text(), keysOf(scheduleShape), listOf(either(text(), keysOf(scheduleShape)))),
			doc: "When the scheduler begins runs: cron expressions."},
		{name: "watch", form: either(text(), keysOf(watchShape), listOf(either(text(), keysOf(watchShape)))),
			doc: "Files for each of which the scheduler begins a run."},
		{name: "dependency_policies", form: namesOf(keysOf(policyShape)),
			doc: "Map of names to dependency policies: which run's table a node reads."},
	}}

	environmentShape = &shape{name: "environment_value",
		doc: "An environment variable that the script refers to as {env.NAME}.", keys: []key{
			{name: "secret", form: boolean(),
				doc: "The value is never stored or shown; it can be used in addresses of http://, https:// and " +
					"databases only."},
			{name: "default", form: text(), doc: "Value if the variable is not set; without it that is an error."},
		}}

	policyShape = &shape{name: "dependency_policy", doc: "Decides which run's table a node reads.", keys: []key{
		{name: "is_default", form: boolean(), doc: "True for exactly one policy: that of nodes that name none."},
		{name: "event_priority_order", form: text(),
			doc: "Order in which runs are looked at; default: run_is_current(desc), run_id(desc)."},
		{name: "rules", form: listOf(keysOf(ruleShape)), doc: "The first rule whose condition holds decides."},
	}}

	ruleShape = &shape{name: "dependency_rule", keys: []key{
		{name: "cmd", form: text("go", "wait", "nogo"), need: true,
			doc: "go: read this run's table; wait; nogo: fail."},
		{name: "expression", form: text(), need: true,
			doc: "Condition over nrs.run_id, nrs.run_is_current, nrs.run_status, nrs.node_status."},
	}}

	nodeShape = &shape{name: "node", doc: "One step: reads files or tables, writes a table or files.", keys: []key{
		{name: "type", form: text(nodeTypes()...), need: true, doc: "What the node does."},
		{name: "desc", form: text(), doc: "Description for people."},
		{name: "tags", form: either(text(), listOf(text())),
			doc: "Words by which a run names nodes; they change nothing of what a node does."},
		{name: "start_policy", form: text(PolicyAuto, PolicyManual),
			doc: "manual: the node runs only if it is named when a run starts."},
		{name: "rerun_policy", form: text(PolicyRerun, PolicyFail),
			doc: "Accepted without effect. A distinct_table must say fail."},
		{name: "custom_proc_type", form: text(ProcPyCalc, ProcTag), doc: "The processor of a table_custom_tfm_table."},
		{name: "handler_exe_type", form: text(), doc: "Accepted without effect."},
		{name: "max_batch_processing_time", form: whole(math.MinInt, math.MaxInt),
			doc: "Milliseconds; accepted without effect."},
		{name: "dependency_policy", form: text(), doc: "Name of a dependency policy; default: the default one."},
		{name: "bad_rows", form: either(text(BadFail, BadQuarantine), keysOf(badRowsShape)),
			doc: "What becomes of rows that cannot be read or computed; default: the first one fails the node."},
		{name: "query", form: text(), doc: "One SELECT of a sql node."},
		{name: "query_url", form: text(), doc: "File with the SELECT of a sql node, instead of query."},
		{name: "ordered", form: boolean(), doc: "false: the rows of a sql node come in any order; default true."},
		{name: "by", form: either(text(), listOf(text())),
			doc: "Fields that all tables of a sql node have: the query is run for the rows of some of their " +
				"values at a time."},
		{name: "r", form: either(text(), listOf(text()), keysOf(readerShape)), doc: "What is read: files or tables."},
		{name: "l", form: keysOf(lookupShape), doc: "Lookup of a table_lookup_table."},
		{name: "p", form: either(keysOf(pyCalcShape), keysOf(tagShape), keysOf(pyTableShape)),
			doc: "Processor of a table_custom_tfm_table or a py_table."},
		{name: "w", form: either(text(), keysOf(writerShape)), need: true, doc: "What is written: a table or files."},
		{name: "checks", form: listOf(keysOf(checkShape)), doc: "Rules that the rows which are written must keep."},
		{name: "ephemeral", form: boolean(),
			doc: "true: the table is not stored, but computed inside the one node that reads it."},
		{name: "approval", form: keysOf(approvalShape),
			doc: "The run waits in front of this node until somebody has approved."},
		{name: "reuse", form: either(boolean(), listOf(text())),
			doc: "Whether a run may take the node over from an earlier one of the same inputs, code and parameters. " +
				"false: each run computes it; true: its Python code gives the same each time, whatever it calls; a " +
				"list: likewise, as long as these files, which it reads, are the same; default: unless its Python " +
				"code has a clock, chance or files in it."},
	}}

	approvalShape = &shape{name: "approval", doc: "A gate: the run waits there until somebody has decided.",
		keys: []key{
			{name: "by", form: either(text(), listOf(text())), doc: "Roles that may decide; default: anybody."},
			{name: "verified", form: boolean(),
				doc: "Only whoever has signed in to a server (serve) may decide, in a role that was given to them there."},
			{name: "four_eyes", form: boolean(), doc: "Who began the run may not decide."},
			{name: "message", form: text(), doc: "What is to be decided, for people."},
			{name: "show", form: either(text(), listOf(text())),
				doc: "Tables that are shown; default: those that the node reads, or the table itself."},
			{name: "timeout", form: text(),
				doc: "How long it waits before it is rejected: 3d, 36h, 90m; default: for ever."},
			{name: "answers", form: namesOf(keysOf(answerShape)),
				doc: "Values that are asked for: parameters of the nodes behind the gate."},
		}}

	answerShape = &shape{name: "answer",
		doc: "A value that whoever approves may give: nodes behind the gate refer to it as a parameter.", keys: []key{
			{name: "type", form: typeForm(), need: true, doc: "Type of the value."},
			{name: "default", form: valueForms, need: true,
				doc: "The value until somebody decides, and if who decides gives no other."},
			{name: "message", form: text(), doc: "What is asked, for people."},
			{name: "min", form: valueForms, doc: "Least value that is allowed."},
			{name: "max", form: valueForms, doc: "Greatest value that is allowed."},
			{name: "one_of", form: listOf(valueForms), doc: "The only values that are allowed."},
		}}

	badRowsShape = &shape{name: "bad_rows", doc: "Rows that cannot be read or computed are put aside, within caps.",
		keys: []key{
			{name: "action", form: text(BadFail, BadQuarantine, BadNull), need: true,
				doc: "quarantine: into the table NAME__bad; null (py_calc): calculated fields are NULL or zero; fail."},
			{name: "max_rows", form: whole(0, BadRowsMax),
				doc: "Most bad rows of the node, over all batches; default 1000."},
			{name: "max_percent", form: number(), doc: "Most bad rows of 100 that the node reads; default 10."},
		}}

	fileReaderShape = &shape{name: "file_reader", doc: "Input files: what r.* is.", keys: []key{
		{name: "urls", form: listOf(text()), need: true, doc: "The input files."},
		{name: "csv", form: keysOf(csvReaderShape), doc: "How CSV is read."},
		{name: "format", form: text(formatCSV, formatParquet, formatJSON, formatExcel),
			doc: "What the files are, where their names and columns do not say it."},
		{name: "excel", form: keysOf(excelReaderShape), doc: "Which cells of Excel workbooks are read."},
		{name: "file_name", form: text(),
			doc: "Name of a column of the files' names, as the script has them. Parts of names are columns, too: " +
				"dir/<region>/<day datetime 2006-01-02>.csv in urls."},
		{name: "columns", form: namesOf(either(text(), keysOf(shortColumnShape), keysOf(columnShape))),
			doc: "Map of names to columns: expressions call them r.<name>. Short: header: type, with a Go time " +
				"layout behind datetime, and = value behind it all for what is NULL. Without that the column may be " +
				"NULL; strings of CSV files only with ? behind the type."},
		{name: "table", form: text(),
			doc: "Table of the databases that urls names, which is read; may have a schema before a point."},
		{name: "query", form: text(), doc: "Instead of table: a SELECT that the databases of urls execute."},
		{name: "types", form: namesOf(either(text(), keysOf(shortColumnShape))),
			doc: "Instead of columns: takes them from the first file. Types of columns by header; others are " +
				"strings, in Parquet files what they are."},
		{name: "round", form: either(boolean(), listOf(text())),
			doc: "Digits that the type of a column does not keep are rounded off: true, or the columns. Without it " +
				"they are an error, but for decimal2 and datetime columns in the long form."},
	}}

	csvReaderShape = &shape{name: "csv_reader", keys: []key{
		{name: "hdr_line_idx", form: whole(math.MinInt, math.MaxInt32),
			doc: "Record with the header, from 0 (default); -1: none."},
		{name: "first_data_line_idx", form: whole(math.MinInt, math.MaxInt32),
			doc: "Records before it are skipped; default 0."},
		{name: "separator", form: text(), doc: "One ASCII character; default: a comma."},
		{name: "decimal", form: text(".", ","), doc: "What is before the decimal digits of numbers; default: a point."},
		{name: "zone", form: text(),
			doc: "Time zone of the texts of timestamptz columns whose layout has none, e.g. Europe/Berlin."},
		{name: "thousands", form: text(),
			doc: "What may stand between groups of three digits of numbers: a comma, a point, an apostrophe or a " +
				"space; default: nothing."},
		{name: "encoding", form: text(),
			doc: "Of the text: utf-8 (default), latin-1, windows-1252, utf-16 and others."},
	}}

	excelReaderShape = &shape{name: "excel_reader", keys: []key{
		{name: "sheet", form: either(text(), whole(1, math.MaxInt32)),
			doc: "Name of the sheet, or its number from 1; default: the first."},
		{name: "range", form: text(),
			doc: "The cells with the header and the rows: B3:F100, B3:F, B:F, or B3 for all from there on; " +
				"default: all."},
		{name: "header", form: boolean(),
			doc: "Whether the first row with a value has the columns' names (default); else they are called A, B, …"},
	}}

	columnShape = &shape{name: "input_column", doc: "A column of input files.", keys: []key{
		{name: "col_type", form: typeForm(), need: true, doc: "Type of the values."},
		{name: "col_default_value", form: text(), doc: "CSV: value of an empty cell; default: the type's zero value."},
		{name: "nullable", form: boolean(), doc: "An empty cell of a CSV file and a null of a Parquet file are NULL."},
		{name: "optional", form: boolean(),
			doc: "A file may be without the column: it is as if its cells were empty there."},
		{name: "path", form: text(),
			doc: "JSON: to the value in a record: key, key.key, list[0].key. Excel: its header, or without one " +
				"its letters."},
		{name: "round", form: boolean(),
			doc: "Digits that the type does not keep are rounded off; otherwise they are an error, but for decimal2 " +
				"and datetime in the long form."},
		{name: "file", form: text(),
			doc: "The column is taken from the files' names: name, or <PART> as it is in urls."},
		{name: "csv", form: keysOf(csvColumnShape), doc: "Where and how the column is in CSV files."},
		{name: "parquet", form: keysOf(parquetColumnShape), doc: "Where the column is in Parquet files."},
	}}

	shortColumnShape = &shape{name: "short_column", doc: "A column in short form, with more than its type.",
		keys: []key{
			{name: "type", form: text(), need: true,
				doc: "What the short form says as text: int, string?, datetime 2006-01-02, int = 0."},
			{name: "optional", form: boolean(),
				doc: "A file, or a record of JSON, may be without the column: it is NULL there, or what = says."},
			{name: "path", form: text(),
				doc: "JSON and Parquet: to the value: key, key.key, list[0].key. CSV and Excel: its header. Default: " +
					"the column's name."},
			{name: "col_idx", form: whole(0, math.MaxInt32),
				doc: "CSV: which of several columns with this header, or with none (path: \"\"): the one with this " +
					"index, from 0. Files without a header: the index."},
			{name: "null_text", form: either(text(), listOf(text())),
				doc: "CSV: text or texts that mean NULL; default: the empty cell without quotes."},
			{name: "round", form: boolean(),
				doc: "Digits that the type does not keep are rounded off; otherwise they are an error."},
		}}

	csvColumnShape = &shape{name: "csv_input_column", keys: []key{
		{name: "col_idx", form: whole(0, math.MaxInt32), doc: "Index of the column, from 0."},
		{name: "col_hdr", form: text(), doc: "Text of the column's header, exactly."},
		{name: "col_format", form: text(),
			doc: "fmt.Sscanf verb for numbers, Go time layout for datetime (required there)."},
		{name: "null_text", form: either(text(), listOf(text())),
			doc: "Nullable columns: text or texts that mean NULL; default: the empty cell without quotes."},
		{name: "quoted_empty", form: text("value", "null"),
			doc: "Nullable columns: whether \"\", or a null_text, in quotes is a text (default) or NULL."},
	}}

	parquetColumnShape = &shape{name: "parquet_input_column", keys: []key{
		{name: "col_name", form: text(),
			doc: "Name of the column in the file, or a path to a value within: address.city, items[0].sku."},
		{name: "default_value", form: text(),
			doc: "Value of a null, if the column is not nullable; default: the type's zero value."},
	}}

	tableReaderShape = &shape{name: "table_reader", doc: "A table: what r.* is.", keys: []key{
		{name: "table", form: text(), need: true, doc: "A table that a node creates."},
		{name: "expected_batches_total", form: whole(0, MaxBatchesCount),
			doc: "So many files if the output's name has {batch_idx}; otherwise without effect."},
		{name: "rowset_size", form: whole(0, MaxRowsetRows), doc: "Accepted: the engine chooses."},
	}}

	tablesReaderShape = &shape{name: "tables_reader",
		doc: "Tables with the same fields, one behind the other: what r.* is.", keys: []key{
			{name: "tables", form: listOf(text()), need: true, doc: "Tables, in the order in which their rows come."},
		}}

	queryReaderShape = &shape{name: "query_reader", doc: "The tables that a query reads.", keys: []key{
		{name: "tables", form: either(listOf(text()), namesOf(text())),
			doc: "Tables, or a map of the names that they have in the query to tables."},
	}}

	readerShape = &shape{name: "reader", doc: "What the node reads.",
		keys: optional(both(both(fileReaderShape, tableReaderShape), queryReaderShape).keys)}

	lookupShape = &shape{name: "lookup", doc: "A second table that rows are joined with: what l.* is.", keys: []key{
		{name: "index_name", form: text(), doc: "Index of the table to look up."},
		{name: "join_on", form: text(), doc: "Fields of r that match the index's, in its order: r.a, r.b."},
		{name: "table", form: text(), doc: "Instead of index_name: the table to look up."},
		{name: "on", form: text(),
			doc: "With table, instead of join_on: fields of r and l that are equal: id = order_id, day = day; one " +
				"name if they are called the same."},
		{name: "group", form: boolean(), doc: "One row for each row of r, with aggregates over its matches."},
		{name: "filter", form: text(), doc: "Condition over l.*."},
		{name: "join_type", form: text("inner", "left"), need: true,
			doc: "inner: rows without a match are dropped; left: they are kept."},
		{name: "nulls", form: text("never_match", "match"),
			doc: "Whether a key that is NULL matches another one; default: never_match."},
		{name: "idx_read_batch_size", form: whole(math.MinInt, MaxLookupReadRows),
			doc: "Accepted: the engine chooses."},
		{name: "right_lookup_read_batch_size", form: whole(math.MinInt, MaxLookupReadRows),
			doc: "Accepted: the engine chooses."},
	}}

	pyCalcShape = &shape{name: "py_calc", doc: "Calculates fields p.* in Python.", keys: []key{
		{name: "python_code_urls", form: listOf(text()), need: true,
			doc: "Python files, beside the script or in the working directory."},
		{name: "calculated_fields", form: namesOf(keysOf(pyFieldShape)), need: true,
			doc: "Map of names to calculated fields: p.<name>."},
	}}

	pyFieldShape = &shape{name: "calculated_field", keys: []key{
		{name: "expression", form: text(), need: true, doc: "Python expression over r.* and p.*."},
		{name: "type", form: typeForm(), need: true, doc: "Type of the result."},
		{name: "default_value", form: text(), doc: "Accepted without effect."},
		{name: "nullable", form: boolean(), doc: "None is NULL; otherwise None is an error."},
	}}

	pyTableShape = &shape{name: "py_table",
		doc: "A Python function over the columns of many rows, which returns columns p.*.", keys: []key{
			{name: "python_code_urls", form: listOf(text()), need: true,
				doc: "Python files, beside the script or in the working directory."},
			{name: "function", form: text(), need: true,
				doc: "Name of the function; its first parameter gets the rows."},
			{name: "arguments", form: namesOf(either(text(), whole(math.MinInt, math.MaxInt), boolean(),
				listOf(text()))),
				doc: "Constants that every call is given by name."},
			{name: "group_by", form: text(),
				doc: "Fields of r whose equal values make a group, a, b: each group is one call."},
			{name: "batch", form: text(batchRows, batchTable),
				doc: "Without group_by: rows (default): each call gets some rows; table: one call gets all."},
			{name: "input", form: text(pyTableInputs()...),
				doc: "Form of the rows: dict of lists (default), dict of numpy arrays, DataFrame, or pyarrow.Table."},
			{name: "columns", form: listOf(text()), doc: "Fields of r that the function gets; default: all."},
			{name: "returns", form: namesOf(either(typeForm(), keysOf(pyReturnShape))), need: true,
				doc: "Map of the names of returned columns to their types: p.<name>."},
		}}

	pyReturnShape = &shape{name: "returned_column", keys: []key{
		{name: "type", form: typeForm(), need: true, doc: "Type of the column."},
		{name: "nullable", form: boolean(), doc: "None is NULL; otherwise None is an error."},
		{name: "round", form: boolean(),
			doc: "Digits that the type does not keep are rounded off; otherwise they are an error."},
	}}

	tagShape = &shape{name: "tag_and_denormalize", doc: "Emits a row for each tag whose condition holds.", keys: []key{
		{name: "tag_field_name", form: text(), need: true, doc: "The tag is p.<tag_field_name>, a string."},
		{name: "tag_criteria", form: namesOf(text()), doc: "Map of tags to conditions over r.*."},
		{name: "tag_criteria_url", form: text(), doc: "JSON or YAML file with that map."},
	}}

	tableWriterShape = &shape{name: "table_writer", doc: "The table that the node creates.", keys: []key{
		{name: "name", form: text(), need: true, doc: "Name of the table."},
		{name: "table_options", form: text(), doc: "Accepted without effect."},
		{name: "approval", form: keysOf(approvalShape),
			doc: "All nodes that read the table wait until somebody has approved."},
		{name: "fields", form: either(namesOf(either(text(), keysOf(fieldShape), keysOf(queryFieldShape))),
			listOf(either(text(), namesOf(text())))),
			doc: "Map of names to fields. Short: name: expression; or a list of r.name, r.*, {name: expression}; " +
				"left out: all fields of r, then of l or p."},
		{name: "indexes", form: either(namesOf(text()), listOf(text())),
			doc: "Map of names to unique(order) or non_unique(order); or a list of such, or of orders."},
	}}

	fieldShape = &shape{name: "field", doc: "A field of a table.", keys: []key{
		{name: "expression", form: text(), need: true,
			doc: "Value of the field, over r.*, and l.* in a lookup, p.* behind a processor."},
		{name: "type", form: typeForm(), need: true, doc: "Type of the expression, exactly."},
		{name: "default_value", form: text(),
			doc: "Left lookups: value where no row matched; default: the type's zero value."},
		{name: "nullable", form: boolean(), doc: "The field may be NULL."},
	}}

	queryFieldShape = &shape{name: "query_field", doc: "A field that a query gives.", keys: []key{
		{name: "type", form: typeForm(), need: true, doc: "Type that holds the query's column without loss."},
		{name: "nullable", form: boolean(), doc: "The column may be NULL; otherwise NULL is an error."},
	}}

	fileWriterShape = &shape{name: "file_writer", doc: "The files that the node writes.", keys: []key{
		{name: "url_template", form: text(), need: true,
			doc: "The file's address; with {batch_idx} each batch writes a file of its own."},
		{name: "table", form: text(),
			doc: "Table of the database that url_template names, which is written; may have a schema before a point."},
		{name: "mode", form: text(tableModes...),
			doc: "Of a table of a database: whether the rows that it has are replaced, stay (append), or take the " +
				"values of those with their key (merge)."},
		{name: "key", form: either(text(), listOf(text())),
			doc: "With mode: merge, and in Redis: the columns that say which row is which."},
		{name: "top", form: keysOf(topShape), doc: "The first rows of an order."},
		{name: "order", form: text(),
			doc: "Order of the rows, over the names of columns, of all of them; instead of top."},
		{name: "csv", form: keysOf(csvWriterShape), doc: "How CSV is written."},
		{name: "parquet", form: keysOf(parquetWriterShape), doc: "How Parquet is written."},
		{name: "json", form: keysOf(jsonWriterShape), doc: "How lines of JSON are written."},
		{name: "excel", form: keysOf(excelWriterShape), doc: "How an Excel file is written."},
		{name: "index", form: keysOf(indexWriterShape),
			doc: "How an index is written: a file .twx that clients of Redis read by key."},
		{name: "format", form: text(formWords()...),
			doc: "What the file is, with columns in short form; default: what the end of its name says, else csv."},
		{name: "partition_by", form: either(text(), listOf(text())),
			doc: "Columns whose values name directories, as in Hive: url_template is a directory, with " +
				"region=eu/part-00000.parquet in it, and is replaced as a whole."},
		{name: "target_size", form: text(),
			doc: "How large files are to be about, such as 256MB: url_template is a directory, with " +
				"part-00000.parquet and so on in it, and is replaced as a whole."},
		{name: "manifest", form: boolean(),
			doc: "true: a file beside the output, url_template with .manifest.json behind it, says which files there " +
				"are, with rows, bytes, digests, columns and run. It appears when all of them are there."},
		{name: "columns", form: either(listOf(either(text(), keysOf(outputColumnShape), namesOf(text()))),
			namesOf(text())),
			doc: "The file's columns, in their order. Short: a list of names, r.*, {header: expression}, or a map of " +
				"headers to expressions; left out: all fields of r."},
	}}

	havingShape = &shape{keys: []key{{name: "having", form: text(),
		doc: "Condition over w.*: rows for which it is false are left out."}}}

	writerShape = &shape{name: "writer", doc: "What the node writes.",
		keys: optional(both(both(tableWriterShape, fileWriterShape), havingShape).keys)}
	filteredTableShape = &shape{name: "filtered_table_writer", doc: tableWriterShape.doc,
		keys: both(tableWriterShape, havingShape).keys}
	filteredFileShape = both(fileWriterShape, havingShape)

	topShape = &shape{name: "top", keys: []key{
		{name: "order", form: text(), doc: "Order of the rows, over the names of columns."},
		{name: "limit", form: whole(math.MinInt, MaxTopLimitRows), doc: "Most rows, with order; default 5,000,000."},
	}}

	csvWriterShape = &shape{name: "csv_writer", keys: []key{
		{name: "separator", form: text(), doc: "Between columns; default: a comma."},
		{name: "line_end", form: text("lf", "crlf"), doc: "What ends each line; default lf."},
		{name: "zone", form: text(),
			doc: "Time zone in which timestamptz columns are printed, e.g. Europe/Berlin; default: UTC."},
		{name: "quote", form: text(QuoteMinimal, QuoteAll, QuoteNone),
			doc: "Which values are put in quotes: those that need it (default), all but NULLs, or none, where one " +
				"that needs it is an error."},
		{name: "compression", form: text(compressions...),
			doc: "Of the file; default: what the end of its name says, .gz or .zst, else none."},
		{name: "level", form: whole(1, levelMax),
			doc: "Of the compression: 1 (fast) to 9 (small) of gzip, default 6; to 22 of zstd, default 3."},
	}}

	parquetWriterShape = &shape{name: "parquet_writer", keys: []key{
		{name: "codec", form: text(parquetCodecs...),
			doc: "Compression; default zstd of columns in short form, else gzip."},
		{name: "level", form: whole(1, levelMax), doc: "Of codec zstd, from 1 (fast) to 22 (small); default 3."},
	}}

	outputColumnShape = &shape{name: "output_column", doc: "A column of an output file.", keys: []key{
		{name: "name", form: text(), doc: "Name by which having, order and top refer to the column."},
		{name: "expression", form: text(), need: true, doc: "Value of the column, over r.*."},
		{name: "type", form: typeForm(), need: true, doc: "Type of the expression, exactly."},
		{name: "nullable", form: boolean(), doc: "The column may be NULL."},
		{name: "csv", form: keysOf(csvOutputShape), doc: "The column in a CSV file."},
		{name: "parquet", form: keysOf(parquetOutputShape), doc: "The column in a Parquet file."},
		{name: "json", form: keysOf(jsonOutputShape), doc: "The column in lines of JSON."},
		{name: "excel", form: keysOf(excelOutputShape), doc: "The column in an Excel file."},
		{name: "index", form: keysOf(indexOutputShape), doc: "The column in an index."},
	}}

	csvOutputShape = &shape{name: "csv_output_column", keys: []key{
		{name: "header", form: text(), doc: "Text of the header."},
		{name: "format", form: text(), doc: "fmt.Sprintf verb, or a Go time layout for datetime."},
		{name: "null_text", form: text(), doc: "Nullable columns: what stands for NULL; default: the empty cell."},
	}}

	jsonWriterShape = &shape{name: "json_writer", keys: []key{
		{name: "compression", form: text(compressions...),
			doc: "Of the file; default: what the end of its name says, .gz or .zst, else none."},
		{name: "level", form: whole(1, levelMax),
			doc: "Of the compression: 1 (fast) to 9 (small) of gzip, default 6; to 22 of zstd, default 3."},
	}}

	excelWriterShape = &shape{name: "excel_writer", keys: []key{
		{name: "sheet", form: text(), doc: "Name of the sheet; default Sheet1."},
	}}

	indexWriterShape = &shape{name: "index_writer", keys: []key{
		{name: "key", form: either(text(), listOf(text())), need: true,
			doc: "The columns that a row is found by: they are never NULL, and no two rows have the same. Of several " +
				"the texts have a colon between them."},
	}}

	jsonOutputShape = &shape{name: "json_output_column", keys: []key{
		{name: "key", form: text(), doc: "Key of the value in each line."},
	}}

	excelOutputShape = &shape{name: "excel_output_column", keys: []key{
		{name: "header", form: text(), doc: "Text of the header."},
	}}

	indexOutputShape = &shape{name: "index_output_column", keys: []key{
		{name: "field", form: text(), doc: "Name of the value in each row."},
		{name: "format", form: text(), doc: "As csv.format."},
	}}

	parquetOutputShape = &shape{name: "parquet_output_column", keys: []key{
		{name: "column_name", form: text(), doc: "Name of the column in the file."},
	}}
)
