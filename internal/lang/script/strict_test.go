package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
)

func TestTypingError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape      *shape
		word, want string // want "": stays a warning
	}{
		{nodeShape, "cheks", "checks"}, {nodeShape, "check", "checks"}, {nodeShape, "Chekcs", "checks"},
		{nodeShape, "bad_row", "bad_rows"}, {nodeShape, "strat_policy", "start_policy"},
		{tableWriterShape, "index", "indexes"}, {tableWriterShape, "fileds", "fields"},
		{writerShape, "havng", "having"},
		{writerShape, "HAVIGN", "having"},
		{writerShape, "ordr", "order"}, {writerShape, "orderby", "order"}, {topShape, "limt", "limit"},
		{columnShape, "nulable", "nullable"}, {lookupShape, "filtr", "filter"},
		{lookupShape, "joint_type", "join_type"}, {csvColumnShape, "colformat", "col_format"},
		{fieldShape, "default", "default_value"}, {rootShape, "node", "nodes"},
		{writerShape, "having2", "having"}, {writerShape, "2having", "having"}, {lookupShape, "filter1", "filter"},
		{writerShape, "having_2", ""},
		{tagShape, "tag_criteria_urls", "tag_criteria_url"}, {checkShape, "notnull", "not_null"},
		{writerShape, "having_tmp", ""}, {writerShape, "_having", ""}, {writerShape, "x-having", ""},
		{writerShape, "order_by", ""},
		{lookupShape, "is_distinct", ""}, {nodeShape, "owner", ""}, {nodeShape, "description", ""},
		{rootShape, "$schema", ""}, {nodeShape, "", ""}, {nodeShape, "x", ""},
		// words of Capillaries where they mean nothing
		{fileReaderShape, "type", ""}, {columnShape, "default_value", ""},
	} {
		require.Equal(t, c.want, typingError(c.word, c.shape.names()), c.word)
	}
}

// TestCapillariesKeys: no key of Capillaries is taken for another one anywhere,
// and each is one that the loader has.
func TestCapillariesKeys(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, s := range []*shape{rootShape, nodeShape, readerShape, lookupShape, writerShape, columnShape, csvReaderShape,
		csvColumnShape, parquetColumnShape, fieldShape,
		pyCalcShape, pyFieldShape, tagShape, topShape, csvWriterShape, parquetWriterShape,
		outputColumnShape, csvOutputShape, parquetOutputShape, policyShape, ruleShape} {
		for _, name := range s.names() {
			known[name] = true
		}
		for _, name := range capillariesKeys() {
			require.Empty(t, typingError(name, s.names()), "%s in %s", name, s.name)
			require.Empty(t, typingError(strings.ToUpper(name), s.names()), "%s in %s", name, s.name)
		}
	}
	for _, name := range capillariesKeys() {
		require.True(t, known[name], name)
	}
}

// TestRowKeysElsewhere: a key that chooses or checks rows is an error where it
// does nothing, each where the language has it somewhere.
func TestRowKeysElsewhere(t *testing.T) {
	t.Parallel()
	const good = "nodes:\n  read:\n    type: file_table\n    NODE\n    r:\n      urls: [in.csv]\n      READER\n" +
		"      columns: {id: {col_type: int, COLUMN csv: {col_hdr: id}}}\n" +
		"    w:\n      name: t\n      WRITER\n      fields: {id: {expression: r.id, type: int, FIELD}}\n"
	for _, c := range []struct{ place, key, hint string }{
		{"WRITER", "filter: r.id > 1", "w.having leaves rows out"},
		{"WRITER", "checks: [unique: id]", "beside r and w"},
		{"WRITER", "Bad_Rows: quarantine", "beside r and w"},
		{"NODE", "having: w.id > 1", "w.having leaves rows out"},
		{"NODE", "filter: r.id > 1", "l.filter chooses"},
		{"NODE", "order: id", "w.order sorts files"},
		{"READER", "having: r.id > 1", "w.having"},
		{"READER", "FILTER: r.id > 1", "w.having"},
		{"READER", "limit: 5", "w.top.limit"},
		{"READER", "top: {limit: 5}", "for files"},
		{"NODE", "indexes: [unique(id)]", "w.indexes"},
		{"FIELD", "checks: [not_null: id]", "beside r and w"},
		{"COLUMN", "filter: r.id > 1,", "w.having"},
	} {
		text := strings.Replace(good, c.place, c.key, 1)
		for _, place := range []string{"NODE", "READER", "WRITER", "COLUMN", ", FIELD"} {
			text = strings.Replace(text, place, "", 1)
		}
		files := memory{"script.yaml": text}
		s, diags := files.load(t)
		require.Nil(t, s, c.key)
		require.Contains(t, diags.Render(), "chooses no rows here", c.key)
		require.Contains(t, diags.Render(), c.hint, c.key)
		files["lenient"] = ""
		s, diags = files.load(t)
		require.NotNil(t, s, "%s: %s", c.key, diags.Render())
		require.Contains(t, diags.Render(), "is ignored", c.key)
	}
}

// TestKeysElsewhere: every key of the language is an error where it means nothing,
// and the message says where it belongs.
func TestKeysElsewhere(t *testing.T) {
	t.Parallel()
	const table = "nodes:\n  read:\n    type: file_table\n    NODE\n    r:\n      urls: [in.csv]\n      READER\n" +
		"      columns: {id: {col_type: int, csv: {col_hdr: id, CSVCOLUMN}, COLUMN}}\n      csv: {RCSV}\n" +
		"    w:\n      name: t\n      WRITER\n      fields: {id: {expression: r.id, type: int, FIELD}}\n" +
		"  write:\n    type: table_file\n    r: t\n    w:\n      url_template: out.csv\n      FILE\n      csv: " +
		"{WCSV}\n      columns: [{expression: r.id, type: int, csv: {header: id, OUTCSV}}]\nROOT\n"
	places := []string{"NODE", "READER", ", CSVCOLUMN", ", COLUMN", "RCSV", "WRITER", ", FIELD", "FILE", "WCSV",
		", OUTCSV", "ROOT"}
	put := func(where, key string) string {
		text := table
		for _, place := range places {
			with := ""
			if place == where {
				with = strings.TrimSuffix(place, strings.TrimPrefix(place, ", ")) + key
			}
			text = strings.ReplaceAll(text, place, with)
		}
		return text
	}
	for _, c := range []struct{ place, key, where string }{
		{"WRITER", "checks: [unique: id]", "beside r and w"},
		{"READER", "bad_rows: quarantine", "beside r and w"},
		{"ROOT", "checks: []", "beside r and w"},
		{"FILE", "line_end: crlf", "to w.csv;"},
		{"FILE", "Quote: all", "to w.csv;"},
		{"READER", "separator: ;", "to r.csv;"},
		{"RCSV", "null_text: NA", "to r.columns.NAME or r.columns.NAME.csv or r.types.NAME;"},
		{", COLUMN", "default_value: 3", "here it is called col_default_value;"},
		{"FILE", "limit: 3", "w.top.limit"},
		{"NODE", "havng: w.id > 1", `did you mean "having"? w.having leaves rows out`},
		{"NODE", "ordr: id", `did you mean "order"? w.order sorts files`},
		{"NODE", "colums: [id]", `did you mean "columns"? it belongs to r or`},
		{"READER", "filtr: r.id > 1", `did you mean "filter"? l.filter chooses`},
		{"READER", "seperator: ;", `did you mean "separator"? it belongs to r.csv;`},
		{"READER", "sep: ;", `did you mean "separator"? it belongs to r.csv;`},
		{"FILE", "delimiter: ;", `did you mean "separator"? it belongs to w.csv;`},
		{"WRITER", "where: w.id > 1", `did you mean "having"?`},
		{"READER", "where: r.id > 1", "w.having leaves rows out"},
		{"NODE", "where: w.id > 1", "w.having leaves rows out"},
		{"FILE", "append: true", "a file is replaced as a whole"},
		{"RCSV", "quotechar: x", "doubled within a value"},
		{"RCSV", "delimeter: ;", `did you mean "separator"?`},
		{"WRITER", "Distinct: true", "distinct_table keeps one row"},
		{"NODE", "on_error: skip", `did you mean "bad_rows"?`},
		{"WRITER", "on_error: skip", `did you mean "bad_rows"? bad_rows is a key of the node`},
		{"READER", "skip: 1", "csv.hdr_line_idx is the record"},
		{"RCSV", "skip_rows: 1", "csv.hdr_line_idx is the record"},
		{"READER", "header: false", "hdr_line_idx: -1"},
		{"RCSV", "header: false", "hdr_line_idx: -1"},
		{", CSVCOLUMN", "header: x", "it is called col_hdr"},
		{"READER", "type: {id: int}", `did you mean "types"?`},
		{"FILE", "url: x.csv", `did you mean "url_template"?`},
		{"FILE", "headers: [a]", "columns: {HEADER: expression}"},
		{"WCSV", "decimal: ','", "numbers are written with a point"},
		{"READER", "hdr_line_idx: 0", "to r.csv;"},
		{", COLUMN", "col_hdr: id", "to r.columns.NAME.csv;"},
		{", CSVCOLUMN", "nullable: true", "to r.columns.NAME;"},
		{"FILE", "header: false", "to w.columns.csv or w.columns.excel;"},
		{"FILE", "codec: gzip", "to w.parquet;"},
		{", FIELD", "having: w.id > 1", "w.having"},
		{"NODE", "join_type: left", "to l;"},
		{"NODE", "urls: [a]", "to r;"},
		{"ROOT", "is_default: true", "to dependency_policies.NAME;"},
		{"NODE", "include: [a]", "the top of the script"},
		{"NODE", "severity: warn", "to checks;"},
		{"WRITER", "start_policy: manual", "beside r and w"},
		{", FIELD", "null_text: x", "to w.columns.csv;"},
	} {
		files := memory{"script.yaml": put(c.place, c.key)}
		s, diags := files.load(t)
		require.Nil(t, s, c.key)
		require.Contains(t, diags.Render(), c.where, c.key)
		require.Contains(t, diags.Render(), "with {{set lenient}}", c.key)
		files["lenient"] = ""
		s, diags = files.load(t)
		require.NotNil(t, s, "%s: %s", c.key, diags.Render())
		require.Contains(t, diags.Render(), "is ignored", c.key)
	}
	for _, key := range []string{"checks: null", "filter: null", "limit:", "havng: null", "desc: read"} {
		s, diags := memory{"script.yaml": put("WRITER", key)}.load(t)
		require.NotNil(t, s, "%s: %s", key, diags.Render())
	}
	notes := "description: x, comment: x, notes: x, note: x, label: x, title: x, author: x, version: 3, groups: [x], " +
		"reference: x, having_tmp: x, _order: x, x-columns: x, sources: x, created_at: x, contact: x"
	for _, place := range []string{"NODE", "READER", "WRITER", ", FIELD", ", COLUMN", "RCSV"} {
		for note := range strings.SplitSeq(notes, ", ") {
			s, diags := memory{"script.yaml": put(place, note)}.load(t)
			require.NotNil(t, s, "%s in %s: %s", note, place, diags.Render())
		}
	}
	var l loader
	for _, key := range []string{"desc", "name", "rowset_size", "description", "owner", "$schema", "having_tmp",
		"is_distinct"} {
		require.Empty(t, l.belongs(key, "nodes.x.w"), key)
	}
}

// TestRestOfValue: what a comma cuts off from a value is one error, whether it is called
// as a key is or not; keys with a colon and without a value are absent.
func TestRestOfValue(t *testing.T) {
	t.Parallel()
	const read = "nodes:\n  read: {type: file_table, r: {urls: [in.csv], columns: {id: int, day: date}}, w: t}\n"
	for w, want := range map[string]string{
		"{url_template: x.csv, order: day, id}":                          `write order: "day, id":`,
		"{url_template: x.csv, order: day(desc), id, mode, limit}":       `write order: "day(desc), id, mode, limit":`,
		"{url_template: x.csv, order: 'day', id}":                        "put it in quotes:",
		"{url_template: x.csv, partition_by: day , id , csv: {}}":        `write partition_by: "day , id":`,
		"{url_template: x.csv, order: day, id: , mode: }":                "",
		"{url_template: x.csv, order: null, json}":                       "",
		"{url_template: x.csv, csv: {}, json}":                           "",
		"{url_template: x.csv,\n    order: day,\n    json:\n      null}": "",
	} {
		files := memory{"script.yaml": read + "  write: {type: table_file, r: t, w: " + w + "}\n"}
		s, diags := files.load(t)
		if want == "" {
			require.NotNil(t, s, "%s: %s", w, diags.Render())
			continue
		}
		require.Len(t, diags.Errors(), 1, "%s: %s", w, diags.Render())
		require.Contains(t, diags.Render(), want, w)
		files["lenient"] = ""
		_, diags = files.load(t)
		require.NotContains(t, diags.Render(), "is cut off", w)
	}
}

// TestKeysOfOtherTypes: a key that chooses rows or columns is an error in the parts
// of a node whose type does not have it there; the others stay warnings.
func TestKeysOfOtherTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reads, writes, node, r, w string
		refused                   bool
	}{
		{w: "top: {order: id}", refused: true},
		{w: "order: id", refused: true},
		{w: "columns: [id]", refused: true},
		{w: "url_template: x.csv", refused: true},
		{w: "csv: {quote: all}"},
		{reads: "types: {}", refused: true},
		{reads: "columns: {id: int}", refused: true},
		{reads: "urls: [x.csv]"},
		{reads: "rowset_size: 5"},
		{writes: "indexes: [unique(id)]", refused: true},
		{writes: "fields: [r.id]", refused: true},
		{writes: "name: x"},
		{writes: "indexes: null"},
		{node: "query: SELECT 1", refused: true},
		{node: "custom_proc_type: py_calc"},
		{node: "p: {x: 1}"},
	} {
		text := "nodes:\n  read:\n    type: file_table\n    r:\n      urls: [in.csv]\n      columns: {id: " +
			"int}\n      " + c.r + "\n" +
			"    w:\n      name: t\n      " + c.w + "\n" +
			"  write:\n    type: table_file\n    " + c.node + "\n    r:\n      table: t\n      " + c.reads + "\n" +
			"    w:\n      url_template: out.csv\n      " + c.writes + "\n"
		files := memory{"script.yaml": text, "in.csv": "id\n"}
		s, diags := files.load(t)
		require.Equal(t, c.refused, s == nil, "%+v: %s", c, diags.Render())
		files["lenient"] = ""
		s, diags = files.load(t)
		require.NotNil(t, s, "%+v: %s", c, diags.Render())
	}
}

// TestEqualKeys: wherever a key occurs twice, it is reported once, with both places.
func TestEqualKeys(t *testing.T) {
	t.Parallel()
	node := "  N: {type: file_table, r: {urls: [in.csv], columns: {id: {col_type: int, csv: {col_hdr: id}}}}, w: " +
		"{name: t, fields: {id: {expression: r.id, type: int}}}}\n"
	good := "nodes:\n" + strings.Replace(node, "N", "read", 1)
	tags := good + "  tag: {type: table_custom_tfm_table, custom_proc_type: tag_and_denormalize, r: {table: t}, p: " +
		"{tag_field_name: tag, tag_criteria_url: tags.json}, w: {name: u, fields: {tag: {expression: p.tag, type: " +
		"string}}}}\n"
	for name, c := range map[string]struct {
		files memory
		want  string
	}{
		"node": {memory{"script.yaml": good + strings.Replace(node, "N", "read", 1)}, "script.yaml:3:3"},
		"json node": {memory{"script.json": `{"nodes": {"a": {}, "a": {"type": "file_table", "r": {"urls": ["x"], ` +
			`"columns": {"i": {"col_type": "int"}}}, "w": {"name": "t", "fields": {"i": {"expression": "r.i", "type": "int"}}}}}}`}, "script.json:1:21"},
		"field": {memory{"script.yaml": strings.Replace(good, "fields: {",
			"fields: {id: {expression: r.id, type: int}, ", 1)}, "script.yaml:2:"},
		"column": {memory{"script.yaml": strings.Replace(good, "columns: {", "columns: {id: {col_type: int}, ", 1)},
			"script.yaml:2:"},
		"case": {memory{"script.yaml": strings.Replace(good, "type: file_table", "type: file_table, Type: file_table",
			1)}, "script.yaml:2:"},
		"parameter": {memory{"script.yaml": strings.Replace(good, "in.csv", "'{f}'", 1),
			"params.yaml": "f: a.csv\nf: b.csv\n"}, "params.yaml:2:1"},
		"tag":    {memory{"script.yaml": tags, "tags.json": `{"a": "r.id > 0", "a": "r.id < 0"}`}, "tags.json:1:19"},
		"unread": {memory{"script.yaml": good + "notes: {by: {x: 1, x: 2}}\n"}, "script.yaml:3:"},
		"alias":  {memory{"script.yaml": "one: &a {x: 1, x: 2}\ntwo: *a\n" + good}, "script.yaml:1:"},
	} {
		s, diags := c.files.load(t)
		require.Nil(t, s, name)
		var found []document.Diagnostic
		for _, d := range diags {
			if strings.Contains(d.Message, "occurs twice") {
				found = append(found, d)
			}
		}
		require.Len(t, found, 1, "%s: %s", name, diags.Render())
		require.True(t, strings.HasPrefix(found[0].Pos.String(), c.want), "%s: %s", name, found[0].Pos)
		require.Len(t, found[0].Related, 1, name)
		c.files["lenient"] = ""
		s, diags = c.files.load(t)
		require.NotNil(t, s, "%s: %s", name, diags.Render())
		require.Contains(t, diags.Render(), "occurs twice: this one counts", name)
	}
}

// Keys of other tools are told from ours in the parts of all types of nodes, and
// each that is proposed is a key somewhere.
func TestSynonyms(t *testing.T) {
	t.Parallel()
	places := keyPlaces()
	for word, all := range synonyms() {
		for _, ours := range all {
			require.NotEmpty(t, places[ours], "%s is proposed for %s", ours, word)
		}
	}
	const input = "  a: {type: file_table, r: {urls: [in.csv], columns: {id: int}}, w: t}\n"
	for node, want := range map[string]string{
		"{type: sql, r: [t], sql: SELECT id FROM t, query: SELECT id FROM t, w: {name: u}}": `unknown key "sql"` + "|" +
			`did you mean "query"`,
		"{type: sql, r: [t], query: SELECT id FROM t, partition_by: id, w: {name: u}}": `unknown key "partition_by"|did you mean "by"`,
		"{type: file_table, inputs: in.csv, r: {urls: [in.csv]}, w: u}":                `unknown key "inputs"|did you mean "r"`,
		"{type: file_table, r: {urls: [in.csv], paths: [in.csv]}, w: u}": `unknown key "paths"|did ` +
			`you mean "urls"`,
		"{type: file_table, r: {urls: [in.csv], csv: {delimiter: ;}}, w: u}": `unknown key "delimiter"|did you mean "separator"`,
		"{type: file_table, r: {urls: [in.csv], files: [in.csv]}, w: u}": `unknown key "files"|did ` +
			`you mean "urls"`,
		"{type: table_file, r: t, w: {url_template: x.csv, path: x.csv, columns: [id]}}": `unknown key "path"|did ` +
			`you mean "url_template"`,
		"{type: table_file, r: t, w: {url_template: x.csv, order_by: id, columns: [id]}}": `unknown key "order_by"|did you mean "order"`,
		"{type: table_table, r: t, tests: [{not_null: id}], w: {name: u, fields: [r.id]}}": `unknown key "tests"|did ` +
			`you mean "checks"`,
		"{type: table_lookup_table, r: t, l: {table: t, on: id, how: left}, w: {name: u}}": `unknown key "how"|did ` +
			`you mean "join_type"`,
		"{type: distinct_table, rerun_policy: fail, r: t, w: {name: u, primary_key: id}}": `unknown key "primary_key"|did you mean "indexes"`,
		"{type: py_table, r: t, p: {function: f, udf: f.py}, w: {name: u}}": `unknown key "udf"|did ` +
			`you mean "python_code_urls"`,
		"{type: table_custom_tfm_table, custom_proc_type: py_calc, r: t, p: {udf: f}, w: u}": `unknown key "udf"|did ` +
			`you mean "python_code_urls"`,
	} {
		text := "nodes:\n" + input + "  b: " + node + "\n"
		_, diags := Load(t.Context(),
			Sources{Path: "script.yaml", Read: memory{"script.yaml": text, "f.py": "def f(id): pass"}.read})
		message, hint, _ := strings.Cut(want, "|")
		require.Contains(t, diags.Render(), "error: "+message, node)
		require.Contains(t, diags.Render(), hint, node)
	}
}
