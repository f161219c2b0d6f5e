package files

import (
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/parquetfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
)

// A column of a Parquet file is found by its name, or else by a path to a value within it:
// address.city, items[0].sku. What leads to the value may be NULL, and a list too short: then it is NULL.

// head is the name with which a path begins; "": there is no path.
func head(path string) string {
	if steps, err := filespec.ParsePath(path); err == nil {
		return steps[0].Key
	}
	return ""
}

// find returns the place of a column of the reader in a file, and the steps to it from there.
// found counts the file's columns of that name.
func find(c *script.InputColumn, f *parquetfile.Footer) (at, found int, steps []filespec.Step) {
	if at, found = f.Find(c.Parquet); found > 0 {
		return at, found, nil
	}
	steps, err := filespec.ParsePath(c.Parquet)
	if err != nil {
		return at, 0, nil
	}
	at, found = f.Find(steps[0].Key)
	return at, found, steps[1:]
}

// within is the element to which steps lead, and the SQL of its value.
func within(e parquetfile.Element, steps []filespec.Step, value string) (parquetfile.Element, string, error) {
	for _, s := range steps {
		switch {
		case s.Index >= 0 && e.Shape == parquetfile.List:
			value = fmt.Sprintf("list_extract(%s, %s)", value, sqltext.Int(int64(s.Index)+1))
			e = e.Inner[0]
		case s.Index < 0 && e.Shape == parquetfile.Struct:
			i, names := -1, make([]string, len(e.Inner))
			for k, inner := range e.Inner {
				if names[k] = inner.Name; inner.Name == s.Key {
					i = k
				}
			}
			switch {
			case i < 0:
				return e, "", &noMemberError{s.Key, names}
			case twins(names):
				return e, "", mismatch("two members of a struct have the same name, or differ in case only")
			}
			e, value = e.Inner[i], expr.MemberSQL(value, s.Key)
		case s.Index >= 0:
			return e, "", mismatch(fmt.Sprintf("%s is no list: it has no [%d]", e, s.Index))
		case e.Shape == parquetfile.Map || e.Shape == parquetfile.Unread:
			return e, "", mismatch(nestedAdvice(e))
		default:
			return e, "", mismatch(fmt.Sprintf("%s is no struct: it has no %s", e, s.Key))
		}
	}
	return e, value, nil
}

// noMemberError is a step to a member that a struct has not.
type noMemberError struct {
	name  string
	names []string
}

func (n *noMemberError) Error() string {
	return fmt.Sprintf("there is no %q in it, but %s", n.name, quoteList(n.names))
}

// reached is the value of a column in the SQL of what the file calls a column.
func (c parquetColumn) reached(col string) string {
	if _, value, err := within(c.element, c.steps, col); err == nil {
		return value
	}
	return col // refused before
}

// convertWithin converts what a path leads to, as a column of the short form would be.
func convertWithin(c *script.InputColumn, have parquetColumn, col string, view bool) (string, error) {
	e, value, err := within(have.element, have.steps, col)
	if err != nil {
		return "", err
	}
	if !c.Type.Nested() && e.Shape != parquetfile.Value {
		if t := nestedType(e); t != expr.Invalid {
			return "", mismatch("declare it as " + t.String() + ", or go on to a value within")
		}
		return "", mismatch(nestedAdvice(e))
	}
	plan := nestedPlan{column: c, leaves: have.leaves, view: view}
	if value, err = plan.convert(c.Type, e, value, 0); err != nil {
		return "", err
	}
	return "CAST(" + value + " AS " + c.Type.SQL() + ")", nil
}

// lacks reports whether a file is without a column.
func lacks(c *script.InputColumn, f *parquetfile.Footer) bool {
	at, found, steps := find(c, f)
	if found != 1 {
		return found == 0
	}
	return lacksWithin(f.Element(at), steps)
}

// lacksWithin reports whether a struct on the way is without the member.
func lacksWithin(e parquetfile.Element, steps []filespec.Step) bool {
	_, _, err := within(e, steps, "")
	_, none := err.(*noMemberError)
	return none
}

// shape returns the type of a column, or of the value that its path leads to, for messages.
func (c parquetColumn) shape() string {
	if c.Kind != parquetfile.Nested {
		return c.Type
	}
	if e, _, err := within(c.element, c.steps, ""); err == nil && len(c.steps) > 0 {
		if e.Shape == parquetfile.Value {
			return e.Type
		}
		return strings.TrimSpace(e.String())
	}
	return c.Shape
}
