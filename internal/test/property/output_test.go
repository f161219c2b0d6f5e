package property

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// output is a table_file.
type output struct {
	name, from string
	parquet    bool
	separator  string
	lineEnd    string // of CSV
	quoteAll   bool
	columns    []outColumn
	having     *formula
	order      []orderItem
	limit      int // 0: all rows; else top
	pieces     int // files with {batch_idx}; 0: one without
}

type outColumn struct {
	field
	header   string
	formula  formula
	format   string
	nullText string
}

type orderItem struct {
	at                           int
	desc, nullsFirst, ignoreCase bool
	length                       int // bytes; 0: the default
}

func (n *output) id() string      { return n.name }
func (n *output) reads() []string { return []string{n.from} }
func (n *output) table() *creator { return nil }

// file is the name that it writes; pieces have several.
func (n *output) file() string {
	name := n.name
	if n.pieces > 0 {
		name += "_{batch_idx}"
	}
	if n.parquet {
		return name + ".parquet"
	}
	return name + ".csv"
}

func (n *output) spec(_ *script, at place) object {
	r := object{{"table", n.from}}
	if n.pieces > 0 {
		r = append(r, entry{"expected_batches_total", n.pieces})
	}
	w := object{{"url_template", at.out + "/" + n.file()}}
	if n.having != nil {
		w = append(w, entry{"having", n.having.src})
	}
	if len(n.order) > 0 {
		items := make([]string, len(n.order))
		for i, item := range n.order {
			items[i] = item.text(n.columns[item.at].name)
		}
		order := strings.Join(items, ", ")
		if n.limit > 0 {
			w = append(w, entry{"top", object{{"order", order}, {"limit", n.limit}}})
		} else {
			w = append(w, entry{"order", order})
		}
	}
	if !n.parquet {
		csv := object{{"separator", n.separator}}
		if n.lineEnd != "\n" {
			csv = append(csv, entry{"line_end", "crlf"})
		}
		if n.quoteAll {
			csv = append(csv, entry{"quote", "all"})
		}
		w = append(w, entry{"csv", csv})
	}
	columns := make([]object, len(n.columns))
	for i, c := range n.columns {
		columns[i] = c.spec(n.parquet)
	}
	return object{{"type", "table_file"}, {"r", r}, {"w", append(w, entry{"columns", columns})}}
}

func (c outColumn) spec(parquet bool) object {
	out := object{{"name", c.name}, {"expression", c.formula.src}, {"type", c.kind.String()}}
	if c.null {
		out = append(out, entry{"nullable", true})
	}
	if parquet {
		return append(out, entry{"parquet", object{{"column_name", c.header}}})
	}
	csv := object{{"header", c.header}}
	if c.format != "" {
		csv = append(csv, entry{"format", c.format})
	}
	if c.null && c.nullText != "" {
		csv = append(csv, entry{"null_text", c.nullText})
	}
	return append(out, entry{"csv", csv})
}

func (i orderItem) text(name string) string {
	var words []string
	if i.desc {
		words = append(words, "desc")
	}
	if i.nullsFirst {
		words = append(words, "nulls_first")
	}
	if i.ignoreCase {
		words = append(words, "ignore_case")
	}
	if i.length > 0 {
		words = append(words, fmt.Sprint(i.length))
	}
	if len(words) == 0 {
		return name
	}
	return name + "(" + strings.Join(words, ", ") + ")"
}

func (n *output) rows(tables map[string][][]any) [][]any {
	var out [][]any
	for _, row := range tables[n.from] {
		made := make([]any, len(n.columns))
		for i, c := range n.columns {
			made[i] = c.formula.eval(&env{r: row})
		}
		if holds(n.having, &env{w: made}) {
			out = append(out, made)
		}
	}
	slices.SortStableFunc(out, n.compare)
	if n.limit > 0 && len(out) > n.limit {
		out = out[:n.limit]
	}
	return out
}

// compare orders two rows: texts by the collation, and behind all of the fields
// by their bytes.
func (n *output) compare(a, b []any) int {
	for _, exact := range []bool{false, true} {
		for _, item := range n.order {
			x, y := a[item.at], b[item.at]
			s, isText := x.(string)
			t, both := y.(string)
			c := 0
			switch {
			case !isText || !both:
				c = compareNulls(x, y, item.desc, item.nullsFirst)
			case exact:
				c = compareNulls(s, t, item.desc, false)
			default:
				c = compareNulls(collated(s, item), collated(t, item), item.desc, false)
			}
			if c != 0 {
				return c
			}
		}
	}
	return 0
}

const defaultKeyBytes = 64

// collated returns the part of a text that counts in an order: no accents, so many bytes, no blanks at the
// end.
func collated(s string, item orderItem) string {
	s = withoutAccents(s)
	n := item.length
	if n == 0 {
		n = defaultKeyBytes
	}
	if len(s) > n {
		for n > 0 && s[n]&0xC0 == 0x80 { // no half characters
			n--
		}
		s = s[:n]
	}
	s = strings.TrimRight(s, " ")
	if item.ignoreCase {
		s = strings.ToUpper(s)
	}
	return s
}

// withoutAccents knows the letters that texts are made of here.
func withoutAccents(s string) string {
	return strings.NewReplacer("é", "e", "É", "E", "á", "a", "ä", "a", "Ä", "A", "ï", "i", "ñ", "n", "Ñ", "N", "\u0301",
		"", "\u0308", "").Replace(s)
}

// cell is the text of a value in a CSV file.
func (c outColumn) cell(v any) string {
	switch v := v.(type) {
	case time.Time:
		return v.Format(c.format)
	case cents:
		if c.format == "" {
			return v.fixed()
		}
		return fmt.Sprintf(c.format, v.fixed())
	}
	if c.format == "" {
		return text(v)
	}
	return fmt.Sprintf(c.format, v)
}

// output draws a file of a table.
func (g gen) output(name string, from *creator) *output {
	n := &output{name: name, from: from.name, parquet: g.oneIn(3), separator: pick(g, ",", ",", ";", "|", "\t", " | "),
		lineEnd: pick(g, "\n", "\n", "\n", "\r\n"), quoteAll: g.oneIn(8)}
	if g.oneIn(8) {
		n.pieces = 1 + g.IntN(3)
	}
	sc := scope{fields: fieldsOf("r", from.columns())}
	var computed []formula
	for range g.IntN(2) {
		computed = append(computed, g.formula(pick(g, kinds()...), sc, 2))
	}
	for i, f := range append(slices.Clone(sc.fields), computed...) {
		c := outColumn{field: field{fmt.Sprintf("c%d", i), f.kind, f.null}, header: g.header(i), formula: f}
		if f.null && g.oneIn(5) {
			c.formula, c.null = g.certain(f), false
		}
		g.formats(&c)
		n.columns = append(n.columns, c)
	}
	if c := &n.columns[0]; len(n.columns) == 1 && c.null {
		c.nullText = "NULL" // a line may not be empty
	}
	g.orders(n)
	return n
}

func (g gen) formats(c *outColumn) {
	switch c.kind {
	case intKind:
		c.format = pick(g, "%d", "%d", "", "%05d", "%8d")
	case floatKind:
		c.format = pick(g, "%v", "%g", "%e", "%.2f", "")
	case decimalKind:
		c.format = pick(g, "%s", "%s", "", "%10s")
	case boolKind:
		c.format = pick(g, "%t", "")
	case timeKind:
		c.format = pick(g, "2006-01-02 15:04:05.000", "2006-01-02", "02.01.2006 15:04:05", "Jan _2 2006, 3:04PM")
	case stringKind:
		c.format = pick(g, "%s", "%s", "")
	}
	if c.null {
		c.nullText = pick(g, "", "", "NULL", "n/a", "-", "a", "0")
	}
}

func (g gen) orders(n *output) {
	if n.having = nil; g.oneIn(5) {
		var fields []field
		for _, c := range n.columns {
			fields = append(fields, c.field)
		}
		f := g.condition(scope{fields: fieldsOf("w", fields), exact: true}, 2)
		n.having = &f
	}
	if n.pieces > 0 || !g.oneIn(2) {
		return
	}
	for _, i := range g.Perm(len(n.columns))[:min(len(n.columns), 1+g.IntN(3))] {
		item := orderItem{at: i, desc: g.oneIn(2), nullsFirst: n.columns[i].null && g.oneIn(3)}
		if n.columns[i].kind == stringKind {
			item.ignoreCase = g.oneIn(4)
			item.length = pick(g, 0, 0, 0, 16, 100)
		}
		n.order = append(n.order, item)
	}
	if g.oneIn(3) {
		n.limit = 1 + g.IntN(30)
	}
}
