package property

import (
	"fmt"
	"strings"
	"time"
)

// defaultText writes a value as default_value wants it.
func defaultText(v any) string {
	switch v := v.(type) {
	case cents:
		return v.fixed()
	case time.Time:
		return v.Format("2006-01-02T15:04:05.000-07:00")
	}
	return text(v)
}

// load is a file_table.
type load struct {
	*creator
	source string
}

func (n *load) id() string      { return "load_" + n.name }
func (n *load) reads() []string { return nil }

func (n *load) spec(s *script, at place) object {
	return object{{"type", "file_table"}, {"r", at.inputs.reader[n.source]}, {"w", n.creator.spec(s)}}
}

func (n *load) rows(tables map[string][][]any) [][]any {
	var out [][]any
	for _, row := range tables["source "+n.source] {
		if made, ok := n.row(&env{r: row}); ok {
			out = append(out, made)
		}
	}
	return out
}

// project is a table_table.
type project struct {
	*creator
	from string
}

func (n *project) id() string      { return "project_" + n.name }
func (n *project) reads() []string { return []string{n.from} }

func (n *project) spec(s *script, _ place) object {
	return object{{"type", "table_table"}, {"r", object{{"table", n.from}}}, {"w", n.creator.spec(s)}}
}

func (n *project) rows(tables map[string][][]any) [][]any {
	var out [][]any
	for _, row := range tables[n.from] {
		if made, ok := n.row(&env{r: row}); ok {
			out = append(out, made)
		}
	}
	return out
}

// tagging is a tag_and_denormalize.
type tagging struct {
	*creator
	from string
	tags []string
	when []formula
}

func (n *tagging) id() string      { return "tag_" + n.name }
func (n *tagging) reads() []string { return []string{n.from} }

func (n *tagging) spec(s *script, _ place) object {
	criteria := object{}
	for i, tag := range n.tags {
		criteria = append(criteria, entry{tag, n.when[i].src})
	}
	return object{{"type", "table_custom_tfm_table"}, {"custom_proc_type", "tag_and_denormalize"},
		{"r", object{{"table", n.from}}},
		{"p", object{{"tag_field_name", "tag"}, {"tag_criteria", criteria}}}, {"w", n.creator.spec(s)}}
}

func (n *tagging) rows(tables map[string][][]any) [][]any {
	var out [][]any
	for _, row := range tables[n.from] {
		for i, tag := range n.tags {
			if !holds(&n.when[i], &env{r: row}) {
				continue
			}
			if made, ok := n.row(&env{r: row, p: []any{tag}}); ok {
				out = append(out, made)
			}
		}
	}
	return out
}

// distinct is a distinct_table: the first row of each key stays.
type distinct struct {
	*creator
	from string
	key  indexKey
}

func (n *distinct) id() string      { return "distinct_" + n.name }
func (n *distinct) reads() []string { return []string{n.from} }

func (n *distinct) spec(s *script, _ place) object {
	w := n.creator.spec(s)
	own := entry{"idx_" + n.name + "_key", "unique(" + n.key.text(n.columns()) + ")"}
	if i := len(w) - 1; w[i].key == "indexes" {
		w[i].value = append(object{own}, w[i].value.(object)...)
	} else {
		w = append(w, entry{"indexes", object{own}})
	}
	return object{{"type", "distinct_table"}, {"rerun_policy", "fail"}, {"r", object{{"table", n.from}}}, {"w", w}}
}

func (n *distinct) rows(tables map[string][][]any) [][]any {
	var out [][]any
	seen := map[string]bool{}
	for _, row := range tables[n.from] {
		made, _ := n.row(&env{r: row})
		if key := keyOf(n.key.of(made)); !seen[key] {
			seen[key] = true
			out = append(out, unsigned(made))
		}
	}
	return out
}

// unsigned is a row as DuckDB gives it when it is made anew from what was
// sorted by: a float -0 is 0.
func unsigned(row []any) []any {
	for i, v := range row {
		if f, ok := v.(float64); ok {
			row[i] = f + 0
		}
	}
	return row
}

// indexKey is the fields of an index.
type indexKey []keyItem

type keyItem struct {
	at         int
	ignoreCase bool
}

func (k indexKey) text(fields []field) string {
	items := make([]string, len(k))
	for i, item := range k {
		items[i] = fields[item.at].name
		if item.ignoreCase {
			items[i] += "(ignore_case)"
		}
	}
	return strings.Join(items, ", ")
}

// of takes the key out of a row.
func (k indexKey) of(row []any) []any {
	out := make([]any, len(k))
	for i, item := range k {
		out[i] = row[item.at]
		if s, ok := out[i].(string); ok && item.ignoreCase {
			out[i] = strings.ToUpper(s)
		}
	}
	return out
}

// key draws one to three fields that are not too many for a key.
func (g gen) key(fields []field) indexKey {
	var out indexKey
	for _, i := range g.Perm(len(fields))[:min(len(fields), pick(g, 1, 1, 1, 2, 3))] {
		out = append(out, keyItem{at: i, ignoreCase: fields[i].kind == stringKind && g.oneIn(5)})
	}
	return out
}

// fields draws the fields of a table: some of those that there are, and some
// that are computed. Alone says that rows without a match are among them: there
// the right table's fields are NULL for formulas that ask for it.
func (g gen) fields(sc scope, alone bool) []outField {
	var out []outField
	add := func(f formula, deep bool) {
		if alone && f.right && f.asksNull {
			f.null = f.alone
		}
		null := f.null
		if f.null && g.oneIn(4) {
			f, null = g.certain(f), false
		} else if !f.null && g.oneIn(8) {
			null = true
		}
		name := fmt.Sprintf("%c%d", f.kind.String()[0], len(out))
		if deep {
			name += "x"
		}
		out = append(out, outField{field: field{name, f.kind, null}, formula: f})
	}
	for _, f := range sc.fields {
		if !g.oneIn(5) || len(out) == 0 {
			add(f, false)
		}
		if len(out) >= maxFields {
			break
		}
	}
	for range g.IntN(3) {
		add(g.formula(pick(g, kinds()...), sc, 1+g.IntN(3)), true)
	}
	return out
}

// maxFields of a table that are taken from another.
const maxFields = 9

// condition over the rows that are written, or none.
func (g gen) having(fields []outField) *formula {
	if !g.oneIn(3) {
		return nil
	}
	var columns []field
	for _, f := range fields {
		columns = append(columns, f.field)
	}
	f := g.condition(scope{fields: fieldsOf("w", columns), exact: true}, 2)
	return &f
}
