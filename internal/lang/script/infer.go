package script

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
)

// FileColumn is a column that an input file has.
type FileColumn struct {
	Name string    // its header, or its name in a Parquet file
	Type expr.Type // Parquet: what it can be read as, Invalid if as nothing; CSV: String
	// Parquet: the type in the file, for messages; of a column of a sheet without a header the cell of its first value
	Kind string
	// Required says that a Parquet file, or a table of a database, has no null in it.
	Required bool
	Layout   string // of a datetime of a database: how it is written
	Optional bool   // some records of a JSON file are without it
	Nothing  bool   // Parquet: its type in the file is that of nulls, which every type reads
}

// storedColumn is a FileColumn as runs keep it.
type storedColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Required bool   `json:"required,omitempty"`
	Layout   string `json:"layout,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// MarshalJSON writes a column as runs keep it.
func (c FileColumn) MarshalJSON() ([]byte, error) {
	stored := storedColumn{Name: c.Name, Kind: c.Kind, Required: c.Required, Layout: c.Layout, Optional: c.Optional}
	if c.Type != expr.Invalid {
		stored.Type = c.Type.String()
	}
	return json.Marshal(stored)
}

// UnmarshalJSON reads it.
func (c *FileColumn) UnmarshalJSON(text []byte) error {
	var stored storedColumn
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	*c = FileColumn{Name: stored.Name, Kind: stored.Kind, Required: stored.Required, Layout: stored.Layout,
		Optional: stored.Optional}
	c.Type, _ = expr.ParseType(stored.Type)
	return nil
}

// inferColumns writes r.columns from what the first input file has: types says
// what the columns of a CSV file are, all others are text; columns of a
// Parquet file are what they are, unless types says otherwise.
func (l *loader) inferColumns(ctx context.Context, d *nodeDraft, f *FileReader) {
	o := d.r
	if v := o.get("columns"); v != nil {
		l.ErrorAt(o.keys["types"].Key, o.keyPath("types"), "columns and types cannot both be given").Hint =
			"with types the columns are those of the first file; columns lists them itself"
		l.shortColumns(d)
		return
	}
	declared := o.members("types")
	parquet := l.looksParquet(o)
	have := l.fileColumns(ctx, o, f, parquet)
	if have == nil {
		return
	}
	m := mapAt(o.get("types"))
	used := map[string]bool{}
	headers := make([]string, len(have))
	for i, c := range have {
		headers[i] = c.Name
	}
	f.First = headers
	names := identifiers(headers)
	otherSeparator := oneFieldHint(f.CSV.Separator, parquet, headers)
	if otherSeparator != "" && len(declared) == 0 {
		l.WarnAt(o.get("urls").Items[0], join(o.keyPath("urls"), "0"), "the file has one column, %s",
			document.Quote(headers[0])).Hint = otherSeparator
	}
	var unread []string                                                     // columns, each with its type in the file
	single := len(f.URLs) == 1 && !strings.ContainsAny(f.URLs[0].URL, "*?") // of other files nobody has seen the schema
	at, ok := o.keys["types"].Key, true
	for i, c := range have {
		switch first := slices.Index(headers, c.Name); {
		case c.Name == "":
			l.WarnAt(at, o.keyPath("types"), "column %d of the first file has no header: it is left out", i+1)
			continue
		case first < i:
			l.ErrorAt(at, o.keyPath("types"), "columns %d and %d of the first file are both called %s",
				first+1, i+1, document.Quote(c.Name)).Hint = sharedHint(parquet)
			ok = false
			continue
		}
		short, key := shortColumn{typ: textAt(at, c.Type.String())}, textAt(at, c.Name)
		if e := declaredType(declared, c.Name, names[i]); e != nil {
			used[e.Name] = true
			if !isText(e.Value) && !isShortMap(e.Value) {
				l.ErrorAt(e.Value, join(o.keyPath("types"), e.Name), "a column's type is text, found %s", e.Value.Kind)
				continue
			}
			short, key = l.shortColumn(e.Value, join(o.keyPath("types"), e.Name)), e.Key
		} else if c.Type == expr.Invalid {
			unread = append(unread, document.Quote(c.Name)+" is "+c.Kind)
			continue
		}
		l.warnNumbered(at, o.keyPath("types"), c.Name, names[i])
		short.required = c.Required && single && short.path == nil
		header := c.Name
		if short.path != nil {
			header = l.pathHeader(short, join(o.keyPath("types"), key.Text), false, parquet)
		}
		m.Entries = append(m.Entries, columnEntry(names[i], key, short, header, parquet))
	}
	if ok && len(m.Entries) == 0 && len(declared) == 0 {
		const shownMax = 5
		reason := "none has a name"
		if len(unread) > 0 {
			reason = strings.Join(unread[:min(len(unread), shownMax)], ", ")
		}
		if len(unread) > shownMax {
			reason += fmt.Sprintf(" and %d more", len(unread)-shownMax)
		}
		l.ErrorAt(o.get("urls").Items[0], join(o.keyPath("urls"), "0"), "no column of the file can be read: %s",
			reason).Hint =
			"read are text, numbers, decimals, booleans, dates and timestamps that are no part of lists, " +
				"maps or structs"
	} else {
		for _, column := range unread {
			l.WarnAt(at, o.keyPath("types"), "column %s in the file, which cannot be read: it is left out", column)
		}
	}
	for _, e := range declared {
		if used[e.Name] {
			continue
		}
		if short := l.lacking(e, o, parquet); short != nil {
			header := e.Name
			if short.path != nil {
				header = l.pathHeader(*short, join(o.keyPath("types"), e.Name), false, parquet)
			}
			m.Entries = append(m.Entries, columnEntry(identifier(e.Name), e.Key, *short, header, parquet))
		} else {
			l.ErrorAt(e.Key, join(o.keyPath("types"), e.Name), "the first file has no column %s",
				document.Quote(e.Name)).Hint =
				cmp.Or(otherSeparator, document.DidYouMean(e.Name, headers))
		}
	}
	if ok && len(m.Entries) > 0 {
		o.drop("types")
		o.add("columns", m)
	}
}

// oneFieldHint says of a header with one field that another separator may be meant; "" if it is not so.
func oneFieldHint(separator byte, parquet bool, headers []string) string {
	if parquet || len(headers) != 1 {
		return ""
	}
	for _, other := range []byte(";\t|,") {
		if other != separator && strings.IndexByte(headers[0], other) >= 0 {
			return fmt.Sprintf("the header is one field: say csv: {separator: %q} beside urls", string(other))
		}
	}
	return ""
}

// lacking is a column that is not one of the first file's own: an optional one, or one by a path; nil if it is none.
func (l *loader) lacking(e *document.Entry, o *object, parquet bool) *shortColumn {
	steps, err := filespec.ParsePath(e.Name)
	within := parquet && err == nil && len(steps) > 1
	if !isShortMap(e.Value) && !(within && isText(e.Value)) {
		return nil
	}
	if short := l.shortColumn(e.Value, join(o.keyPath("types"), e.Name)); short.optional != nil ||
		short.path != nil || within {
		return &short
	}
	return nil
}

// sharedHint says what to do about two columns of the same name.
func sharedHint(parquet bool) string {
	if parquet { // whose columns are found by their names only
		return "list the columns that are wanted: columns: {name: type}. " +
			"Of two with the same name neither can be read; write the file with different names"
	}
	return "list the columns and give them csv.col_idx"
}

// declaredType finds the type of a column by its header, or by its name in r.*.
func declaredType(declared []*document.Entry, header, name string) *document.Entry {
	for _, e := range declared {
		if e.Name == header {
			return e
		}
	}
	for _, e := range declared {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// fileColumns asks what the first input file has; nil after an error.
func (l *loader) fileColumns(ctx context.Context, o *object, f *FileReader, parquet bool) []FileColumn {
	at := o.keys["types"].Key
	switch {
	case len(f.URLs) == 0 || strings.TrimSpace(f.URLs[0].URL) == "":
		return nil
	case f.CSV.HeaderRecord < 0 && !parquet:
		l.ErrorAt(at, o.keyPath("types"), "the files have no header to take columns from").Hint =
			"list the columns in their order: columns: {name: type}"
		return nil
	case l.src.Columns == nil:
		l.ErrorAt(at, o.keyPath("types"), "columns cannot be taken from files here").Hint = "list them: columns: " +
			"{name: type}"
		return nil
	}
	if v := o.get("urls").Items[0]; v.Src.IsPending(v.Span()) {
		return nil // the missing parameter is the problem
	}
	columns, err := l.src.Columns(ctx, l.revealed(f.URLs[0].URL), f.CSV, parquet)
	err = l.script.hideError(err)
	if err == nil && len(columns) > MaxInferredColumnsCount {
		err = fault.New(fault.Script, "it has %d columns, the limit is %d", len(columns), MaxInferredColumnsCount)
	}
	if err == nil && len(columns) == 0 {
		err = fault.New(fault.UserData, "it has no columns")
	}
	if err != nil {
		var v = o.get("urls").Items[0]
		name, said := address.Redact(f.URLs[0].URL), err.Error()
		var known *fault.Error
		if errors.As(err, &known) && known.Place.Line == 0 {
			said = errorWithoutPlace(known) // the file is named already
		}
		d := l.ErrorAt(v, o.keyPath("urls"), "cannot take the columns from %s: %s", name, said).Because(noRange)
		d.Cause, d.Hint = err, "the first file has to be there when the script is loaded; or list the columns: "+
			"columns: {name: type}"
		switch {
		case known == nil:
			d.Cause = &fault.Error{Kind: fault.Environment, Message: "reading " + name, Err: err}
		case known.Hint != "": // the file is there: who has looked at it knows better
			d.Hint = known.Hint
		}
		return nil
	}
	l.script.Looked = append(l.script.Looked, columns)
	return columns
}
