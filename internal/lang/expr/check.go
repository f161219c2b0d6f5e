package expr

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scope says which fields can be referenced: alias → field → type.
type Scope map[string]map[string]Type

// Mode holds the rules of an expression's place in the script.
type Mode struct {
	// decimals are rounded to 2 digits after each operation (table fields, file columns, aggregates); false in having,
	// filter, tags, rules
	Round      bool
	Aggregates bool // an aggregate is allowed as the root

	// Nullable says which fields may be NULL; nil: none. A field that may not
	// be must not be NULL in the data: an expression over such fields is never NULL.
	Nullable func(Ref) bool
	// Zoned gives the layout of datetimes that have zones of their own, whose
	// columns are of ZonedType; "" for all others. nil: there are none.
	Zoned func(Ref) string
	// Unstored says which fields are as a file has them, finer than a table
	// keeps them: datetimes with microseconds, decimals with more than two
	// digits after the point. nil: none.
	Unstored func(Ref) bool
	// Values gives the expressions that references stand for, as having sees
	// them: see Compiled.Finer. nil: none.
	Values    func(Ref) *Compiled
	MeanFloat bool // avg of ints is a float; else, as in Capillaries, an int
	EmptyNull bool // aggregates over no value are NULL, not the type's zero value
	Null      Type // type of an expression that is just null; Invalid: it is refused
}

// Compiled is a type-checked expression. It is never changed after Check.
type Compiled struct {
	e       *Expr
	root    *node
	mode    Mode
	present string // see Among
}

// Type returns the type of the value.
func (c *Compiled) Type() Type { return c.root.typ }

// Source returns the text that was parsed.
func (c *Compiled) Source() string { return c.e.src }

// Quoted is Source as messages quote it: on one line, and not all of a long one.
func (c *Compiled) Quoted() string { return shorten(c.Source()) }

// Nullable reports whether the value may be NULL.
func (c *Compiled) Nullable() bool { return c.root.null }

// HandlesNull reports whether the expression says itself what becomes of a
// NULL: whether it uses null, is_null or coalesce.
func (c *Compiled) HandlesNull() bool { return handlesNull(c.root) }

func handlesNull(n *node) bool {
	if n.op == opNull || n.fn != nil && n.fn.handlesNull {
		return true
	}
	return slices.ContainsFunc(n.args, handlesNull)
}

// Notes lists what is probably not meant although it can be computed.
func (c *Compiled) Notes() []*Error {
	var out []*Error
	var walk func(n *node)
	walk = func(n *node) {
		if n.note != nil {
			out = append(out, n.note)
		}
		for _, a := range n.args {
			walk(a)
		}
	}
	walk(c.root)
	return out
}

// Refs lists the distinct references in order of first appearance.
func (c *Compiled) Refs() []Ref { return c.e.Refs() }

// Aggregate reports whether the root is an aggregate.
func (c *Compiled) Aggregate() bool { return c.root.fn != nil && c.root.fn.aggregate }

// Ordered reports whether it is an aggregate that depends on the order of the
// rows: DuckDB holds all that it gathers.
func (c *Compiled) Ordered() bool {
	ref := func(r Ref) string { return r.Field }
	return c.Aggregate() && c.SQL(ref, "o") != c.SQL(ref, "")
}

// Check gives every part its type and folds constants. The error is an *Error.
func (e *Expr) Check(scope Scope, mode Mode) (*Compiled, error) {
	c := &checker{e: e, scope: scope, mode: mode, functions: functionTable()}
	root, err := c.node(e.root)
	if err != nil {
		return nil, err
	}
	if root.typ == Month || root.typ == Location {
		return nil, root.at.errorf("%s is not a value", root.typ.phrase()).
			hint("it can only be an argument of time.Date")
	}
	if root.typ == Null {
		if mode.Null == Invalid {
			return nil, root.at.errorf("null has no type here").hint("give it one, as in int(null) or string(null)")
		}
		root.typedNull(mode.Null)
	}
	return &Compiled{e: e, root: root, mode: mode}, nil
}

type checker struct {
	e         *Expr
	scope     Scope
	mode      Mode
	functions map[string]*function
	nested    int
}

func (c *checker) node(x ast.Expr) (*node, *Error) {
	at := c.e.span(x)
	n := &node{at: at, text: c.e.text(at)}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return c.node(x.X)
	case *ast.BasicLit:
		return c.literal(n, x)
	case *ast.Ident:
		return c.ident(n, x)
	case *ast.SelectorExpr:
		return c.selector(n, x)
	case *ast.CallExpr:
		return c.call(n, x)
	case *ast.UnaryExpr:
		return c.unary(n, x)
	case *ast.BinaryExpr:
		return c.binary(n, x)
	}
	return nil, at.errorf("this syntax is not supported") // Parse has refused it already
}

func (c *checker) operand(x ast.Expr) (*node, *Error) {
	c.nested++
	defer func() { c.nested-- }()
	return c.node(x)
}

func (c *checker) literal(n *node, x *ast.BasicLit) (*node, *Error) {
	switch x.Kind {
	case token.STRING:
		n.typ, n.raw = String, x.Value
		if strings.HasPrefix(x.Value, "`") {
			return n.constant(strings.Trim(x.Value, "`")), nil
		}
		return n.constant(strings.Trim(x.Value, `"`)), nil
	case token.INT:
		if v, err := strconv.ParseInt(x.Value, 10, 64); err == nil {
			n.typ = Int
			return n.constant(v), nil
		}
		v, ok := parseNumber(x.Value)
		if !ok {
			return nil, n.at.errorf("%s is not a number", x.Value)
		}
		n.typ = Decimal
		if _, fits := v.shape(); !fits {
			return nil, n.at.errorf("%s has more than %d digits", x.Value, wideDigits)
		}
		return n.constant(v), nil
	default:
		v, err := strconv.ParseFloat(x.Value, 64)
		if err != nil {
			return nil, n.at.errorf("%s is outside the range of float", x.Value)
		}
		n.typ = Float
		return n.constant(v), nil
	}
}

func (c *checker) ident(n *node, x *ast.Ident) (*node, *Error) {
	if x.Name == "true" || x.Name == "false" {
		n.typ = Bool
		return n.constant(x.Name == "true"), nil
	}
	if x.Name == "null" {
		return n.typedNull(Null), nil
	}
	if _, ok := c.functions[x.Name]; ok {
		return nil, n.at.errorf("%s is a function", x.Name).hint("call it: %s(…)", x.Name)
	}
	err := n.at.errorf("unknown name %s", x.Name)
	for _, alias := range slices.Sorted(maps.Keys(c.scope)) {
		if _, ok := c.scope[alias][x.Name]; ok {
			return nil, err.hint("did you mean %s.%s?", alias, x.Name)
		}
	}
	if strings.EqualFold(x.Name, "true") || strings.EqualFold(x.Name, "false") {
		return nil, err.hint("did you mean %s?", strings.ToLower(x.Name))
	}
	if strings.EqualFold(x.Name, "null") || x.Name == "nil" || x.Name == "None" {
		return nil, err.hint("did you mean null?")
	}
	return nil, err.hint("fields are written alias.field, text between double quotes")
}

func (c *checker) selector(n *node, x *ast.SelectorExpr) (*node, *Error) {
	alias, field := x.X.(*ast.Ident).Name, x.Sel.Name
	if packages(alias) {
		return c.packageConstant(n, alias, field)
	}
	fields, ok := c.scope[alias]
	if !ok {
		err := n.at.errorf("%s.* cannot be used here", alias)
		if len(c.scope) == 0 {
			return nil, err.hint("no fields can be used here")
		}
		aliases := slices.Sorted(maps.Keys(c.scope))
		var have []string
		for _, a := range aliases {
			if _, ok := c.scope[a][field]; ok {
				have = append(have, a+"."+field)
			}
		}
		if len(have) > 0 {
			return nil, err.hint("did you mean %s?", strings.Join(have, " or "))
		}
		return nil, err.hint("allowed: %s.*", strings.Join(aliases, ".*, "))
	}
	t, ok := fields[field]
	if !ok {
		err := n.at.errorf("there is no field %s.%s", alias, field)
		var names []string
		for f := range fields {
			names = append(names, alias+"."+f)
		}
		return nil, err.nearest(alias+"."+field, names)
	}
	n.op, n.ref, n.typ, n.zone = opRef, Ref{alias, field}, t, time.UTC
	n.dec = decimalType{scale: columnScale}
	if t.exact() {
		n.dec = exactDecimal(t)
	} else if c.mode.Unstored != nil && c.mode.Unstored(n.ref) {
		n.dec, n.unstored = openDecimal(), true
	}
	if c.mode.Zoned != nil && t == DateTime {
		if n.layout = c.mode.Zoned(n.ref); n.layout != "" {
			n.zone = nil
		}
	}
	n.null = c.mode.Nullable != nil && c.mode.Nullable(n.ref)
	if c.mode.Values != nil {
		if v := c.mode.Values(n.ref); v != nil && v.Finer() {
			n.standsFor(v.root)
		}
	}
	return n, nil
}

// standsFor makes the reference n one to a value as it was computed.
func (n *node) standsFor(value *node) {
	n.dec, n.zone, n.bits = value.dec, value.zone, value.bits
	if n.typ == DateTime && value.zone == nil {
		n.layout = ZonedLayout
	}
}

func (c *checker) unary(n *node, x *ast.UnaryExpr) (*node, *Error) {
	a, err := c.operand(x.X)
	if err != nil {
		return nil, err
	}
	if a.typ == Null {
		return nil, noOperand(a, x.Op)
	}
	if lit, ok := x.X.(*ast.BasicLit); ok && lit.Kind == token.INT && x.Op == token.SUB {
		// The smallest int: its digits alone are one more than the largest has.
		if v, err := strconv.ParseInt("-"+lit.Value, 10, 64); err == nil {
			n.typ = Int
			return n.constant(v), nil
		}
	}
	n.args, n.raises, n.null = []*node{a}, a.raises, a.null
	if x.Op == token.NOT {
		if a.typ != Bool {
			return nil, n.at.errorf("! needs a bool, not %s", a.typ)
		}
		n.op, n.typ = opNot, Bool
		return n, nil
	}
	if !a.typ.numeric() {
		return nil, n.at.errorf("- needs a number, not %s", a.typ)
	}
	n.op, n.typ, n.dec, n.finite = opNeg, a.typ, a.dec, a.finite
	if a.typ == GoInt {
		n.typ = Int
	}
	if n.typ == Int {
		n.raises, n.bits = true, a.width()
	}
	return foldNegation(n), nil
}

func (t Type) numeric() bool { return t == Int || t == GoInt || t == Float || t.IsDecimal() }

func (c *checker) binary(n *node, x *ast.BinaryExpr) (*node, *Error) {
	for _, o := range operands(x) {
		a, err := c.operand(o)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, a)
		n.raises = n.raises || a.raises
	}
	n.tok, n.null = x.Op, anyNull(n.args)
	at := span{int(x.OpPos) - c.e.base, len(x.Op.String())}
	for i, a := range n.args {
		if a.typ != Null {
			continue
		}
		if x.Op == token.EQL || x.Op == token.NEQ {
			return nil, comparesNull(at, x.Op, n.args[1-i])
		}
		return nil, noOperand(a, x.Op)
	}
	literalsBesideExact(n.args)
	switch x.Op {
	case token.LAND, token.LOR:
		return c.logic(n, at)
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
		return c.arithmetic(n, at)
	}
	return c.compare(n, at)
}

// comparesNull refuses x == null, which would be NULL for every x.
func comparesNull(at span, tok token.Token, x *node) *Error {
	err := at.errorf("a comparison with null is never true")
	switch {
	case x.typ == Null:
		return err
	case tok == token.NEQ:
		return err.hint("write !is_null(%s)", shorten(x.text))
	}
	return err.hint("write is_null(%s)", shorten(x.text))
}

func noOperand(n *node, tok token.Token) *Error {
	return n.at.errorf("null cannot be an operand of %s", tok).
		hint("it can be an argument of iif and coalesce; is_null(…) tests for it")
}

func (c *checker) logic(n *node, at span) (*node, *Error) {
	for _, a := range n.args {
		if a.typ != Bool {
			err := a.at.errorf("%s needs bools, but `%s` is %s", n.tok, shorten(a.text), a.typ)
			if a.typ == String && n.tok == token.LOR {
				return nil, err.hint("texts are put together with +")
			}
			return nil, err.hint("write a comparison, such as %s == …", shorten(a.text))
		}
	}
	n.typ, n.op = Bool, opAnd
	if n.tok == token.LOR {
		n.op = opOr
	}
	return n, nil
}

// mismatch explains why two operands do not go together.
func mismatch(n *node, at span) *Error {
	a, b := n.args[0], n.args[1]
	err := at.errorf("cannot apply %s to %s and %s", n.tok, a.typ, b.typ)
	switch {
	case a.typ == String && b.typ.numeric():
		err.hint("convert one side: %s(%s) or string(%s)", conversion(b.typ), shorten(a.text), shorten(b.text))
	case b.typ == String && a.typ.numeric():
		err.hint("convert one side: %s(%s) or string(%s)", conversion(a.typ), shorten(b.text), shorten(a.text))
	case a.typ == DateTime && b.typ == DateTime && n.tok == token.SUB:
		err.hint("time.DiffMilli(%s, %s) gives milliseconds", shorten(a.text), shorten(b.text))
	case a.typ == DateTime && b.typ == String:
		err.hint("time.Parse(layout, %s) makes a datetime", shorten(b.text))
	case b.typ == DateTime && a.typ == String:
		err.hint("time.Parse(layout, %s) makes a datetime", shorten(a.text))
	case (a.typ == DateTime || a.typ == Date || a.typ == Instant) && b.typ.numeric() && n.tok != token.ADD &&
		n.tok != token.SUB:
		err.hint("a day is written time.Parse(`2006-01-02`, `2024-12-31`)")
	case (a.typ == Bool) != (b.typ == Bool) && a.op != 0:
		err.hint("a < b < c is written a < b && b < c")
	default:
		hintTimes(err, a, b)
	}
	return err
}

func conversion(t Type) string {
	switch {
	case t == GoInt:
		return "int"
	case t.exact():
		return "decimal"
	}
	return t.String()
}

func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxQuoteBytes {
		cut := maxQuoteBytes
		for cut > 0 && s[cut]&0xC0 == 0x80 {
			cut--
		}
		s = s[:cut] + "…"
	}
	return s
}

func (c *checker) compare(n *node, at span) (*node, *Error) {
	a, b := n.args[0], n.args[1]
	n.op, n.typ = opCompare, Bool
	switch {
	case a.typ.numeric() && b.typ.numeric():
		t := pairType(a, b)
		if t == Decimal {
			n.raises = n.raises || a.dec.wide || b.dec.wide
		}
		n.args = []*node{c.convert(a, t), c.convert(b, t)}
	case a.typ == DateTime && b.typ == Instant || a.typ == Instant && b.typ == DateTime:
		n.args = []*node{asDateTime(a), asDateTime(b)}
	case a.typ != b.typ || a.typ == Month || a.typ == Location:
		return nil, mismatch(n, at)
	case a.typ.Nested():
		return nil, at.errorf("lists and structs are not compared").
			hint("is_null(…) says whether there is one; compare what is within them in a sql node")
	case a.typ == Bool && n.tok != token.EQL && n.tok != token.NEQ:
		return nil, at.errorf("bools can only be compared with == and !=")
	}
	return n, nil
}

// pairType is the numeric pair rule: float wins, then decimal, else int.
func pairType(a, b *node) Type {
	switch {
	case a.typ == Float || b.typ == Float:
		return Float
	case a.typ.IsDecimal() || b.typ.IsDecimal():
		return Decimal
	}
	return Int
}

// convert widens n to a number type by the pair rule.
func (c *checker) convert(n *node, t Type) *node {
	if n.typ == t || (n.typ == GoInt && t == Int) || n.typ.exact() && t == Decimal {
		return n
	}
	out := &node{op: opConvert, typ: t, args: []*node{n}, at: n.at, text: n.text, raises: n.raises, null: n.null,
		finite: true}
	if n.isConst() {
		return foldConversion(out, n.val)
	}
	out.raises = out.raises || t == Decimal
	return out
}

func (c *checker) arithmetic(n *node, at span) (*node, *Error) {
	a, b := n.args[0], n.args[1]
	if n.tok == token.ADD && a.typ == String && b.typ == String {
		return concatenation(n)
	}
	if a.typ == Date && (n.tok == token.ADD || n.tok == token.SUB) {
		if t := dateResult(n.tok, b.typ); t != Invalid {
			n.op, n.typ, n.raises = opArith, t, true
			return n, nil
		}
	}
	if !a.typ.numeric() || !b.typ.numeric() {
		return nil, mismatch(n, at)
	}
	n.op, n.typ = opArith, pairType(a, b)
	if n.tok == token.REM && n.typ != Int {
		return nil, at.errorf("%% needs two ints, not %s and %s", a.typ, b.typ)
	}
	n.args = []*node{c.convert(a, n.typ), c.convert(b, n.typ)}
	if n.typ == Int {
		n.bits = widthOf(n.tok, a, b)
	}
	n.raises = n.raises || n.args[0].raises || n.args[1].raises || n.typ != Float
	if n.typ == Decimal {
		if a.typ.exact() || b.typ.exact() {
			return c.exactArithmetic(n, at)
		}
		if err := c.decimalArithmetic(n, at); err != nil {
			return nil, err
		}
	}
	return foldArithmetic(n, c.mode.Round)
}

// concatenation flattens + of strings, so that it renders as one call.
func concatenation(n *node) (*node, *Error) {
	var parts []*node
	for _, a := range n.args {
		if a.op == opConcat {
			parts = append(parts, a.args...)
		} else {
			parts = append(parts, a)
		}
	}
	merged := parts[:1:1]
	for _, p := range parts[1:] {
		last := merged[len(merged)-1]
		if last.isConst() && p.isConst() {
			both := &node{typ: String, at: n.at, text: n.text}
			x, y := last.val.(string), p.val.(string)
			if err := both.constantText(len(x)+len(y), func() string { return x + y }); err != nil {
				return nil, err
			}
			merged[len(merged)-1] = both
			continue
		}
		merged = append(merged, p)
	}
	n.op, n.typ, n.args = opConcat, String, merged
	if len(merged) == 1 {
		return n.constant(merged[0].val), nil
	}
	n.raises = n.raises || n.grows()
	return n, nil
}

// decimalArithmetic finds the physical type of the result.
func (c *checker) decimalArithmetic(n *node, at span) *Error {
	a, b := n.args[0].dec, n.args[1].dec
	scale := max(a.scale, b.scale)
	product, files := n.tok == token.MUL, a.ofFiles() || b.ofFiles()
	if product {
		scale = a.scale + b.scale
		if scale > wideDigits && !files {
			return at.errorf("the exact product has %d digits after the point, at most %d can be kept",
				scale, wideDigits).
				hint("compute with float(…)")
		}
	}
	switch {
	case c.mode.Round:
		n.dec = decimalType{scale: columnScale}
	case n.tok == token.QUO || product && files:
		n.dec = decimalType{wide: true, scale: quotientScale}
	default:
		n.dec = decimalType{wide: true, scale: scale, fine: files}
	}
	return nil
}
