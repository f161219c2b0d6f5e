package property

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dialect is a way to write a source as CSV.
type dialect struct {
	g         gen
	separator string
	lineEnd   string
	bom       bool
	quoting   int // one in so many cells is quoted without need; 0: none
	header    int // record with the header, -1: none
	junk      int // records between the header, or the start, and the data
	blank     int // one in so many records is followed by an empty line; 0: none
	unclosed  bool
	columns   []csvColumn
}

// csvColumn is a column with the notation of its values in CSV.
type csvColumn struct {
	column
	at          int // index in the source
	layout      string
	nullTexts   []string
	quotedEmpty string
	fallback    any // col_default_value, nil: none
}

func (g gen) dialect(s *source) *dialect {
	d := &dialect{g: g, separator: pick(g, ",", ",", ";", "|", "\t"), lineEnd: pick(g, "\n", "\n", "\r\n"),
		bom: g.oneIn(6), quoting: pick(g, 0, 1, 3, 10),
		header: pick(g, 0, 0, 0, 1, 3, -1), junk: pick(g, 0, 0, 0, 2), blank: pick(g, 0, 0, 0, 7), unclosed: g.oneIn(4)}
	for i, c := range s.columns {
		d.columns = append(d.columns, g.csvColumn(c, i, s.rows))
	}
	return d
}

func (g gen) csvColumn(c column, at int, rows [][]any) csvColumn {
	out := csvColumn{column: c, at: at, layout: g.layoutFor(c.kind, at, rows)}
	used := map[string]bool{}
	for _, row := range rows {
		if s, ok := row[at].(string); ok {
			used[s] = true
		}
	}
	if c.null {
		g.nulls(&out, used)
	}
	if !slices.Contains(out.nullTexts, "") && !used[""] && g.oneIn(3) && c.kind != floatKind {
		out.fallback = g.fallback(c.kind, out.layout)
		if text, ok := out.fallback.(string); ok && slices.Contains(out.nullTexts, text) {
			out.fallback = nil
		}
	}
	return out
}

// nulls chooses the texts that mean NULL, none of them a value of the column,
// but for texts where quotes tell.
func (g gen) nulls(c *csvColumn, used map[string]bool) {
	c.quotedEmpty = "value"
	if c.kind == stringKind && !used[""] && g.oneIn(3) {
		c.quotedEmpty = "null"
	}
	if g.oneIn(2) {
		c.nullTexts = []string{""}
		return
	}
	for _, text := range []string{"NULL", "n/a", "-", "?", "none", "N.A.", `\N`, "", "--"} {
		inQuotes := c.kind == stringKind && c.quotedEmpty == "value" && text != ""
		if (!used[text] || inQuotes) && g.oneIn(2) {
			c.nullTexts = append(c.nullTexts, text)
		}
	}
	if len(c.nullTexts) == 0 {
		c.nullTexts = []string{"<null>"}
	}
	if c.kind == stringKind && used[""] && slices.Contains(c.nullTexts, "") {
		c.quotedEmpty = "value"
	}
}

// plainText says whether a text can be written into a script: without braces,
// which are parameters there.
func plainText(s string) bool { return !strings.ContainsAny(s, "{}") }

// fallback draws a value for the rows that have none.
func (g gen) fallback(k kind, layout string) any {
	v := g.value(k)
	if t, ok := v.(time.Time); ok && layout != "" {
		if back, err := time.Parse(layout, t.Format(layout)); err != nil || !back.Equal(t) {
			return nil
		}
	}
	if s, ok := v.(string); ok && (strings.TrimSpace(s) != s || s == "" || !plainText(s)) {
		return nil
	}
	return v
}

// layoutFor is one that keeps all values of a datetime column.
func (g gen) layoutFor(k kind, at int, rows [][]any) string {
	if k != timeKind {
		return ""
	}
	layouts := []string{"2006-01-02", "02.01.2006", "20060102", "2006-01-02 15:04:05", "2006-01-02T15:04:05Z07:00",
		"Jan _2, 2006 3:04:05PM", "02/01/2006 15:04:05.000",
		"2006-01-02T15:04:05.000-0700", "Mon, 02 Jan 2006 15:04:05 MST"}
	g.Shuffle(len(layouts), func(i, j int) { layouts[i], layouts[j] = layouts[j], layouts[i] })
	for _, layout := range layouts {
		fits := !slices.ContainsFunc(rows, func(row []any) bool {
			t, ok := row[at].(time.Time)
			if !ok {
				return false
			}
			back, err := time.Parse(layout, t.Format(layout))
			return err != nil || !back.Equal(t)
		})
		if fits {
			return layout
		}
	}
	return "2006-01-02 15:04:05.000"
}

// reader is the script's description of the files.
func (d *dialect) reader() (csv, columns object) {
	first := d.header + 1 + d.junk
	csv = object{{"separator", d.separator}, {"hdr_line_idx", d.header}, {"first_data_line_idx", first}}
	for i, c := range d.columns {
		spec := object{}
		if d.header >= 0 {
			spec = append(spec, entry{"col_hdr", c.header})
		} else {
			spec = append(spec, entry{"col_idx", i})
		}
		if c.kind == timeKind {
			spec = append(spec, entry{"col_format", c.layout})
		}
		if c.null {
			if len(c.nullTexts) != 1 || c.nullTexts[0] != "" {
				spec = append(spec, entry{"null_text", c.nullTexts})
			}
			if c.quotedEmpty != "value" {
				spec = append(spec, entry{"quoted_empty", c.quotedEmpty})
			}
		}
		column := object{{"col_type", c.kind.String()}, {"csv", spec}}
		if c.null {
			column = append(column, entry{"nullable", true})
		}
		if c.fallback != nil {
			column = append(column, entry{"col_default_value", d.plain(c, c.fallback)})
		}
		columns = append(columns, entry{c.name, column})
	}
	return csv, columns
}

// file writes rows: with a header the columns stand in any order, in each file
// in another.
func (d *dialect) file(rows [][]any) string {
	var b strings.Builder
	if d.bom {
		b.WriteString("\ufeff")
	}
	order := make([]int, len(d.columns))
	for i := range order {
		order[i] = i
	}
	if d.header >= 0 {
		d.g.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	line := func(last bool, cell func(c csvColumn) string) {
		for i, at := range order {
			if i > 0 {
				b.WriteString(d.separator)
			}
			b.WriteString(cell(d.columns[at]))
		}
		if last && d.unclosed {
			return
		}
		b.WriteString(d.lineEnd)
		for d.blank > 0 && d.g.oneIn(d.blank) {
			b.WriteString(d.lineEnd)
		}
	}
	junk := func(n int) {
		for range n {
			line(false, func(csvColumn) string { return pick(d.g, "x", `"a `+d.separator+` b"`, "--", "0") })
		}
	}
	if d.header >= 0 {
		junk(d.header)
		line(len(rows) == 0 && d.junk == 0, func(c csvColumn) string { return d.quoted(c.header, false) })
	}
	junk(d.junk)
	for i, row := range rows {
		line(i == len(rows)-1, func(c csvColumn) string { return d.cell(c, row[c.at]) })
	}
	return b.String()
}

// cell writes one value.
func (d *dialect) cell(c csvColumn, v any) string {
	emptyIsNull := slices.Contains(c.nullTexts, "")
	if v == nil {
		text := c.nullTexts[d.g.IntN(len(c.nullTexts))]
		switch {
		case text != "":
			return d.quoted(text, c.kind == stringKind && c.quotedEmpty == "value")
		case c.kind != stringKind && d.g.oneIn(4):
			return pick(d.g, "  ", `""`, `" "`)
		case c.quotedEmpty == "null" && d.g.oneIn(3):
			return `""`
		}
		return ""
	}
	if c.fallback != nil && exactly(v) == exactly(c.fallback) && d.g.oneIn(2) {
		return pick(d.g, "", `""`)
	}
	if v == "" && emptyIsNull {
		return `""`
	}
	if !c.null && c.fallback == nil && exactly(v) == exactly(zero(c.kind)) && d.g.oneIn(3) {
		return pick(d.g, "", `""`)
	}
	if text, ok := v.(string); ok && slices.Contains(c.nullTexts, text) && c.null {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return d.quoted(d.plain(c, v), v == "")
}

// quoted puts a text in quotes where it must be, and sometimes elsewhere.
func (d *dialect) quoted(s string, never bool) string {
	must := strings.ContainsAny(s, "\"\r\n"+d.separator)
	if !must && (never || d.quoting == 0 || !d.g.oneIn(d.quoting)) {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// plain is one of the texts that are read as v.
func (d *dialect) plain(c csvColumn, v any) string {
	g := d.g
	switch v := v.(type) {
	case int64:
		s := strconv.FormatInt(v, 10)
		if v >= 0 {
			s = pick(g, "", "", "", "+", "00") + s
		}
		return s
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		return strconv.FormatFloat(v, pick(g, byte('g'), 'g', 'e', 'f'), -1, 64)
	case cents:
		return d.decimal(v)
	case bool:
		if v {
			return pick(g, "1", "t", "T", "TRUE", "true", "True")
		}
		return pick(g, "0", "f", "F", "FALSE", "false", "False")
	case time.Time:
		return v.Format(c.layout)
	}
	return v.(string)
}

// decimal writes 1.50 as 1.50, 1.5, 01.5, 1.500 or what is rounded to it.
func (d *dialect) decimal(c cents) string {
	switch d.g.IntN(6) {
	case 0:
		return text(c)
	case 1:
		return c.fixed() + "0"
	case 2:
		return c.fixed() + pick(d.g, "4", "49999", "0001")
	case 3:
		if c >= 0 {
			return "0" + c.fixed()
		}
	}
	return c.fixed()
}

// object is a JSON object whose keys keep their order.
type object []entry

type entry struct {
	key   string
	value any
}

// MarshalJSON writes the entries as they stand.
func (o object) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := marshal(e.key)
		if err != nil {
			return nil, err
		}
		value, err := marshal(e.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.key, err)
		}
		b.WriteString(key + ":" + value)
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}
