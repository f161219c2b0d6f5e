package script

import (
	"cmp"
	"fmt"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// fileWriter reads w of a table_file.
func (l *loader) fileWriter(d *nodeDraft) {
	o := d.w
	if d.node.Type != TableFile || o == nil {
		return
	}
	w := &FileWriter{Pos: l.pos(o.where()), Form: FormCSV, Quote: QuoteMinimal, Codec: "gzip"}
	d.node.Out = w
	if v := o.one("url_template", "it is the file's address; {batch_idx} is replaced by the number of the batch"); v !=
		nil {
		if address.Database(v.Text) {
			l.databaseURL(v, o.keyPath("url_template"))
			w.Target = &DatabaseTarget{}
		} else {
			l.fileURL(v, o.keyPath("url_template"), "file", "sftp", "s3")
		}
		w.URL = v.Text
		start, end := v.Span()
		l.templates[v.Src] = append(l.templates[v.Src], document.Span{Start: start, End: end})
	}
	l.databaseWriter(o, w)
	csv := l.object(o.get("csv"), o.keyPath("csv"), csvWriterShape)
	if v := csv.text("separator"); v != nil && v.Text == "" {
		l.emptySeparator(v, csv.keyPath("separator"))
	}
	if sep := csv.str("separator"); sep != "" {
		w.Separator = sep
		v := csv.get("separator")
		if named := separatorNamed(sep); named != "" && !l.src.Lenient {
			l.namedSeparator(v, csv.keyPath("separator"), named)
		}
		if strings.ContainsAny(sep, "\"\r\n") {
			l.ErrorAt(v, csv.keyPath("separator"), "%s cannot separate columns",
				document.Quote(sep)).Hint = "use text without quotes and line breaks"
		}
	}
	w.CRLF = csv.choice("line_end", "lf") == "crlf"
	if v := csv.text("zone"); v != nil {
		if _, err := expr.LoadZone(v.Text); err != nil {
			l.ErrorAt(v, csv.keyPath("zone"), "%s", err).Hint = "a name such as Europe/Berlin or UTC"
		} else {
			w.Zone = v.Text
		}
	}
	w.Quote = csv.choice("quote", QuoteMinimal)
	types := l.outputColumns(d, w)
	if len(w.Columns) > 0 && w.Target == nil {
		l.fileFormat(o, w)
	}
	l.targetColumns(o, w)
	l.formKeys(o, csv, w)
	w.Manifest = o.boolean("manifest")
	l.outputDir(o, w)
	sc := newScope("having").nullable(fileNulls(w)).computed(d.node.SeenByHaving).with("w", types, types != nil)
	if v := o.expression("having"); v != nil {
		w.Having = l.condition(v, o.keyPath("having"), sc)
	}
	l.fileOrder(o, w, types)
	if r := d.node.Reader; w.Order != nil && r != nil && r.ExpectedBatches > 1 && strings.Contains(w.URL, batchRef) {
		key, each := "order", "sorted by itself"
		if w.LimitRows > 0 {
			key = "top"
		}
		if w.LimitRows > 0 && w.LimitRows < DefaultTopLimitRows {
			each += fmt.Sprintf(", with at most %d rows", w.LimitRows)
		}
		l.WarnAt(o.entry(key).Key, o.keyPath(key), "each of the %d files is %s", r.ExpectedBatches,
			each).Hint = "leave {batch_idx} out of the name for one file of all rows"
	}
}

// fileOrder reads the two ways to sort a file's rows: order keeps all of
// them, top the first so many.
func (l *loader) fileOrder(o *object, w *FileWriter, types map[string]expr.Type) {
	top := l.object(o.get("top"), o.keyPath("top"), topShape)
	limit := DefaultTopLimitRows
	if n := top.integer("limit", 0); n > 0 {
		limit = n
	}
	all := o.expression("order")
	if v := top.expression("order"); v != nil {
		w.Order, w.LimitRows = l.orderOf(v, top.keyPath("order"), types), limit
		if all != nil {
			l.ErrorAt(all, o.keyPath("order"), "order and top.order both sort the file").Hint =
				"order keeps all rows, top.order the first top.limit: leave one of them out"
			return
		}
	}
	if all != nil {
		w.Order = l.orderOf(all, o.keyPath("order"), types)
	}
}

func (l *loader) orderOf(v *document.Value, path string, types map[string]expr.Type) expr.Order {
	if types == nil {
		return nil
	}
	order, err := expr.ParseOrder(v.Text, types)
	if err != nil && !mentionsBroken(v.Text, types) {
		l.exprError(v, path, err)
	}
	return order
}

// outputColumns reads the columns and gives their types by name; nil if they
// cannot be known.
func (l *loader) outputColumns(d *nodeDraft, w *FileWriter) map[string]expr.Type {
	o := d.w
	complete := l.shortOutput(d, w)
	w.Separator = cmp.Or(w.Separator, ",")
	items := o.list("columns")
	if len(items) == 0 {
		if v := o.get("columns"); (v == nil || v.Kind == document.List) && complete {
			o.missing("columns", "a file has at least one column", "url_template")
		}
		return nil
	}
	types := map[string]expr.Type{}
	sc := newScope("a file's column").nullable(d.nulls()).with("r", d.reads, d.readsOK)
	names, headers := map[string]bool{}, map[string]*document.Value{}
	for i, item := range items {
		if l.IsFull() {
			return nil
		}
		path := join(o.keyPath("columns"), indexText(i))
		c := l.object(item, path, outputColumnShape)
		if c == nil {
			return nil
		}
		col := l.outputColumn(c, sc, item.Made)
		named := l.nameOutput(c, col, i, names)
		csv := l.object(c.get("csv"), c.keyPath("csv"), csvOutputShape)
		parquet := l.object(c.get("parquet"), c.keyPath("parquet"), parquetOutputShape)
		col.Header, col.Format, col.Parquet = csv.str("header"), csv.str("format"), parquet.str("column_name")
		if i == 0 {
			if !l.columnForm(c, w) {
				l.ErrorAt(c.where(), path, "the first column does not say whether the file is CSV or Parquet").Hint =
					"give the columns csv.header or parquet.column_name"
				return types
			}
		}
		l.nestedOutput(c, w, col)
		switch w.Form {
		case FormParquet:
			l.parquetOutput(c, parquet, col, headers)
		case FormCSV:
			l.csvOutput(c, csv, w, col)
			l.outputNull(w, csv, col)
		default:
			l.namedOutput(c, w, col, headers)
		}
		w.Columns = append(w.Columns, col)
		switch {
		case named:
			types[col.Name] = col.Type
		case c.str("name") != "":
			delete(types, c.str("name")) // which of both it means cannot be said
		}
	}
	if !complete {
		return nil
	}
	return types
}

// outputColumn reads what CSV and Parquet columns have in common. A short
// column has the type of its expression.
func (l *loader) outputColumn(c *object, sc scope, infer bool) *OutputColumn {
	col := &OutputColumn{Pos: l.pos(c.where())}
	if infer {
		col.Type = l.inferType(c, sc, expr.Mode{Round: true})
		c.defaultFormat(col.Type)
	} else {
		col.Type = l.columnType(c, "type")
	}
	col.Nullable = c.boolean("nullable") || col.Type.Nested()
	if v := c.one("expression", "a column needs an expression"); v != nil {
		path := c.keyPath("expression")
		col.Expr = l.compile(v, path, sc, expr.Mode{Round: true, Null: col.Type})
		l.fieldType(v, path, col.Type, col.Expr)
		l.fieldNull(v, path, "column", col.Nullable, col.Expr)
	}
	return col
}

// nestedOutput refuses lists and structs where files and databases have none.
func (l *loader) nestedOutput(c *object, w *FileWriter, col *OutputColumn) {
	if !col.Type.Nested() || w.Target == nil && (w.Form == FormParquet || w.Form == FormJSON) {
		return
	}
	what := "the tables of databases"
	if w.Target == nil {
		what = map[FileForm]string{FormCSV: "CSV files", FormExcel: "Excel sheets", FormIndex: "indexes"}[w.Form]
	}
	l.ErrorAt(c.where(), c.path, "column %s is %s, which %s do not have", document.Quote(col.Name), article(col.Type),
		what).Hint =
		"write Parquet or .ndjson, or list other columns: w.columns; a sql node takes values out of it or makes " +
			"a text of it"
	col.Type = expr.Invalid
}

// nameOutput gives a column its name. One that has none, none that can be
// written as w.<name>, or that of a column before it has a name for messages,
// and none for having, order and top: only they need it.
func (l *loader) nameOutput(c *object, col *OutputColumn, i int, seen map[string]bool) (named bool) {
	col.Name = fmt.Sprintf("#%d", i+1)
	v := c.text("name")
	if v == nil {
		return false
	}
	col.Pos = l.pos(v)
	folded := strings.ToLower(v.Text)
	if !isWord(v.Text) || v.Text[0] >= '0' && v.Text[0] <= '9' || seen[folded] {
		return false
	}
	seen[folded] = true
	col.Name = v.Text
	return true
}

func (l *loader) parquetOutput(c, parquet *object, col *OutputColumn, seen map[string]*document.Value) {
	v := parquet.get("column_name")
	if col.Parquet == "" || v == nil {
		l.ErrorAt(c.where(), c.path, "column %s has no parquet.column_name, but the first column has one",
			document.Quote(col.Name))
		return
	}
	name := strings.ToLower(col.Parquet) // as many readers see it
	if first := seen[name]; first != nil {
		d := l.ErrorAt(v, parquet.keyPath("column_name"), "the Parquet column %s occurs twice",
			document.Quote(col.Parquet))
		d.Related = []document.Pos{l.pos(first)}
		if first.Text != col.Parquet {
			d.Hint = "give it another name than " + document.Quote(first.Text) +
				": many readers do not tell upper from lower case"
		}
	}
	seen[name] = v
	c.ignored("the file is Parquet", "csv")
}

func (l *loader) csvOutput(c, csv *object, w *FileWriter, col *OutputColumn) {
	switch {
	case col.Header == "":
		name := c.str("name")
		if name == "" {
			name = col.Name
		}
		l.WarnAt(c.where(), c.path, "column %s has no csv.header: its header is empty", document.Quote(name))
	case w.Quote == QuoteNone && w.NeedsQuotes(col.Header):
		l.ErrorAt(csv.get("header"), csv.keyPath("header"), "the header %s needs quotes, but csv.quote is none",
			document.Quote(col.Header))
	}
	c.ignored("the file is CSV", "parquet")
	if col.Type == expr.Instant {
		col.Zone = w.Zone
	}
	l.printFormat(c, csv, "csv", col)
}

// printFormat checks how the values of a column are printed, as a part of it, called name, says.
func (l *loader) printFormat(c, part *object, name string, col *OutputColumn) {
	if col.Type == expr.Invalid {
		return
	}
	if col.Type == expr.DateTime && strings.TrimSpace(col.Format) == "" {
		what := map[string]string{"csv": "a CSV file", "index": "an index"}[name]
		l.ErrorAt(c.where(), c.path, "a datetime column of %s needs %s.format", what, name).Hint =
			`a Go layout, such as "2006-01-02 15:04:05"`
		return
	}
	_, err := col.PrintSQL("x")
	severity := document.Error
	if err == nil {
		err, severity = expr.PrintNote(col.Type, col.Format), document.Warning
		if name != "csv" || part != nil && part.v.Made {
			severity = document.Error // only the long form of CSV means what Capillaries writes
		}
	}
	if err != nil {
		if v := part.get("format"); v != nil {
			l.exprError(v, part.keyPath("format"), err).Severity = severity
		} else {
			l.ErrorAt(c.where(), c.path, "column %s needs %s.format: %s", document.Quote(col.Name), name, errorText(err))
		}
	}
}

func errorText(err error) string {
	if e, ok := asExprError(err); ok {
		return e.Message
	}
	return err.Error()
}
