package script

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// queryTables lists what r.tables of a sql node says: tables under their own
// names, or a map of names to tables.
func (l *loader) queryTables(d *nodeDraft) []*document.Entry {
	v := d.r.get("tables")
	switch {
	case v == nil:
		return nil
	case v.Kind == document.Map:
		return d.r.members("tables")
	}
	var out []*document.Entry
	for _, item := range d.r.texts("tables") {
		out = append(out, &document.Entry{Name: item.Text, Key: item, Value: item})
	}
	return out
}

// sqlNode reads the query of a sql node, has it described and gives the table
// its fields.
func (l *loader) sqlNode(ctx context.Context, d *nodeDraft) {
	if d.node.Type != SQLTable {
		return
	}
	q := &SQLQuery{Ordered: true}
	d.node.Query = q
	if v := d.o.get("ordered"); v != nil {
		q.Ordered = d.o.boolean("ordered")
	}
	known := l.queryInputs(d, q)
	known = l.queryKeys(d, q, known) && known
	text, path := l.queryText(ctx, d)
	if text == nil || d.node.Table == nil {
		return
	}
	q.Pos = l.pos(text)
	if text.Style == document.BlockStyle || text.Style == document.RawStyle {
		first := len(text.Text) - len(strings.TrimLeft(text.Text, " \t\r\n"))
		start, _ := text.Part(first, first)
		q.Pos = text.Src.Pos(text.Src.Origin(start, false))
	}
	if v := d.w.get("fields"); v != nil && v.Kind == document.List {
		l.ErrorAt(v, d.w.keyPath("fields"), "fields of a sql node is a map of names to types").Hint =
			"write {name: type}, or leave fields out: they are inferred from the query"
		return
	}
	if !known || l.IsFull() {
		return
	}
	if l.src.Describe == nil {
		if !d.w.has("fields") {
			d.w.missing("fields", "nobody is here to infer them from the query")
		}
		return
	}
	l.describe(ctx, d, text, path)
}

// queryInputs resolves the tables; false if the fields of one are not known.
func (l *loader) queryInputs(d *nodeDraft, q *SQLQuery) bool {
	known := true
	path := d.r.keyPath("tables")
	seen := map[string]*document.Value{}
	for _, e := range l.queryTables(d) {
		if !e.Value.Scalar() || !e.Value.Present() {
			l.ErrorAt(e.Value, join(path, e.Name), "the name of a table is expected here, found %s", e.Value.Kind)
			known = false
			continue
		}
		l.fieldName(e.Key, e.Name, join(path, e.Name), "table in a query", seen)
		in := QueryInput{Name: e.Name, Table: e.Value.Text, Creator: l.script.byTable[e.Value.Text]}
		q.Inputs = append(q.Inputs, in)
		if in.Creator == nil {
			l.noCreator(e.Value, join(path, e.Name), in.Table)
			known = false
			continue
		}
		fields := in.Creator.Table.Fields
		if !l.drafts[in.Creator].fieldsOK ||
			slices.ContainsFunc(fields, func(f *Field) bool { return f.Type == expr.Invalid }) {
			known = false // what is wrong there was reported there
		}
	}
	return known
}

// queryKeys reads the fields by which the query is evaluated; false if they
// cannot be used.
func (l *loader) queryKeys(d *nodeDraft, q *SQLQuery, known bool) bool {
	if !d.o.has("by") {
		return true
	}
	path := d.o.keyPath("by")
	names := d.o.names("by")
	if len(names) == 0 {
		l.ErrorAt(d.o.get("by"), path, "by names no field").Hint = "name fields that all tables of the query have"
	}
	ok := len(names) > 0
	for _, n := range names {
		switch {
		case slices.Contains(q.By, n.name):
			l.ErrorAt(n.at, path, "field %s is there twice", document.Quote(n.name))
			ok = false
		case known:
			ok = l.queryKey(n, path, q) && ok
		}
		q.By = append(q.By, n.name)
	}
	return ok
}

// queryKey requires that all inputs have a field, of one type.
func (l *loader) queryKey(key namedAt, path string, q *SQLQuery) bool {
	var first *Field
	for _, in := range q.Inputs {
		f := in.Creator.Table.Field(key.name)
		switch {
		case f == nil:
			at := l.ErrorAt(key.at, path, "table %s has no field %s", document.Quote(in.Table),
				document.Quote(key.name))
			at.Hint = cmp.Or(document.SuggestKey(key.name, fieldTypes(in.Creator.Table)),
				"all tables that the query reads have it: leave by out, or join that table in a node before")
			return false
		case first != nil && f.Type != first.Type:
			l.ErrorAt(key.at, path, "field %s is %s in table %s and %s in table %s", document.Quote(key.name), f.Type,
				document.Quote(in.Table), first.Type, document.Quote(q.Inputs[0].Table)).Hint =
				"convert it in the w.fields of one of them"
			return false
		}
		if !l.isKey(key.at, path, key.name, f.Type) {
			return false
		}
		first = f
	}
	return true
}

// queryText gives the query: the script's own text, or all of a file's.
func (l *loader) queryText(ctx context.Context, d *nodeDraft) (text *document.Value, path string) {
	o := d.o
	inline, url := o.expression("query"), o.expression("query_url")
	switch {
	case inline != nil && url != nil:
		l.ErrorAt(o.keys["query_url"].Key, o.keyPath("query_url"), "a sql node has either query or query_url").Related =
			[]document.Pos{l.pos(o.keys["query"].Key)}
		return nil, ""
	case inline != nil:
		return inline, o.keyPath("query")
	case url == nil:
		o.missing("query", "write one SELECT over the tables in r.tables")
		return nil, ""
	}
	src := l.fetch(ctx, url.Text, url, o.keyPath("query_url"), document.MaxBytes)
	if src == nil {
		return nil, ""
	}
	if bad := document.InvalidUTF8(src.Text); bad >= 0 {
		l.ErrorSpan(src, bad, bad+1, o.keyPath("query_url"), "the text is not UTF-8").Hint =
			"save the file with the encoding UTF-8"
		return nil, ""
	}
	d.pulled = append(d.pulled, pulledFile{url.Text, src})
	text = &document.Value{Src: src, Kind: document.String, Style: document.RawStyle,
		Text: strings.TrimPrefix(src.Text, document.ByteOrderMark)}
	text.Off, text.End = len(src.Text)-len(text.Text), len(src.Text)
	return text, o.keyPath("query_url")
}

// describe asks what the query gives, and completes or checks the fields.
func (l *loader) describe(ctx context.Context, d *nodeDraft, text *document.Value, path string) {
	q := d.node.Query
	ask := QueryText{Text: text.Text, Others: slices.Sorted(maps.Keys(l.script.byTable)), By: q.By}
	for _, in := range q.Inputs {
		ask.Tables = append(ask.Tables, QueryTable{Name: in.Name, Fields: in.Creator.Table.Fields})
	}
	info, problems, err := l.askDescriber(ctx, ask)
	if err != nil {
		at := l.ErrorAt(text, path, "the query could not be checked: %s", err)
		at.Cause = &fault.Error{Kind: fault.Of(err).Kind, Message: "check a query", Err: err}
		return
	}
	for _, p := range problems {
		l.queryProblem(text, path, p)
	}
	if info == nil {
		return
	}
	q.Info = info
	for _, f := range info.Files {
		f.Reader.Pos = q.Pos
		for i := range f.Reader.URLs {
			f.Reader.URLs[i].Pos = q.Pos
		}
	}
	for _, name := range info.Unused {
		for _, e := range l.queryTables(d) {
			if e.Name == name {
				l.WarnAt(e.Key, join(d.r.keyPath("tables"), name), "the query does not read %s",
					document.Quote(name)).Hint =
					"the node waits for its table all the same: leave it out"
			}
		}
	}
	if d.w.has("fields") {
		l.declaredFields(d, text, path)
	} else {
		l.inferredFields(d, text, path)
	}
}

func (l *loader) askDescriber(ctx context.Context, q QueryText) (*QueryInfo, []QueryProblem, error) {
	if l.describer == nil {
		var err error
		if l.describer, err = l.src.Describe(ctx); err != nil {
			return nil, nil, err
		}
	}
	return l.describer.Describe(ctx, q)
}

func (l *loader) queryProblem(text *document.Value, path string, p QueryProblem) {
	if text.Src.IsPending(text.Span()) {
		return
	}
	start, end := text.Part(p.Start, p.End)
	d := l.AddSpan(p.Severity, text.Src, start, end, path, p.Message)
	d.Hint = p.Hint
}

// declaredFields compares the fields with the query's columns.
func (l *loader) declaredFields(d *nodeDraft, text *document.Value, path string) {
	columns := map[string]*QueryColumn{}
	for i := range d.node.Query.Info.Columns {
		c := &d.node.Query.Info.Columns[i]
		if columns[c.Name] != nil {
			l.columnProblem(text, path, *c, "the query gives two columns %s", document.Quote(c.Name)).Hint =
				"name one of them with AS"
		}
		columns[c.Name] = c
	}
	for _, f := range d.fields {
		c := columns[f.field.Name]
		delete(columns, f.field.Name)
		at := join(d.w.keyPath("fields"), f.field.Name)
		switch {
		case c == nil:
			var names []string
			for _, c := range d.node.Query.Info.Columns {
				names = append(names, c.Name)
			}
			l.ErrorAt(f.o.where(), at, "the query gives no column %s", document.Quote(f.field.Name)).Hint =
				document.DidYouMean(f.field.Name, names)
		case f.field.Type == expr.Invalid || c.holds(f.field.Type):
		default:
			l.ErrorAt(f.o.where(), at, "the query gives %s as %s, which %s cannot hold without loss",
				document.Quote(c.Name), c.SQLType, f.field.Type).Hint = castHint(c.Name, f.field.Type)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		l.columnProblem(text, path, *columns[name], "the query gives a column %s that fields does not have",
			document.Quote(name)).Hint = "add it to w.fields, or leave it out of the SELECT"
	}
}

// columnProblem reports an error at what gives a column, or at the whole query.
func (l *loader) columnProblem(text *document.Value, path string, c QueryColumn, format string,
	args ...any) *document.Diagnostic {
	if c.Start >= c.End || text.Src.IsPending(text.Span()) {
		return l.ErrorAt(text, path, format, args...)
	}
	start, end := text.Part(c.Start, c.End)
	return l.ErrorSpan(text.Src, start, end, path, format, args...)
}

// castHint says how a query gives a column of a type.
func castHint(name string, t expr.Type) string {
	x := "CAST(… AS " + t.SQL() + ")"
	if t == expr.DateTime {
		x = "date_trunc('millisecond', CAST(… AS " + t.SQL() + "))"
	}
	return "write " + x + " AS " + name
}

// inferredFields makes the fields of the query's columns.
func (l *loader) inferredFields(d *nodeDraft, text *document.Value, path string) {
	seen := map[string]*document.Value{}
	for _, c := range d.node.Query.Info.Columns {
		f := &Field{Name: c.Name, Nullable: true, Pos: d.node.Query.Pos, ExprPos: d.node.Query.Pos}
		named := isWord(c.Name) && (c.Name[0] < '0' || c.Name[0] > '9')
		if named { // of others no expression can be made
			d.node.Table.Fields = append(d.node.Table.Fields, f)
		}
		switch {
		case !named:
			l.columnProblem(text, path, c, "the query gives a column %s, which is not a name for a field",
				document.Quote(c.Name)).Hint = "name it with AS: letters, digits and underscores, beginning " +
				"with a letter"
			continue
		case seen[strings.ToLower(c.Name)] != nil:
			l.columnProblem(text, path, c, "the query gives two columns %s", document.Quote(c.Name)).Hint =
				"name one of them with AS; names that differ only by case are the same"
			continue
		case slices.Contains(reservedFields(), strings.ToLower(c.Name)):
			l.columnProblem(text, path, c, "the name %s of the query's column is reserved",
				document.Quote(c.Name)).Hint =
				"give it another name with AS"
			continue
		case len(c.Fits) == 0:
			l.columnProblem(text, path, c, "the query gives %s as %s, which is none of the types of fields",
				document.Quote(c.Name), c.SQLType).Hint = c.Advice
			continue
		}
		seen[strings.ToLower(c.Name)] = text
		f.Type = c.Fits[0]
	}
	d.fieldsOK = true
}
