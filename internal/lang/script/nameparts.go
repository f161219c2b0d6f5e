package script

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// namePart is <name type layout> in the name of input files: a column whose values are
// what the files' names have there.
var namePart = regexp.MustCompile(`<([A-Za-z_][A-Za-z0-9_]*)(\s[^<>]*)?>`)

// WholeName is InputColumn.File of a column of the files' names.
const WholeName = "name"

// nameParts takes a name apart: glob has a * for each part.
func nameParts(name string) (glob string, parts [][]int) {
	parts = namePart.FindAllStringSubmatchIndex(name, -1)
	return namePart.ReplaceAllString(name, "*"), parts
}

// NamePattern finds the values of the parts in names of files.
type NamePattern struct {
	short, long *regexp.Regexp // each part as short, and as long as can be
	parts       []string
	hive        []bool
}

// hivePart reports whether a part is the value behind NAME= that is all of a directory's
// name, where what stands for itself in no file name is escaped.
func hivePart(name string, start, end int) bool {
	segment := name[strings.LastIndexByte(name[:start], '/')+1 : start]
	return strings.HasSuffix(segment, "=") && len(segment) > 1 && strings.HasPrefix(name[end:], "/")
}

// ParseNamePattern reads the name of input files that has parts.
func ParseNamePattern(name string) NamePattern {
	var p NamePattern
	var short, long strings.Builder
	literal := func(text string) {
		for _, s := range []*strings.Builder{&short, &long} {
			for i := 0; i < len(text); i++ {
				switch {
				case strings.HasPrefix(text[i:], "**/"):
					s.WriteString("(?:.*/)?")
					i += len("**/") - 1
				case text[i:] == "**" && (i == 0 || text[i-1] == '/'):
					s.WriteString(".*")
					i++
				case text[i] == '*':
					s.WriteString("[^/]*")
				case text[i] == '?':
					s.WriteString("[^/]")
				default:
					s.WriteString(regexp.QuoteMeta(text[i : i+1]))
				}
			}
		}
	}
	_, found := nameParts(name)
	at := 0
	for _, m := range found {
		literal(name[at:m[0]])
		short.WriteString("([^/]+?)")
		long.WriteString("([^/]+)")
		p.parts = append(p.parts, name[m[2]:m[3]])
		p.hive = append(p.hive, hivePart(name, m[0], m[1]))
		at = m[1]
	}
	literal(name[at:])
	p.short = regexp.MustCompile("(?s)^" + short.String() + "$")
	p.long = regexp.MustCompile("(?s)^" + long.String() + "$")
	return p
}

// hiveNull is the value of a directory's name that stands for NULL.
const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// hiveMoment is the layout of datetimes in the names of such directories; fractions of a second follow where
// there are some.
const hiveMoment = time.DateTime

// PartValue is the value of a part in a file's name.
type PartValue struct {
	Text string
	Null bool
}

// Values are those of a file's name, by the names of the parts; nil if it does not match.
// twofold names a part that could be read in two ways.
func (p NamePattern) Values(name string) (values map[string]PartValue, twofold string) {
	short, long := p.short.FindStringSubmatch(name), p.long.FindStringSubmatch(name)
	if short == nil || long == nil {
		return nil, ""
	}
	values = map[string]PartValue{}
	for i, part := range p.parts {
		if short[i+1] != long[i+1] {
			return nil, part
		}
		v := PartValue{Text: short[i+1]}
		if p.hive[i] {
			if v.Null = v.Text == hiveNull; v.Null {
				v.Text = ""
			}
			v.Text = address.Unescape(v.Text)
		}
		values[part] = v
	}
	return values, ""
}

// fileColumnsOf adds the columns that are taken from the names of the files: those of the
// parts in urls, and the one that file_name names.
func (l *loader) nameColumns(o *object, urls []*document.Value) {
	e := o.keys["columns"]
	if e == nil || e.Value.Kind != document.Map {
		return
	}
	columns := own(e)
	add := func(at *document.Value, name, path string, entry *document.Entry) {
		for _, other := range columns.Entries {
			if strings.EqualFold(other.Name, name) {
				l.ErrorAt(at, path, "column %s is one of the files' already",
					document.Quote(name)).Hint = "give what is taken from the files' names another name"
				return
			}
		}
		columns.Entries = append(columns.Entries, entry)
	}
	var first []string
	for i, v := range urls {
		var names []string
		_, parts := nameParts(v.Text)
		for _, m := range parts {
			name := v.Text[m[2]:m[3]]
			if slices.Contains(names, name) {
				l.ErrorAt(v, o.keyPath("urls"), "the part <%s> is there twice", name).Hint = "give each part a " +
					"name of its own"
				return
			}
			names = append(names, name)
			if i == 0 {
				add(v, name, o.keyPath("urls"), partEntry(v, m))
			}
		}
		if i == 0 {
			first = names
		} else if !sameNames(first, names) {
			l.ErrorAt(v, o.keyPath("urls"), "the parts of this name are not those of the first one").Hint =
				"give all names of the node the same parts, or read the files with nodes of their own"
			return
		}
	}
	if v := o.text("file_name"); v != nil {
		short := shortColumn{typ: textAt(v, expr.String.String())}
		add(v, v.Text, o.keyPath("file_name"), fileEntry(v, v.Text, short, WholeName))
	}
}

func sameNames(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// partEntry is the column of a part: its name, and behind that a type.
func partEntry(v *document.Value, m []int) *document.Entry {
	name := v.Text[m[2]:m[3]]
	short := shortColumn{typ: textAt(v, expr.String.String())}
	if m[4] >= 0 && strings.TrimSpace(v.Text[m[4]:m[5]]) != "" {
		typed := textAt(v, strings.TrimSpace(v.Text[m[4]:m[5]]))
		short = parseShortColumn(typed)
	}
	if hivePart(v.Text, m[0], m[1]) {
		short.nullable = short.nullable || short.otherwise == nil
		if short.typ.Text == expr.DateTime.String() && short.layout == nil {
			short.layout = textAt(v, hiveMoment)
		}
	}
	short.required = true
	return fileEntry(v, name, short, "<"+name+">")
}

// fileEntry is the long form of a column that is taken from the names of files.
func fileEntry(at *document.Value, name string, short shortColumn, file string) *document.Entry {
	key := textAt(at, name)
	v := mapAt(at, entryAt(at, "col_type", textAt(at, short.typ.Text)))
	if short.nullable {
		v.Entries = append(v.Entries, entryAt(at, "nullable", trueAt(at)))
	}
	if short.otherwise != nil {
		v.Entries = append(v.Entries, entryAt(at, "col_default_value", textAt(at, short.otherwise.Text)))
	}
	v.Entries = append(v.Entries, entryAt(at, "file", textAt(at, file)))
	if short.layout != nil {
		v.Entries = append(v.Entries,
			entryAt(at, "csv", mapAt(at, entryAt(at, "col_format", textAt(at, short.layout.Text)))))
	}
	return &document.Entry{Name: name, Key: key, Value: v}
}

// nameColumn checks a column that is taken from the files' names.
func (l *loader) nameColumn(c *columnDraft, f *FileReader) {
	v := c.o.get("file")
	if c.column.File != WholeName {
		name, ok := strings.CutPrefix(c.column.File, "<")
		name, closed := strings.CutSuffix(name, ">")
		if !ok || !closed || len(f.URLs) > 0 && !strings.Contains(f.URLs[0].Pattern,
			c.column.File[:len(c.column.File)-1]) {
			l.ErrorAt(v, c.o.keyPath("file"), "the files' names have no part %s", document.Quote(c.column.File)).Hint =
				`write "name" for the whole name, or <PART> as it is in urls: dir/<PART>/*.csv`
			return
		}
		c.column.File = name
		c.column.Part = true
	}
	if c.column.Type.Nested() {
		l.ErrorAt(c.key, c.path, "column %s is %s, which names of files do not have", document.Quote(c.column.Name),
			article(c.column.Type)).Hint = "it is a string there"
		return
	}
	c.o.ignored("the column is taken from the files' names", "parquet", "optional")
	if c.column.Type == expr.Instant && c.column.Format != "" && !expr.Zoned(c.column.Format) {
		c.column.Zone = f.CSV.Zone
	}
	l.columnFormat(c, f)
	l.columnNulls(c)
}
