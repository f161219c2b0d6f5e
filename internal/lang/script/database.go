package script

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// MaxQueryBytes bounds a query that a database is asked.
const MaxQueryBytes = 1 << 20

var (
	fileSchemes     = []string{"file", "http", "https", "sftp", "s3"}
	databaseSchemes = []string{"postgres", "postgresql", "mysql", "mariadb", "sqlite", "redis", "rediss"}
)

// inputURL checks an input's address: of a file, or of a database where a table or a
// query is read.
func (l *loader) inputURL(o *object, v *document.Value) {
	path := o.keyPath("urls")
	switch is := address.Database(v.Text); {
	case address.Redis(v.Text):
		l.ErrorAt(v, path, "tables are published to Redis, not read from it").Hint = "read what the table is made of"
	case is && !o.has("table") && !o.has("query"):
		l.ErrorAt(v, path, "%s is the address of a database, but nothing says what is read there",
			document.Quote(address.RedactText(v.Text))).Hint =
			"add table: schema.name, or query: SELECT …, beside urls"
	case !is && o.namesDatabase() && strings.TrimSpace(v.Text) != "":
		l.ErrorAt(v, path, "%s is not the address of a database, of which a table or query could be read",
			document.Quote(address.RedactText(v.Text))).Hint =
			"write " + address.DatabaseForms
	case is:
		l.databaseURL(v, path)
	default:
		l.fileURL(v, path, fileSchemes...)
	}
}

// namesDatabase reports whether a reader's urls name databases.
func (o *object) namesDatabase() bool {
	v := o.get("urls")
	return v != nil && slices.ContainsFunc(v.Items, func(u *document.Value) bool { return address.Database(u.Text) })
}

// databaseURL checks the address of a database.
func (l *loader) databaseURL(v *document.Value, path string) {
	if address.Password(v.Text) {
		l.ErrorAt(v, path, "there is a password in the address").Hint =
			"declare it as an environment value with secret: true and write {env.NAME} in its place, or leave it to " +
				"what the database's own clients read (PGPASSWORD, ~/.pgpass, MYSQL_PWD, REDISCLI_AUTH)"
		return
	}
	if strings.Contains(v.Text, "#") {
		l.ErrorAt(v, path, "there is a # in the address").Hint =
			"say what is read with table or query; in a name or password # is written as %23"
		return
	}
	// what is wrong with a name is seen no more when it has its directory before it
	if address.Scheme(v.Text) == "sqlite" || address.Redis(v.Text) {
		if _, err := address.Parse(l.script.Reveal(v.Text)); err != nil {
			f := fault.Of(l.script.hideError(err))
			l.ErrorAt(v, path, "%s", f.Message).Hint = f.Hint
			return
		}
	}
	l.fileURL(v, path, databaseSchemes...)
}

// databaseReader reads what is read of databases, if urls are of some.
func (l *loader) databaseReader(o *object, f *FileReader) {
	if !o.namesDatabase() {
		o.misplaced("a file_table reads files", "table", "query")
		return
	}
	table, query := o.text("table"), o.text("query")
	switch {
	case table != nil && query != nil:
		l.ErrorAt(query, o.keyPath("query"), "table and query cannot both be given")
	case table != nil:
		if f.Table = table.Text; slices.Contains(strings.Split(f.Table, "."), "") {
			l.ErrorAt(table, o.keyPath("table"), "%s is not the name of a table", document.Quote(f.Table)).Hint =
				"write name, or schema.name"
			f.Table = ""
		}
	case query != nil:
		if f.Query = query.Text; strings.TrimSpace(f.Query) == "" || len(f.Query) > MaxQueryBytes {
			l.ErrorAt(query, o.keyPath("query"), "a query is a text of at most %d bytes", MaxQueryBytes)
			f.Query = ""
		}
	}
	if !f.Database() {
		return
	}
	name := f.Table
	if name == "" {
		name = fmt.Sprintf("query-%.4x", sha256.Sum256([]byte(f.Query)))
	}
	for i, u := range f.URLs {
		f.URLs[i].URL = address.OfTable(u.URL, name)
	}
	o.ignored("a table of a database is read", "csv")
	o.drop("csv")
}

// tableColumns writes r.columns from what a table or query has, unless the script lists
// them: types says what columns are to be read as instead.
func (l *loader) tableColumns(ctx context.Context, d *nodeDraft, f *FileReader) {
	o := d.r
	switch v := o.get("columns"); {
	case v != nil && o.has("types"):
		l.ErrorAt(o.keys["types"].Key, o.keyPath("types"), "columns and types cannot both be given").Hint =
			"with types the columns are those of the table; columns lists them itself"
		fallthrough
	case v != nil:
		l.shortTableColumns(d)
		return
	}
	have := l.askColumns(ctx, o, f)
	if have == nil {
		return
	}
	at := o.keys["urls"].Key
	if o.has("types") {
		at = o.keys["types"].Key
	}
	declared, used := o.members("types"), map[string]bool{}
	m := mapAt(at)
	headers := make([]string, len(have))
	for i, c := range have {
		headers[i] = c.Name
	}
	names := identifiers(headers)
	for i, c := range have {
		if first := slices.Index(headers, c.Name); first < i {
			l.ErrorAt(at, o.keyPath("urls"), "columns %d and %d of the query are both called %s", first+1, i+1,
				document.Quote(c.Name)).Hint = "give one another name in the query: AS name"
			return
		}
		short, key := shortColumn{typ: textAt(at, c.Type.String())}, textAt(at, c.Name)
		if c.Layout != "" {
			short.layout = textAt(at, c.Layout)
		}
		if e := declaredType(declared, c.Name, names[i]); e != nil {
			used[e.Name] = true
			if !isText(e.Value) && !isShortMap(e.Value) {
				l.ErrorAt(e.Value, join(o.keyPath("types"), e.Name), "a column's type is text, found %s", e.Value.Kind)
				continue
			}
			given := l.shortColumn(e.Value, join(o.keyPath("types"), e.Name))
			if t, _ := expr.ParseType(given.typ.Text); given.layout == nil &&
				(t == expr.DateTime || t == expr.Instant ||
					t == c.Type) {
				given.layout = short.layout // in which the database writes it
			}
			short, key = given, e.Key
		}
		l.warnNumbered(at, o.keyPath("urls"), c.Name, names[i])
		short.required = c.Required
		short.nullable = short.nullable || !c.Required && short.otherwise == nil
		m.Entries = append(m.Entries, columnEntry(names[i], key, short, c.Name, false))
	}
	for _, e := range declared {
		if !used[e.Name] {
			l.ErrorAt(e.Key, join(o.keyPath("types"), e.Name), "there is no column %s", document.Quote(e.Name)).Hint =
				document.DidYouMean(e.Name, headers)
		}
	}
	if o.has("types") {
		o.drop("types")
	}
	o.add("columns", m)
}

// shortTableColumns replaces columns that are given as text. What can be NULL in a
// database is not known here: all can.
func (l *loader) shortTableColumns(d *nodeDraft) {
	e := d.r.keys["columns"]
	if e.Value.Kind == document.Map {
		columns := own(e)
		for _, c := range columns.Entries {
			if c.Value.Kind != document.String {
				continue
			}
			v := *c.Value
			if word, rest, _ := strings.Cut(v.Text, " "); !strings.HasSuffix(word, "?") &&
				!strings.Contains(v.Text, "=") {
				v.Text = strings.TrimSpace(word + "? " + rest)
			}
			c.Value = &v
		}
	}
	l.shortColumns(d)
}

// askColumns asks the first database; nil after an error.
func (l *loader) askColumns(ctx context.Context, o *object, f *FileReader) []FileColumn {
	if len(f.URLs) == 0 {
		return nil
	}
	v := o.get("urls").Items[0]
	switch {
	case v.Src.IsPending(v.Span()):
		return nil // the missing parameter is the problem
	case address.Password(v.Text), address.Redis(v.Text):
		return nil // inputURL has said so
	case l.src.TableColumns == nil:
		l.ErrorAt(v, o.keyPath("urls"), "columns cannot be taken from databases here").Hint =
			"list them: columns: {name: type}"
		return nil
	}
	columns, err := l.src.TableColumns(ctx, l.revealed(strings.Split(f.URLs[0].URL, "#")[0]), f.Table, f.Query)
	err = l.script.hideError(err)
	if err == nil && len(columns) == 0 {
		err = fault.New(fault.UserData, "it has no columns")
	}
	if err == nil {
		l.script.Looked = append(l.script.Looked, columns)
		return columns
	}
	at, path := v, o.keyPath("urls")
	known := fault.Of(err)
	if known.Kind == fault.Script {
		for _, key := range []string{"query", "table"} {
			if q := o.get(key); q != nil {
				at, path = q, o.keyPath(key)
			}
		}
	}
	d := l.ErrorAt(at, path, "cannot take the columns from %s: %s", address.Redact(f.URLs[0].URL),
		errorWithoutPlace(known))
	d.Cause, d.Hint = known, known.Hint
	if d.Hint == "" {
		d.Hint = "or list the columns: columns: {name: type}"
	}
	return nil
}

// errorWithoutPlace returns an error's text without its place.
func errorWithoutPlace(f *fault.Error) string {
	plain := *f
	plain.Place = fault.Place{}
	return plain.Error()
}

// tableModes lists the ways of writing into a table of a database that already has rows.
var tableModes = []string{"append", "replace", "merge"}

// databaseWriter reads where rows go that go to a database.
func (l *loader) databaseWriter(o *object, w *FileWriter) {
	t := w.Target
	if t == nil {
		o.misplaced("files are written", "table", "mode", "key")
		return
	}
	files := []string{"csv", "parquet", "json", "excel", "index", "format", "manifest"}
	o.ignored("a table of a database is written", files...)
	for _, key := range files {
		o.drop(key)
	}
	if v := o.get("url_template"); v != nil && (ExpandURL(v.Text, 1, 0) != v.Text) {
		l.ErrorAt(v, o.keyPath("url_template"),
			"a table of a database is written as a whole: its address has neither {batch_idx} nor {run_id}")
	}
	if v := o.one("table", "name the table that is written: name, or schema.name"); v != nil {
		if t.Table = v.Text; slices.Contains(strings.Split(t.Table, "."), "") {
			l.ErrorAt(v, o.keyPath("table"), "%s is not the name of a table", document.Quote(t.Table)).Hint =
				"write name, or schema.name"
		}
	}
	if v := o.one("mode", "say what becomes of the rows that the table has: mode: replace, append or merge"); v != nil {
		t.Mode = o.choice("mode", "")
	}
	switch v := o.get("key"); {
	case v != nil && v.Kind == document.List:
		for _, name := range o.texts("key") {
			t.Key = append(t.Key, name.Text)
		}
	case v != nil:
		for name := range strings.SplitSeq(o.str("key"), ",") {
			t.Key = append(t.Key, strings.TrimSpace(name))
		}
	}
	redis := address.Redis(w.URL)
	switch {
	case redis && t.Mode != "" && t.Mode != "replace":
		l.ErrorAt(o.get("mode"), o.keyPath("mode"), "a table is published to Redis as a whole").Hint = "write mode: replace"
	case redis && len(t.Key) == 0:
		o.missing("key", "name the columns whose values are the keys of the rows: key: [id]")
	case redis:
	case t.Mode == "merge" && len(t.Key) == 0:
		o.missing("key", "name the columns that say which row is which: key: [id]")
	case t.Mode != "" && t.Mode != "merge" && len(t.Key) > 0:
		l.ErrorAt(o.get("key"), o.keyPath("key"), "key has a meaning with mode: merge, and in Redis, only")
	}
	w.URL = address.OfTable(w.URL, t.Table)
}

// targetColumns checks the columns that go to a database.
func (l *loader) targetColumns(o *object, w *FileWriter) {
	if w.Target == nil || len(w.Columns) == 0 {
		return
	}
	var names []string
	for _, c := range w.Columns {
		switch {
		case w.Parquet || c.Header == "":
			l.ErrorAt(o.get("columns"), o.keyPath("columns"), "column %s has no name in the database",
				document.Quote(c.Name)).Hint = "write the short form: name, or {name: expression}"
			return
		case slices.Contains(names, c.Header):
			l.ErrorAt(o.get("columns"), o.keyPath("columns"), "two columns are called %s", document.Quote(c.Header))
		}
		names = append(names, c.Header)
	}
	for _, k := range w.Target.Key {
		if !slices.Contains(names, k) {
			l.ErrorAt(o.get("key"), o.keyPath("key"), "the key has %s, which is no column of what is written",
				document.Quote(k)).Hint = document.DidYouMean(k, names)
		}
	}
}
