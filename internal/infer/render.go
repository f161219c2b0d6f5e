package infer

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"thalweg/internal/address"
	"thalweg/internal/expr"
)

// outputLayout is how datetimes are written: with what they have behind the
// second, as columns in short form are.
const outputLayout = "2006-01-02 15:04:05.999"

// WriteScript writes a script that loads the file and writes it as CSV again,
// with the evidence as comments.
func (p Proposal) WriteScript(w io.Writer) error {
	var b strings.Builder
	table := tableName(p.Path)
	fmt.Fprintf(&b, "# Proposed for %s, of which all %s were read.\n", oneLine(filepath.Base(p.Path)), counted(p.Rows, "row"))
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "# %s%s.\n", strings.ToUpper(n[:1]), n[1:])
	}
	fmt.Fprintf(&b, "nodes:\n  read_%s:\n    type: file_table\n    r:\n      urls: [%s]\n", table, text(address.Redact(p.Path)))
	p.writeCSVKeys(&b)
	b.WriteString("      columns:\n")
	width, kinds := p.widths()
	for _, c := range p.Columns {
		if c.Type == expr.Invalid {
			fmt.Fprintf(&b, "        # %s: %s\n", c.Name, oneLine(c.Evidence))
			continue
		}
		line := fmt.Sprintf("        %-*s {col_type: %-*s %s}", width+1, c.Name+":", kinds+1, c.Type.String()+",", p.columnKeys(c))
		fmt.Fprintf(&b, "%s  # %s\n", line, oneLine(c.Evidence))
	}
	fmt.Fprintf(&b, "    w:\n      name: %s\n      fields:\n", table)
	for _, c := range p.readable() {
		nullable := ""
		if c.Nullable {
			nullable = ", nullable: true"
		}
		fmt.Fprintf(&b, "        %-*s {expression: r.%-*s type: %s%s}\n", width+1, c.Name+":", width+1, c.Name+",", c.Type, nullable)
	}
	fmt.Fprintf(&b, "\n  write_%s:\n    type: table_file\n    r: {table: %s}\n    w:\n      url_template: %s\n      columns:\n", table, table, text("out/"+table+".csv"))
	for _, c := range p.readable() {
		nullable := ""
		if c.Nullable {
			nullable = ", nullable: true"
		}
		fmt.Fprintf(&b, "        - {name: %-*s expression: r.%-*s type: %-*s csv: {header: %s, format: %s}%s}\n", width+1, c.Name+",", width+1, c.Name+",", kinds+1, c.Type.String()+",",
			text(c.Name), text(printFormat(c.Type)), nullable)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	return nil
}

func (p Proposal) readable() []Column {
	var out []Column
	for _, c := range p.Columns {
		if c.Type != expr.Invalid {
			out = append(out, c)
		}
	}
	return out
}

// widths of names and types, so that columns of the text are aligned.
func (p Proposal) widths() (names, kinds int) {
	for _, c := range p.readable() {
		names, kinds = max(names, len(c.Name)), max(kinds, len(c.Type.String()))
	}
	return names, kinds
}

func (p Proposal) writeCSVKeys(b *strings.Builder) {
	if p.Parquet {
		return
	}
	header, first := -1, 0
	if p.HasHeader {
		header, first = 0, 1
	}
	separator := ""
	if p.Separator != ',' {
		separator = ", separator: " + text(string(p.Separator))
	}
	if p.Encoding != "" {
		separator += ", encoding: " + p.Encoding
	}
	fmt.Fprintf(b, "      csv: {hdr_line_idx: %d, first_data_line_idx: %d%s}\n", header, first, separator)
}

// columnKeys says where a column is in the file and how it is read.
func (p Proposal) columnKeys(c Column) string {
	nullable := ""
	if c.Nullable {
		nullable = "nullable: true, "
	}
	if p.Parquet {
		return nullable + "parquet: {col_name: " + text(c.Source) + "}"
	}
	keys := []string{fmt.Sprintf("col_idx: %d", c.Index)}
	if p.byHeader() {
		keys[0] = "col_hdr: " + text(c.Source)
	}
	if c.Format != "" {
		keys = append(keys, "col_format: "+text(c.Format))
	}
	if c.NullTexts != nil {
		list := make([]string, len(c.NullTexts))
		for i, t := range c.NullTexts {
			list[i] = text(t)
		}
		keys = append(keys, "null_text: ["+strings.Join(list, ", ")+"]")
	}
	return nullable + "csv: {" + strings.Join(keys, ", ") + "}"
}

// byHeader reports whether columns can be found by their headers: different,
// there, and without braces, which would be a reference to a parameter.
func (p Proposal) byHeader() bool {
	seen := map[string]bool{}
	for _, c := range p.Columns {
		if c.Source == "" || seen[c.Source] || strings.ContainsAny(c.Source, "{}") {
			return false
		}
		seen[c.Source] = true
	}
	return true
}

func printFormat(t expr.Type) string {
	switch t {
	case expr.Int:
		return "%d"
	case expr.Float:
		return "%v"
	case expr.Bool:
		return "%t"
	case expr.DateTime:
		return outputLayout
	}
	return "%s"
}

// tableName makes a name for a table of a file's.
func tableName(path string) string {
	const charsMax = 30
	base := filepath.Base(path)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		base = strings.TrimSuffix(base, packed)
	}
	name := identifier(strings.TrimSuffix(base, filepath.Ext(base)), 0)
	for _, reserved := range []string{"idx", "wf", "system"} {
		if strings.HasPrefix(name, reserved) {
			name = "t_" + name
		}
	}
	return name[:min(len(name), charsMax)]
}

// text quotes a text for YAML; JSON's quoting is part of it.
func text(s string) string {
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
