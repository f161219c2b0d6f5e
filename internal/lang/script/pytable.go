package script

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// pyTableInputs are the forms in which a py_table function gets its rows.
func pyTableInputs() []string {
	return []string{InputLists, InputNumpy, InputPandas, InputPolars, InputArrow}
}

// What batch may say: how many rows a function without group_by gets.
const (
	batchRows  = "rows"
	batchTable = "table"
)

// pyTable reads p of a py_table: what p.* is, and the table's fields if w
// leaves them out.
func (l *loader) pyTable(ctx context.Context, d *nodeDraft) {
	o := l.part(d, "p", pyTableShape)
	if o == nil {
		return
	}
	t := &PyTable{Pos: l.pos(o.where())}
	d.node.PyTable, d.p = t, o
	var module *pyModule
	t.Code, module = l.pythonFiles(ctx, o)
	t.Input = o.choice("input", InputLists)
	l.pyTableArguments(o, t)
	l.pyTableFunction(o, t, module)
	l.pyTableGroups(d, o, t)
	l.pyTableColumns(d, o, t)
	l.pyTableReturns(d, o, t)
}

// pyTableFunction checks that the function is there and takes what it will be given.
func (l *loader) pyTableFunction(o *object, t *PyTable, module *pyModule) {
	v := o.one("function", "name the Python function that computes the rows")
	if v == nil {
		return
	}
	t.Function = strings.TrimSpace(v.Text)
	path := o.keyPath("function")
	if !isWord(t.Function) || t.Function[0] >= '0' && t.Function[0] <= '9' || isPyKeyword(t.Function) {
		l.ErrorAt(v, path, "%s is not the name of a function", document.Quote(t.Function)).Hint =
			"write the name alone: the function is given the rows as its only argument"
		return
	}
	if module == nil {
		return
	}
	f := module.functions[t.Function]
	switch {
	case f == nil && module.star:
	case f == nil:
		l.ErrorAt(v, path, "function %s is not in the Python files", document.Quote(t.Function)).Hint =
			document.DidYouMean(t.Function, slices.Sorted(maps.Keys(module.functions)))
	default:
		call := &pyCall{name: t.Function, positional: 1}
		for _, a := range t.Arguments {
			call.keywords = append(call.keywords, a.Name)
		}
		if why := f.accepts(call); why != "" {
			at := l.ErrorAt(v, path, "function %s %s", document.Quote(t.Function), why)
			at.Hint = "its first parameter gets the rows, the others are filled by p.arguments"
			if f.pos.Line > 0 && at.Severity != "" {
				at.Related = append(at.Related, f.pos)
			}
		}
	}
}

// pyTableArguments reads the constants that every call is given by name.
func (l *loader) pyTableArguments(o *object, t *PyTable) {
	seen := map[string]*document.Value{}
	for _, e := range o.members("arguments") {
		path := join(o.keyPath("arguments"), e.Name)
		l.fieldName(e.Key, e.Name, path, "argument", seen)
		if isPyKeyword(e.Name) {
			l.ErrorAt(e.Key, path, "%s is a keyword of Python", document.Quote(e.Name))
		}
		if !constant(e.Value) {
			l.ErrorAt(e.Value, path, "an argument is text, a number, a boolean or a list of them, found %s",
				e.Value.Kind)
			continue
		}
		t.Arguments = append(t.Arguments,
			PyArgument{Name: e.Name, JSON: json.RawMessage(canonicalJSON(e.Value, canonicalOptions{}))})
	}
}

func constant(v *document.Value) bool {
	if v.Kind != document.List {
		return v.Scalar()
	}
	for _, item := range v.Items {
		if !item.Scalar() {
			return false
		}
	}
	return true
}

// pyTableGroups reads which rows meet in one call.
func (l *loader) pyTableGroups(d *nodeDraft, o *object, t *PyTable) {
	t.Whole = o.choice("batch", batchRows) == batchTable
	v := o.text("group_by")
	if v == nil {
		if r := d.node.Reader; r != nil && len(r.Creators) > 1 {
			l.ErrorAt(d.r.get("tables"), d.r.keyPath("tables"), "a py_table without group_by reads one table").Hint =
				"say group_by, or put the tables together in a sql node: SELECT … UNION ALL SELECT …"
		}
		return
	}
	path := o.keyPath("group_by")
	if t.Whole {
		l.ErrorAt(v, path, "group_by and batch: table cannot both be given").Hint = "batch: table makes one group " +
			"of all rows"
	}
	if strings.TrimSpace(v.Text) == "" {
		l.ErrorAt(v, path, "group_by is empty").Hint = "name fields of r; for one call with all rows say batch: table"
		return
	}
	seen := map[string]bool{}
	for name := range strings.SplitSeq(v.Text, ",") {
		name = strings.TrimPrefix(strings.TrimSpace(name), "r.")
		switch {
		case name == "":
			l.ErrorAt(v, path, "group_by has an empty name")
		case seen[name]:
			l.ErrorAt(v, path, "group_by names %s twice", document.Quote(name))
		case l.readable(d, v, path, name) && l.isKey(v, path, name, d.reads[name]):
			t.GroupBy = append(t.GroupBy, name)
		}
		seen[name] = true
	}
}

// readable reports whether r has the field, and says so if it does not.
func (l *loader) readable(d *nodeDraft, v *document.Value, path, name string) bool {
	if _, ok := d.reads[name]; !ok && d.readsOK {
		l.ErrorAt(v, path, "r has no field %s", document.Quote(name)).Hint = document.SuggestKey(name, d.reads)
		return false
	}
	return d.readsOK
}

// pyTableColumns reads which columns of r the function gets.
func (l *loader) pyTableColumns(d *nodeDraft, o *object, t *PyTable) {
	if !o.has("columns") {
		t.Columns = d.readsOrder
		return
	}
	items, path := o.texts("columns"), o.keyPath("columns")
	if len(items) == 0 && len(o.list("columns")) == 0 && o.get("columns").Kind == document.List {
		l.ErrorAt(o.get("columns"), path, "columns is empty: the function would get nothing")
	}
	seen := map[string]bool{}
	for _, v := range items {
		name := strings.TrimPrefix(strings.TrimSpace(v.Text), "r.")
		if seen[name] {
			l.ErrorAt(v, path, "column %s is named twice", document.Quote(name))
		} else if l.readable(d, v, path, name) {
			t.Columns = append(t.Columns, name)
		}
		seen[name] = true
	}
}

// pyTableReturns reads the columns that the function gives back.
func (l *loader) pyTableReturns(d *nodeDraft, o *object, t *PyTable) {
	members := o.members("returns")
	if v := o.get("returns"); len(members) == 0 && (v == nil || v.Kind == document.Map) {
		o.missing("returns", "list the columns that the function returns, with their types")
		return
	}
	d.calcs, d.calcsOK = map[string]expr.Type{}, true
	seen := map[string]*document.Value{}
	for _, e := range members {
		path := join(o.keyPath("returns"), e.Name)
		l.fieldName(e.Key, e.Name, path, "returned column", seen)
		f := &PyField{Name: e.Name, Pos: l.pos(e.Key)}
		if e.Value.Kind == document.Map {
			if fo := l.object(e.Value, path, pyReturnShape); fo != nil {
				fo.at = e.Key
				f.Type, f.Nullable = l.columnType(fo, "type"), fo.boolean("nullable")
				if f.Round = fo.boolean("round"); f.Round && !rounds(f.Type) && f.Type != expr.Invalid {
					l.ErrorAt(fo.get("round"), fo.keyPath("round"), "column %s is %s, which is not rounded",
						document.Quote(e.Name), article(f.Type)).Hint = roundedTypes
				}
			}
		} else {
			f.Type = l.typeWord(e.Value, path)
		}
		f.Nullable = f.Nullable || f.Type.Nested()
		t.Returns = append(t.Returns, f)
		d.calcs[e.Name] = f.Type
		d.calcsOrder = append(d.calcsOrder, e.Name)
	}
}

// groupScope limits r.* behind a py_table to the keys of the group.
func (l *loader) groupScope(d *nodeDraft, sc scope) scope {
	t := d.node.PyTable
	if t == nil {
		return sc.with("r", nil, false)
	}
	if len(t.GroupBy) == 0 && d.p.has("group_by") {
		return sc.with("r", nil, false) // what is wrong with it is reported
	}
	if len(t.GroupBy) == 0 {
		return sc // the rows that are returned belong to no row of r
	}
	keys := map[string]expr.Type{}
	for _, name := range t.GroupBy {
		keys[name] = d.reads[name]
	}
	return sc.with("r", keys, true)
}
