package infer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/io/records"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
)

// Files of JSON and workbooks are looked at twice: for the keys of all records, or the header, and
// for the values, of which CSV is made as a run does. What it is made of has types of its
// own: a text is never proposed as a number.

// recordFiles are files of records that are read together.
type recordFiles struct {
	*Proposal
	plain   map[string]string // where the files are of which CSV is made
	labels  map[string]string // of columns of sheets that are read by their letters, what the header calls them
	top     int               // the row where the table of a sheet begins; 0: at its first
	list    []inputFile
	columns []*profile // of the proposal; so are:
	kinds   []records.Value
	errors  []map[string]int64 // texts of cells, with how many have them
}

// recordFile is one file of records.
type recordFile struct {
	inputFile
	all  []records.Found // what its records have
	keys []records.Found // of it, what a script can ask for
	rows int             // with values, in a sheet
	head int             // the row of a sheet's header
}

// survey implements kind.
func (p *recordFiles) survey(ctx context.Context, o Options) ([]inputFile, error) {
	p.Separator, p.HasHeader = ',', true
	p.from = filespec.Spec{Format: p.Format, NoHeader: p.Format == filespec.Workbooks && o.Header == HeaderNo}
	list, err := p.surveyAll(ctx, o)
	if err == nil && p.doubledInSheets(list) {
		err = p.byLetters(ctx, list)
	}
	doubled := map[string]bool{}
	for _, f := range list {
		maps.Copy(doubled, twice(f.all))
	}
	for n := 0; n < len(list) && err == nil; n++ {
		list[n].keys = p.usable(list[n].name, list[n].all, doubled)
		err = p.profileRecords(ctx, n, &list[n], o)
	}
	if err != nil {
		return nil, err
	}
	if p.Format == filespec.Workbooks && o.Header == HeaderGuess && !p.from.NoHeader {
		p.sayOnlyRows(list)
	}
	p.unite(list)
	switch {
	case len(p.Columns) == 0 && len(p.Notes) > 0:
		return nil, &fault.Error{Kind: fault.UserData, Place: fault.Place{File: p.Files[0]},
			Message: "no column of the file has a name of its own: " + p.Notes[0],
			Hint:    "give the columns different names"}
	case len(p.Columns) == 0:
		return nil, &fault.Error{Kind: fault.UserData, Place: fault.Place{File: p.Files[0]},
			Message: "the file has no records", Hint: "name a file that has some"}
	case len(p.Columns) > ColumnsMax:
		return nil, &fault.Error{Kind: fault.UserData, Place: fault.Place{File: p.Files[0]},
			Message: fmt.Sprintf("the records have %d values each; the limit is %d", len(p.Columns), ColumnsMax)}
	}
	return p.list, nil
}

// choose implements kind.
func (p *recordFiles) choose() {
	days := orderOf(p.columns)
	for i := range p.Columns {
		c := &p.Columns[i]
		c.Type = expr.String
		c.choose(p.columns[i], 0, days)
		c.keepKind(p.Format, p.kinds[i], p.columns[i])
		c.errorsAreNull(p.errors[i])
		if names := without(p.list, i); names != "" {
			c.behind += "; not in " + names
		} else if c.Optional {
			c.behind += "; some records are without it"
		}
	}
}

// read implements kind.
func (p *recordFiles) read(ctx context.Context, o Options) (again bool, err error) {
	if err := p.typedCopies(ctx, o); err != nil {
		return false, err
	}
	return p.Proposal.read(ctx, o)
}

// surveyAll looks at each file. Those of another kind than the first are left out.
func (p *recordFiles) surveyAll(ctx context.Context, o Options) (list []recordFile, err error) {
	kept := p.Files[:0:0]
	for n, name := range p.Files {
		kind := p.Format
		if n > 0 {
			if kind, err = p.formatOf(name); err != nil {
				return nil, err
			}
		}
		if kind != p.Format {
			p.leftOut("%s is left out: it is of another kind than %s, so it needs a node of its own", name, p.Files[0])
			continue
		}
		if p.Format == filespec.JSON {
			encoding, err := p.plainText(ctx, name, n, o)
			if err != nil {
				return nil, err
			}
			if p.Encoding = encoding; n > 0 && encoding != "" {
				return nil, &fault.Error{Kind: fault.UserData, Place: fault.Place{File: name},
					Message: "its text is in " + encoding, Hint: "name files of one encoding"}
			}
		}
		p.plain[name] = p.texts[name]
		if p.Format == filespec.Workbooks {
			if err := p.saySheets(ctx, name); err != nil {
				return nil, err
			}
		}
		f := recordFile{inputFile: inputFile{name: name, at: map[int]int{}}}
		if p.Format == filespec.Workbooks && !p.from.NoHeader {
			why := ""
			if f.head, why, err = p.findTable(ctx, name, n == 0, o); err != nil {
				return nil, err
			} else if why != "" {
				p.leftOut("%s is left out: %s, so it needs a node of its own", name, why)
				continue
			}
		}
		if f.all, f.rows, err = p.surveyFile(ctx, name); err != nil {
			return nil, err
		}
		list, kept = append(list, f), append(kept, name)
	}
	p.Files = kept
	return list, nil
}

// doubledInSheets reports whether sheets, all of one header, have the same name for two columns.
func (p *recordFiles) doubledInSheets(list []recordFile) bool {
	headers := func(f recordFile) (out []string) {
		for _, k := range f.all {
			if k.Key != "" {
				out = append(out, k.Letters+" "+k.Key)
			}
		}
		return out
	}
	unlike := func(f recordFile) bool {
		return f.rows == 0 || f.head != list[0].head || !slices.Equal(headers(f), headers(list[0]))
	}
	if p.Format != filespec.Workbooks || p.from.NoHeader || len(list) == 0 || slices.ContainsFunc(list, unlike) {
		return false
	}
	return len(twice(list[0].all)) > 0
}

// twice are the keys that some have more than once.
func twice(found []records.Found) map[string]bool {
	out, seen := map[string]bool{}, map[string]bool{}
	for _, k := range found {
		if seen[k.Key] && k.Key != "" {
			out[k.Key] = true
		}
		seen[k.Key] = true
	}
	return out
}

// byLetters has the columns of sheets read by their letters, from the row behind the header on.
func (p *recordFiles) byLetters(ctx context.Context, list []recordFile) error {
	p.labels = map[string]string{}
	p.from.NoHeader, p.from.Range = true, fmt.Sprintf("A%d", list[0].head+1)
	for n := range list {
		found, rows, err := p.surveyFile(ctx, list[n].name)
		if err != nil {
			return err
		}
		for i, k := range list[n].all {
			p.labels[k.Letters] = k.Key
			own := records.Found{Key: k.Letters, Letters: k.Letters} // without values
			if at := slices.IndexFunc(found, func(f records.Found) bool { return f.Letters == k.Letters }); at >= 0 {
				own = found[at]
			}
			list[n].all[i] = own
		}
		list[n].rows = rows
	}
	p.guessed("columns are read by their letters, because headers are there twice in row %d: "+
		"a run does not look at headers then", list[0].head)
	return nil
}

// profileRecords looks at all values of a file.
func (p *recordFiles) profileRecords(ctx context.Context, n int, f *recordFile, o Options) error {
	spec := p.from
	for _, k := range f.keys {
		spec.Columns = append(spec.Columns, filespec.Column{Path: k.Key, Kind: filespec.Text, Optional: true,
			Nulls: sheetErrors(p.Format)})
	}
	at, err := p.makeCSV(ctx, f.name, filepath.Join(o.WorkDir, fmt.Sprintf("records_%d", n)), spec)
	if err != nil {
		return err
	}
	f.shape = shape{separator: ',', fields: spec.Fields(), made: true}
	err = p.scan(ctx, at, &f.inputFile, o)
	if err == nil && p.Format == filespec.Workbooks {
		p.sayRows(*f)
	}
	return err
}

// usable are the values that a script can ask for by their names. doubled are keys that some file has twice.
func (p *recordFiles) usable(name string, found []records.Found, doubled map[string]bool) (out []records.Found) {
	count := map[string]int{}
	for _, f := range found {
		count[f.Key]++
	}
	var unnamed []string
	for _, f := range found {
		switch {
		case f.Key == "":
			unnamed = append(unnamed, f.Letters)
		case count[f.Key] > 1: // none of them can be asked for
			p.leftOut("column %s of %s has the header of another one, %q: it is left out ({{set no-header}} reads "+
				"columns by their letters)", f.Letters, name, f.Key)
		case doubled[f.Key]:
			p.leftOut("column %q of %s is left out: another file has two columns of that name", f.Key, name)
		case strings.ContainsAny(f.Key, "{}"):
			p.leftOut("%q of %s is left out, because scripts have parameters in braces", f.Key, name)
		default:
			out = append(out, f)
		}
	}
	switch {
	case len(unnamed) == 1:
		p.leftOut("column %s of %s has values and no header: it is left out ({{set no-header}} reads columns by "+
			"their letters)", unnamed[0], name)
	case len(unnamed) > 1:
		const namedMax = 5
		p.leftOut("columns %s of %s have values and no header: they are left out ({{set no-header}} reads columns by "+
			"their letters)", listed(unnamed, namedMax), name)
	}
	return out
}

// sheetErrors are taken for missing values while a sheet is looked at.
func sheetErrors(format filespec.Format) []string {
	if format != filespec.Workbooks {
		return nil
	}
	return []string{"#N/A", "#DIV/0!", "#NULL!", "#NAME?", "#NUM!", "#REF!", "#VALUE!"}
}

// sayRows tells of rows of a sheet that do not exist for scripts.
func (p *recordFiles) sayRows(f recordFile) {
	if n := int64(f.rows) - f.found.bad - f.found.columns[0].rows; n > 0 {
		p.leftOut("%s of %s with values only in columns that are left out: %s with them ({{set no-header}} reads "+
			"columns by their letters)",
			rowsText(n), f.name, map[bool]string{true: "it is left out", false: "they are left out"}[n == 1])
	}
}

// sayOnlyRows tells of sheets whose only row was taken for a header, unless another one has rows below the same.
func (p *recordFiles) sayOnlyRows(list []recordFile) {
	names := func(f recordFile) (out []string) {
		for _, k := range f.keys {
			out = append(out, k.Key)
		}
		return out
	}
	for _, f := range list {
		same := func(other recordFile) bool { return other.rows > 0 && slices.Equal(names(other), names(f)) }
		if f.rows == 0 && !slices.ContainsFunc(list, same) {
			p.guessed("the only row of %s was taken for a header ({{set no-header}} if it is data)", f.name)
		}
	}
}

// surveyFile lists what the records of a file have, and how many rows a sheet has.
func (p *recordFiles) surveyFile(ctx context.Context, name string) (found []records.Found, rows int, err error) {
	f, err := openText(p.texts[name], name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if p.Format == filespec.Workbooks {
		found, rows, err = records.SurveyExcel(ctx, f, f.size, p.from)
		return found, rows, in(name, err)
	}
	s := records.NewSurvey()
	_, err = io.Copy(s, &cancelled{ctx, f})
	if err == nil {
		err = s.Close()
	}
	return s.Found(), 0, in(name, err)
}

// cancelled is a reader that ends with a context.
type cancelled struct {
	ctx context.Context
	io.Reader
}

func (c *cancelled) Read(b []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.Reader.Read(b)
}

// in says of a failure which file it is in.
func in(name string, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	placed := *f
	placed.Place.File = name
	return &placed
}

// makeCSV makes CSV of a file's records, as a run does.
func (p *recordFiles) makeCSV(ctx context.Context, name, path string, spec filespec.Spec) (at string, err error) {
	from, err := openText(p.plain[name], name)
	if err != nil {
		return "", err
	}
	defer from.Close()
	to, err := os.Create(path)
	if err != nil {
		return "", &fault.Error{Kind: fault.Environment, Message: "make a copy of the file's values", Err: err}
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if p.Format == filespec.Workbooks {
		_, err = records.Excel(ctx, to, from, from.size, spec)
		return path, in(name, err)
	}
	w, err := records.NewWriter(to, spec)
	if err != nil {
		return "", err
	}
	if _, err = io.Copy(w, &cancelled{ctx, from}); err == nil {
		err = w.Close()
	}
	return path, in(name, err)
}

// unite lists the columns of all files, in the order in which they are first seen.
func (p *recordFiles) unite(list []recordFile) {
	at := map[string]int{}
	for n, f := range list {
		file := ""
		if len(list) > 1 {
			file = f.name
		}
		for i, key := range f.keys {
			k, known := at[key.Key]
			if !known {
				k = len(p.columns)
				at[key.Key] = k
				p.columns, p.kinds, p.errors = append(p.columns, newProfile(p.seed)), append(p.kinds, records.Nothing),
					append(p.errors, map[string]int64{})
				p.Columns = append(p.Columns,
					Column{Source: key.Key, label: p.labels[key.Key], Index: k, Optional: n > 0})
			}
			p.columns[k].merge(f.found.columns[1+i], file)
			p.kinds[k] = records.Together(p.kinds[k], key.Value)
			for text, n := range key.Errors {
				p.errors[k][text] += n
			}
			p.Columns[k].Optional = p.Columns[k].Optional || key.Missing
			f.at[k] = i
		}
		for k := range p.Columns {
			p.Columns[k].Optional = p.Columns[k].Optional || !f.has(k)
		}
		p.list = append(p.list, f.inputFile)
	}
}

// errorsAreNull takes the errors that cells of a sheet have instead of values for missing ones.
func (c *Column) errorsAreNull(errors map[string]int64) {
	var said []string
	for _, text := range slices.Sorted(maps.Keys(errors)) {
		c.NullTexts = append(c.NullTexts, text)
		said = append(said, grouped(errors[text])+" of "+text)
	}
	if len(said) > 0 {
		c.behind += "; " + strings.Join(said, ", ")
		c.guess = fmt.Sprintf("cells with errors are NULL (%s): see null_text", strings.Join(said, ", "))
	}
}

// saySheets tells of sheets of a workbook that are not read, and if the one that is read is hidden.
func (p *recordFiles) saySheets(ctx context.Context, name string) error {
	f, err := openText(p.texts[name], name)
	if err != nil {
		return err
	}
	defer f.Close()
	sheets, err := records.Sheets(f, f.size)
	if err != nil {
		return in(name, err)
	}
	for i, s := range sheets {
		rows, err := records.TopRows(ctx, f, f.size, filespec.Spec{Format: p.Format, Number: i + 1}, 1)
		switch hidden := map[bool]string{true: " (hidden)"}[s.Hidden]; {
		case err != nil && ctx.Err() != nil:
			return err
		case i == 0 && s.Hidden:
			p.guessed("the first sheet of %s, %s, is hidden: look whether it is the one that is meant (excel: "+
				"{sheet: NAME})", name, quoted(s.Name))
		case i > 0 && err == nil && len(rows) > 0:
			p.leftOut("sheet %s of %s%s is left out: a node reads one sheet, excel: {sheet: %s}",
				quoted(s.Name), name, hidden, plain(s.Name, true))
		}
	}
	return nil
}

// keepKind leaves a column the kind that its values have in the file.
func (c *Column) keepKind(format filespec.Format, kind records.Value, p *profile) {
	texts := func() {
		behind, empty := "", c.empty
		*c = Column{Source: c.Source, label: c.label, Index: c.Index, Optional: c.Optional,
			Type: expr.String, behind: behind, empty: empty}
		if c.Evidence = "no values"; p.filled() > 0 || len(p.nulls) > 0 {
			c.Evidence = fmt.Sprintf("text, %s different in %s, %s … %s", grouped(int64(len(p.different))),
				rowsText(min(p.rows, sampleRows)), quoted(p.least), quoted(p.most))
		}
	}
	timed := c.Type == expr.Date || c.Type == expr.DateTime || c.Type == expr.Instant
	if kind == records.Any && (!timed || format == filespec.JSON && c.NullTexts != nil) {
		texts()
	}
	if kind == records.Moment && timed {
		c.Format = "" // cells that Excel shows as days
	}
	if c.Format == time.RFC3339 && c.Type == expr.Instant {
		c.Format = ""
	}
	c.Nullable = false // all columns of such files can be NULL
}

// typedCopies makes the CSV that a run would read of the files.
func (p *recordFiles) typedCopies(ctx context.Context, o Options) error {
	if _, _, err := p.reader(ctx); err != nil { // says what is made of them now
		return err
	}
	for n, name := range p.Files {
		at, err := p.makeCSV(ctx, name, filepath.Join(o.WorkDir, fmt.Sprintf("typed_%d", n)), p.spec)
		if err != nil {
			return err
		}
		p.texts[name] = at
	}
	return nil
}

// formatOf says what the records of a file are taken from, by what is in it; "": CSV, or Parquet.
func (p *Proposal) formatOf(name string) (filespec.Format, error) {
	f, err := openText(p.texts[name], name)
	if err != nil {
		return "", err
	}
	workbook, wide := files.IsWorkbook(f), files.UTF16Of(f) != ""
	if err := f.Close(); err != nil {
		return "", openFault(name, err)
	}
	if workbook {
		return filespec.Workbooks, nil
	}
	head, err := files.Head(p.texts[name], name, jsonHeadBytes)
	if err != nil {
		return "", err
	}
	if wide { // what JSON begins with are ASCII characters
		head = bytes.TrimLeft(bytes.ReplaceAll(head, []byte{0}, nil), "\xff\xfe")
	}
	what := address.Records(name)
	// It is called so, or is a list, and has no records.
	none := (what == "JSON" || bytes.ContainsRune(head, '[')) && len(bytes.Trim(head, "\ufeff[] \t\r\n")) == 0
	if records.LooksJSON(head) || none {
		return filespec.JSON, nil
	}
	if files.IsWorkbook(bytes.NewReader(head)) {
		return "", &fault.Error{Kind: fault.UserData, Place: fault.Place{File: name},
			Message: "the file is a workbook that is compressed, or another archive, and such are not read",
			Hint:    records.PackedHint}
	}
	if what != "" {
		return "", &fault.Error{Kind: fault.UserData, Place: fault.Place{File: name}, Message: "the file's name says " +
			what + ", but what is in it is none",
			Hint: "JSON files begin with an object, or a list of some; if it is CSV, give it a name that ends in .csv"}
	}
	return "", nil
}

// jsonHeadBytes of a text say whether it is JSON.
const jsonHeadBytes = 64 << 10
