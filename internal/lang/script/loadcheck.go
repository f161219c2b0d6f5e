package script

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// checkKinds are the keys of which a check has exactly one.
func checkKinds() []string {
	return []string{string(CheckNotNull), string(CheckUnique), string(CheckRange), string(CheckValues),
		string(CheckRows),
		string(CheckReferences), string(CheckFreshness), string(CheckExpression), string(CheckReconcile)}
}

// checkDraft is a check while it is being read.
type checkDraft struct {
	l     *loader
	d     *nodeDraft
	o     *object // its keys
	key   string  // the kind
	check *Check
	w     *rowShape
}

// rowShape describes the known columns of the rows that a node writes, or of a table.
type rowShape struct {
	what  string // for messages
	names []string
	types map[string]expr.Type
	nulls map[string]bool // fields that may be NULL
}

// scope returns a scope in which expressions refer to such rows by alias.
func (s *rowShape) scope(place, alias string) scope {
	nulls := map[expr.Ref]bool{}
	for name := range s.nulls {
		nulls[expr.Ref{Alias: alias, Field: name}] = true
	}
	return newScope(place).nullable(nulls).with(alias, s.types, true)
}

// writtenRows is the shape of the rows that a node writes; nil if it is not known.
func writtenRows(n *Node) *rowShape {
	s := &rowShape{types: map[string]expr.Type{}, nulls: map[string]bool{}}
	add := func(name string, t expr.Type, nullable bool) {
		s.names, s.types[name] = append(s.names, name), t
		if nullable {
			s.nulls[name] = true
		}
	}
	switch {
	case n.Table != nil:
		s.what = "table " + n.Table.Name
		for _, f := range n.Table.Fields {
			add(f.Name, f.Type, f.Nullable)
		}
	case n.Out != nil:
		s.what = "the file"
		for _, c := range n.Out.Columns {
			add(c.Name, c.Type, c.Nullable)
		}
	}
	if len(s.names) == 0 {
		return nil
	}
	return s
}

// checks reads the checks of a node's rows, once their types are known.
func (l *loader) checks(d *nodeDraft) {
	items := d.o.list("checks")
	if len(items) > MaxChecksCount {
		l.ErrorAt(d.o.get("checks"), d.o.keyPath("checks"), "the node has %d checks; the limit is %d", len(items),
			MaxChecksCount)
		return
	}
	w := writtenRows(d.node)
	if w == nil || d.node.Type == "" {
		return // what is wrong was reported
	}
	names := map[string]*document.Value{}
	for i, item := range items {
		if l.IsFull() {
			return
		}
		path := join(d.o.keyPath("checks"), indexText(i))
		o := l.object(item, path, checkShape)
		if o == nil {
			continue
		}
		c := &checkDraft{l: l, d: d, o: o, w: w, check: &Check{Pos: l.pos(o.where()), RowsMax: -1, Change: -1}}
		if !c.read() {
			continue
		}
		c.name(names)
		d.node.Checks = append(d.node.Checks, c.check)
	}
	if d.node.Policy == nil && len(d.node.CheckedTables()) > 0 {
		d.node.Policy = l.standard
	}
}

// checkedTables lists the nodes whose tables a node's checks name.
func (l *loader) checkedTables(d *nodeDraft) []*Node {
	v := d.o.get("checks")
	if v == nil || v.Kind != document.List {
		return nil
	}
	var out []*Node
	for _, item := range v.Items {
		for _, kind := range item.Entries {
			for _, e := range kind.Value.Entries {
				if n := l.script.byTable[e.Value.Text]; n != nil && n != d.node && strings.EqualFold(e.Name, "table") {
					out = append(out, n)
				}
			}
		}
	}
	return out
}

// read reads one check; false if it cannot be used.
func (c *checkDraft) read() bool {
	var kinds []string
	for _, k := range checkKinds() {
		if c.o.has(k) {
			kinds = append(kinds, k)
		}
	}
	switch {
	case len(kinds) == 0:
		d := c.l.ErrorAt(c.o.where(), c.o.path, "this check does not say what it checks")
		for _, k := range checkKinds() {
			d.Because(misspelledKey(c.o.path, k))
		}
		d.Hint = document.OneOf(checkKinds())
		return false
	case len(kinds) > 1:
		c.l.ErrorAt(c.o.keys[kinds[1]].Key, c.o.path, "a check is of one kind, this one is %s",
			strings.Join(kinds, " and ")).Hint = "make them items of their own: each begins with -"
		return false
	}
	c.key = kinds[0]
	c.check.Kind = CheckKind(c.key)
	c.check.Pos = c.l.pos(c.o.keys[c.key].Key)
	c.check.Severity = c.o.choice("severity", SeverityError)
	if c.check.Severity == SeverityApproval && c.d.node.Table == nil {
		c.l.ErrorAt(c.o.get("severity"), c.o.keyPath("severity"),
			"a file is checked before it is written: nobody could wait behind it").Hint =
			"put the check on the table that the node reads, or an approval in front of the node"
	}
	c.check.MaxRows = c.o.integer("max_rows", DefaultFailedRows)
	ok := true
	if v := c.o.expression("where"); v != nil {
		c.check.Where = c.l.condition(v, c.o.keyPath("where"), c.scope("a check's where"))
		ok = c.check.Where != nil
	}
	return c.readKind() && ok
}

func (c *checkDraft) scope(place string) scope { return c.w.scope(place, "w") }

func (c *checkDraft) readKind() bool {
	switch c.check.Kind {
	case CheckNotNull, CheckUnique:
		c.check.Fields = c.fields(c.o, c.key, c.w)
		c.needless()
		if c.check.Kind == CheckUnique && !c.keys(c.check.Fields) {
			return false
		}
		return len(c.check.Fields) > 0
	case CheckExpression:
		v := c.o.one(c.key, "a condition over w.*")
		if v == nil {
			return false
		}
		c.check.Expr = c.l.condition(v, c.o.keyPath(c.key), c.scope("a check"))
		return c.check.Expr != nil
	}
	shapes := map[CheckKind]*shape{CheckRange: checkRangeShape, CheckValues: checkValuesShape,
		CheckRows:       checkRowsShape,
		CheckReferences: checkReferencesShape, CheckFreshness: checkFreshnessShape, CheckReconcile: checkReconcileShape}
	o := c.l.object(c.o.get(c.key), c.o.keyPath(c.key), shapes[c.check.Kind])
	if o == nil {
		return false
	}
	o.at = c.o.keys[c.key].Key
	switch c.check.Kind {
	case CheckRange:
		return c.bounds(o)
	case CheckValues:
		return c.values(o)
	case CheckRows:
		return c.rows(o)
	case CheckReferences:
		return c.references(o)
	case CheckFreshness:
		return c.freshness(o)
	}
	return c.reconcile(o)
}

// needless warns of a not_null that nothing can break.
func (c *checkDraft) needless() {
	if c.check.Kind != CheckNotNull {
		return
	}
	for _, name := range c.check.Fields {
		if !c.w.nulls[name] {
			c.l.WarnAt(c.o.get(c.key), c.o.keyPath(c.key), "field %s cannot be NULL: it is not nullable",
				document.Quote(name)).Hint =
				"a file's empty cell becomes the type's zero value, unless column and field say nullable: true"
		}
	}
}

// name gives the check its name: the script's, or one made of what it does.
func (c *checkDraft) name(taken map[string]*document.Value) {
	v := c.o.expression("name")
	if v == nil {
		c.check.Name = c.ownName()
		for i := 2; taken[c.check.Name] != nil; i++ {
			c.check.Name = fmt.Sprintf("%s #%d", c.ownName(), i)
		}
		taken[c.check.Name] = c.o.where()
		return
	}
	path := c.o.keyPath("name")
	c.check.Name = v.Text
	if len([]rune(v.Text)) > MaxCheckNameChars ||
		strings.ContainsFunc(v.Text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		c.l.ErrorAt(v, path, "a check's name is one line of at most %d characters", MaxCheckNameChars)
		return
	}
	if first := taken[v.Text]; first != nil {
		c.l.ErrorAt(v, path, "the node has two checks named %s", document.Quote(v.Text)).Related =
			[]document.Pos{c.l.pos(first)}
		return
	}
	taken[v.Text] = v
}

func (c *checkDraft) ownName() string {
	switch c.check.Kind {
	case CheckRows:
		return c.key
	case CheckExpression:
		return document.Shorten(strings.Join(strings.Fields(c.check.Expr.Source()), " "), document.MaxShownTextChars)
	case CheckReconcile:
		return c.key + "(" + document.Shorten(c.check.Value.Source(), document.MaxShownTextChars) + ")"
	}
	return c.key + "(" + document.Shorten(strings.Join(c.check.Fields, ", "), document.MaxShownTextChars) + ")"
}

// fields reads names of fields: a list, or text such as a, b. nil after an error.
func (c *checkDraft) fields(o *object, key string, of *rowShape) []string {
	v := o.get(key)
	if v == nil {
		o.missing(key, "name the fields")
		return nil
	}
	names := o.names(key)
	if names == nil && v.Kind != document.List {
		return nil
	}
	var out []string
	for _, n := range names {
		switch _, known := of.types[n.name]; {
		case !known:
			c.l.ErrorAt(n.at, o.keyPath(key), "%s has no field %s", of.what, document.Quote(n.name)).Hint =
				document.DidYouMean(n.name, of.names)
			return nil
		case slices.Contains(out, n.name):
			c.l.ErrorAt(n.at, o.keyPath(key), "field %s is there twice", document.Quote(n.name))
			return nil
		case of.types[n.name] == expr.Invalid:
			return nil // reported where it is declared
		}
		out = append(out, n.name)
	}
	if len(out) == 0 {
		c.l.ErrorAt(v, o.keyPath(key), "%s names no field", key)
	}
	return out
}

// keys refuses lists and structs.
func (c *checkDraft) keys(names []string) bool {
	for _, name := range names {
		if !c.l.isKey(c.o.get(c.key), c.o.keyPath(c.key), name, c.w.types[name]) {
			return false
		}
	}
	return true
}

// field reads the name of one field and gives its type.
func (c *checkDraft) field(o *object) (expr.Type, bool) {
	v := o.one("field", "name the field that is checked")
	if v == nil {
		return expr.Invalid, false
	}
	t, known := c.w.types[v.Text]
	if !known {
		c.l.ErrorAt(v, o.keyPath("field"), "%s has no field %s", c.w.what, document.Quote(v.Text)).Hint =
			document.DidYouMean(v.Text, c.w.names)
		return t, false
	}
	if !c.l.isKey(v, o.keyPath("field"), v.Text, t) {
		return t, false
	}
	c.check.Fields = []string{v.Text}
	return t, t != expr.Invalid
}

func (c *checkDraft) bounds(o *object) bool {
	t, ok := c.field(o)
	if !ok {
		return false
	}
	if t == expr.Bool {
		c.l.ErrorAt(o.get("field"), o.keyPath("field"), "a bool has no range").Hint = "use expression: w." +
			c.check.Fields[0]
		return false
	}
	if !o.has("min") && !o.has("max") {
		o.missing("min or max", "a range has at least one of them")
		return false
	}
	bound := func(key string) *Constant {
		if !o.has(key) {
			return nil
		}
		v, good := c.constant(o.get(key), o.keyPath(key), t)
		ok = ok && good
		return v
	}
	c.check.Min, c.check.Max = bound("min"), bound("max")
	return ok
}

func (c *checkDraft) values(o *object) bool {
	t, ok := c.field(o)
	if !ok {
		return false
	}
	items := o.list("values")
	switch {
	case !o.has("values"):
		o.missing("values", "list the values that are accepted")
		return false
	case len(items) > MaxAcceptedValuesCount:
		c.l.ErrorAt(o.get("values"), o.keyPath("values"), "%d values; the limit is %d", len(items),
			MaxAcceptedValuesCount).Hint = "make a table of them and use references"
		return false
	case len(items) == 0 && o.get("values").Kind == document.List:
		c.l.ErrorAt(o.get("values"), o.keyPath("values"), "values lists nothing")
	}
	for _, item := range items {
		v, good := c.constant(item, o.keyPath("values"), t)
		if good {
			c.check.Values = append(c.check.Values, *v)
		}
		ok = ok && good
	}
	return ok && len(items) > 0
}

// timeLayouts are the forms of a datetime in a check; all are UTC unless they
// say otherwise.
func timeLayouts() []string {
	return []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, time.RFC3339, "2006-01-02T15:04:05"}
}

// constant reads a value that a field of type t is compared with.
func (c *checkDraft) constant(v *document.Value, path string, t expr.Type) (*Constant, bool) {
	if !v.Present() || !v.Scalar() {
		c.l.ErrorAt(v, path, "expected a value of type %s, found %s", t, v.Kind)
		return nil, false
	}
	text := v.Text
	layouts := []string{""}
	switch {
	case t == expr.DateTime:
		layouts = timeLayouts()
	case t != expr.String && strings.TrimSpace(text) == "":
		c.l.ErrorAt(v, path, "an empty text is not %s", article(t))
		return nil, false
	case t == expr.Date || t == expr.Instant:
		layouts = append(layouts, time.RFC3339Nano)
	case t == expr.Decimal && tooFine(text):
		c.l.ErrorAt(v, path, "%s has more than the two digits of a decimal2 behind the point", document.Quote(text))
		return nil, false
	}
	for _, layout := range layouts {
		if sql, err := expr.DefaultSQL(t, text, layout); err == nil {
			return &Constant{Text: text, SQL: sql}, true
		}
	}
	d := c.l.ErrorAt(v, path, "%s is not %s", document.Quote(text), article(t))
	if t == expr.DateTime {
		d.Hint = "write 2024-12-31 or 2024-12-31 23:59:59; it is UTC"
	}
	switch t {
	case expr.Date:
		d.Hint = "write 2024-12-31"
	case expr.Instant:
		d.Hint = "write 2024-12-31T23:59:59+01:00, with Z for UTC"
	}
	return nil, false
}

// tooFine reports whether a number has digits that a decimal2 would lose.
func tooFine(text string) bool {
	_, fraction, _ := strings.Cut(strings.TrimSpace(text), ".")
	return len(strings.TrimRight(fraction, "0")) > 2
}

func (c *checkDraft) rows(o *object) bool {
	c.check.RowsMin = int64(o.integer("min", 0))
	c.check.RowsMax = int64(o.integer("max", -1))
	if v := o.get("change_percent"); v != nil {
		f, ok := c.number(v, o.keyPath("change_percent"))
		if !ok {
			return false
		}
		c.check.Change = f
	}
	switch {
	case !o.has("min") && !o.has("max") && !o.has("change_percent"):
		o.missing("min, max or change_percent", "say how many rows there may be")
		return false
	case c.check.RowsMax >= 0 && c.check.RowsMin > c.check.RowsMax:
		c.l.ErrorAt(o.get("min"), o.keyPath("min"), "min is above max: no count of rows would pass")
		return false
	}
	return true
}

// number reads a number that is not negative.
func (c *checkDraft) number(v *document.Value, path string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSuffix(v.Text, "%"), 64)
	if !v.Scalar() || err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		c.l.ErrorAt(v, path, "expected a number that is not negative, found %s", describe(v))
		return 0, false
	}
	return f, true
}

func (c *checkDraft) freshness(o *object) bool {
	t, ok := c.field(o)
	if !ok {
		return false
	}
	if t == expr.Bool {
		c.l.ErrorAt(o.get("field"), o.keyPath("field"), "a bool is never newer than another").Hint =
			"name a datetime, or a number that grows"
		return false
	}
	c.check.Newer = o.boolean("newer_than_previous")
	v := o.expression("max_age")
	if v == nil {
		return true
	}
	if t != expr.DateTime && t != expr.Instant && t != expr.Date {
		c.l.ErrorAt(v, o.keyPath("max_age"), "max_age needs a datetime, a timestamptz or a date, but field %s is %s",
			c.check.Fields[0], article(t))
		return false
	}
	if c.check.MaxAge, ok = duration(v.Text); !ok {
		c.l.ErrorAt(v, o.keyPath("max_age"), "%s is not a length of time", document.Quote(v.Text)).Hint =
			"write 3d, 36h or 90m"
	}
	return ok
}

// duration reads a length of time above zero, in which d is a day.
func duration(text string) (time.Duration, bool) {
	const day = 24 * time.Hour
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * day, err == nil && n > 0 && n <= int(math.MaxInt64/day)
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d > 0
}

// target reads the key table.
func (c *checkDraft) target(o *object) *rowShape {
	v := o.one("table", "name the table to compare with")
	if v == nil {
		return nil
	}
	n := c.l.script.byTable[v.Text]
	if n == nil {
		c.l.noCreator(v, o.keyPath("table"), v.Text)
		return nil
	}
	c.check.Target, c.check.references = n, n != c.d.node
	return writtenRows(n)
}

func (c *checkDraft) references(o *object) bool {
	c.check.Fields = c.fields(o, "fields", c.w)
	target := c.target(o)
	if len(c.check.Fields) == 0 || target == nil {
		return false
	}
	if !o.has("to") {
		for _, name := range c.check.Fields {
			if _, known := target.types[name]; !known {
				o.missing("to", target.what+" has no field "+name+": name the fields that correspond")
				return false
			}
		}
		c.check.To = c.check.Fields
	} else if c.check.To = c.fields(o, "to", target); len(c.check.To) == 0 {
		return false
	}
	return c.correspond(o, "to", c.check.Fields, c.check.To, target)
}

// correspond checks that two lists of fields can be compared one by one.
func (c *checkDraft) correspond(o *object, key string, own, other []string, target *rowShape) bool {
	at := o.get(key)
	if at == nil {
		at = o.where()
	}
	if len(own) != len(other) {
		c.l.ErrorAt(at, o.keyPath(key), "%d fields are compared with %d", len(own),
			len(other)).Hint = "they correspond one by one"
		return false
	}
	for i, name := range own {
		if a, b := c.w.types[name], target.types[other[i]]; a != b && b != expr.Invalid {
			c.l.ErrorAt(at, o.keyPath(key), "field %s is %s, but %s of %s is %s", name, article(a),
				other[i], target.what, article(b))
			return false
		}
	}
	return true
}

func (c *checkDraft) reconcile(o *object) bool {
	target := c.target(o)
	if v := o.one("value", "an aggregate over w.*, such as sum(w.total)"); v != nil {
		c.check.Value = c.aggregate(v, o.keyPath("value"), c.scope("value"))
	}
	if target == nil {
		return false
	}
	if v := o.one("equals", "an aggregate over the other table's r.*, such as sum(r.price)"); v != nil {
		c.check.Equals = c.aggregate(v, o.keyPath("equals"), target.scope("equals", "r"))
	}
	if c.check.Value == nil || c.check.Equals == nil {
		return false
	}
	a, b := c.check.Value.Type(), c.check.Equals.Type()
	if a != b && (!isNumber(a) || !isNumber(b)) {
		c.l.ErrorAt(o.get("equals"), o.keyPath("equals"), "%s cannot be compared with %s", article(b), article(a))
		return false
	}
	return c.groups(o, target) && c.tolerance(o, a, b)
}

func (c *checkDraft) aggregate(v *document.Value, path string, sc scope) *expr.Compiled {
	x := c.l.compile(v, path, sc, expr.Mode{Round: true, Aggregates: true})
	if x != nil && !x.Aggregate() {
		c.l.ErrorAt(v, path, "%s must be an aggregate", sc.place).Hint = "such as sum(…), count() or max(…)"
		return nil
	}
	return x
}

func isNumber(t expr.Type) bool {
	return t.IsNumber()
}

// groups reads by: names that both tables have, or a map of names here to names there.
func (c *checkDraft) groups(o *object, target *rowShape) bool {
	v := o.get("by")
	if v == nil {
		return true
	}
	if v.Kind != document.Map {
		if c.check.By = c.fields(o, "by", c.w); len(c.check.By) == 0 {
			return false
		}
		for _, name := range c.check.By {
			if _, known := target.types[name]; !known {
				c.l.ErrorAt(v, o.keyPath("by"), "%s has no field %s", target.what,
					document.Quote(name)).Hint = "write by: {" +
					name + ": its name there}"
				return false
			}
		}
		c.check.ByEq = c.check.By
		return c.correspond(o, "by", c.check.By, c.check.ByEq, target)
	}
	for _, e := range o.members("by") {
		if _, known := c.w.types[e.Name]; !known {
			c.l.ErrorAt(e.Key, o.keyPath("by"), "%s has no field %s", c.w.what, document.Quote(e.Name)).Hint =
				document.DidYouMean(e.Name, c.w.names)
			return false
		}
		if _, known := target.types[e.Value.Text]; !known || !e.Value.Scalar() {
			c.l.ErrorAt(e.Value, o.keyPath("by"), "%s has no field %s", target.what,
				document.Quote(e.Value.Text)).Hint =
				document.DidYouMean(e.Value.Text, target.names)
			return false
		}
		c.check.By, c.check.ByEq = append(c.check.By, e.Name), append(c.check.ByEq, e.Value.Text)
	}
	return c.correspond(o, "by", c.check.By, c.check.ByEq, target)
}

func (c *checkDraft) tolerance(o *object, a, b expr.Type) bool {
	const wholeMax, digitsMax = 18, 10 // digits before and behind the point
	c.check.Tolerance = "0"
	v := o.get("tolerance")
	if v == nil {
		return true
	}
	if !isNumber(a) || !isNumber(b) {
		c.l.ErrorAt(v, o.keyPath("tolerance"), "tolerance needs numbers, but the values are %s", a)
		return false
	}
	f, ok := c.number(v, o.keyPath("tolerance"))
	if !ok {
		return false
	}
	c.check.Tolerance = strconv.FormatFloat(f, 'f', -1, 64)
	whole, fraction, _ := strings.Cut(c.check.Tolerance, ".")
	if len(whole) > wholeMax || len(fraction) > digitsMax && a != expr.Float && b != expr.Float {
		c.l.ErrorAt(v, o.keyPath("tolerance"), "the tolerance has more digits than the values")
		return false
	}
	return true
}
