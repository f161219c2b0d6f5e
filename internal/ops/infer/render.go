package infer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
)

// SchemaFile is the name of a schema of scripts beside one, for editors.
const SchemaFile = "script.schema.json"

// schemaLine tells editors where the schema is.
const schemaLine = "# yaml-language-server: $schema=" + SchemaFile

// WriteScript writes a script in short form that loads the files and writes them as
// CSV again, with the evidence as comments. With schema, its first line names SchemaFile.
func (p *Proposal) WriteScript(w io.Writer, schema bool) error {
	var b strings.Builder
	if schema {
		b.WriteString(schemaLine + "\n")
	}
	table := tableName(p.URLs[0])
	fmt.Fprintf(&b, "# Proposed for %s, after a look at %s.\n", oneLine(p.names()), allRows(p.Rows))
	for _, n := range p.Notes {
		if p.told != nil {
			n = p.told(n)
		}
		fmt.Fprintf(&b, "# %s.\n", oneLine(p.sentence(n)))
	}
	fmt.Fprintf(&b, "nodes:\n  read_%s:\n    type: file_table\n", table)
	p.writeBadRows(&b)
	urls := p.written()
	list := make([]string, len(urls))
	for i, u := range urls {
		list[i] = plain(address.Redact(u), true)
	}
	fmt.Fprintf(&b, "    r:\n      urls: [%s]\n", strings.Join(list, ", "))
	p.writeCSVKeys(&b)
	p.writeColumns(&b)
	fmt.Fprintf(&b, "    w: %s\n\n  write_%s:\n    type: table_file\n    r: %s\n", table, table, table)
	p.writeOutput(&b, p.outputName(table))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	return nil
}

// writeOutput says what is written. In a CSV file of one column of texts a NULL needs a text, which the
// long form gives it.
func (p *Proposal) writeOutput(b *strings.Builder, name string) {
	columns := p.readable()
	if len(columns) != 1 || columns[0].Type != expr.String || !p.maybeNull(columns[0]) {
		fmt.Fprintf(b, "    w: %s\n", plain(name, false))
		return
	}
	c := plain(columns[0].Name, true)
	fmt.Fprintf(b, "    w:\n      url_template: %s\n      columns:  # a NULL would be an empty line, which readers "+
		"pass over\n", plain(name, false))
	fmt.Fprintf(b, "        - {name: %s, expression: r.%s, type: string, nullable: true, csv: {header: %s, null_text: "+
		"\"NULL\"}}\n", c, columns[0].Name, c)
}

// maybeNull reports a column of texts that the script reads as one that can be NULL.
func (p *Proposal) maybeNull(c Column) bool {
	return p.Parquet || p.Format != "" || c.Nullable || c.NullTexts != nil || c.Optional
}

// sentence begins a note in capitals, if not with the name of a file.
func (p *Proposal) sentence(note string) string {
	for name := range p.texts {
		if strings.HasPrefix(note, name) {
			return note
		}
	}
	return strings.ToUpper(note[:1]) + note[1:]
}

func allRows(n int64) string {
	switch n {
	case 0:
		return "its header: it has no rows"
	case 1:
		return "its only row"
	}
	return "all of its " + rowsText(n)
}

// names are the files' for the first line of a script.
func (p *Proposal) names() string {
	short := make([]string, len(p.URLs))
	for i, u := range p.URLs {
		short[i] = filepath.Base(u)
	}
	return listed(short, 3)
}

// writeBadRows puts rows aside that cannot be read, if there are some.
func (p *Proposal) writeBadRows(b *strings.Builder) {
	if p.BadRows == 0 {
		return
	}
	what, limits := p.badRows()
	fmt.Fprintf(b, "    bad_rows: %s  # %s\n", limits, oneLine(what))
}

// badRows says what cannot be read, and how many such rows a script takes.
func (p *Proposal) badRows() (what, limits string) {
	// At the limit something else is wrong: a file of which no row can be read is never within it.
	const usualMax, usualPercent, most = 1_000, 10, 100_000
	limit := min(int((100*p.BadRows+p.Rows-1)/max(p.Rows, 1)), 99)
	what = fmt.Sprintf("%s of %s cannot be read", grouped(p.BadRows), rowsText(p.Rows))
	if p.firstBad != nil {
		what += ", the first broken record: " + fault.Of(p.firstBad).Error()
	}
	if limit > usualPercent && p.BadRows >= usualPercent {
		what += "; so many mean that the format is another one"
	}
	if p.BadRows <= usualMax/2 && p.BadRows*2*100 <= p.Rows*usualPercent {
		return what, "quarantine"
	}
	return what, fmt.Sprintf("{action: quarantine, max_rows: %d, max_percent: %d}",
		min(max(2*p.BadRows, usualMax), most), max(limit, usualPercent))
}

func (p *Proposal) readable() []Column {
	var out []Column
	for _, c := range p.Columns {
		if c.Type != expr.Invalid {
			out = append(out, c)
		}
	}
	return out
}

func (p *Proposal) writeCSVKeys(b *strings.Builder) {
	if p.Parquet {
		return
	}
	if p.Format != "" {
		p.writeRecordKeys(b)
		return
	}
	var keys []string
	switch {
	case !p.HasHeader:
		keys = append(keys, fmt.Sprintf("hdr_line_idx: -1, first_data_line_idx: %d", p.Above))
	case p.byPosition:
		keys = append(keys, fmt.Sprintf("hdr_line_idx: -1, first_data_line_idx: %d", p.Above+1))
	default:
		keys = append(keys, fmt.Sprintf("hdr_line_idx: %d, first_data_line_idx: %d", p.Above, p.Above+1))
	}
	add := func(name, value string) {
		if value != "" {
			keys = append(keys, name+": "+plain(value, true))
		}
	}
	named := func(name string) bool { return address.Separator(name) != "" } // a script may take that one
	if p.Separator != ',' || slices.ContainsFunc(p.Files, named) {
		add("separator", string(p.Separator))
	}
	add("encoding", p.Encoding)
	add("decimal", p.Decimal)
	add("thousands", p.Thousands)
	add("zone", p.Zone)
	fmt.Fprintf(b, "      csv: {%s}\n", strings.Join(keys, ", "))
}

// writeRecordKeys says what the names of files do not.
func (p *Proposal) writeRecordKeys(b *strings.Builder) {
	named := map[filespec.Format]string{filespec.JSON: "JSON", filespec.Workbooks: "an Excel workbook"}[p.Format]
	if slices.ContainsFunc(p.Files, func(name string) bool { return address.Records(name) != named }) {
		fmt.Fprintf(b, "      format: %s\n", p.Format)
	}
	if p.Encoding != "" {
		fmt.Fprintf(b, "      csv: {encoding: %s}\n", plain(p.Encoding, true))
	}
	switch {
	case p.from.NoHeader && p.from.Range != "":
		fmt.Fprintf(b, "      excel: {header: false, range: %s}\n", p.from.Range)
	case p.from.NoHeader:
		b.WriteString("      excel: {header: false}\n")
	case p.from.Range != "":
		fmt.Fprintf(b, "      excel: {range: %s}\n", p.from.Range)
	}
}

// writeColumns lists the columns, each with what speaks for its type.
func (p *Proposal) writeColumns(b *strings.Builder) {
	b.WriteString("      columns:\n")
	keys, values, width := make([]string, len(p.Columns)), make([]string, len(p.Columns)), 0
	for i, c := range p.Columns {
		keys[i] = plain(c.key, false)
		values[i] = keys[i] + ": " + p.columnText(c)
		if c.Type != expr.Invalid {
			width = max(width, utf8.RuneCountInString(values[i]))
		}
	}
	width = min(width, evidenceColumn)
	for i, c := range p.Columns {
		if c.Type == expr.Invalid {
			fmt.Fprintf(b, "        # %s: %s\n", oneLine(cmp.Or(c.title(), c.Name)), oneLine(c.Evidence))
			continue
		}
		name := ""
		switch {
		case c.label != "" && c.label != c.Name:
			name = "header " + quoted(c.label) + ": "
		case c.key != c.Name:
			name = "r." + c.Name + ": "
		}
		fmt.Fprintf(b, "        %-*s  # %s%s\n", width, values[i], oneLine(name), oneLine(c.Evidence))
	}
}

// lettered reports a column that is found by its letters, and called as the header has it.
func (c *Column) lettered() bool { return c.Source != "" && c.label != "" }

// evidenceColumn is the rightmost column at which comments begin, but behind longer columns.
const evidenceColumn = 60

// columnText is a column's type in short form.
func (p *Proposal) columnText(c Column) string {
	typ := c.Type.String()
	if c.Type == expr.String && c.Nullable {
		typ += "?"
	}
	if c.Format != "" && !(c.Type == expr.Date && c.Format == expr.Date.TimeLayout()) {
		typ += " " + c.Format
	}
	if c.NullTexts == nil && !c.Optional && !c.placed && !c.lettered() {
		return plain(typ, false)
	}
	keys := []string{"type: " + plain(typ, true)}
	if c.placed && c.key != c.Source || c.lettered() {
		keys = append(keys, "path: "+plain(c.Source, true))
	}
	if c.placed {
		keys = append(keys, fmt.Sprintf("col_idx: %d", c.Index))
	}
	if c.NullTexts != nil {
		list := make([]string, len(c.NullTexts))
		for i, t := range c.NullTexts {
			list[i] = yamlText(t)
		}
		keys = append(keys, "null_text: ["+strings.Join(list, ", ")+"]")
	}
	if c.Optional {
		keys = append(keys, "optional: true")
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

// plain writes a text without quotes where YAML takes it as it is.
func plain(s string, flow bool) string {
	usual := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) ||
			strings.ContainsRune(" _-./:?()", r)) ||
			!flow && r == ','
	}
	first := s != "" && s[0] < utf8.RuneSelf && (unicode.IsLetter(rune(s[0])) || s[0] == '_')
	reserved := slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"},
		strings.ToLower(s))
	if !first || reserved || strings.TrimSpace(s) != s || strings.HasSuffix(s, ":") || strings.Contains(s, ": ") ||
		strings.ContainsFunc(s, func(r rune) bool { return !usual(r) }) {
		return yamlText(s)
	}
	return s
}

// tableName makes a name for a table of a file's, or of its folder's if a pattern is
// all of the file's.
func tableName(path string) string {
	const charsMax = 30
	base := filepath.Base(path)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		base = strings.TrimSuffix(base, packed)
	}
	base = strings.Trim(strings.NewReplacer("*", "", "?", "").Replace(strings.TrimSuffix(base, filepath.Ext(base))),
		"_-. ")
	if base == "" {
		base = filepath.Base(filepath.Dir(path))
	}
	name := identifier(base, 0)
	for _, reserved := range []string{"idx", "wf", "system"} {
		if strings.HasPrefix(name, reserved) {
			name = "t_" + name
		}
	}
	return name[:min(len(name), charsMax)]
}

// yamlText quotes a text for YAML; JSON's quoting is part of it.
func yamlText(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""` // a string can always be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// oneLine keeps a comment a comment, and braces in it no references.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\u0085' || r == utf8.RuneError:
			return ' '
		case r == '{':
			return '('
		case r == '}':
			return ')'
		}
		return r
	}, s)
	return s
}

// outputName is the file that a proposed script writes: it is none that is there, and none that the script reads.
func (p *Proposal) outputName(table string) (name string) {
	const triesMax = 1_000
	for _, folder := range []string{"out/", "results/"} {
		for n := range triesMax {
			switch name = folder + table; n {
			case 0:
			case 1:
				name += "_out"
			default:
				name += fmt.Sprintf("_out_%d", n)
			}
			if name += p.outputEnd(); !exists(p.dir, name) &&
				!slices.ContainsFunc(p.URLs, func(u string) bool { return covers(u, name) }) {
				return name
			}
		}
	}
	return name
}

// covers reports whether the pattern of inputs takes in a file.
func covers(pattern, name string) bool {
	pattern, err := address.Local(pattern)
	if err != nil || !strings.ContainsAny(pattern, "*?") {
		return false
	}
	pattern, err = filepath.Abs(pattern)
	if err != nil {
		return false
	}
	name, err = filepath.Abs(name)
	if err != nil {
		return false
	}
	matches, err := filepath.Match(strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(pattern), name)
	return err == nil && matches
}

// outputEnd returns the ending of the file that a proposed script writes: CSV has no lists and structs.
func (p *Proposal) outputEnd() string {
	for _, c := range p.Columns {
		if c.Type.Nested() {
			return ".parquet"
		}
	}
	return ".csv"
}
