package expr

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"sync"
)

// typeSet is a set of argument types.
type typeSet uint16

func setOf(types ...Type) typeSet {
	var s typeSet
	for _, t := range types {
		s |= t.bit()
	}
	return s
}

func (s typeSet) has(t Type) bool { return s&t.bit() != 0 }

// kinds are the types that sets tell apart.
func kinds() [14]Type {
	return [...]Type{String, Int, Float, Bool, DateTime, Decimal, anyExact, Date, Instant, Month, Location, GoInt,
		Null, anyNested}
}

// bit is the place of t in sets, 0 for what is in none.
func (t Type) bit() typeSet {
	switch {
	case t.exact():
		t = anyExact
	case t.Nested():
		t = anyNested
	}
	for i, k := range kinds() {
		if t == k {
			return 1 << i
		}
	}
	return 0
}

// String lists the types as the reference page does.
func (s typeSet) String() string {
	switch s {
	case numeric():
		return "number"
	case ordered():
		return "number, string, date or time"
	case convertible():
		return "string, bool or number"
	case fixed():
		return "int or decimal"
	case times():
		return "datetime, timestamptz or date"
	case toTimes():
		return "datetime, timestamptz, date or string"
	case anyValue(), printable(), anyValue() | setOf(anyNested):
		return "any"
	case setOf(Int, GoInt):
		return "int"
	}
	var names []string
	for _, t := range kinds() {
		if t != Null && s.has(t) {
			names = append(names, t.String())
		}
	}
	return strings.Join(names, " or ")
}

// param is one parameter of a function.
type param struct {
	name  string
	types typeSet
}

// function is one function of the language: the checker, the suggestions, the
// SQL and the reference page all come from here.
type function struct {
	name      string
	group     string
	params    []param
	variadic  bool // the last parameter may be repeated
	result    Type // Invalid: found by check
	resultDoc string
	doc       string
	aggregate bool
	raises    bool
	other     []param // a second form, of another number of parameters; nil: none

	nullable    func(n *node) bool               // whether the value may be NULL; nil: if an argument may be
	takesNull   bool                             // the literal null can be an argument
	handlesNull bool                             // there for NULL: see Compiled.HandlesNull
	check       func(c *checker, n *node) *Error // sets the result type, folds constants; may be nil
	sql         func(r *renderer, n *node) string
}

// signature writes name(param type, …), both forms if there are two.
func (f *function) signature() string {
	if f.other != nil {
		return f.form(f.params) + " or " + f.form(f.other)
	}
	return f.form(f.params)
}

func (f *function) form(params []param) string {
	var b strings.Builder
	b.WriteString(f.name + "(")
	for i, p := range params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.name + " " + p.types.String())
	}
	if f.variadic {
		b.WriteString(", …")
	}
	b.WriteString(")")
	return b.String()
}

// functions lists every function in the order of the reference page.
func functions() []*function {
	return slices.Concat(conversionFunctions(), choiceFunctions(), nullFunctions(), textFunctions(),
		numberFunctions(), timeFunctions(), dateFunctions(), aggregateFunctions())
}

// functionTable finds functions by name. It is made once: a script of
// thousands of expressions would spend a third of
// its validation here. Nobody changes it.
var functionTable = sync.OnceValue(func() map[string]*function {
	table := map[string]*function{}
	for _, f := range functions() {
		table[f.name] = f
	}
	return table
})

// packages reports whether name is a package of functions or constants, and so not an alias.
func packages(name string) bool {
	switch name {
	case "time", "wfmodel", "math", "fmt", "strings", "re", "int", "float", "decimal2", "string":
		return true
	}
	return false
}

func (c *checker) call(n *node, x *ast.CallExpr) (*node, *Error) {
	name := c.e.text(c.e.span(x.Fun))
	if s, ok := x.Fun.(*ast.SelectorExpr); ok {
		name = s.X.(*ast.Ident).Name + "." + s.Sel.Name
	}
	f, ok := c.functions[name]
	if !ok {
		return nil, c.noFunction(c.e.span(x.Fun), name)
	}
	if f.aggregate {
		if err := c.aggregateAllowed(n, name); err != nil {
			return nil, err
		}
	}
	for _, arg := range x.Args {
		a, err := c.operand(arg)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, a)
		n.raises = n.raises || a.raises
	}
	if err := checkArguments(f, n); err != nil {
		return nil, err
	}
	n.op, n.fn, n.typ = opCall, f, f.result
	n.raises, n.null = n.raises || f.raises, anyNull(n.args)
	if f.check != nil {
		if err := f.check(c, n); err != nil {
			return nil, err
		}
	}
	n.raises = n.raises || n.grows()
	if f.nullable != nil && n.op == opCall {
		n.null = f.nullable(n)
	}
	if f.aggregate {
		n.null = c.mode.EmptyNull && n.null
	}
	return n, nil
}

// noFunction says what was meant: a name of elsewhere, else the nearest of ours.
func (c *checker) noFunction(at span, name string) *Error {
	err := at.errorf("there is no function %s", name)
	if hint := foreignWords[strings.ToLower(name)]; hint != "" { // AND(a, b) of sheets, not (a) of SQL
		return err.hint("%s", hint)
	}
	if hint, known := foreignHint(name); known {
		return err.hint("%s", hint)
	}
	if err.didYouMean(name, slices.Sorted(maps.Keys(c.functions))); err.Hint == "" {
		err.hint("docs/expressions.md lists the functions; others are in sql nodes, and in Python with py_calc")
	}
	return err
}

func (c *checker) aggregateAllowed(n *node, name string) *Error {
	if !c.mode.Aggregates {
		return n.at.errorf("%s is an aggregate: it can only be used in a field of a lookup with group: true", name).
			hint("look the table up in itself with group: true, or write a sql node with GROUP BY")
	}
	if c.nested > 0 {
		return n.at.errorf("%s is an aggregate: it must be the whole expression", name).
			hint("compute with it in the next node")
	}
	return nil
}

func checkArguments(f *function, n *node) *Error {
	params := f.params
	if f.other != nil && len(n.args) == len(f.other) {
		params = f.other
	}
	want := len(params)
	if len(n.args) != want && !(f.variadic && len(n.args) > want) {
		amount := plural(want, "argument")
		if f.variadic {
			amount = "at least " + amount
		}
		if f.other != nil {
			amount += " or " + plural(len(f.other), "argument")
		}
		return n.at.errorf("%s needs %s, not %d", f.name, amount, len(n.args)).
			hint("%s", f.signature())
	}
	for i, a := range n.args {
		p := params[min(i, want-1)]
		if p.types.has(a.typ) || a.typ == Null && f.takesNull && p.types != only(Bool) {
			continue
		}
		if a.typ.Nested() {
			return a.at.errorf("argument %d of %s cannot be a list or struct, and `%s` is one", i+1, f.name,
				shorten(a.text)).
				hint("expressions pass them on as they are, and is_null(…) says whether there is one; compute with " +
					"what is within them in a sql node")
		}
		err := a.at.errorf("argument %d of %s must be %s, but `%s` is %s", i+1, f.name, p.types, shorten(a.text), a.typ)
		if a.typ == GoInt && p.types.has(Int) {
			err.hint("int(%s) makes an int of it", shorten(a.text))
		} else {
			err.hint("%s", f.signature())
		}
		return err
	}
	return nil
}

func plural(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	}
	return string(appendInt(nil, n)) + " " + noun + "s"
}

// anyValue, number …: the argument types that functions share.
func anyValue() typeSet {
	return setOf(String, Int, GoInt, Float, Bool, Decimal, anyExact, DateTime, Date, Instant)
}
func printable() typeSet     { return anyValue() | setOf(Month) }
func convertible() typeSet   { return setOf(String, Bool) | numeric() }
func numeric() typeSet       { return fixed() | setOf(Float) }
func fixed() typeSet         { return setOf(Int, GoInt, Decimal, anyExact) }
func anyInt() typeSet        { return setOf(Int, GoInt) }
func ordered() typeSet       { return numeric() | times() | setOf(String) }
func times() typeSet         { return setOf(DateTime, Date, Instant) }
func toTimes() typeSet       { return times() | setOf(String) }
func only(t Type) typeSet    { return setOf(t) }
func text(n string) param    { return param{n, only(String)} }
func instant(n string) param { return param{n, only(DateTime)} }

// packageConstant resolves time.January, time.UTC and wfmodel.RunStart.
func (c *checker) packageConstant(n *node, pkg, name string) (*node, *Error) {
	all := packageConstants()
	if v, ok := all[pkg+"."+name]; ok {
		n.typ = v.typ
		return n.constant(v.val), nil
	}
	if f, ok := c.functions[pkg+"."+name]; ok {
		return nil, n.at.errorf("%s is a function", f.name).hint("call it: %s", f.signature())
	}
	names := append(slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(c.functions))...)
	return nil, n.at.errorf("there is no %s.%s", pkg, name).didYouMean(pkg+"."+name, names)
}
