package compare

import (
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/lang/expr"
	"thalweg/internal/run/plan"
)

// SchemaDifference is a column that one table has not, or has as another type.
type SchemaDifference struct {
	Column string `json:"column"`
	TypeA  string `json:"type_a,omitempty"` // "": A has no such column
	TypeB  string `json:"type_b,omitempty"`
}

// column is one that both tables have.
type column struct {
	name   string
	float  bool
	stored [2]string // names in the parts of A and of B
}

// newComparison decides which columns are compared.
func newComparison(opts Options) (*comparison, error) {
	c := &comparison{Options: opts}
	c.result.RowsA, c.result.RowsB = opts.A.Rows(), opts.B.Rows()
	if opts.Limit < 0 || opts.Limit > LimitMax {
		return nil, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("the limit of the sample is %d; it can be 0 to %d",
				opts.Limit, LimitMax)}
	}
	// Not the opposite condition: NaN is none either.
	if !(opts.Tolerance >= 0) { //nolint:staticcheck
		return nil, &fault.Error{Kind: fault.Script, Message: "the tolerance must be 0 or more"}
	}
	b := map[string]plan.Column{}
	for _, col := range opts.B.Layout.Columns {
		b[col.Name] = col
	}
	both := map[string]column{}
	for _, col := range opts.A.Layout.Columns {
		other, ok := b[col.Name]
		if ok && other.Type == col.Type {
			both[col.Name] = column{name: col.Name, float: col.Type == expr.Float.String(),
				stored: [2]string{col.Stored(), other.Stored()}}
		} else {
			c.result.Schema = append(c.result.Schema, SchemaDifference{col.Name, col.Type, other.Type})
		}
		delete(b, col.Name)
	}
	for _, col := range opts.B.Layout.Columns {
		if _, left := b[col.Name]; left {
			c.result.Schema = append(c.result.Schema, SchemaDifference{Column: col.Name, TypeB: col.Type})
		}
	}
	if err := c.takeKey(both); err != nil {
		return nil, err
	}
	wanted := opts.Columns
	if len(wanted) == 0 {
		for _, col := range opts.A.Layout.Columns {
			if _, ok := both[col.Name]; ok {
				wanted = append(wanted, col.Name)
			}
		}
	} else {
		c.result.Schema = slices.DeleteFunc(c.result.Schema,
			func(d SchemaDifference) bool { return !slices.Contains(wanted, d.Column) })
	}
	for _, name := range wanted {
		if err := c.take(name, both); err != nil && len(opts.Columns) > 0 && !c.differs(name) {
			return nil, err
		}
	}
	for _, col := range c.columns {
		c.result.Columns = append(c.result.Columns, col.name)
	}
	return c, nil
}

// takeKey adds the columns of the key: the one that was given, else the first
// that is known of both tables.
func (c *comparison) takeKey(both map[string]column) error {
	key := c.Key
	if len(key) == 0 && !c.ByRows {
		key = c.knownKey(both)
	}
	if c.Tolerance > 0 && len(key) == 0 {
		return &fault.Error{Kind: fault.Script,
			Message: "a tolerance needs a key: without one nothing says which rows belong together",
			Hint:    "name the fields of the key with {{set key}}"}
	}
	for _, name := range key {
		if err := c.take(name, both); err != nil {
			return err
		}
	}
	c.keys = len(c.columns)
	for _, col := range c.columns {
		c.result.Key = append(c.result.Key, col.name)
	}
	c.unique = c.keys > 0 && c.known(c.UniqueA, c.A) && c.known(c.UniqueB, c.B)
	return nil
}

// knownKey is the first key that both tables are known to have.
func (c *comparison) knownKey(both map[string]column) []string {
	for _, u := range c.UniqueA {
		comparable := !slices.ContainsFunc(u.Fields, func(name string) bool { _, ok := both[name]; return !ok })
		if !comparable || !slices.ContainsFunc(c.UniqueB,
			func(other plan.UniqueKey) bool { return sameFields(u.Fields, other.Fields) }) {
			continue
		}
		if c.result.KeyOf = u.Check; u.Check == "" {
			c.result.KeyOf = "the rows are distinct by it"
		}
		return u.Fields
	}
	return nil
}

// known reports whether no key can be twice in a table: rows with a NULL in it can.
func (c *comparison) known(unique []plan.UniqueKey, t *plan.Table) bool {
	for _, col := range t.Layout.Columns {
		if col.Nullable && slices.Contains(c.result.Key, col.Name) {
			return false
		}
	}
	return slices.ContainsFunc(unique, func(u plan.UniqueKey) bool { return sameFields(u.Fields, c.result.Key) })
}

// sameFields reports whether two lists have the same names.
func sameFields(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// differs reports whether a column is a difference of the schemas already.
func (c *comparison) differs(name string) bool {
	return slices.ContainsFunc(c.result.Schema, func(d SchemaDifference) bool { return d.Column == name })
}

// take adds a column that was asked for, once.
func (c *comparison) take(name string, both map[string]column) error {
	col, ok := both[name]
	switch {
	case !ok:
		return c.lacks(name)
	case !slices.ContainsFunc(c.columns, func(have column) bool { return have.name == name }):
		c.columns = append(c.columns, col)
	}
	return nil
}

// lacks returns the error for a column that cannot be compared.
func (c *comparison) lacks(name string) error {
	f := &fault.Error{Kind: fault.Script, Place: fault.Place{Field: name}}
	var types [2]string
	for i, t := range []*plan.Table{c.A, c.B} {
		var names []string
		for _, col := range t.Layout.Columns {
			names = append(names, col.Name)
			if col.Name == name {
				types[i] = col.Type
			}
		}
		if types[i] == "" && f.Message == "" {
			f.Message = fmt.Sprintf("the table of %s has no column %s", c.Names[i], name)
			if f.Hint = "columns: " + strings.Join(names, ", "); similar.Nearest(name, names) != "" {
				f.Hint = fmt.Sprintf("did you mean %s?", similar.Nearest(name, names))
			}
		}
	}
	if f.Message == "" {
		f.Message = fmt.Sprintf("column %s is %s in %s and %s in %s: the rows cannot be told apart by it", name,
			types[0], c.Names[0], types[1], c.Names[1])
		f.Hint = "choose a key of columns that have the same types in both"
	}
	return f
}
