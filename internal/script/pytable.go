package script

import (
	"context"
	"encoding/json"
	"strings"

	"thalweg/internal/expr"
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
	t.Input = o.choice("input", InputLists, pyTableInputs()...)
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
	t.Function = strings.TrimSpace(v.text)
	path := o.keyPath("function")
	if !isWord(t.Function) || t.Function[0] >= '0' && t.Function[0] <= '9' || isPyKeyword(t.Function) {
		l.errorAt(v, path, "%s is not the name of a function", quote(t.Function)).Hint = "write the name alone: the function is given the rows as its only argument"
		return
	}
	if module == nil {
		return
	}
	f := module.functions[t.Function]
	switch {
	case f == nil && module.star:
	case f == nil:
		l.errorAt(v, path, "function %s is not in the Python files", quote(t.Function)).Hint = didYouMean(t.Function, sortedKeys(module.functions))
	default:
		call := &pyCall{name: t.Function, positional: 1}
		for _, a := range t.Arguments {
			call.keywords = append(call.keywords, a.Name)
		}
		if why := f.accepts(call); why != "" {
			at := l.errorAt(v, path, "function %s %s", quote(t.Function), why)
			at.Hint = "its first parameter gets the rows, the others are filled by p.arguments"
			if f.pos.Line > 0 && at.Severity != "" {
				at.Related = append(at.Related, f.pos)
			}
		}
	}
}

// pyTableArguments reads the constants that every call is given by name.
func (l *loader) pyTableArguments(o *object, t *PyTable) {
	seen := map[string]*value{}
	for _, e := range o.members("arguments") {
		path := join(o.keyPath("arguments"), e.name)
		l.fieldName(e.key, e.name, path, "argument", seen)
		if isPyKeyword(e.name) {
			l.errorAt(e.key, path, "%s is a keyword of Python", quote(e.name))
		}
		if !constant(e.val) {
			l.errorAt(e.val, path, "an argument is text, a number, a boolean or a list of them, found %s", e.val.kind)
			continue
		}
		t.Arguments = append(t.Arguments, PyArgument{Name: e.name, JSON: json.RawMessage(canonicalJSON(e.val, canonicalOptions{}))})
	}
}

func constant(v *value) bool {
	if v.kind != listKind {
		return v.scalar()
	}
	for _, item := range v.items {
		if !item.scalar() {
			return false
		}
	}
	return true
}

// pyTableGroups reads which rows meet in one call.
func (l *loader) pyTableGroups(d *nodeDraft, o *object, t *PyTable) {
	t.Whole = o.choice("batch", batchRows, batchRows, batchTable) == batchTable
	v := o.text("group_by")
	if v == nil {
		return
	}
	path := o.keyPath("group_by")
	if t.Whole {
		l.errorAt(v, path, "group_by and batch: table cannot both be given").Hint = "batch: table makes one group of all rows"
	}
	if strings.TrimSpace(v.text) == "" {
		l.errorAt(v, path, "group_by is empty").Hint = "name fields of r; for one call with all rows say batch: table"
		return
	}
	seen := map[string]bool{}
	for _, name := range strings.Split(v.text, ",") {
		name = strings.TrimPrefix(strings.TrimSpace(name), "r.")
		switch {
		case name == "":
			l.errorAt(v, path, "group_by has an empty name")
		case seen[name]:
			l.errorAt(v, path, "group_by names %s twice", quote(name))
		case l.readable(d, v, path, name):
			t.GroupBy = append(t.GroupBy, name)
		}
		seen[name] = true
	}
}

// readable reports whether r has the field, and says so if it does not.
func (l *loader) readable(d *nodeDraft, v *value, path, name string) bool {
	if _, ok := d.reads[name]; !ok && d.readsOK {
		l.errorAt(v, path, "r has no field %s", quote(name)).Hint = suggestKey(name, d.reads)
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
	if len(items) == 0 && len(o.list("columns")) == 0 && o.get("columns").kind == listKind {
		l.errorAt(o.get("columns"), path, "columns is empty: the function would get nothing")
	}
	seen := map[string]bool{}
	for _, v := range items {
		name := strings.TrimPrefix(strings.TrimSpace(v.text), "r.")
		if seen[name] {
			l.errorAt(v, path, "column %s is named twice", quote(name))
		} else if l.readable(d, v, path, name) {
			t.Columns = append(t.Columns, name)
		}
		seen[name] = true
	}
}

// pyTableReturns reads the columns that the function gives back.
func (l *loader) pyTableReturns(d *nodeDraft, o *object, t *PyTable) {
	members := o.members("returns")
	if v := o.get("returns"); len(members) == 0 && (v == nil || v.kind == mapKind) {
		o.missing("returns", "list the columns that the function returns, with their types")
		return
	}
	d.calcs, d.calcsOK = map[string]expr.Type{}, true
	seen := map[string]*value{}
	for _, e := range members {
		path := join(o.keyPath("returns"), e.name)
		l.fieldName(e.key, e.name, path, "returned column", seen)
		f := &PyField{Name: e.name, Pos: l.pos(e.key)}
		if e.val.kind == mapKind {
			if fo := l.object(e.val, path, pyReturnShape); fo != nil {
				fo.at = e.key
				f.Type, f.Nullable = l.columnType(fo, "type"), fo.boolean("nullable")
			}
		} else {
			f.Type = l.typeWord(e.val, path)
		}
		t.Returns = append(t.Returns, f)
		d.calcs[e.name] = f.Type
		d.calcsOrder = append(d.calcsOrder, e.name)
	}
}

// groupScope is what r.* is behind a py_table: the keys of the group.
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
