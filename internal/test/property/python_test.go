package property

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// formulas is the Python code that nodes of py_calc call.
const formulas = `
def label(s, n):
    return None if s is None or n is None else f"{s}|{n}"

def size(s):
    return -1 if s is None else len(s)

def scaled(x):
    return None if x is None else x * 0.5 + 1
`

// python is a node of py_calc: one calculated field.
type python struct {
	*creator
	from       string
	expression string
	result     field
	of         func(row []any) any
}

func (n *python) id() string      { return "python_" + n.name }
func (n *python) reads() []string { return []string{n.from} }

func (n *python) spec(s *script, at place) object {
	calculated := object{{"expression", n.expression}, {"type", n.result.kind.String()}}
	if n.result.null {
		calculated = append(calculated, entry{"nullable", true})
	}
	return object{{"type", "table_custom_tfm_table"}, {"custom_proc_type", "py_calc"}, {"r", object{{"table", n.from}}},
		{"p", object{{"python_code_urls", []string{at.python}},
			{"calculated_fields", object{{n.result.name, calculated}}}}},
		{"w", n.creator.spec(s)}}
}

func (n *python) rows(tables map[string][][]any) [][]any {
	var out [][]any
	for _, row := range tables[n.from] {
		if made, ok := n.row(&env{r: row, p: []any{n.of(row)}}); ok {
			out = append(out, made)
		}
	}
	return out
}

// pythonNode draws one of the formulas for which the table has fields.
func (b *builder) pythonNode(from *creator) node {
	fields := from.columns()
	find := func(k kind) int {
		for _, i := range b.Perm(len(fields)) {
			if fields[i].kind == k {
				return i
			}
		}
		panic(refuse{})
	}
	n := &python{from: from.name}
	switch b.IntN(3) {
	case 0:
		s, i := find(stringKind), find(intKind)
		n.expression, n.result = fmt.Sprintf("label(r.%s, r.%s)", fields[s].name, fields[i].name),
			field{"made", stringKind, true}
		n.of = func(row []any) any {
			if row[s] == nil || row[i] == nil {
				return nil
			}
			return fmt.Sprintf("%s|%d", row[s], row[i])
		}
	case 1:
		s := find(stringKind)
		n.expression, n.result = fmt.Sprintf("size(r.%s)", fields[s].name), field{"made", intKind, false}
		n.of = func(row []any) any {
			if row[s] == nil {
				return int64(-1)
			}
			return int64(utf8.RuneCountInString(row[s].(string)))
		}
	default:
		x := find(floatKind)
		n.expression, n.result = fmt.Sprintf("scaled(r.%s)", fields[x].name), field{"made", floatKind, true}
		n.of = func(row []any) any { return scaled(row[x]) }
	}
	sc := scope{fields: append(fieldsOf("r", fields), fieldsOf("p", []field{n.result})...)}
	n.creator = b.creator(b.fields(sc, false))
	if !strings.Contains(fmt.Sprint(n.fields), "p.made") {
		n.fields = append(n.fields, outField{field: field{"made", n.result.kind, n.result.null},
			formula: fieldsOf("p", []field{n.result})[0]})
	}
	return n
}

// scaled refuses what Python's formulas may not return.
func scaled(v any) any {
	if v == nil {
		return nil
	}
	f := v.(float64)
	f = float64(f*0.5) + 1 // no fused multiply-add
	if f-f != 0 {
		panic(refuse{})
	}
	return f
}
