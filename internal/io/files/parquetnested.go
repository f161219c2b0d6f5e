package files

import (
	"fmt"
	"strings"

	"thalweg/internal/io/parquetfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// Each value within a nested column is converted, and looked at, as a column of
// its type would be. Where DuckDB reads a leaf wrongly there is a view, which
// has that leaf in another form, and the others as they are.

// leavesBelow are the numbers of the leaves of an element.
func leavesBelow(e parquetfile.Element) (list []int) {
	if e.Shape == parquetfile.Value {
		return []int{e.Leaf}
	}
	for _, inner := range e.Inner {
		list = append(list, leavesBelow(inner)...)
	}
	return list
}

// nativeLeaves reports whether DuckDB reads what is wanted of a nested column
// rightly.
func nativeLeaves(c parquetColumn) bool {
	e, _, err := within(c.element, c.steps, "")
	if err != nil {
		return true // refused before
	}
	for _, i := range leavesBelow(e) {
		if !nativeReads(c.leaves[i]) {
			return false
		}
	}
	return true
}

// convertNested converts lists and structs to the declared type.
func convertNested(c *script.InputColumn, have parquetColumn, col string, view bool) (string, error) {
	switch {
	case have.Kind != parquetfile.Nested:
		return "", mismatch("it is no list or struct")
	case !c.Type.Nested():
		if t := nestedType(have.element); t != expr.Invalid {
			return "", mismatch("declare it as " + t.String())
		}
		return "", mismatch(nestedAdvice(have.element))
	}
	plan := nestedPlan{column: c, leaves: have.leaves, view: view}
	value, err := plan.convert(c.Type, have.element, col, 0)
	if err != nil {
		return "", err
	}
	return "CAST(" + value + " AS " + c.Type.SQL() + ")", nil
}

// nestedAdvice says why a nested column has no type.
func nestedAdvice(e parquetfile.Element) string {
	if e.Shape == parquetfile.Map {
		return "maps are no types; a sql node reads them: SELECT map_entries(…) FROM '….parquet'"
	}
	for _, inner := range e.Inner {
		if nestedType(inner) == expr.Invalid {
			if inner.Shape == parquetfile.Value {
				return fmt.Sprintf("within it %q is %s, which no type is for; a sql node may read it",
					inner.Name, inner.Type)
			}
			return "within it " + nestedAdvice(inner)
		}
	}
	return "lists in this older form are read in sql nodes only"
}

type nestedPlan struct {
	column *script.InputColumn
	leaves []parquetColumn
	view   bool
}

func (p *nestedPlan) convert(t expr.Type, e parquetfile.Element, value string, depth int) (string, error) {
	inner, isList := t.Element()
	switch {
	case e.Shape == parquetfile.Map || e.Shape == parquetfile.Unread:
		return "", mismatch(nestedAdvice(e))
	case isList && e.Shape == parquetfile.List:
		one := fmt.Sprintf("e%d", depth)
		each, err := p.convert(inner, e.Inner[0], one, depth+1)
		return fmt.Sprintf("list_transform(%s, lambda %s: %s)", value, one, each), err
	case t.Members() != nil && e.Shape == parquetfile.Struct:
		return p.members(t, e, value, depth)
	case t.Nested() || e.Shape != parquetfile.Value:
		return "", mismatch(fmt.Sprintf("%s is not %s", e, t))
	}
	return p.leaf(t, e, value)
}

// members picks the declared members of a struct by their names.
func (p *nestedPlan) members(t expr.Type, e parquetfile.Element, value string, depth int) (string, error) {
	var names []string
	for _, inner := range e.Inner {
		names = append(names, inner.Name)
	}
	if twins(names) {
		return "", mismatch("two members of a struct have the same name, or differ in case only")
	}
	made := map[string]string{}
	for _, m := range t.Members() {
		for _, inner := range e.Inner {
			if inner.Name != m.Name {
				continue
			}
			part, err := p.convert(m.Type, inner, expr.MemberSQL(value, m.Name), depth)
			if err != nil {
				return "", err
			}
			made[m.Name] = part
		}
		if made[m.Name] == "" {
			return "", mismatch(fmt.Sprintf("its struct has no member %q, but %s", m.Name, quoteList(names)))
		}
	}
	return expr.PackSQL(value, t.Members(), made), nil
}

// leaf converts a value that is not nested, as a column of the short form.
func (p *nestedPlan) leaf(t expr.Type, e parquetfile.Element, value string) (string, error) {
	have := p.leaves[e.Leaf]
	if e.Contradiction != "" {
		return "", mismatch(fmt.Sprintf("within it %q is described twice, and differently: %s", e.Name,
			e.Contradiction))
	}
	view := p.view && have.form() != parquetfile.Kept
	if view {
		value = have.joined(value)
	}
	c := *p.column
	c.Type, c.Short, c.Name = t, true, e.Name
	sql, err := convertParquet(&c, have, value, view)
	if err != nil {
		return "", mismatch(fmt.Sprintf("within it %q is %s: %s", e.Name, e.Type, err))
	}
	if t == expr.Float {
		sql = expr.UnsignedSQL(sql)
	}
	return sql, nil
}

// nestedType is the type that a nested column is read as when the script leaves
// it to the file; Invalid: there is none.
func nestedType(e parquetfile.Element) expr.Type {
	switch e.Shape {
	case parquetfile.Value:
		if e.Contradiction != "" {
			return expr.Invalid
		}
		if e.Kind == parquetfile.Int && e.IntBits() > 64 { // whose largest no int holds
			const digits = 20
			return expr.DecimalOf(digits, 0)
		}
		return columnType(e.Column)
	case parquetfile.List:
		if inner := nestedType(e.Inner[0]); inner != expr.Invalid {
			return expr.ListOf(inner)
		}
	case parquetfile.Struct:
		var members []expr.Member
		for _, inner := range e.Inner {
			t := nestedType(inner)
			if t == expr.Invalid {
				return expr.Invalid
			}
			members = append(members, expr.Member{Name: inner.Name, Type: t})
		}
		if t, ok := expr.ParseType(expr.StructOf(members).String()); ok { // names in it may be equal
			return t
		}
	}
	return expr.Invalid
}

// twins reports names that are equal whatever their case.
func twins(names []string) bool {
	seen := map[string]bool{}
	for _, name := range names {
		low := strings.ToLower(name)
		if seen[low] {
			return true
		}
		seen[low] = true
	}
	return false
}
