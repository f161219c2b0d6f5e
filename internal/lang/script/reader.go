package script

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
)

// fileReader reads r of a file_table.
func (l *loader) fileReader(ctx context.Context, d *nodeDraft) {
	o := d.r
	d.node.Files = &FileReader{Tolerant: d.node.BadRows != nil}
	if o == nil {
		return
	}
	f := d.node.Files
	f.Pos = l.pos(o.where())
	urls := o.texts("urls")
	for _, v := range urls {
		u := FileURL{URL: v.Text, Pos: l.pos(v)}
		named := v
		if glob, parts := nameParts(v.Text); len(parts) > 0 {
			u.URL, u.Pattern = glob, v.Text
			c := *v
			c.Text, named = glob, &c
		}
		l.inputURL(o, named)
		f.URLs = append(f.URLs, u)
	}
	switch {
	case !o.has("urls"):
		o.missing("urls", "list the input files")
	case len(urls) == 0 && o.get("urls").Kind == document.List && len(o.get("urls").Items) == 0:
		l.ErrorAt(o.get("urls"), o.keyPath("urls"), "urls lists no file")
	}
	l.databaseReader(o, f)
	csv := l.object(o.get("csv"), o.keyPath("csv"), csvReaderShape)
	f.CSV = l.csvReader(csv)
	if !f.Database() {
		f.CSV.Made = l.made(o)
	}
	d.numbers = l.numbers(csv)
	if !csv.has("separator") && o.inShort() && !f.Database() {
		f.CSV.Separator = namedSeparator(f.URLs)
	}
	switch {
	case f.Database():
		f.CSV.Zone = "UTC" // that of the sessions
		l.tableColumns(ctx, d, f)
	case f.CSV.Made != nil:
		l.jsonColumns(ctx, d, f)
	case o.has("types"):
		l.inferColumns(ctx, d, f)
	default:
		l.shortColumns(d)
	}
	l.nameColumns(o, urls)
	columns := l.inputColumns(d, f)
	l.rounded(o, f)
	l.exactDefaults(columns)
	if f.Parquet {
		l.unusedCSV(o, csv, f)
	}
}

// unusedCSV warns of what is said of CSV where the files are Parquet: times in their names may need its zone.
func (l *loader) unusedCSV(o, csv *object, f *FileReader) {
	const why = "the columns say that the files are Parquet"
	if !slices.ContainsFunc(f.Columns, func(c *InputColumn) bool { return c.Part && c.Zone != "" }) {
		o.ignored(why, "csv")
		return
	}
	for _, k := range csvReaderShape.keys {
		if k.name != "zone" {
			csv.ignored(why, k.name)
		}
	}
}

// rounded reads which columns lose digits that their types do not keep.
func (l *loader) rounded(o *object, f *FileReader) {
	v := o.get("round")
	if v == nil {
		return
	}
	if v.Kind != document.List {
		for _, c := range f.Columns {
			c.Round = c.Round || rounds(c.Type) && o.boolean("round")
		}
		return
	}
	for _, name := range o.texts("round") {
		i := slices.IndexFunc(f.Columns, func(c *InputColumn) bool { return c.Name == name.Text })
		switch {
		case i < 0:
			var names []string
			for _, c := range f.Columns {
				names = append(names, c.Name)
			}
			l.ErrorAt(name, o.keyPath("round"), "there is no column %s", document.Quote(name.Text)).Hint =
				document.DidYouMean(name.Text, names)
		case !rounds(f.Columns[i].Type) && f.Columns[i].Type != expr.Invalid:
			l.ErrorAt(name, o.keyPath("round"), "column %s is %s, which is not rounded", document.Quote(name.Text),
				article(f.Columns[i].Type)).Hint = roundedTypes
		default:
			f.Columns[i].Round = true
		}
	}
}

// rounds reports the types whose values can be rounded when they are read.
func rounds(t expr.Type) bool {
	return t.IsDecimal() || t == expr.DateTime || t == expr.Instant || t == expr.Float
}

const roundedTypes = "decimals, floats, datetimes and timestamptz are"

// inShort reports whether a reader of files has columns of Thalweg's short forms.
func (o *object) inShort() bool {
	v := o.get("columns")
	return o.has("types") || v != nil &&
		slices.ContainsFunc(v.Entries, func(e *document.Entry) bool {
			return e.Value.Kind == document.String ||
				isShortMap(e.Value)
		})
}

// namedSeparator returns the separator that the files' names imply, if they agree; otherwise a comma.
func namedSeparator(urls []FileURL) byte {
	named := ""
	for i, u := range urls {
		if sep := address.Separator(u.URL); i == 0 || sep == named {
			named = sep
		} else {
			named = ""
			break
		}
	}
	return cmp.Or(named, ",")[0]
}

// takesSecrets reports whether the client puts secrets into such an address.
func takesSecrets(url string) bool {
	s := address.Scheme(url)
	return s == "http" || s == "https" || address.Database(url)
}

// fileURL checks that a file's address has one of the schemes.
func (l *loader) fileURL(v *document.Value, path string, schemes ...string) {
	if strings.TrimSpace(v.Text) == "" {
		l.ErrorAt(v, path, "the file's address is empty")
		return
	}
	s := address.Scheme(v.Text)
	if s != "" && !slices.Contains(schemes, s) {
		l.ErrorAt(v, path, "%s:// %s are not supported here", s, kindOfScheme(v.Text)).Hint = "a local path, or " +
			strings.Join(schemes, "://, ") + "://"
		return
	}
	if how := address.Mistyped(v.Text); how != "" {
		l.ErrorAt(v, path, "%s %s", document.Quote(address.RedactText(v.Text)), how).Hint = "write " +
			strings.Join(schemes, "://, ") + ":// for an address, or ./NAME for a file of this machine"
		return
	}
	var err error
	if s := address.Scheme(v.Text); (s == "s3" || s == "sftp") && strings.ContainsAny(v.Text, "*?") {
		_, err = address.ParsePattern(strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(v.Text))
	} else if address.Remote(v.Text) {
		l.secretPlaces[v] = takesSecrets(v.Text)
		_, err = address.Parse(l.script.Reveal(v.Text))
	} else {
		_, err = address.Local(v.Text)
	}
	if err != nil {
		f := fault.Of(l.script.hideError(err))
		l.WarnAt(v, path, "%s", f.Message).Hint = f.Hint // only a run that uses it has to do without
	}
}

func kindOfScheme(url string) string {
	if address.Database(url) {
		return "databases"
	}
	return "files"
}

func (l *loader) csvReader(o *object) CSVReader {
	c := CSVReader{Separator: ','}
	c.HeaderRecord = o.integer("hdr_line_idx", 0)
	if c.HeaderRecord < -1 {
		l.WarnAt(o.get("hdr_line_idx"), o.keyPath("hdr_line_idx"), "hdr_line_idx is taken as -1: no header")
		c.HeaderRecord = -1
	}
	c.FirstDataRecord = o.integer("first_data_line_idx", 0)
	if c.FirstDataRecord < 0 {
		l.WarnAt(o.get("first_data_line_idx"), o.keyPath("first_data_line_idx"), "first_data_line_idx is taken as 0")
		c.FirstDataRecord = 0
	}
	if v := o.text("separator"); v != nil && v.Text == "" {
		l.emptySeparator(v, o.keyPath("separator"))
	} else if v != nil {
		c.Separator = v.Text[0]
		if named := separatorNamed(v.Text); named != "" && !l.src.Lenient {
			l.namedSeparator(v, o.keyPath("separator"), named)
		} else if len(v.Text) > 1 {
			l.longSeparator(v, o.keyPath("separator"))
		}
		if strings.ContainsRune("\"\r\n", rune(c.Separator)) || c.Separator >= 0x80 || c.Separator == 0 {
			l.ErrorAt(v, o.keyPath("separator"), "%s cannot separate columns", document.Quote(v.Text)).Hint =
				"use one ASCII character that is neither a quote nor a line break"
		}
	}
	if v := o.text("zone"); v != nil {
		if _, err := expr.LoadZone(v.Text); err != nil {
			l.ErrorAt(v, o.keyPath("zone"), "%s", err).Hint = "a name such as Europe/Berlin or UTC"
		} else {
			c.Zone = v.Text
		}
	}
	if v := o.text("encoding"); v != nil {
		var ok bool
		if c.Charset, ok = filespec.ParseCharset(v.Text); !ok {
			l.ErrorAt(v, o.keyPath("encoding"), "there is no encoding %s", document.Quote(v.Text)).Hint = "known are " +
				strings.Join(filespec.Charsets(), ", ")
		}
	}
	return c
}

// longSeparator is for a separator of several characters. Capillaries takes the first one,
// and the columns that there are then.
func (l *loader) longSeparator(v *document.Value, path string) {
	if !l.src.Lenient && l.ownNode(path) {
		l.ErrorAt(v, path, "a separator is one character, not %s", document.Quote(v.Text)).Hint =
			"write the file with one that no value has, such as a tab: sed 's/" + inSed.Replace(v.Text) +
				`/\t/g' in.csv > in.tsv, and say separator: "\t"`
		return
	}
	l.WarnAt(v, path, "only the first byte of the separator is used")
}

// inSed writes a text as a pattern of sed.
var inSed = strings.NewReplacer(`\`, `\\`, "/", `\/`, ".", `\.`, "*", `\*`, "[", `\[`, "]", `\]`, "^", `\^`, "$", `\$`,
	"'", `'\''`)

// emptySeparator is for a separator of no characters, which Capillaries takes for a comma.
func (l *loader) emptySeparator(v *document.Value, path string) {
	if !l.src.Lenient && l.ownNode(path) {
		l.ErrorAt(v, path, "the separator is empty").Hint =
			`write the character, "\t" for a tab; lines of fields of a fixed width are read as one string and cut in a sql node`
		return
	}
	l.WarnAt(v, path, "the separator is empty: it is taken for a comma")
}

// separatorNamed returns the notation in a script of a separator that is given by its name, such as tab. It
// returns "" if text is no such name.
func separatorNamed(text string) string {
	return map[string]string{"tab": `"\t"`, "tabs": `"\t"`, "tabulator": `"\t"`, `\t`: `"\t"`, "comma": `","`,
		"semicolon": `";"`, "pipe": `"|"`, "bar": `"|"`, "space": `" "`, "blank": `" "`, "caret": `"^"`,
		"colon": `":"`}[strings.ToLower(text)]
}

// namedSeparator reports a separator that is the name of a character.
func (l *loader) namedSeparator(v *document.Value, path, written string) {
	l.ErrorAt(v, path, "a separator is the character itself, not its name %s", document.Quote(v.Text)).Hint =
		"write separator: " + written
}

// numbers reads how numbers are written.
func (l *loader) numbers(o *object) (n Numbers) {
	if v := o.text("decimal"); v != nil {
		n.Comma = v.Text == ","
	}
	v := o.text("thousands")
	if v == nil || v.Text == "" {
		return n
	}
	switch v.Text {
	case "\u00a0", "\u202f", " ":
		n.Thousands = " "
	case "\u2019", "'":
		n.Thousands = "'"
	case ".", ",":
		n.Thousands = v.Text
		if (v.Text == ",") == n.Comma {
			l.ErrorAt(v, o.keyPath("thousands"), "%s is before the decimal digits already",
				document.Quote(v.Text)).Hint =
				`say which is which: decimal: ',', thousands: '.'`
		}
	default:
		l.ErrorAt(v, o.keyPath("thousands"), "%s cannot stand between groups of digits", document.Quote(v.Text)).Hint =
			`use ",", ".", "'" or " "`
	}
	return n
}

// columnDraft is a column of an input file before the kind of file is known.
type columnDraft struct {
	column       *InputColumn
	key          *document.Value
	path         string
	o, csv, parq *object
}

// inputColumns reads the columns, and gives what is known of each.
func (l *loader) inputColumns(d *nodeDraft, f *FileReader) (drafts []*columnDraft) {
	o := d.r
	d.reads, d.readsOK = map[string]expr.Type{}, true
	members := o.members("columns")
	if len(members) == 0 {
		d.readsOK = false
		if v := o.get("columns"); (v == nil || v.Kind == document.Map) && !o.has("types") && !f.Database() &&
			!o.namesDatabase() {
			o.missing("columns", "a file_table names the columns that it reads, or takes them from the files "+
				"with types: {}", "types", "table", "query")
		}
		return nil
	}
	seen := map[string]*document.Value{}
	for _, e := range members {
		path := join(o.keyPath("columns"), e.Name)
		l.fieldName(e.Key, e.Name, path, "column", seen)
		c := &columnDraft{key: e.Key, path: path, column: &InputColumn{Name: e.Name, Pos: l.pos(e.Key)}}
		if c.o = l.object(e.Value, path, columnShape); c.o != nil {
			c.o.at = e.Key
			c.column.Short = c.o.v.Made
			c.column.Type = l.columnType(c.o, "col_type")
			c.column.Default = c.o.str("col_default_value")
			c.column.Nullable = c.o.boolean("nullable") || c.column.Type.Nested()
			c.column.Optional = c.o.boolean("optional")
			if c.column.Round = c.o.boolean("round"); c.column.Round && !rounds(c.column.Type) &&
				c.column.Type != expr.Invalid {
				l.ErrorAt(c.o.get("round"), c.o.keyPath("round"), "column %s is %s, which is not rounded",
					document.Quote(e.Name), article(c.column.Type)).Hint = roundedTypes
			}
			c.column.File = c.o.str("file")
			c.csv = l.object(c.o.get("csv"), c.o.keyPath("csv"), csvColumnShape)
			c.parq = l.object(c.o.get("parquet"), c.o.keyPath("parquet"), parquetColumnShape)
		}
		c.column.Parquet = c.parq.str("col_name")
		c.column.Header = c.csv.str("col_hdr")
		c.column.Index = c.csv.integer("col_idx", 0)
		c.column.Placed = c.column.Short && c.csv.has("col_hdr") && c.csv.has("col_idx")
		c.column.Format = c.csv.str("col_format")
		d.reads[e.Name] = c.column.Type
		d.readsOrder = append(d.readsOrder, e.Name)
		f.Columns = append(f.Columns, c.column)
		drafts = append(drafts, c)
	}
	l.fileKind(d, f, slices.Clone(drafts))
	return drafts
}

// exactDefaults refuses default values that the short forms would round: a cell with
// that text is refused, too.
func (l *loader) exactDefaults(columns []*columnDraft) {
	for _, c := range columns {
		v := c.o.get("col_default_value")
		if v == nil {
			v = c.parq.get("default_value")
		}
		if v == nil || !v.Scalar() {
			continue
		}
		if _, rest, ok := expr.ParseNumberFormat(c.column.Type, c.column.Format).Read(c.column.Default); ok &&
			rest != "" {
			l.leftDefault(c, v, rest)
			continue
		}
		if c.column.Short && c.column.Exact() && !expr.DefaultIsExact(c.column.Type, c.column.Default,
			c.column.Format) {
			l.ErrorAt(v, c.path, "%s does not hold the default value %s exactly", article(c.column.Type),
				document.Quote(c.column.Default)).Hint =
				"write one that it holds, or say round: true of the column"
		}
	}
}

// leftDefault tells of a default value of which the column's format reads a part: Capillaries
// passes over the rest.
func (l *loader) leftDefault(c *columnDraft, v *document.Value, rest string) {
	text, hint := fmt.Sprintf("the format %s leaves %s of the default value over", document.Quote(c.column.Format),
		document.Quote(rest)),
		"write the number alone, or with what the format has around it"
	if c.column.Short {
		l.ErrorAt(v, c.path, "%s", text).Hint = hint
		return
	}
	l.WarnAt(v, c.path, "%s", text).Hint = hint
}

// fileKind decides whether the files are Parquet or CSV from what the columns say.
func (l *loader) fileKind(d *nodeDraft, f *FileReader, drafts []*columnDraft) {
	var parquet, byIndex, byHeader *columnDraft
	for i, c := range drafts {
		if c.column.File != "" {
			l.nameColumn(c, f)
			drafts[i] = nil
		}
	}
	drafts = slices.DeleteFunc(drafts, func(c *columnDraft) bool { return c == nil })
	if f.CSV.Made != nil {
		l.madeFile(f, drafts)
		return
	}
	for _, c := range drafts {
		switch {
		case c.column.Parquet != "":
			parquet = first(parquet, c)
		case c.column.Header != "" || c.column.Placed:
			byHeader = first(byHeader, c)
		case c.column.Index > 0 || len(drafts) == 1:
			byIndex = first(byIndex, c)
		}
	}
	switch {
	case parquet != nil:
		f.Parquet = true
		for _, c := range drafts {
			l.parquetColumn(c, parquet)
		}
	case byHeader != nil || byIndex != nil:
		f.CSV.ByHeader = byHeader != nil
		for _, c := range drafts {
			if c.column.Type == expr.Instant && c.column.Format != "" && !expr.Zoned(c.column.Format) {
				c.column.Zone = f.CSV.Zone
			}
			l.csvColumn(c, f, byHeader, d.numbers)
		}
	default:
		e := l.ErrorAt(d.r.keys["columns"].Key, d.r.keyPath("columns"),
			"the columns do not say whether the files are CSV or Parquet")
		e.Hint = "give each column csv.col_hdr, csv.col_idx or parquet.col_name"
		for _, c := range drafts {
			e.Because(c.whereMisspelled()...)
		}
	}
}

// whereMisspelled are the causes why a column does not say where it is in the files.
func (c *columnDraft) whereMisspelled() (causes []string) {
	for part, keys := range map[string][]string{"csv": {"col_hdr", "col_idx"}, "parquet": {"col_name"}} {
		causes = append(causes, misspelledKey(c.path, part))
		for _, key := range keys {
			causes = append(causes, misspelledKey(join(c.path, part), key))
		}
	}
	return causes
}

func first(have, c *columnDraft) *columnDraft {
	if have != nil {
		return have
	}
	return c
}

func (l *loader) parquetColumn(c, other *columnDraft) {
	if c.o == nil {
		return
	}
	if c.column.Parquet == "" {
		d := l.ErrorAt(c.key, c.path, "column %s has no parquet.col_name, but other columns have one",
			document.Quote(c.column.Name)).Because(c.whereMisspelled()...)
		d.Hint = "the files of one node are either all CSV or all Parquet"
		d.Related = append(d.Related, l.pos(other.key))
	}
	c.o.ignored("the files are Parquet", "csv", "col_default_value")
	c.column.Default = c.parq.str("default_value")
	v := c.parq.get("default_value")
	switch {
	case v == nil || !v.Scalar() || c.column.Type == expr.Invalid:
	case c.column.Nullable:
		l.unusedDefault(v, c, c.parq.keyPath("default_value"), "a null", "leave out one of them")
	case l.emptyDefault(v, c, c.parq.keyPath("default_value")):
	default:
		if _, err := expr.DefaultSQL(c.column.Type, c.column.Default, ""); err != nil {
			l.exprError(v, c.parq.keyPath("default_value"), err)
		}
	}
}

func (l *loader) csvColumn(c *columnDraft, f *FileReader, byHeader *columnDraft, numbers Numbers) {
	if c.o == nil {
		return
	}
	switch {
	case c.column.Type.Nested():
		l.ErrorAt(c.key, c.path, "column %s is %s, which only Parquet files have", document.Quote(c.column.Name),
			article(c.column.Type)).Hint = "read the values within it, with a column for each; JSON has them by path"
		return
	case byHeader != nil && c.column.Header == "" && !c.column.Placed:
		d := l.ErrorAt(c.key, c.path, "column %s is found by index, but other columns are found by header",
			document.Quote(c.column.Name))
		d.Hint = "give all columns csv.col_hdr, or all of them csv.col_idx"
		d.Related = append(d.Related, l.pos(byHeader.key))
		d.Because(c.whereMisspelled()...)
	case byHeader == nil && c.column.Optional:
		l.ErrorAt(c.o.get("optional"), c.o.keyPath("optional"),
			"a column that is found by its index cannot be optional").Hint =
			"find it by its header, or write the files with equally many columns"
	case byHeader != nil:
		if !c.column.Placed {
			c.csv.ignored("the column is found by its header", "col_idx")
		}
		if f.CSV.HeaderRecord < 0 {
			l.ErrorAt(c.csv.get("col_hdr"), c.csv.keyPath("col_hdr"),
				"column %s is found by its header, but hdr_line_idx says that there is none",
				document.Quote(c.column.Name))
		}
	case c.csv.get("col_hdr") != nil && c.csv.get("col_idx") == nil:
		l.WarnAt(c.csv.get("col_hdr"), c.csv.keyPath("col_hdr"),
			"column %s has an empty col_hdr: it is found by its index, which is 0",
			document.Quote(c.column.Name)).Hint = "give it the header, or say csv.col_idx: 0"
	}
	l.columnFormat(c, f)
	if c.column.Format == "" && (c.column.Type == expr.Int || c.column.Type == expr.Float ||
		c.column.Type.IsDecimal()) {
		c.column.Numbers = numbers
	}
	l.columnNulls(c)
}

// columnFormat checks format and default of a CSV column.
func (l *loader) columnFormat(c *columnDraft, f *FileReader) {
	t, format := c.column.Type, c.csv.text("col_format")
	switch {
	case t == expr.Invalid:
		return
	case format != nil && format.Text != "" && (t == expr.String || t == expr.Bool):
		l.ErrorAt(format, c.csv.keyPath("col_format"), "a %s column takes no col_format", t)
		return
	case t == expr.Instant && format == nil && c.csv.get("col_format") != nil:
		return
	case t == expr.DateTime && c.column.Format == "":
		if f.Database() {
			l.ErrorAt(c.key, c.path, "nothing says how the database has the datetime %s",
				document.Quote(c.column.Name)).Hint =
				c.layoutHint() + "; of a number the query makes a text: in SQLite datetime(x, 'unixepoch')"
			return
		}
		l.ErrorAt(c.key, c.path, "a datetime column of a CSV file needs csv.col_format").Hint = c.layoutHint()
		return
	case c.column.Format != "":
		if _, err := c.column.ScanSQL("x"); err != nil {
			l.exprError(format, c.csv.keyPath("col_format"), err)
			return
		}
	}
	if v := c.o.get("col_default_value"); v != nil && v.Scalar() &&
		!l.emptyDefault(v, c, c.o.keyPath("col_default_value")) && c.column.Default != "" {
		if _, err := expr.DefaultSQL(t, c.column.Default, c.column.Format); err != nil {
			l.exprError(v, c.o.keyPath("col_default_value"), err)
		}
	}
}

func (c *columnDraft) layoutHint() string {
	if c.o.v.Made {
		return "write a Go layout behind the type: datetime 2006-01-02 15:04:05"
	}
	return `a Go layout, such as "2006-01-02 15:04:05"`
}

// tableReader resolves r: what r.* is, for all types of nodes.
func (l *loader) tableReader(ctx context.Context, d *nodeDraft) {
	switch d.node.Type {
	case "", SQLTable:
		return
	case FileTable:
		l.fileReader(ctx, d)
		return
	}
	o := d.r
	if o == nil {
		return
	}
	r := &TableReader{}
	d.node.Reader = r
	if r.ExpectedBatches = o.integer("expected_batches_total", 1); r.ExpectedBatches == 0 {
		r.ExpectedBatches = 1
	}
	if r.RowsetSize = o.integer("rowset_size", DefaultRowsetRows); r.RowsetSize == 0 {
		r.RowsetSize = DefaultRowsetRows
	}
	r.Creators = l.readCreators(d)
	d.readsOK = len(r.Creators) > 0
	for _, n := range r.Creators {
		_, _, ok := l.fieldsOf(n)
		d.readsOK = d.readsOK && ok
	}
	if d.readsOK {
		l.sameFields(d, r.Creators)
		d.reads, d.readsOrder = namesAndTypes(r.Fields())
	}
}

// severalTables reports whether nodes of a type may read several tables.
func severalTables(t NodeType) bool { return t == PyTableNode || t == LookupTable }

// readCreators finds the nodes that create what r names: a table, or several.
func (l *loader) readCreators(d *nodeDraft) (out []*Node) {
	o := d.r
	if !o.has("tables") {
		v := o.one("table", "name the table to read")
		if v == nil {
			return nil
		}
		if n := l.creator(v, o.keyPath("table")); n != nil {
			out = append(out, n)
		}
		return out
	}
	path := o.keyPath("tables")
	if o.has("table") {
		l.ErrorAt(o.get("table"), o.keyPath("table"), "a node reads either table or tables")
		return nil
	}
	names := o.texts("tables")
	if len(names) == 0 {
		l.ErrorAt(o.get("tables"), path,
			"tables is empty").Hint = "list the tables that the node reads, in the order in which their rows come"
	}
	for _, v := range names {
		n := l.creator(v, path)
		switch {
		case n == nil:
			return nil // what is missing in the others would not be known
		case slices.Contains(out, n):
			l.ErrorAt(v, path, "table %s is named twice", document.Quote(v.Text)).Hint = "its rows are read once"
			return nil
		default:
			out = append(out, n)
		}
	}
	return out
}

// creator finds the node that creates a table.
func (l *loader) creator(v *document.Value, path string) *Node {
	n := l.script.byTable[v.Text]
	if n == nil {
		l.noCreator(v, path, v.Text)
	}
	return n
}

// sameFields requires that tables which are read one behind the other have the
// same fields, but for those that are nullable where they are.
func (l *loader) sameFields(d *nodeDraft, creators []*Node) {
	for i, n := range creators {
		for _, other := range creators[:i] {
			if l.fieldsDiffer(d.r.texts("tables")[i], d.r.keyPath("tables"), n, other) {
				return
			}
		}
	}
}

func (l *loader) fieldsDiffer(at *document.Value, path string, a, b *Node) bool {
	for _, pair := range [][2]*Node{{a, b}, {b, a}} {
		with, without := pair[0].Table, pair[1].Table
		for _, f := range with.Fields {
			other := without.Field(f.Name)
			switch {
			case other == nil && !f.Nullable:
				l.ErrorAt(at, path, "table %s has a field %s, and table %s has none", document.Quote(with.Name),
					document.Quote(f.Name), document.Quote(without.Name)).Hint =
					"give both the same fields in w.fields, or make it nullable: then it is NULL in " +
						"the rows of " + without.Name
				return true
			case other != nil && other.Type != f.Type:
				l.ErrorAt(at, path, "field %s is %s in table %s and %s in table %s", document.Quote(f.Name), f.Type,
					document.Quote(with.Name), other.Type, document.Quote(without.Name)).Hint =
					"convert it in the w.fields of one of them"
				return true
			}
		}
	}
	return false
}

// fieldsOf gives the fields of the table that a node creates, and whether they
// are known: not yet in a cycle, never after some errors.
func (l *loader) fieldsOf(creator *Node) (map[string]expr.Type, []string, bool) {
	d := l.drafts[creator]
	if d == nil || !d.fieldsOK {
		return nil, nil, false
	}
	types, names := namesAndTypes(creator.Table.Fields)
	return types, names, true
}

func namesAndTypes(fields []*Field) (types map[string]expr.Type, names []string) {
	types, names = make(map[string]expr.Type, len(fields)), make([]string, len(fields))
	for i, f := range fields {
		types[f.Name], names[i] = f.Type, f.Name
	}
	return types, names
}

func fieldTypes(w *TableWriter) map[string]expr.Type {
	types, _ := namesAndTypes(w.Fields)
	return types
}
