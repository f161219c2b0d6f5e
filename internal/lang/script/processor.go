package script

import (
	"context"
	"strconv"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

func indexText(i int) string { return strconv.Itoa(i) }

// processor reads p of a table_custom_tfm_table: what p.* is.
func (l *loader) processor(ctx context.Context, d *nodeDraft) {
	switch d.node.Type {
	case CustomTable:
	case PyTableNode:
		l.pyTable(ctx, d)
		return
	default:
		return
	}
	v := d.o.one("custom_proc_type", "it is "+ProcPyCalc+" or "+ProcTag)
	if v == nil {
		return
	}
	switch v.Text {
	case ProcPyCalc:
		l.pyCalc(ctx, d)
	case ProcTag:
		l.tag(ctx, d)
	default:
		l.ErrorAt(v, d.o.keyPath("custom_proc_type"), "there is no processor %s", document.Quote(v.Text)).Hint =
			document.DidYouMean(v.Text, []string{ProcPyCalc, ProcTag})
	}
}

// pyFieldDraft is a calculated field before they are put in order.
type pyFieldDraft struct {
	field *PyField
	key   *document.Value
	v     *document.Value // its expression
	path  string
}

func (l *loader) pyCalc(ctx context.Context, d *nodeDraft) {
	o := l.part(d, "p", pyCalcShape)
	if o == nil {
		return
	}
	c := &PyCalc{}
	d.node.PyCalc, d.p = c, o
	var module *pyModule
	c.Code, module = l.pythonFiles(ctx, o)
	members := o.members("calculated_fields")
	if v := o.get("calculated_fields"); len(members) == 0 && (v == nil || v.Kind == document.Map) {
		o.missing("calculated_fields", "list the fields to calculate")
		return
	}
	d.calcs, d.calcsOK = map[string]expr.Type{}, true
	var drafts []*pyFieldDraft
	seen := map[string]*document.Value{}
	for _, e := range members {
		path := join(o.keyPath("calculated_fields"), e.Name)
		l.fieldName(e.Key, e.Name, path, "calculated field", seen)
		f := &pyFieldDraft{key: e.Key, path: path, field: &PyField{Name: e.Name, Pos: l.pos(e.Key)}}
		drafts = append(drafts, f)
		fo := l.object(e.Value, path, pyFieldShape)
		if fo != nil {
			fo.at = e.Key
			f.field.Type = l.columnType(fo, "type")
			f.field.Nullable = fo.boolean("nullable") || f.field.Type.Nested()
			f.v = fo.one("expression", "a calculated field needs a Python expression")
		}
		d.calcs[e.Name] = f.field.Type
		d.calcsOrder = append(d.calcsOrder, e.Name)
	}
	for _, f := range drafts {
		if f.v != nil && !l.IsFull() {
			l.pyField(d, f, module)
		}
	}
	l.pyOrder(c, drafts)
}

// pythonFiles fetches the Python sources; nil if one of them is missing, so
// that it is not known what they define.
func (l *loader) pythonFiles(ctx context.Context, o *object) (code []PyFile, module *pyModule) {
	urls := o.texts("python_code_urls")
	if !o.has("python_code_urls") {
		o.missing("python_code_urls", "list the Python files; [] if there are none")
		return nil, nil
	}
	module = newPyModule()
	for _, v := range urls {
		src := l.fetch(ctx, v.Text, v, o.keyPath("python_code_urls"), MaxPythonBytes)
		if src == nil {
			module = nil
			continue
		}
		code = append(code, PyFile{URL: v.Text, Text: src.Original})
		if module != nil {
			module.add(src)
		}
	}
	return code, module
}

// pyField checks one calculated field's references and calls.
func (l *loader) pyField(d *nodeDraft, f *pyFieldDraft, module *pyModule) {
	e := parsePyExpression(f.v.Text)
	f.field.Expr = strings.TrimSpace(f.v.Text)
	path := join(f.path, "expression")
	if e.problem != "" {
		l.pyError(f.v, path, e.start, e.end, e.problem)
		return
	}
	have := map[expr.Ref]bool{}
	for _, ref := range e.refs {
		if !have[ref.Ref] {
			have[ref.Ref] = true
			f.field.Refs = append(f.field.Refs, ref.Ref)
		}
		fields, known := d.reads, d.readsOK
		if ref.Alias == "p" {
			fields, known = d.calcs, true
		}
		if _, ok := fields[ref.Field]; known && !ok {
			l.pyError(f.v, path, ref.start, ref.end, ref.Alias+" has no field "+document.Quote(ref.Field)).Hint =
				document.SuggestKey(ref.Field, fields)
		}
	}
	if module == nil {
		return
	}
	for _, ref := range e.alien {
		if !e.bound[ref.Alias] && module.functions[ref.Alias] == nil && !module.star {
			l.pyError(f.v, path, ref.start, ref.end, ref.Alias+"."+ref.Field+
				" cannot be used in a calculated field").Hint =
				"allowed here: r.*, p.*"
		}
	}
	for _, call := range e.calls {
		l.pyCall(f.v, path, call, e, module)
	}
}

func (l *loader) pyError(v *document.Value, path string, start, end int, message string) *document.Diagnostic {
	start, end = v.Part(start, end)
	if v.Src.IsPending(v.Span()) {
		return &document.Diagnostic{}
	}
	return l.ErrorSpan(v.Src, start, end, path, "%s", message)
}

func (l *loader) pyCall(v *document.Value, path string, call *pyCall, e *pyExpression, module *pyModule) {
	if e.bound[call.name] {
		return
	}
	f := module.functions[call.name]
	if f == nil && isPyBuiltin(call.name) {
		f = builtinFunction(call.name)
	}
	switch {
	case f == nil && module.star:
	case f == nil:
		l.pyError(v, path, call.start, call.end, "function "+document.Quote(call.name)+
			" is not in the Python files").Hint =
			document.DidYouMean(call.name, module.words())
	default:
		if why := f.accepts(call); why != "" {
			at := l.pyError(v, path, call.start, call.end, "function "+document.Quote(call.name)+" "+why)
			at.Hint = "change the call, or the parameters of the function"
			if f.pos.Line > 0 && at.Severity != "" {
				at.Related = append(at.Related, f.pos)
			}
		}
	}
}

// pyOrder puts the calculated fields in an order in which each needs only
// earlier ones, otherwise in the order of the script.
func (l *loader) pyOrder(c *PyCalc, drafts []*pyFieldDraft) {
	byName := map[string]*pyFieldDraft{}
	for _, f := range drafts {
		byName[f.field.Name] = f
	}
	const open, done = 1, 2
	state := map[*pyFieldDraft]int{}
	var chain []*pyFieldDraft
	var visit func(f *pyFieldDraft)
	visit = func(f *pyFieldDraft) {
		if state[f] == open {
			l.pyCycle(chain, f)
		}
		if state[f] != 0 {
			return
		}
		state[f] = open
		chain = append(chain, f)
		for _, ref := range f.field.Refs {
			if next := byName[ref.Field]; ref.Alias == "p" && next != nil {
				visit(next)
			}
		}
		chain = chain[:len(chain)-1]
		state[f] = done
		c.Fields = append(c.Fields, f.field)
	}
	for _, f := range drafts {
		visit(f)
	}
}

func (l *loader) pyCycle(chain []*pyFieldDraft, f *pyFieldDraft) {
	i := len(chain) - 1
	for chain[i] != f {
		i--
	}
	names := []string{}
	var related []document.Pos
	for _, c := range chain[i:] {
		names = append(names, "p."+c.field.Name)
		if c != f {
			related = append(related, c.field.Pos)
		}
	}
	at := l.ErrorAt(f.key, f.path, "calculated fields need each other in a cycle: %s",
		strings.Join(append(names, "p."+f.field.Name), " -> "))
	at.Hint = "an arrow means: needs"
	at.Related = related
}

// tag reads a tag_and_denormalize processor.
func (l *loader) tag(ctx context.Context, d *nodeDraft) {
	o := l.part(d, "p", tagShape)
	if o == nil {
		return
	}
	t := &Tag{Pos: l.pos(o.where())}
	d.node.Tag, d.p = t, o
	if v := o.one("tag_field_name", "it is the name of the field p.<name> that holds the tag"); v != nil {
		l.fieldName(v, v.Text, o.keyPath("tag_field_name"), "field", map[string]*document.Value{})
		t.Field = v.Text
		d.calcs, d.calcsOK, d.calcsOrder = map[string]expr.Type{t.Field: expr.String}, true, []string{t.Field}
	}
	criteria, path := o.get("tag_criteria"), o.keyPath("tag_criteria")
	url := o.text("tag_criteria_url")
	switch {
	case criteria != nil && url != nil && url.Text != "":
		l.ErrorAt(url, o.keyPath("tag_criteria_url"), "tag_criteria and tag_criteria_url cannot both be given")
		return
	case criteria != nil:
	case url != nil && url.Text != "":
		src := l.fetch(ctx, url.Text, url, o.keyPath("tag_criteria_url"), document.MaxBytes)
		if src == nil {
			return
		}
		if criteria, path = l.tagFile(src), ""; criteria == nil {
			return
		}
		d.pulled = append(d.pulled, pulledFile{url.Text, src})
	case !o.has("tag_criteria_url"):
		o.missing("tag_criteria", "give the tags with their conditions, or tag_criteria_url")
		return
	default:
		l.ErrorAt(url, o.keyPath("tag_criteria_url"), "tag_criteria_url is empty")
		return
	}
	l.criteria(d, t, criteria, path)
}

// tagFile parses a file of criteria: JSON whatever its name, unless it says YAML.
func (l *loader) tagFile(src *document.Source) *document.Value {
	read := document.ReadJSON
	if document.IsYAML(src.Name) {
		read = document.ReadYAML
	}
	doc, fail := read(src)
	if fail != nil {
		l.AddSyntax(src, fail)
		return nil
	}
	if l.zeroBytes(doc, "", map[*document.Value]bool{}) {
		return nil
	}
	l.equalKeys(doc, "", map[*document.Value]bool{})
	return doc
}

func (l *loader) criteria(d *nodeDraft, t *Tag, v *document.Value, path string) {
	if v.Kind != document.Map {
		l.ErrorAt(v, path, "the criteria must be a map of tags to conditions, found %s", v.Kind)
		return
	}
	entries := l.uniqueEntries(v, path)
	if len(entries) == 0 {
		l.ErrorAt(v, path, "there are no tags")
	}
	sc := newScope("a tag's condition").nullable(d.nulls()).with("r", d.reads, d.readsOK)
	for _, e := range entries {
		if l.IsFull() {
			return
		}
		where := join(path, e.Name)
		if !e.Value.Scalar() || (e.Value.Kind != document.String && document.IsJSON(e.Value.Src.Name)) {
			l.ErrorAt(e.Value, where, "a tag's condition must be text, found %s", e.Value.Kind)
			continue
		}
		if strings.TrimSpace(e.Value.Text) == "" {
			l.ErrorAt(e.Value, where, "tag %s has no condition", document.Quote(e.Name))
			continue
		}
		t.Criteria = append(t.Criteria, TagCriterion{Tag: e.Name, Expr: l.condition(e.Value, where, sc)})
	}
}
